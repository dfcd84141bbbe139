//! Whatever is hot and whatever is held, crossings make room and writers go on.

use std::time::Duration;

use crate::Db;
use crate::read::Range;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex};
use crate::testing::scene::{F, KEYS, Scene, options};

/// What all tables of level f hold.
fn last_fast(db: &Db) -> u64 {
    db.metrics().levels[F].bytes
}

/// A crossing of a table whose records are all hot brings at least a tenth of it down. With small
/// tables the allowance for runs of hot records was larger than a table: nothing went down, level f
/// stayed over its target, and compactions never came to an end. The crossing must not bring down
/// much more than a tenth either: when it was a quarter, a hotspot beside a stream of new records
/// lost records with each crossing, and read them back.
#[test]
fn a_crossing_makes_room_even_where_all_is_hot() {
    let keys: Vec<String> = (0..60).map(|n| format!("m{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let scene = Scene::new();
    scene.put_all(&keys, "old");
    scene.to_last_fast();
    scene.heat(&keys);
    let mut before = last_fast(&scene.db);
    for _ in 0..3 {
        scene.cross();
        let after = last_fast(&scene.db);
        assert!(after > 0, "hot records stay");
        assert!(after * 20 < before * 19, "{after} of {before}");
        assert!(after * 5 > before * 4, "{after} of {before}");
        before = after;
    }
}

/// When one record larger than the fast tier was read, all of the last fast level went down, table
/// by table, for room that could never be.
#[test]
fn nothing_goes_down_for_a_record_that_can_never_have_room() {
    let mut larger = options();
    larger.tiers[0].capacity = 8 << 20;
    let scene = Scene::with(larger);
    assert_eq!(usize::from(scene.tree().last_fast_level), F);
    let mut value = vec![0; 4 << 20];
    rand::fill(&mut value[..]);
    scene.db.put("large", &value).unwrap();
    scene.to_slow();
    let scene = scene.reopen(options());
    scene.fill_l0(1000);
    scene.to_last_fast();
    let before = scene.tree().bytes_of_f();
    assert!(before > 400 << 10, "{before}");
    assert!(scene.db.get("large").unwrap().is_some());
    scene.drain();
    assert_eq!(scene.tree().bytes_of_f(), before);
    assert_eq!(scene.tree().placed.gate.bytes(), 0, "it is given up");
}

/// In the authors' code records newer than a snapshot are sent back to the level they came from:
/// while a snapshot is held, compactions spin and writes stop. Here only hotness keeps a record up,
/// and not even hotness keeps all records up.
#[test]
fn a_held_snapshot_never_keeps_writers_from_going_on() {
    const CAPACITY: u64 = 512 << 10;
    for is_all_hot in [false, true] {
        let mut options = options();
        options.tiers[0].capacity = CAPACITY;
        options.memtable_size = Some(16 << 10);
        (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (2, 8, 12);
        options.level_ratio = 4;
        let scene = Scene::with(options);
        let key = |n: usize| format!("m{:03}", n * 7919 % 400);
        (0..400).for_each(|n| scene.put(&key(n), "first"));
        let snapshot = scene.db.snapshot();
        if is_all_hot {
            let keys: Vec<String> = (0..400).map(key).collect();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            scene.heat(&keys);
        }
        for round in 0..6 {
            for n in 0..400 {
                scene.put(&key(n), &format!("round {round}"));
                if n % 5 == 0 {
                    assert!(scene.get(&key(n * 3)).is_some());
                }
            }
        }
        scene.db.wait_idle().unwrap();
        let metrics = scene.db.metrics();
        let crossings: u64 = metrics
            .compactions
            .iter()
            .filter(|c| usize::from(c.from) == F)
            .map(|c| c.jobs)
            .sum();
        // 2800 records of half a kilobyte came in, 32 or so to a table.
        assert!((20..2000).contains(&crossings), "{crossings}");
        let level = &metrics.levels[F];
        assert!(level.bytes <= level.target_bytes, "{level:?}");
        assert!(metrics.tiers[0].file_bytes <= CAPACITY);
        for n in (0..400).step_by(7) {
            assert_eq!(scene.get(&key(n)).as_deref(), Some("round 5"));
            let first = snapshot.get(key(n)).unwrap();
            assert!(first.is_some_and(|value| value.starts_with(b"first/")));
        }
    }
}

/// Two writers have stopped for want of room on the fast tier. One of them finds that nothing is
/// under way. Before it looks for a table to send down, the other sends all of level f down. The
/// first one found all tables taken and reported a tier without room, while room was being made.
#[test]
fn a_stopped_writer_waits_for_the_room_that_another_is_making() {
    let scene = Scene::new();
    scene.put_all(&KEYS, "old");
    scene.to_last_fast();
    let space = scene.take_all_space();
    let hook = scene.at("stall.stuck", |scene| {
        while scene.engine().start_crossing() {}
        Ok(())
    });
    let engine = scene.engine();
    let largest = engine.fast().free_bytes() - engine.sizes.memtable_size;
    let made = last_fast(&scene.db) / 2;
    scene
        .db
        .put("n", vec![0; (largest + made) as usize])
        .unwrap();
    assert!(hook.has_run());
    assert_eq!(last_fast(&scene.db), 0);
    drop(space);
}

/// A flush finds no room while a compaction runs that will make some. The compaction ends before
/// the flush looks whether one runs. This was taken for a failure, and the next writer was told of
/// a full tier.
#[test]
fn a_flush_that_a_compaction_has_just_made_room_for_is_tried_again() {
    let scene = Scene::new();
    scene.put_all(&KEYS, "old");
    scene.to_last_fast();
    scene.put("n", "new");
    scene.freeze();
    scene.start(scene.crossing());
    let engine = scene.engine();
    let taken = engine.fast().free_bytes();
    engine.fast().add_file_bytes(taken);
    let hook = scene.at("flush.refused", |scene| {
        while scene.engine().is_compacting() {
            assert!(scene.stepped.step());
        }
        Ok(())
    });
    // The executor may take either of the two first.
    while !hook.has_run() && scene.engine().is_compacting() {
        assert!(scene.stepped.step());
    }
    assert!(hook.has_run() && engine.background.error().is_none());
    scene.db.flush().unwrap();
    assert_eq!(scene.get("n").as_deref(), Some("new"));
    engine.fast().remove_file_bytes(taken);
}

/// All files on the fast tier were removed while a reader held them. A writer used to report a tier
/// without room at once; under a heavy load a few slow readers were enough.
#[test]
fn a_stopped_writer_waits_for_readers_of_removed_files() {
    let scene = Scene::new();
    scene.put_all(&KEYS, "old");
    scene.to_last_fast();
    let held = last_fast(&scene.db);
    let reader = Mutex::new(Some(scene.db.iter()));
    scene.cross();
    assert_eq!(last_fast(&scene.db), 0);
    put_as_readers_let_go(&scene, reader, held / 2);
}

/// Writes `more` bytes beyond the room that there is. `reader` lets go as the writer begins to wait
/// for it.
fn put_as_readers_let_go(scene: &Scene, reader: Mutex<Option<Range>>, more: u64) {
    let lets_go = move || drop(reader.lock().take());
    put_without_room(scene, more, lets_go);
}

/// Writes `more` bytes beyond the room that there is. `as_it_waits` happens as the writer begins to
/// wait for readers.
fn put_without_room(scene: &Scene, more: u64, as_it_waits: impl FnOnce() + Send + 'static) {
    let _space = scene.take_all_space();
    let hook = scene.at("stall.held", move |_| {
        as_it_waits();
        Ok(())
    });
    let engine = scene.engine();
    let largest = engine.fast().free_bytes() - engine.sizes.memtable_size;
    scene
        .db
        .put("n", vec![0; (largest + more) as usize])
        .unwrap();
    assert!(hook.has_run());
}

/// A reader held every table of level f. A writer that found no room sent them all down, one after
/// the other, which made no room, and only then waited for the reader.
#[test]
fn a_stopped_writer_sends_no_more_down_where_a_reader_holds_what_went() {
    let scene = Scene::new();
    scene.fill_l0(1000);
    scene.to_last_fast();
    let tables = || scene.tree().pin().version.levels[F].tables.len();
    let before = tables();
    assert!(before > 10, "{before}");
    let reader = Mutex::new(Some(scene.db.iter()));
    put_as_readers_let_go(&scene, reader, 4096);
    assert_eq!(tables(), before - 1);
}

/// For a moment a read of a key held what a stopped writer had just sent down. An iterator had held
/// as much all the while, so the writer was taken to wait for the iterator, to the end of its
/// patience: ten seconds, with a level full of tables that nobody held.
#[test]
fn a_stopped_writer_goes_on_once_a_read_has_let_go_whatever_others_hold() {
    let scene = Scene::new();
    scene.fill_l0(100);
    scene.to_last_fast();
    let reader = scene.db.iter();
    scene.fill_l0(1000);
    scene.to_last_fast();
    let engine = scene.engine();
    let held = engine.graveyard.pinned(0).0;
    assert!(held > 16 << 10, "{held}");
    let version = scene.tree().version();
    let lens = version.levels[F].tables.iter().map(|table| table.meta.len);
    // More than one table gives.
    let more = lens.max().unwrap() + 4096;
    drop(version);
    let read = Arc::new(Mutex::new(None));
    let pins = Arc::clone(&read);
    let hook = scene.at("stall.stuck", move |scene| {
        *pins.lock() = Some(scene.tree().pin());
        Ok(())
    });
    let stopped = || Duration::from_nanos(engine.stall.stopped_nanos.load(Ordering::Relaxed));
    let before = stopped();
    put_without_room(&scene, more, move || drop(read.lock().take()));
    let waited = stopped() - before;
    assert!(hook.has_run());
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    drop(reader);
}

/// Tracking that finds no room on the fast tier waits until there may be some. It used to be queued
/// again at once, for ever: the thread spun, and `wait_idle` never returned.
#[test]
fn tracking_without_room_comes_to_an_end_and_goes_on_when_there_is_some() {
    let scene = Scene::with_old(&["m"]);
    let engine = scene.engine();
    let ralt = &engine.hotrap().ralt;
    let space = scene.take_all_space();
    while !ralt.has_work() {
        engine
            .hotrap()
            .log_access(&engine, scene.tree().id, b"m", 1000, 1);
    }
    let steps = (0..1000).take_while(|_| scene.stepped.step()).count();
    assert!(steps < 100, "it is queued again and again");
    assert!(ralt.has_work(), "what was logged waits");
    drop(space);
    scene.put("n", "new");
    scene.to_last_fast();
    assert!(!ralt.has_work());
    assert!(ralt.metrics().records > 0);
}
