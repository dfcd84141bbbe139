//! A compaction that several threads work on.

use super::*;
use crate::api::Db;
use crate::clock::ManualClock;
use crate::executor::{Executor, Stepped};
use crate::key::KeyRange;
use crate::levels::{Manual, Meant};
use crate::options::{Options, TierOptions};
use crate::points::Points;
use crate::storage::{Medium, Memory};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::testing::scene::open_stepped;

const RECORDS: u32 = 2000;

/// A store of one tier and tables of 16 KiB: a megabyte on a lower level, and newer versions of all
/// of it in L0.
struct Store {
    db: Db,
    stepped: Arc<Stepped>,
    points: Points,
}

fn key(number: u32) -> String {
    format!("key{number:05}")
}

fn value(number: u32, version: u8) -> Vec<u8> {
    let mut value = vec![version; 500];
    value[..4].copy_from_slice(&number.to_le_bytes());
    value
}

impl Store {
    fn new() -> Self {
        let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
        options.memory = 8 << 20;
        options.memtable_size = Some(64 << 10);
        options.table_size = Some(16 << 10);
        (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (100, 200, 300);
        options.seed = Some(1);
        let (stepped, points) = (Arc::new(Stepped::new(1)), Points::default());
        let medium: Arc<dyn Medium> = Arc::new(Memory::new());
        let clock = Arc::new(ManualClock::default());
        let db = open_stepped(&medium, options, &stepped, clock, &points);
        let store = Self {
            db,
            stepped,
            points,
        };
        store.put_all(1);
        store.db.compact_range::<&[u8]>(..).unwrap();
        store.put_all(2);
        assert!(store.l0() > 1);
        store
    }

    fn put_all(&self, version: u8) {
        for number in 0..RECORDS {
            // In an order that has each table of L0 meet all tables below.
            let number = number * 7 % RECORDS;
            self.db.put(key(number), value(number, version)).unwrap();
        }
        self.db.flush().unwrap();
    }

    fn l0(&self) -> usize {
        self.db.tree().version().levels[0].tables.len()
    }

    /// Starts a compaction of all of L0. Returns how many threads there are for it.
    fn start(&self) -> usize {
        let (engine, tree) = (self.db.engine(), self.db.tree());
        let all = KeyRange {
            first: bytes::Bytes::new(),
            last: bytes::Bytes::from_static(b"z"),
        };
        let state = tree.state.lock();
        let picked = tree.with_picker(engine, &state, true, |picker| {
            picker.pick_range(0, &Meant::all_of(&all))
        });
        drop(state);
        let Manual::Start(plan) = picked else {
            panic!("L0 has tables");
        };
        engine.start(tree, *plan).unwrap();
        self.running()
    }

    fn running(&self) -> usize {
        self.db.engine().background.compactions.look().running()
    }

    /// How many tables there are on the disk, and how many bytes the tier counts.
    fn files(&self) -> (usize, u64) {
        let tier = &self.db.engine().tiers[0];
        let files = tier.tables.list().unwrap();
        let tables = files.iter().filter(|file| file.name.ends_with(".sst"));
        (tables.count(), tier.file_bytes())
    }

    /// Nothing is reserved, and no file is there that is no table.
    fn check_space(&self) {
        let tier = &self.db.engine().tiers[0];
        assert_eq!((tier.reserved_bytes(), tier.in_flight()), (0, 0));
        let tables = self.db.tree().version().tables().count();
        assert_eq!(self.files().0, tables);
    }

    fn check_all(&self) {
        for number in 0..RECORDS {
            let found = self.db.get(key(number)).unwrap();
            assert_eq!(found.as_deref(), Some(&value(number, 2)[..]), "{number}");
        }
    }
}

#[test]
fn threads_merge_its_parts_and_one_edit_installs_all_of_them() {
    let store = Store::new();
    let tables = store.db.tree().version().tables().count();
    let (engine, written) = (Arc::clone(store.db.engine()), Arc::new(AtomicUsize::new(0)));
    let (count, tree) = (Arc::clone(&written), Arc::clone(store.db.tree()));
    store.points.set("compaction.table_written", move || {
        count.fetch_add(1, Ordering::Relaxed);
        assert_eq!(tree.version().tables().count(), tables, "too early");
        Ok(())
    });
    let installed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&installed);
    store.points.set("compaction.before_edit", move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let before = crate::Keyspace::metrics(&store.db);
    assert_eq!(store.start(), engine.options.compaction_threads);
    assert!(engine.options.compaction_threads > 1);
    store.stepped.drain();

    let version = store.db.tree().version();
    assert_eq!(installed.load(Ordering::Relaxed), 1);
    assert_eq!(version.tables().count(), written.load(Ordering::Relaxed));
    assert_eq!((store.l0(), store.running()), (0, 0));
    let after = crate::Keyspace::metrics(&store.db);
    assert_eq!(after.records, u64::from(RECORDS), "{before:?}");
    store.check_all();
    store.check_space();
    assert!(
        engine
            .background
            .divided
            .lock()
            .iter()
            .all(|c| c.upgrade().is_none())
    );
}

/// The others stop at their next step, and nothing of what any of them wrote stays.
#[test]
fn a_failure_of_one_thread_ends_all_of_it() {
    for at in [1, 5, 20] {
        let store = Store::new();
        let (files, tables) = (store.files(), store.l0());
        let written = AtomicUsize::new(0);
        store.points.set("compaction.table_written", move || {
            match written.fetch_add(1, Ordering::Relaxed) + 1 == at {
                true => Err(Error::NoSpace {
                    operation: "go on with",
                    path: "a test".into(),
                }),
                false => Ok(()),
            }
        });
        assert_eq!(store.start(), 2);
        store.stepped.drain();
        assert_eq!(
            (store.l0(), store.files(), store.running()),
            (tables, files, 0)
        );
        store.check_space();
        // What it had locked is free.
        store.points.clear("compaction.table_written");
        store.db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(store.l0(), 0);
        store.check_all();
    }
}

#[test]
fn a_shutdown_in_the_midst_of_it_leaves_nothing_behind() {
    for steps in [0, 1, 2, 7, 20] {
        let store = Store::new();
        let files = store.files();
        assert_eq!(store.start(), 2);
        for _ in 0..steps {
            assert!(store.stepped.step());
        }
        store.stepped.shutdown();
        assert_eq!((store.files(), store.running()), (files, 0), "{steps}");
        store.check_space();
    }
}
