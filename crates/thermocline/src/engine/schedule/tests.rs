mod making_room;
mod waking;
mod without_room;

use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::api::Db;
use crate::engine::Work;
use crate::executor::{Executor, Job, Stepped};
use crate::ids::FileId;
use crate::key::KeyRange;
use crate::levels::{Manual, Meant};
use crate::options::{Options, TierOptions};
use crate::points::Points;
use crate::storage::Memory;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::testing::scene::{F, KEYS, Scene, everything, model, options};
use crate::tier::Reservation;

fn plan_of_l0(db: &Db) -> Plan {
    let (engine, tree) = (db.engine(), db.tree());
    let all = KeyRange {
        first: Bytes::new(),
        last: Bytes::from_static(b"z"),
    };
    let state = tree.state.lock();
    match tree.with_picker(engine, &state, true, |picker| {
        picker.pick_range(0, &Meant::all_of(&all))
    }) {
        Manual::Start(plan) => *plan,
        Manual::Wait | Manual::Done => panic!("L0 has tables"),
    }
}

/// Output was expected to become no longer than its input from the same tier. After an opening that
/// had turned compression off it became several times as long, and so did the part in use of a
/// capacity that is a promise (I8).
#[test]
fn what_is_reserved_does_not_rest_on_how_the_input_was_compressed() {
    let medium = Arc::new(Memory::new());
    let open = |compression| {
        let tier = TierOptions::fast("/fast").compression(compression);
        let mut options = Options::with_tiers(vec![tier]);
        options.l0_trigger = 20;
        let builder = Db::builder(options).medium(0, medium.clone());
        builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
    };
    let db = open(Compression::Lz4);
    for _ in 0..2 {
        for key in 0..50u8 {
            db.put([key], [0; 500]).unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let db = open(Compression::None);
    let plan = plan_of_l0(&db);
    let space = db.engine().reserve_for(&mut plan.clone()).unwrap();
    let reserved: u64 = space.iter().map(Places::left).sum();
    drop(space);
    db.engine().start(db.tree(), plan).unwrap();
    db.wait_idle().unwrap();
    let bytes = db.tree().bytes_on(0);
    let written: u64 = bytes.iter().sum();
    assert!(
        bytes[0] == 0 && written <= reserved,
        "{written} bytes, {reserved} reserved"
    );
}

/// The bound that holds whatever was compressed counts 24 bytes a record. Where nothing is
/// compressed and records are small, it refused jobs that would have fitted.
#[test]
fn what_is_reserved_for_small_records_is_about_their_length() {
    let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
    options.l0_trigger = 20;
    let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
    let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
    for _ in 0..2 {
        for key in 0..2000u32 {
            db.put(format!("a long prefix that all have {key:06}"), [7; 8])
                .unwrap();
        }
        db.flush().unwrap();
    }
    let mut plan = plan_of_l0(&db);
    let space = db.engine().reserve_for(&mut plan).unwrap();
    let reserved: u64 = space.iter().map(Places::left).sum();
    let input: u64 = plan.inputs().map(|table| table.meta.len).sum();
    assert!(
        reserved >= input && reserved <= input + input / 20,
        "{reserved} for {input}"
    );
}

/// Regression: `compact_range` failed with `NoSpace` on a fast tier that was full only for a
/// moment. Its plan found no room while no compaction ran. Before a table of the last fast level
/// could be sent down to make some, another thread had begun a compaction. That one makes room, or
/// makes the plan obsolete, so the plan has to wait for it instead of failing. Threads that read,
/// write and compact the same keys came upon this within a second.
#[test]
fn a_plan_that_another_threads_compaction_kept_from_starting_has_not_failed() {
    let points = Points::default();
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast").capacity(4 << 20),
        TierOptions::slow("/slow"),
    ]);
    options.memory = 4 << 20;
    let medium = Arc::new(Memory::new());
    let db = Db::builder(options)
        .medium(0, medium.clone())
        .medium(1, medium)
        .executor(Arc::new(Stepped::new(1)))
        .points(points.clone())
        .open()
        .unwrap();
    for value in ["old", "new"] {
        db.put("key", value).unwrap();
        db.flush().unwrap();
    }
    let engine = db.engine();
    let tree = engine.tree(0).unwrap();
    let plan = plan_of_l0(&db);
    let free = engine.fast().free_for_jobs();
    let _full = engine.fast().reserve(free).unwrap();
    let other = Arc::clone(engine);
    points.set("compaction.no_crossing", move || {
        other.background.compactions.begin();
        Ok(())
    });
    engine.start_manual(&tree, plan).unwrap();
    assert!(engine.is_compacting(), "it is another's that runs");
    points.clear("compaction.no_crossing");
    engine.background.compactions.end();
}

/// A stopped writer forgets the last failure and queues what is due. If it did so when a compaction
/// had failed and still held its inputs, it queued nothing. The job queued nothing either, and the
/// writer waited for ever.
#[test]
fn a_failure_that_is_forgotten_while_its_job_still_ends_is_made_good() {
    let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
    options.memory = 4 << 20;
    options.memtable_size = Some(16 << 10);
    options.l0_trigger = 2;
    let (points, stepped) = (Points::default(), Arc::new(Stepped::new(1)));
    let db = Db::builder(options)
        .medium(0, Arc::new(Memory::new()))
        .executor(stepped.clone())
        .points(points.clone())
        .open()
        .unwrap();
    let has_failed = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&has_failed);
    points.set("compaction.start", move || {
        match fails.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => Err(Error::NoSpace {
                operation: "write",
                path: "/fast".into(),
            }),
        }
    });
    let engine = Arc::downgrade(db.engine());
    points.set("compaction.failed", move || {
        if let Some(engine) = engine.upgrade() {
            engine.background.clear_all();
            engine.schedule();
        }
        Ok(())
    });
    while !has_failed.load(Ordering::Relaxed) {
        db.put("first", [0; 100]).unwrap();
        db.put("last", [0; 100]).unwrap();
        db.flush().unwrap();
        stepped.drain();
    }
    assert!(db.engine().is_idle(), "what is due is not queued");
}

/// A small store of two tiers.
fn small_store(l0_trigger: usize, points: &Points, executor: Arc<dyn Executor>) -> Db {
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast").capacity(4 << 20),
        TierOptions::slow("/slow").capacity(64 << 20),
    ]);
    options.memory = 4 << 20;
    options.l0_trigger = l0_trigger;
    let medium = Arc::new(Memory::new());
    let builder = Db::builder(options).medium(0, medium.clone());
    let builder = builder.medium(1, medium).points(points.clone());
    builder.executor(executor).open().unwrap()
}

/// Fails as if the slow tier were full.
fn slow_is_full() -> Result<()> {
    Err(Error::NoSpace {
        operation: "write",
        path: "/slow".into(),
    })
}

/// All background work shared one failure. When a full slow tier refused a crossing, that was
/// reported by a flush on the fast tier, a checkpoint and the closing of the store, though each of
/// them had done its work.
#[test]
fn a_compaction_that_fails_keeps_nobody_from_flushing() {
    let points = Points::default();
    let db = small_store(2, &points, Arc::new(Stepped::new(1)));
    points.set("compaction.start", slow_is_full);
    for value in 0..6u8 {
        db.put("first", [value]).unwrap();
        db.put("last", [value]).unwrap();
        db.flush().unwrap();
    }
    assert!(db.tree().pin().immutables.is_empty());
    let refused = db.wait_idle();
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    let shown = db.metrics().background_error.expect("it is still due");
    assert!(shown.contains("/slow"), "{shown}");
    db.put("first", "again").unwrap();
    db.close().unwrap();
}

/// A compaction by hand that failed was picked again at once. If it failed each time, that went on
/// for ever.
#[test]
fn a_compaction_by_hand_reports_its_failure_and_is_not_begun_again() {
    let points = Points::default();
    let db = small_store(8, &points, Arc::new(Stepped::new(1)));
    let reached = AtomicBool::new(false);
    points.set("compaction.table_written", move || {
        match reached.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => slow_is_full(),
        }
    });
    db.put("key", "old").unwrap();
    db.put("other", "old").unwrap();
    db.flush().unwrap();
    db.put("key", "new").unwrap();
    let compacted = db.compact_range::<&[u8]>(..);
    assert!(
        matches!(compacted, Err(Error::NoSpace { .. })),
        "{compacted:?}"
    );
    db.compact_range::<&[u8]>(..).unwrap();
}

/// Takes all the room of the fast tier for itself when a memtable is about to be flushed, and when
/// one has been.
fn fill_fast_tier_at_flushes(db: &Db, points: &Points) -> Arc<Mutex<Vec<Reservation>>> {
    let held = Arc::new(Mutex::new(Vec::new()));
    for point in ["flush.start", "flush.installed"] {
        let (fast, holds) = (Arc::clone(db.engine().fast()), Arc::clone(&held));
        points.set(point, move || {
            holds.lock().extend(fast.reserve(fast.free_for_jobs()));
            Ok(())
        });
    }
    held
}

/// A flush that finds no room waits for a compaction to make some. When that failed, nobody told
/// those who waited for the flush. The flush has to be tried again and to fail by itself, instead
/// of waiting for the same compaction without end. It reports why the compaction failed.
#[test]
fn a_flush_that_waits_for_a_compaction_hears_why_that_failed() {
    // Which of the two comes first is the seed's choice.
    for seed in 1..=8 {
        let points = Points::default();
        let db = small_store(2, &points, Arc::new(Stepped::new(seed)));
        db.put("key", "old").unwrap();
        db.flush().unwrap();
        let held = fill_fast_tier_at_flushes(&db, &points);
        let begun = AtomicUsize::new(0);
        let (slow, holds) = (Arc::clone(&db.engine().tiers[1]), Arc::clone(&held));
        points.set("compaction.start", move || {
            holds.lock().extend(slow.reserve(slow.free_for_jobs()));
            match begun.fetch_add(1, Ordering::Relaxed) {
                0..20 => Err(Error::corruption("/fast/7.sst", 0, "a block")),
                _ => Ok(()),
            }
        });
        // The first flush takes the last space there is. The compaction of the two tables has its
        // space on the slow tier.
        points.clear("flush.start");
        db.put("key", "new").unwrap();
        db.flush().unwrap();
        db.put("key", "newest").unwrap();
        let flushed = db.flush();
        let told = matches!(flushed, Err(Error::Corruption { .. }));
        assert!(told, "{flushed:?} with seed {seed}");
    }
}

/// Each try of the flush began the doomed compaction, and as long as that ran the slow tier was not
/// tried.
#[test]
fn a_flush_goes_to_the_slow_tier_where_the_compaction_that_should_make_room_fails() {
    for seed in 1..=8 {
        let points = Points::default();
        let db = small_store(2, &points, Arc::new(Stepped::new(seed)));
        points.set("compaction.start", slow_is_full);
        db.put("key", "old").unwrap();
        db.flush().unwrap();
        let _held = fill_fast_tier_at_flushes(&db, &points);
        for value in ["new", "newest"] {
            db.put("key", value).unwrap();
            db.flush().unwrap();
        }
        let version = &db.tree().pin().version;
        let tiers: Vec<u8> = version.tables().map(|table| table.meta.tier).collect();
        assert_eq!(tiers, [1, 1, 0], "with seed {seed}");
    }
}

/// Counts how often those who wait are woken.
#[derive(Debug)]
struct Counting {
    stepped: Stepped,
    notified: AtomicUsize,
}

impl Executor for Counting {
    fn spawn(&self, lane: Lane, job: Box<dyn Job>) {
        self.stepped.spawn(lane, job);
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> bool) -> bool {
        self.stepped.wait_until(ready)
    }

    fn notify(&self) {
        self.notified.fetch_add(1, Ordering::Relaxed);
    }

    fn shutdown(&self) {
        self.stepped.shutdown();
    }
}

/// When a compaction cannot begin, no job ends. So nobody woke those who had looked just after
/// another thread had forgotten the last failure.
#[test]
fn a_compaction_that_cannot_begin_is_told_to_those_who_wait_already() {
    let points = Points::default();
    let executor = Arc::new(Counting {
        stepped: Stepped::new(1),
        notified: AtomicUsize::new(0),
    });
    let db = small_store(2, &points, executor.clone());
    let slow = &db.engine().tiers[1];
    let _full = slow.reserve(slow.free_for_jobs()).unwrap();
    db.put("key", "old").unwrap();
    db.flush().unwrap();
    let _held = fill_fast_tier_at_flushes(&db, &points);
    points.clear("flush.start");
    db.put("key", "new").unwrap();
    db.flush().unwrap();

    let background = &db.engine().background;
    background.clear_all();
    let before = executor.notified.load(Ordering::Relaxed);
    db.engine().schedule();
    assert!(background.failure(Work::Compaction).is_some());
    let woken = executor.notified.load(Ordering::Relaxed) - before;
    assert!(woken > 0, "nobody is woken");
}

/// The first keyspace's compactions went before those of all others, however urgent these were.
/// While it had any, another keyspace's L0 filled until all writers were stopped.
#[test]
fn the_most_urgent_compaction_of_all_keyspaces_comes_first() {
    let db = small_store(2, &Points::default(), Arc::new(Stepped::new(1)));
    let (engine, side) = (db.engine(), db.create_keyspace("side").unwrap());
    // All places are taken while tables come.
    let threads = engine.options.compaction_threads;
    (0..threads).for_each(|_| engine.background.compactions.begin());
    for n in 0..8 {
        side.put("key", [n]).unwrap();
        if n < 3 {
            db.put("key", [n]).unwrap();
        }
        db.flush().unwrap();
    }
    let of_l0 = |tree: &Tree| tree.pin().version.levels[0].tables.to_vec();
    assert_eq!((of_l0(db.tree()).len(), of_l0(side.tree()).len()), (3, 8));
    engine.background.compactions.end();
    engine.schedule();
    let runs = |tree: &Tree| {
        let tables = of_l0(tree);
        let running = &tree.state.lock().running;
        tables.iter().any(|table| running.has_input(table))
    };
    assert_eq!((runs(db.tree()), runs(side.tree())), (false, true));
    (1..threads).for_each(|_| engine.background.compactions.end());
    db.wait_idle().unwrap();
    assert!(of_l0(db.tree()).is_empty() && of_l0(side.tree()).is_empty());
}

/// The files of its input waited in the lane of the flushes to be removed. The next compaction
/// found their room taken. It was refused (`NoSpace`), or had a table of the last fast level sent
/// down to make some.
#[test]
fn a_compaction_that_has_ended_has_given_back_what_its_input_took() {
    let stepped = Arc::new(Stepped::new(1));
    let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
    options.l0_trigger = 20;
    let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
    let db = builder.executor(stepped.clone()).open().unwrap();
    for _ in 0..2 {
        for key in 0..50u8 {
            db.put([key], [0; 500]).unwrap();
        }
        db.flush().unwrap();
    }
    let engine = db.engine();
    engine.start(db.tree(), plan_of_l0(&db)).unwrap();
    while engine.is_compacting() {
        assert!(stepped.step());
    }
    assert_eq!(db.tree().bytes_on(0)[0], 0, "L0 was compacted");
    assert_eq!(engine.graveyard.pinned(0).0, 0);
    let held: u64 = db.tree().bytes_on(0).iter().sum();
    assert!(engine.fast().file_bytes() < 2 * held + (64 << 10));
}

/// No test checked that such a plan does not start. After it was picked the lock was let go, and
/// another job of the same tables began and ended. No opening accepts an edit that takes the same
/// tables out once more.
#[test]
fn a_plan_that_was_overtaken_by_a_job_of_its_tables_does_not_start() {
    let scene = Scene::new();
    for version in ["old", "new"] {
        scene.put_all(&KEYS, version);
        scene.db.flush().unwrap();
    }
    let stale = scene.pick(0, &everything(), true);
    scene.lower(0);
    scene.start(stale.expect("a compaction of L0"));
    assert!(!scene.engine().is_compacting());
    let scene = scene.reopen(options());
    scene.check(&model(&KEYS, "new"), &KEYS, "opened again");
}

/// Until it ended, a job held the version that it was picked from, and with it every file that
/// others replaced meanwhile. While a crossing ran on a slow disk, the next compactions found the
/// room of tables taken that were already compacted, and sent tables of the last fast level down to
/// make some.
#[test]
fn a_running_job_does_not_hold_what_others_replace() {
    let scene = Scene::new();
    scene.put_all(&KEYS, "old");
    scene.to_last_fast();
    for version in ["old", "new"] {
        scene.put_all(&["n0", "n1"], version);
        scene.db.flush().unwrap();
    }
    scene.start(scene.crossing());
    let hook = scene.at("crossing.claimed", |scene| {
        let plan = scene.pick(0, &everything(), true);
        scene.start(plan.expect("a compaction of L0"));
        scene.drain();
        assert_eq!(scene.tree().bytes_on(0)[0], 0, "L0 was compacted");
        assert_eq!(scene.engine().graveyard.pinned(0).0, 0);
        Ok(())
    });
    scene.drain();
    assert!(hook.has_run());
    assert_eq!(scene.tree().bytes_on(0)[F], 0, "it has crossed");
}

/// Numbers of the tables on the last fast level.
fn on_last_fast(scene: &Scene) -> Vec<FileId> {
    let tables = &scene.tree().pin().version.levels[F].tables;
    let on_fast = tables.iter().filter(|table| table.meta.tier == 0);
    on_fast.map(|table| table.meta.id).collect()
}

/// Has L0 compacted a minute later, when there is room for its tables and none for the output. Less
/// room is missing than readers hold in obsolete files. Returns the tier of the output.
fn compact_l0_without_room(scene: &Scene) -> u8 {
    let engine = scene.engine();
    engine.clock.sleep(Duration::from_secs(60));
    for _ in 1..engine.sizes.l0_trigger {
        scene.put_all(&["00001", "02000"], "new");
        scene.db.flush().unwrap();
    }
    scene.put_all(&["00001", "02000"], "newer");
    // The flush has room, and a compaction has not.
    let free = engine.fast().free_for_jobs();
    let _taken = engine.fast().reserve(free - (24 << 10)).unwrap();
    scene.db.flush().unwrap();
    scene.drain();
    let version = scene.tree().version();
    assert!(version.levels[0].tables.is_empty(), "L0 was compacted");
    let output = version.tables().next().expect("the output");
    assert_eq!(output.meta.level, 1);
    output.meta.tier
}

/// For minutes a backup held all tables, and so the room of those that were replaced meanwhile. A
/// compaction that found no room had a table of the last fast level sent down. That made none, as
/// the backup held this table too. So it went on until the level was empty. Then the output of the
/// refused compaction went to the slow tier, as it could have at once.
#[test]
fn room_that_a_reader_holds_for_long_empties_no_level() {
    let scene = Scene::new();
    scene.fill_l0(3000);
    scene.to_last_fast();
    let reader = scene.db.iter();
    while scene.engine().graveyard.pinned(0).0 < 200 << 10 {
        scene.start(scene.crossing());
        scene.drain();
    }
    let before = on_last_fast(&scene);
    assert!(before.len() > 10, "{before:?}");
    assert_eq!(compact_l0_without_room(&scene), 1);
    assert_eq!(on_last_fast(&scene), before);
    drop(reader);
}

/// Readers that held enough in obsolete files were taken to hold every table. But an iterator held
/// nothing that had been rewritten since it began, so the level could have made room. Instead all
/// that was compacted went to the slow tier, for as long as the iterator was there.
#[test]
fn what_was_written_since_a_reader_began_gives_the_room_that_it_holds() {
    let scene = Scene::new();
    scene.fill_l0(1000);
    scene.to_last_fast();
    let (old, reader) = (on_last_fast(&scene), scene.db.iter());
    scene.fill_l0(1000);
    scene.to_last_fast();
    let before = on_last_fast(&scene);
    assert!(!before.iter().any(|table| old.contains(table)));
    assert!(scene.engine().graveyard.pinned(0).0 >= 400 << 10);
    assert_eq!(compact_l0_without_room(&scene), 0);
    assert!(on_last_fast(&scene).len() < before.len());
    drop(reader);
}

/// Readers that held enough in obsolete files were taken to hold the tables of all keyspaces. While
/// an iterator was open over a keyspace that was rewritten, the others' tables did not go down, and
/// all that was compacted went to the slow tier.
#[test]
fn a_reader_of_one_keyspace_does_not_keep_the_others_from_making_room() {
    let scene = Scene::new();
    scene.fill_l0(1000);
    scene.to_last_fast();
    let side = scene.db.create_keyspace("side").unwrap();
    let fill = || {
        for key in 0..1000_u32 {
            let value: [u8; 500] = rand::random();
            side.put(key.to_be_bytes(), value).unwrap();
        }
        side.compact_range::<&str>(..).unwrap();
    };
    fill();
    let reader = side.iter();
    fill();
    scene.drain();
    assert!(scene.engine().graveyard.pinned(0).0 >= 400 << 10);
    assert_eq!(compact_l0_without_room(&scene), 0);
    drop(reader);
}
