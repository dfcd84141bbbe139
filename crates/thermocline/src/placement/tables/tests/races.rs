//! Migrations against everything that may overtake them, and against crashes.

use super::*;
use crate::error::{Error, Result};
use crate::levels::{Manual, Meant, Plan};
use crate::storage::{CrashStyle, Faulty};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::testing::scene::everything;

impl Store {
    /// Lets `act` happen when `point` is reached next. Returns how often it was reached.
    pub(super) fn at(
        &self,
        point: &'static str,
        act: impl FnOnce(&Db) -> Result<()> + Send + 'static,
    ) -> Arc<AtomicU32> {
        let count = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&count);
        let once = Mutex::new(Some((self.db.clone(), act)));
        self.points.set(point, move || {
            counter.fetch_add(1, Ordering::Relaxed);
            let taken = once.lock().take();
            match taken {
                Some((db, act)) => act(&db),
                None => Ok(()),
            }
        });
        count
    }

    /// A migration of the table of `number` to the other tier, not yet run.
    fn start_migration(&self, number: u32) -> Plan {
        let plan = self.pick_migration(number).expect("nothing is in the way");
        self.start(plan.clone());
        plan
    }

    pub(super) fn start(&self, plan: Plan) {
        let engine = self.db.engine();
        engine.start(self.db.tree(), plan).unwrap();
    }

    /// A migration of the table of `number` to the other tier, if it may start.
    pub(super) fn pick_migration(&self, number: u32) -> Option<Plan> {
        let table = self.table_of(number);
        self.pick(|picker| picker.pick_migration(table.meta.id, 1 - table.meta.tier))
    }

    fn pick<T>(&self, choose: impl FnOnce(&crate::levels::Picker<'_>) -> T) -> T {
        let (engine, tree) = (self.db.engine(), self.db.tree());
        let state = tree.state.lock();
        tree.with_picker(engine, &state, true, choose)
    }

    /// A compaction of L0 that meets all tables, or none if it has to wait.
    pub(super) fn pick_l0(&self) -> Option<Plan> {
        self.pick(
            |picker| match picker.pick_range(0, &Meant::all_of(&everything())) {
                Manual::Start(plan) => Some(*plan),
                Manual::Wait | Manual::Done => None,
            },
        )
    }

    pub(super) fn write_l0(&self) {
        for number in [0, RECORDS - 1] {
            self.db.put(key(number), value(number)).unwrap();
        }
        self.db.engine().freeze_all().unwrap();
        self.stepped.drain();
    }
}

pub(super) fn quiet() -> Options {
    let mut options = options();
    (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (100, 200, 300);
    options
}

#[test]
fn a_compaction_and_a_migration_of_one_table_exclude_each_other() {
    let store = Store::filled_with(quiet());
    store.write_l0();
    let migration = store.start_migration(100);
    assert!(store.pick_l0().is_none(), "its input is on the way");
    store.stepped.drain();
    assert_eq!(store.tier_of(100), migration.outputs[0].tier);

    let compaction = store.pick_l0().unwrap();
    store.start(compaction);
    assert!(store.pick_migration(100).is_none(), "it is being merged");
    assert!(stock(store.db.engine()).candidates.is_empty());
    store.stepped.drain();
    store.check_all();
}

/// A plan that something has overtaken is dropped: the table that it names is gone.
#[test]
fn a_migration_that_a_compaction_has_overtaken_does_not_start() {
    let store = Store::filled_with(quiet());
    store.write_l0();
    let late = store.pick_migration(100).unwrap();
    let compaction = store.pick_l0().unwrap();
    store.start(compaction);
    store.stepped.drain();
    let before = store.db.engine().background.compactions.look();
    store.start(late);
    assert!(!before.has_begun_by(store.db.engine().background.compactions.look()));
    store.check_all();
}

#[test]
fn a_reader_from_before_a_migration_reads_on() {
    let store = Store::filled_with(quiet());
    let mut reader = store.db.iter();
    let first = reader.next().unwrap().unwrap();
    let snapshot = store.db.snapshot();
    for number in (0..RECORDS).step_by(200) {
        store.start_migration(number);
        store.stepped.drain();
    }
    assert_eq!(first.0, key(0));
    assert_eq!(reader.count(), RECORDS as usize - 1);
    assert!(snapshot.get(key(100)).unwrap().is_some());
}

#[test]
fn a_keyspace_that_is_dropped_under_its_migration_leaves_nothing() {
    let store = Store::filled_with(quiet());
    let side = store.db.create_keyspace("side").unwrap();
    side.put("key", value(1)).unwrap();
    side.compact_range::<&[u8]>(..).unwrap();
    store.clock.advance(Duration::from_secs(60));
    let (engine, tree) = (store.db.engine(), side.tree());
    let table = Arc::clone(tree.version().tables().next().unwrap());
    let plan = {
        let state = tree.state.lock();
        tree.with_picker(engine, &state, true, |p| {
            p.pick_migration(table.meta.id, 1 - table.meta.tier)
        })
    };
    engine.start(tree, plan.unwrap()).unwrap();
    drop(table);
    let reached = store.at("compaction.before_edit", |db| db.drop_keyspace("side"));
    store.stepped.drain();
    assert_eq!(reached.load(Ordering::Relaxed), 1);
    drop(side);
    store.settle();
    let store = store.reopen(quiet());
    assert_eq!(store.db.recovery().orphans, 0);
    store.check_all();
}

#[test]
fn a_checkpoint_beside_a_migration_is_whole() {
    let store = Store::filled_with(quiet());
    store.start_migration(100);
    let reached = store.at("compaction.before_edit", |db| {
        db.checkpoint(&["/copy-fast".into(), "/copy-slow".into()])
    });
    store.stepped.drain();
    assert_eq!(reached.load(Ordering::Relaxed), 1);
    let mut copied = quiet();
    copied.tiers[0].path = "/copy-fast".into();
    copied.tiers[1].path = "/copy-slow".into();
    let copy = Store::on(Arc::clone(&store.medium), copied);
    copy.check_all();
    store.check_all();
}

/// At each step the table is on one tier or the other, and what the other has is removed.
#[test]
fn a_loss_of_power_at_any_step_of_a_migration_loses_nothing() {
    for point in [
        "compaction.start",
        "compaction.table_written",
        "compaction.before_edit",
        "compaction.installed",
    ] {
        let disk = Faulty::new(1);
        let store = Store::on(Arc::new(disk.clone()), quiet());
        for number in 0..RECORDS {
            store.db.put(key(number), value(number)).unwrap();
        }
        store.db.compact_range::<&[u8]>(..).unwrap();
        store.start_migration(100);
        let from = store.tier_of(100);
        let images = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&images);
        let reached = store.at(point, move |_| {
            for how in [CrashStyle::LoseAll, CrashStyle::KeepAll] {
                kept.lock().push(disk.crash(how));
            }
            Ok(())
        });
        store.stepped.drain();
        assert_eq!(reached.load(Ordering::Relaxed), 1, "{point}");
        let images = std::mem::take(&mut *images.lock());
        for image in images {
            let after = Store::on(Arc::new(image), quiet());
            after.check_all();
            let moved = after.tier_of(100) != from;
            assert_eq!(moved, point == "compaction.installed", "{point}");
            after.db.close().unwrap();
        }
    }
}

/// A migration that fails gives back what it has reserved and written, and the table stays.
#[test]
fn a_migration_that_fails_leaves_the_table_where_it_is() {
    let store = Store::filled_with(quiet());
    let from = store.tier_of(100);
    store.start_migration(100);
    store.at("compaction.table_written", |_| {
        Err(Error::InvalidOption {
            option: "test",
            reason: "it fails".into(),
        })
    });
    store.stepped.drain();
    assert_eq!(store.tier_of(100), from);
    let tiers = &store.db.engine().tiers;
    assert!(
        tiers
            .iter()
            .all(|tier| tier.in_flight() == 0 && tier.reserved_bytes() == 0)
    );
    store.check_all();
}

/// The manifest and the store agree on which of two targets is the later one.
#[test]
fn of_two_targets_set_at_once_the_store_keeps_the_one_that_it_has_after_a_crash() {
    let disk = Faulty::new(1);
    let store = Store::on(Arc::new(disk.clone()), options());
    store.at("target.before_edit", |db| db.set_target(Target::Cost(0.3)));
    store.db.set_target(Target::Cost(0.2)).unwrap();
    let set = store.db.cost().unwrap().target;
    assert_eq!(set, Target::Cost(0.2), "the other came first");
    let after = Store::on(Arc::new(disk.crash(CrashStyle::LoseAll)), options());
    assert_eq!(after.db.cost().unwrap().target, set);
}

#[test]
fn a_target_whose_edit_fails_is_not_set() {
    let store = Store::on(Arc::new(Memory::new()), options());
    store.at("target.before_edit", |_| Err(Error::Closed));
    assert!(store.db.set_target(Target::Cost(0.2)).is_err());
    assert_eq!(store.db.cost().unwrap().target, Target::None);
}

/// Under writes that always make compactions due, a lower target is reached all the same.
#[test]
fn compactions_that_are_always_due_do_not_keep_the_bill_high() {
    let mut options = options();
    options.compaction_threads = 1;
    let store = Store::filled_with(options);
    store.read(0..RECORDS, 1);
    store.db.set_target(Target::Cost(0.15)).unwrap();
    let before = store.db.cost().unwrap().migrated_down_bytes;
    for round in 0..90 {
        for number in 0..200 {
            let number = (number * 37 + round * 11) % RECORDS;
            store.db.put(key(number), value(number)).unwrap();
        }
        // One step at a time, so that something is always due.
        (0..20).for_each(|_| _ = store.stepped.step());
        store.clock.advance(Duration::from_millis(100));
    }
    let down = store.db.cost().unwrap().migrated_down_bytes - before;
    let compactions = store.db.metrics().compactions;
    let jobs: u64 = compactions.iter().map(|of| of.jobs).sum();
    assert!(down > 1 << 20, "{down} bytes went down beside {jobs} jobs");
    store.check_all();
}
