//! A store of one tier is given a second: what is too much for the first goes to the second.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::Medium;
use thermocline::{Backups, Db, Error, Options, Placement, TierOptions};
use thermocline_torture::stores::{memory, open_on, small_options};

const RECORDS: u32 = 16_000;

fn key(n: u32) -> String {
    format!("{n:08}")
}

/// Bytes that do not compress.
fn value(n: u32) -> Vec<u8> {
    let mut value = vec![0; 500];
    SmallRng::seed_from_u64(u64::from(n)).fill(&mut value[..]);
    value
}

fn one_tier() -> Options {
    let mut options = small_options();
    options.tiers = vec![TierOptions::fast("/fast")];
    options
}

/// A store of one tier that holds twice what the fast tier of `small_options` may hold.
fn outgrown(medium: &Arc<dyn Medium>) -> Db {
    let db = open_on(&one_tier(), medium).unwrap();
    for n in 0..RECORDS {
        let n = n.wrapping_mul(7919) % RECORDS;
        db.put(key(n), value(n)).unwrap();
    }
    db.wait_idle().unwrap();
    db
}

fn used(db: &Db) -> Vec<u64> {
    let tiers = db.metrics().tiers;
    tiers.iter().map(|tier| tier.file_bytes).collect()
}

/// Writes go on and nothing is lost. Once the store has come to rest, the fast tier is within its
/// capacity.
fn works_with_two_tiers(options: &Options, medium: &Arc<dyn Medium>, what: &str) {
    let db = open_on(options, medium).unwrap();
    for n in (0..RECORDS).step_by(16) {
        db.put(format!("new{n}"), value(n)).unwrap();
    }
    db.wait_idle().unwrap();
    let capacity = 4 << 20;
    let held = used(&db);
    assert!(
        held[0] <= capacity && held[1] > capacity,
        "{what}: {held:?}"
    );
    for n in 0..RECORDS {
        let found = db.get(key(n)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(n)[..]), "{what}: {n}");
    }
    assert_eq!(db.verify(&mut |_| {}).unwrap().problems.len(), 0, "{what}");
    db.close().unwrap();
    drop(db);
    let db = open_on(options, medium).unwrap();
    let records = (RECORDS + RECORDS / 16) as usize;
    assert_eq!(db.iter().count(), records, "{what}");
}

fn placements() -> [(&'static str, Options); 2] {
    let mut by_level = small_options();
    by_level.placement = Placement::ByLevel;
    [("by hotness", small_options()), ("by level", by_level)]
}

/// Regression: all levels belonged to the fast tier for good. What lay there was over its capacity,
/// no compaction brought any of it down, and every write was refused.
#[test]
fn a_store_of_one_tier_is_opened_with_two() {
    for (what, options) in placements() {
        let medium = memory();
        outgrown(&medium).close().unwrap();
        works_with_two_tiers(&options, &medium, what);
    }
}

#[test]
fn a_backup_of_one_tier_is_restored_to_two() {
    for (what, options) in placements() {
        let (medium, kept) = (memory(), memory());
        let backups = Backups::open_on(&*kept, "/backup").unwrap();
        backups.take(&outgrown(&medium)).unwrap();
        let target = memory();
        let builder = Db::builder(options.clone()).medium(0, Arc::clone(&target));
        let builder = builder.medium(1, Arc::clone(&target));
        backups.restore_with(None, builder).unwrap();
        // A device as small as the tier's capacity has to be enough for the tier.
        let fast = target.table_store("/fast".as_ref(), false).unwrap();
        let files = fast.list().unwrap();
        let bytes: u64 = files.iter().map(|file| file.len).sum();
        assert!(bytes <= 4 << 20, "{what}: {bytes} bytes on the fast tier");
        works_with_two_tiers(&options, &target, what);
    }
}

/// The directory of a disk that is not mounted looks like a new one. It is taken for a new one only
/// if a store may be made, and only until the store has its second tier.
#[test]
fn a_second_tier_that_is_missing_is_no_new_one() {
    let (fast, slow, other) = (memory(), memory(), memory());
    let open = |slow: &Arc<dyn Medium>, create| {
        let mut options = small_options();
        options.create_if_missing = create;
        let builder = Db::builder(options).medium(0, Arc::clone(&fast));
        builder.medium(1, Arc::clone(slow)).open()
    };
    let one_tier = Db::builder(one_tier()).medium(0, Arc::clone(&fast));
    one_tier.open().unwrap().put("key", "value").unwrap();
    slow.table_store("/slow".as_ref(), true).unwrap();
    let refused = open(&slow, false).map(|_| ());
    assert!(matches!(&refused, Err(Error::WrongTier { tier: 1, .. })));
    assert!(refused.unwrap_err().to_string().contains("--create"));
    open(&slow, true).unwrap().close().unwrap();
    let refused = open(&other, true).map(|_| ());
    assert!(matches!(refused, Err(Error::WrongTier { tier: 1, .. })));
    let db = open(&slow, false).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}
