//! A placement policy in some fifty lines: the least that the seam asks of one.

use super::{Brought, DOWN, Joining, PlacementPolicy, Router, Source, UP};
use crate::api::Db;
use crate::engine::Tree;
use crate::executor::Stepped;
use crate::key::{InternalKey, Kind};
use crate::levels::{Hotness, Plan};
use crate::options::{Compression, Options, Placement};
use crate::storage::Memory;
use crate::sync::Arc;
use crate::version::edit::PlacedBy;
use crate::version::{TableHandle, Version};

/// Records whose keys begin with `k` stay on the fast tier.
struct Keeper;

/// Its choice in one crossing.
struct Keeping {
    /// Bytes that may stay, so that something of each crossing goes down.
    may_stay: u64,
}

impl PlacementPolicy for Keeper {
    fn hotness<'a>(&'a self, _: &'a Tree, _: &Version) -> Option<Box<dyn Hotness + 'a>> {
        Some(Box::new(Keeper))
    }

    fn router(&self, _: &Tree, plan: &Plan, _: Option<&Joining>) -> Option<Box<dyn Router>> {
        let input: u64 = plan.upper.raw_bytes();
        let keeping = Keeping {
            may_stay: input / 10 * 9,
        };
        (plan.outputs.len() > 1).then(|| Box::new(keeping) as Box<dyn Router>)
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

impl Router for Keeping {
    fn route(&mut self, key: InternalKey<'_>, len: usize, source: Source, room: u64) -> usize {
        let size = (key.user_key.len() + len) as u64;
        let is_kept = key.user_key.starts_with(b"k") && key.kind == Kind::Put;
        if !is_kept || source == Source::Lower || size > room.min(self.may_stay) {
            return DOWN;
        }
        self.may_stay -= size;
        UP
    }

    fn moved(&self) -> (u64, u64) {
        (0, 0)
    }

    fn brought(&mut self) -> Brought {
        Brought::default()
    }
}

/// Another policy needs nothing but the seam: records stay where it says, all are there, and the
/// next opening, by level, goes on with them.
#[test]
fn a_placement_of_ones_own_decides_where_records_live() {
    const VALUE: [u8; 500] = [7; 500];
    let media = [Arc::new(Memory::new()), Arc::new(Memory::new())];
    let open = |placement: Option<Arc<dyn PlacementPolicy>>| {
        let mut options = Options::two_tiers("/fast", 8 << 20, "/slow");
        options.placement = Placement::ByLevel;
        options.tiers[1].compression = Compression::None;
        options.memtable_size = Some(64 << 10);
        let mut builder = Db::builder(options).executor(Arc::new(Stepped::new(1)));
        for (tier, medium) in media.iter().enumerate() {
            builder = builder.medium(tier, Arc::clone(medium) as Arc<_>);
        }
        builder.placement(placement).open().unwrap()
    };
    let keys = |first: char| (0..300_u32).map(move |number| format!("{first}{number:05}"));
    let db = open(Some(Arc::new(Keeper)));
    for key in keys('k') {
        db.put(key, VALUE).unwrap();
    }
    for round in 'a'..='j' {
        let others = (0..2000_u32).map(|number| format!("{round}{number:05}"));
        for key in others {
            db.put(key, VALUE).unwrap();
        }
    }
    db.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
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

    let db = open(None);
    assert_eq!(db.iter().count(), 300 + 10 * 2000);
    assert_eq!(db.get("k00007").unwrap().as_deref(), Some(&VALUE[..]));
}
