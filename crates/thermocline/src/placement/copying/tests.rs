use std::path::Path;

use crate::metrics::Purpose;
use crate::options::{HotRapOptions, Options, Placement, Target};
use crate::storage::Faulty;
use crate::sync::Arc;
use crate::testing::priced::{RECORDS, Store, key, options};
use crate::tier::copy_number;
use crate::version::TableHandle;

/// No index or filter has room in memory, and nearly none in the block cache.
fn without_memory(placement: Placement) -> Options {
    let mut options = options();
    options.placement = placement;
    options.memory = 4 * (32 << 10) + (8 << 10);
    // All that memtables leave.
    options.block_cache = Some(40 << 10);
    options
}

fn store() -> Store {
    aimed(Store::filled_with(without_memory(Placement::ByTable)))
}

/// At a target by which most tables are slow, and none moves any more.
fn aimed(store: Store) -> Store {
    store.db.set_target(Target::Cost(0.15)).unwrap();
    store.settle_for(40);
    store
}

impl Store {
    fn slow_reads(&self) -> u64 {
        let slow = &self.db.engine().tiers[1];
        slow.io(Purpose::UserRead).read_ops
    }

    /// Reads the slow tier's device for every record, so many times each on average.
    fn slow_reads_per_get(&self) -> f64 {
        let before = self.slow_reads();
        let slow = (0..RECORDS).filter(|number| self.tier_of(*number) == 1);
        let numbers: Vec<u32> = slow.collect();
        // Each from another table than the one before.
        for start in 0..40 {
            numbers[start..]
                .iter()
                .step_by(40)
                .for_each(|n| self.check(*n));
        }
        (self.slow_reads() - before) as f64 / numbers.len() as f64
    }

    fn copied(&self) -> u64 {
        self.db.engine().fast().copied_bytes()
    }

    /// Bytes of the tails of all slow tables that are read.
    fn slow_tails(&self) -> u64 {
        let version = self.db.tree().version();
        let is_read = |table: &&Arc<TableHandle>| table.meta.tier == 1 && table.density() > 0.0;
        let slow = version.tables().filter(is_read);
        let tail = |len: u64, data: u64| len - data;
        let tails = slow.map(|handle| {
            let table = handle.lazy.open().unwrap();
            tail(handle.meta.len, table.properties().data_bytes)
        });
        tails.sum()
    }
}

/// Each lookup of a slow table read its filter, its index and the record, one after the other, from
/// the slow disk.
#[test]
fn what_memory_does_not_hold_of_filters_and_indexes_is_read_from_the_fast_tier() {
    let store = store();
    let before = store.slow_reads_per_get();
    assert!(before > 2.5, "{before}");
    // Reads move tables, and what has just moved has been read by nobody.
    for _ in 0..3 {
        store.slow_reads_per_get();
        store.settle_for(2);
    }
    assert_eq!(store.copied(), store.slow_tails());
    let after = store.slow_reads_per_get();
    assert!(after <= 1.0, "{after}");
    let report = store.db.cost().unwrap();
    assert!(report.now <= 0.15 * 1.02, "{report:?}");
}

/// The least that a store can cost is without copies.
#[test]
fn tails_have_what_the_target_leaves_and_no_more() {
    let store = store();
    store.slow_reads_per_get();
    store.read(0..1, 3);
    let all = store.slow_tails();
    assert_eq!(store.copied(), all);
    let floor = store.db.cost().unwrap().floor;
    store.db.set_target(Target::Cost(floor * 1.01)).unwrap();
    store.settle_for(40);
    let report = store.db.cost().unwrap();
    assert!(report.now <= report.floor * 1.01 * 1.02, "{report:?}");
    let (some, all) = (store.copied(), store.slow_tails());
    assert!(some > 0 && some < all, "{some} of {all}");
    store.db.set_target(Target::None).unwrap();
    store.settle_for(40);
    assert_eq!(store.copied(), 0, "all tables are on the fast tier");
}

#[test]
fn tails_that_are_damaged_cost_no_answer() {
    let disk = Faulty::new(1);
    let options = without_memory(Placement::ByTable);
    let store = aimed(Store::on(Arc::new(disk.clone()), options).fill());
    store.slow_reads_per_get();
    store.read(0..1, 3);
    assert!(store.copied() > 0);
    for file in disk.list_raw(Path::new("/fast")) {
        if copy_number(&file.name).is_some() {
            for offset in (0..file.len).step_by(64) {
                disk.corrupt(Path::new("/fast"), &file.name, offset, 1)
                    .unwrap();
            }
        }
    }
    store.check_all();
    assert_eq!(store.copied(), 0, "given up");
}

/// Under placement by hotness tables have copies as well. Tails come first, and go last.
#[test]
fn tails_come_before_whole_tables_and_go_after_them() {
    let by_hotness = without_memory(Placement::HotRap(HotRapOptions::default()));
    let store = aimed(Store::filled_with(by_hotness));
    store.db.set_target(Target::Cost(0.4)).unwrap();
    store.slow_reads_per_get();
    store.read(0..1, 5);
    let (tails, wholes) = store.copies();
    assert!(wholes > 0, "there is room for more than tails");
    // With what a few whole tables cost less, there are fewer of them, and as many tails.
    let fast = store.db.engine().fast();
    let copier = super::Copier::new(true);
    copier.keep_to(store.db.engine(), fast.copied_bytes() / 2);
    let (tails_now, wholes_now) = store.copies();
    assert!(wholes_now < wholes);
    assert_eq!(tails_now, tails);
    let left = fast.free_for_jobs();
    // As the next two, three… claims come, whole tables go first.
    let mut space = Vec::new();
    while store.copies().1 > 0 {
        space.push(fast.reserve(left / 100).unwrap());
        let (tails_now, wholes_now) = store.copies();
        assert!(
            wholes_now == 0 || tails_now == tails,
            "{tails_now} {wholes_now}"
        );
    }
    store.check(0);
    assert!(store.db.get(key(1)).unwrap().is_some());
}

impl Store {
    fn settle_for(&self, seconds: u32) {
        (0..seconds).for_each(|_| self.settle());
    }

    /// How many tails, and how many whole tables, have a copy.
    fn copies(&self) -> (usize, usize) {
        let version = self.db.tree().version();
        let opened = version.tables().filter_map(|table| table.lazy.opened());
        let copied = opened.map(|table| {
            let copies = table.copies();
            (copies.tail.get().is_some(), copies.whole.get().is_some())
        });
        copied.fold((0, 0), |(tails, wholes), (tail, whole)| {
            (tails + usize::from(tail), wholes + usize::from(whole))
        })
    }
}
