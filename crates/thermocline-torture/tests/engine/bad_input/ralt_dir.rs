//! The directory that is for a store's access records, and what else lies there.

use std::sync::Arc;

use thermocline::storage::Faulty;
use thermocline::{Db, Error, Options};

use super::{FAST, open, tiny_options};

/// Where a store at [`FAST`] keeps its access records.
const INSIDE: &str = "/fast/ralt";

fn inside(disk: &Faulty) -> Db {
    open(disk, &Options::one_tier(INSIDE)).unwrap()
}

fn assert_sound(disk: &Faulty) {
    let db = inside(disk);
    let found = db.get("key").unwrap();
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
    db.close().unwrap();
}

/// Regression: access records are in tables with the same kind of names. Each opening, and a
/// destruction, removed every table that the access records do not know, whoever's it was: all
/// tables of a store that somebody had put there.
#[test]
fn the_tables_of_a_store_that_lies_there_stay() {
    for options in [Options::one_tier(FAST), tiny_options()] {
        let disk = Faulty::new(1);
        let db = inside(&disk);
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        drop(db);
        // The first opening would begin to keep access records, the second uses them.
        for _ in 0..2 {
            let db = open(&disk, &options).unwrap();
            db.put("other", "value").unwrap();
            let hotness = &db.recovery().hotness;
            assert_eq!(hotness.is_some(), options.tiers.len() > 1, "{hotness:?}");
            db.close().unwrap();
            drop(db);
            assert_sound(&disk);
        }
        let mut builder = Db::builder(options.clone());
        for tier in 0..options.tiers.len() {
            builder = builder.medium(tier, Arc::new(disk.clone()));
        }
        builder.destroy().unwrap();
        assert_sound(&disk);
    }
}

/// The tables of a tier would not have stayed either: the slow one was empty after the second
/// opening.
#[test]
fn no_tier_is_put_there_under_any_name() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let db = Db::open(Options::two_tiers(path("fast"), 64 << 20, path("slow"))).unwrap();
    db.put("key", "value").unwrap();
    let copy = path("copy");
    std::fs::create_dir(&copy).unwrap();
    std::os::unix::fs::symlink(&copy, path("alias")).unwrap();
    for slow in [path("copy/ralt"), path("alias/ralt")] {
        for refused in [
            db.checkpoint(&[copy.clone(), slow.clone()]).unwrap_err(),
            Db::open(Options::two_tiers(&copy, 64 << 20, &slow)).unwrap_err(),
        ] {
            assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
            assert!(refused.to_string().contains("access records"), "{refused}");
        }
    }
    let copy = [copy, path("copy-slow")];
    db.checkpoint(&copy).unwrap();
    let opened = Db::open(Options::two_tiers(&copy[0], 64 << 20, &copy[1])).unwrap();
    let found = opened.get("key").unwrap();
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
}
