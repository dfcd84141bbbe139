//! A placement policy in some fifty lines: the least that the seam asks of one.

use super::{Choice, Joining, PlacementPolicy, Source};
use crate::api::Db;
use crate::engine::Tree;
use crate::executor::Stepped;
use crate::levels::{Hotness, Plan};
use crate::options::{Compression, Options, Placement};
use crate::storage::Memory;
use crate::sync::Arc;
use crate::version::edit::PlacedBy;
use crate::version::{TableHandle, Version};

/// Records whose keys begin with `k` stay on the fast tier.
struct Keeper;

impl PlacementPolicy for Keeper {
    fn hotness<'a>(&'a self, _: &'a Tree, _: &Version) -> Option<Box<dyn Hotness + 'a>> {
        Some(Box::new(Keeper))
    }

    fn choice(&self, _: &Tree, _: &Plan, _: Option<&Joining>) -> Option<Box<dyn Choice>> {
        Some(Box::new(Keeper))
    }

    fn placed_by(&self) -> Option<PlacedBy> {
        None
    }
}

impl Hotness for Keeper {
    fn hot_bytes(&self, table: &TableHandle) -> u64 {
        match table.meta.range.first.starts_with(b"k") {
            true => table.meta.len,
            false => 0,
        }
    }
}

impl Choice for Keeper {
    fn goes_up(&mut self, key: &[u8], source: Source) -> bool {
        key.starts_with(b"k") && source == Source::Upper
    }
}

const VALUE: [u8; 500] = [7; 500];

/// A store over `media` whose records live where `placement` says; by level without one.
fn open(media: &[Arc<Memory>; 2], placement: Option<Arc<dyn PlacementPolicy>>) -> Db {
    let mut options = Options::two_tiers("/fast", 8 << 20, "/slow");
    options.placement = Placement::ByLevel;
    options.tiers[1].compression = Compression::None;
    options.memtable_size = Some(64 << 10);
    let mut builder = Db::builder(options).executor(Arc::new(Stepped::new(1)));
    for (tier, medium) in media.iter().enumerate() {
        builder = builder.medium(tier, Arc::clone(medium) as Arc<_>);
    }
    builder.placement(placement).open().unwrap()
}

/// 300 keys that begin with `first`.
fn keys(first: char) -> impl Iterator<Item = String> {
    (0..300_u32).map(move |number| format!("{first}{number:05}"))
}

fn put_all(db: &Db, first: char) {
    for key in keys(first) {
        db.put(key, VALUE).unwrap();
    }
}

/// Writes twenty thousand other records, so that most has to go down.
fn write_others(db: &Db) {
    for round in 'a'..='j' {
        for number in 0..2000_u32 {
            db.put(format!("{round}{number:05}"), VALUE).unwrap();
        }
    }
    db.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
}

/// Another policy needs nothing but the seam: records stay where it says, all are there, and the
/// next opening, by level, goes on with them.
#[test]
fn a_placement_of_ones_own_decides_where_records_live() {
    let media = <[Arc<Memory>; 2]>::default();
    let db = open(&media, Some(Arc::new(Keeper)));
    put_all(&db, 'k');
    write_others(&db);
    let metrics = db.metrics();
    let on_slow = metrics.levels.iter().map(|level| level.tier_bytes[1]);
    assert!(on_slow.sum::<u64>() > 2 << 20, "most has gone down");
    let before = db.metrics().hits;
    keys('k').for_each(|key| assert!(db.get(key).unwrap().is_some()));
    let after = db.metrics().hits;
    assert_eq!(
        after.tier[0] - before.tier[0],
        300,
        "what is kept has stayed"
    );
    db.close().unwrap();

    let db = open(&media, None);
    assert_eq!(db.iter().count(), 300 + 10 * 2000);
    assert_eq!(db.get("k00007").unwrap().as_deref(), Some(&VALUE[..]));
}

/// Regression: the rules of I1 were each policy's own to keep, and this one, which chose by the key
/// alone, sent a delete down and left the older put where it was: the record was there again.
#[test]
fn whatever_a_placement_chooses_what_is_deleted_stays_so() {
    let media = <[Arc<Memory>; 2]>::default();
    // By level, most goes to the slow tier. So there is something below that a delete goes down to.
    let db = open(&media, None);
    put_all(&db, 'k');
    write_others(&db);
    db.close().unwrap();
    let db = open(&media, Some(Arc::new(Keeper)));
    put_all(&db, 'k');
    // It keeps the newer put below its delete.
    let snapshot = db.snapshot();
    for key in keys('k') {
        db.delete(key).unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    for key in keys('k') {
        let seen = snapshot.get(&key).unwrap();
        assert_eq!(seen.as_deref(), Some(&VALUE[..]), "{key}");
        assert_eq!(db.get(&key).unwrap(), None, "{key}");
    }
}
