//! Who has work begun that became possible through no job of its own.

use super::*;
use crate::Keyspace;
use crate::levels::Looked;

fn keys(first: char, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{first}{n:03}")).collect()
}

fn refs(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

/// `old` on the slow tier, and `live` behind it on the last fast level.
fn scene_with(old: &[&str], live: &[&str]) -> Scene {
    let scene = Scene::with_old(old);
    scene.put_all(live, "live");
    scene.to_last_fast();
    scene
}

/// Point reads until access records have been worked on once.
fn read_on(scene: &Scene, live: &[&str]) {
    let engine = scene.engine();
    let tracking = &engine.hotrap().tracking;
    for n in 0.. {
        assert!(n < 1 << 20, "no work on access records");
        assert!(scene.get(live[n % live.len()]).is_some());
        if tracking.load(Ordering::Acquire) {
            break;
        }
    }
    scene.drain();
    assert!(!tracking.load(Ordering::Acquire));
}

/// Records in tables, and how many of them are deletes.
fn records(scene: &Scene) -> (u64, u64) {
    let metrics = Keyspace::metrics(&scene.db);
    (metrics.records, metrics.deletes)
}

/// If promotions and the work on access records began no compaction, what a snapshot had kept
/// would stay in a store that is only read.
#[test]
fn what_a_snapshot_kept_goes_in_a_store_that_is_only_read() {
    let live = keys('z', 50);
    let live = refs(&live);
    let scene = scene_with(&KEYS, &live);
    let snapshot = scene.db.snapshot();
    KEYS.iter().for_each(|key| scene.delete(key));
    scene.db.flush().unwrap();
    scene.drain();
    assert_eq!(records(&scene), (70, 10));
    drop(snapshot);
    read_on(&scene, &live);
    assert_eq!(records(&scene), (50, 0));
}

/// What is superseded is known from the samples of open tables, and reads open them.
#[test]
fn superseded_records_go_once_reads_have_opened_their_tables() {
    let live = keys('z', 50);
    let live = refs(&live);
    let scene = scene_with(&KEYS, &live);
    let snapshot = scene.db.snapshot();
    for key in KEYS {
        scene.db.put(key, "/").unwrap();
    }
    scene.db.flush().unwrap();
    scene.drain();
    assert_eq!(records(&scene), (70, 0));
    let scene = scene.reopen(options());
    drop(snapshot);
    scene.drain();
    assert_eq!(records(&scene), (70, 0), "no table is open");
    assert_eq!(scene.db.iter().count(), 60);
    read_on(&scene, &live);
    assert_eq!(records(&scene), (60, 0));
}

/// Merges of small tables wait for room, and the work on access records gives some back.
#[test]
fn small_tables_are_merged_once_there_is_room_in_a_store_that_is_only_read() {
    let live = keys('z', 50);
    let live = refs(&live);
    let scene = Scene::new();
    scene.put_all(&live, "live");
    scene.to_last_fast();
    scene.without_compactions(|| {
        for key in keys('a', 20) {
            scene.put(&key, "small");
            scene.to_last_fast();
        }
    });
    let tables = || scene.tree().pin().version.levels[F].tables.len();
    let before = tables();
    assert!(before > 20, "{before}");
    let space = scene.take_all_space();
    scene.engine().schedule();
    scene.drain();
    assert_eq!(tables(), before, "there is no room");
    drop(space);
    read_on(&scene, &live);
    assert!(tables() < before);
}

/// A look that found nothing is remembered. If anything that it depends on were left out of what
/// is remembered, work would stay undone for as long as nothing is written.
#[test]
fn hidden_records_are_looked_for_again_once_anything_has_changed() {
    let scene = Scene::with_old(&KEYS);
    let snapshot = scene.db.snapshot();
    let (engine, tree) = (scene.engine(), scene.tree());
    let found = || {
        tree.tidying(&engine.fast_rooms(), &engine, &tree.state.lock())
            .len()
    };
    let opened = || -> u64 { engine.tiers.iter().map(|tier| tier.opened()).sum() };
    let remember_after = |opened| {
        let now = tree.with_picker(&engine, &tree.state.lock(), false, |picker| {
            Looked::by(picker, opened)
        });
        *tree.looked.lock() = Some(now);
    };
    let remember = || {
        remember_after(opened());
        assert_eq!(found(), 0, "as if the last look had found nothing");
    };
    scene.without_compactions(|| {
        KEYS.iter().for_each(|key| scene.delete(key));
        scene.db.flush().unwrap();
        assert_eq!(found(), 0, "the snapshot needs them");
        drop(snapshot);
        assert_eq!(found(), 1, "a snapshot went");

        remember();
        engine.tiers[1].count_opened();
        assert_eq!(found(), 1, "a table was opened");

        remember();
        tree.state.lock().l0_places.reserve(0);
        assert_eq!(found(), 0, "older records are on their way");
        tree.state.lock().l0_places.release(0);
        assert_eq!(found(), 1, "they are not");

        remember();
        let plan = scene.pick(0, &everything(), true).unwrap();
        let number = Tree::start_compaction(&mut tree.state.lock(), &plan);
        assert_eq!(found(), 0, "a job has the table");
        tree.end_compaction(number, &plan);
        assert_eq!(found(), 1, "the job has ended");

        // The flush opens its table: that alone must not be what tells the versions apart.
        let after = opened() + 1;
        remember_after(after);
        scene.put_all(&["other", "others"], "new");
        scene.db.flush().unwrap();
        assert_eq!(opened(), after);
        assert_eq!(found(), 1, "there is another version");

        remember();
        engine.take_away(tree.id, &tree.pin(), [b"k00", b"k09"], false);
        assert_eq!(found(), 1, "an iterator passed many deletes");
    });
    remember();
    scene.db.wait_idle().unwrap();
    assert_eq!(
        records(&scene),
        (2, 0),
        "who waits has everything looked at"
    );
}

/// Stops a writer for want of a byte, on a fast tier with deletes that a snapshot needs.
/// `meanwhile` has something under way that drops the snapshot.
fn stopped_writer(meanwhile: impl FnOnce(&Scene, crate::Snapshot)) {
    let (old, live) = (keys('m', 60), keys('z', 50));
    let scene = scene_with(&refs(&old), &refs(&live));
    let snapshot = scene.db.snapshot();
    old.iter().for_each(|key| scene.delete(key));
    scene.db.flush().unwrap();
    scene.drain();
    assert_eq!(records(&scene).1, 60);
    let engine = scene.engine();
    let fast = engine.fast();
    let taken = fast.free_bytes() - engine.needed_for(1000) + 1;
    fast.add_file_bytes(taken);
    meanwhile(&scene, snapshot);
    let written = scene.db.put("key", vec![7; 1000]);
    // The stepped executor gives up, with `Closed`, where threads would wait for ever.
    assert!(written.is_ok(), "nobody wakes the writer: {written:?}");
    fast.remove_file_bytes(taken);
}

/// A snapshot goes while a promotion works. Deletes may go down from then on, so the writer is not
/// stuck, and waits for it.
#[test]
fn a_stopped_writer_goes_on_when_a_snapshot_goes_during_a_promotion() {
    let gone = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::clone(&gone);
    stopped_writer(|scene, snapshot| {
        let engine = scene.engine();
        engine.hotrap().schedule_promotion(&engine, scene.tree());
        let held = Mutex::new(Some(snapshot));
        let weak = Arc::downgrade(&engine);
        scene.points.set("promotion.weighed", move || {
            drop(held.lock().take());
            is_gone.store(true, Ordering::Relaxed);
            let engine = weak.upgrade().unwrap();
            engine.hotrap().schedule_tracking(&engine);
            Ok(())
        });
    });
    assert!(gone.load(Ordering::Relaxed));
}

/// Regression: the end of a checkpoint's hold wakes the writer and starts nothing. A snapshot had
/// gone meanwhile, so the writer waited for a compaction that could begin, and that nobody began.
#[test]
fn a_stopped_writer_goes_on_when_a_snapshot_goes_during_a_checkpoint() {
    stopped_writer(|scene, snapshot| {
        let engine = scene.engine();
        engine.commit.freeze_holds.fetch_add(1, Ordering::Relaxed);
        let held = Mutex::new(Some(snapshot));
        let weak = Arc::downgrade(&engine);
        engine.spawn(Lane::Flush, Activity::Flush, move || {
            drop(held.lock().take());
            let engine = weak.upgrade().unwrap();
            // As the drop of `HoldFreezes`.
            engine.commit.freeze_holds.fetch_sub(1, Ordering::Relaxed);
            engine.executor.notify();
            crate::executor::Step::Done
        });
    });
}
