//! A store of two tiers, with one of them named.

use std::path::Path;
use std::sync::Arc;

use thermocline::storage::Faulty;
use thermocline::{Db, Error, Placement, Result};

use super::{FAST, SLOW, open, tiny_options};

/// Regression: only tables counted. If all of them lay on the fast tier, a store that was opened
/// with that tier alone lost its access records, and its new keyspaces were to stay on that tier
/// for good. A destruction succeeded, and left the slow tier's mark behind.
#[test]
fn the_fast_tier_alone_is_refused_even_if_it_has_all_tables() {
    for placement in [tiny_options().placement, Placement::ByLevel] {
        let disk = Faulty::new(1);
        let mut both = tiny_options();
        both.placement = placement;
        let db = open(&disk, &both).unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        let tiers = db.metrics().tiers;
        assert!(tiers[0].table_bytes > 0 && tiers[1].table_bytes == 0);
        drop(db);
        let files = || [FAST, "/fast/ralt", SLOW].map(|dir| disk.list_raw(Path::new(dir)));
        let before = files();
        let has_records = both.placement != Placement::ByLevel;
        assert_eq!(!before[1].is_empty(), has_records, "{before:?}");

        let mut one = both.clone();
        one.tiers.truncate(1);
        assert_refused(&open(&disk, &one).map(drop));
        let builder = Db::builder(one).medium(0, Arc::new(disk.clone()));
        assert_refused(&builder.destroy());
        assert_eq!(files(), before);
        let db = open(&disk, &both).unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}

fn assert_refused(outcome: &Result<()>) {
    let Err(Error::InvalidOption {
        option: "tiers",
        reason,
    }) = outcome
    else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("name them all"), "{reason}");
}
