//! Directories for a checkpoint.

use thermocline::storage::Faulty;
use thermocline::{Db, Error, Options};

use super::{open, tiny_options};

/// Regression: with both tiers in one directory, the tables were linked, and then the second tier's
/// `TIER` met that of the first. What had been made until then stayed, and was in the way of the
/// next checkpoint.
#[test]
fn a_directory_that_is_named_twice_is_refused_before_anything_is_made() {
    let disk = Faulty::new(1);
    let db = open(&disk, &tiny_options()).unwrap();
    db.put("key", "value").unwrap();
    let refused = db
        .checkpoint(&["/copy".into(), "/copy".into()])
        .unwrap_err();
    assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
    assert!(refused.to_string().contains("/copy"), "{refused}");
    db.checkpoint(&["/copy".into(), "/copy-slow".into()])
        .unwrap();
}

/// Regression: a directory under another name was not recognised. The second tier's `TIER` met that
/// of the first, after the tables of one tier. An opening met a lock of its own, and said that the
/// store was open elsewhere.
#[test]
fn a_directory_that_is_named_by_two_names_is_refused_too() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let db = Db::open(Options::two_tiers(path("fast"), 64 << 20, path("slow"))).unwrap();
    db.put("key", "value").unwrap();
    let (copy, alias) = (path("copy"), path("alias"));
    std::fs::create_dir(&copy).unwrap();
    std::os::unix::fs::symlink(&copy, &alias).unwrap();
    for refused in [
        db.checkpoint(&[copy.clone(), alias.clone()]).unwrap_err(),
        Db::open(Options::two_tiers(&copy, 64 << 20, &alias)).unwrap_err(),
    ] {
        assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
        assert!(refused.to_string().contains("alias"), "{refused}");
    }
    let copy = [copy, path("copy-slow")];
    db.checkpoint(&copy).unwrap();
    let opened = Db::open(Options::two_tiers(&copy[0], 64 << 20, &copy[1])).unwrap();
    let found = opened.get("key").unwrap();
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
}

/// Regression: the files that a store locks stay when it is destroyed. They were taken for files of
/// a store, so a checkpoint could not be made again where an older one had been.
#[test]
fn a_checkpoint_goes_where_one_was_destroyed_and_not_beside_files() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let db = Db::open(Options::two_tiers(path("fast"), 64 << 20, path("slow"))).unwrap();
    let copy = [path("copy-fast"), path("copy-slow")];
    let options = Options::two_tiers(&copy[0], 64 << 20, &copy[1]);
    for value in ["first", "second"] {
        db.put("key", value).unwrap();
        db.checkpoint(&copy).unwrap();
        let opened = Db::open(options.clone()).unwrap();
        let found = opened.get("key").unwrap();
        assert_eq!(found.as_deref(), Some(value.as_bytes()));
        opened.close().unwrap();
        drop(opened);
        Db::destroy(&options).unwrap();
    }
    std::fs::write(copy[1].join("notes.txt"), "of somebody").unwrap();
    let refused = db.checkpoint(&copy).unwrap_err();
    assert!(refused.to_string().contains("notes.txt"), "{refused}");
}
