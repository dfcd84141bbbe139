//! What becomes of a compaction that has no room for its output.

use super::*;
use crate::engine::Work;
use crate::ids::FileId;
use crate::testing::scene::SLOW;
use crate::version::MAX_LEVELS;

/// A level of the slow tier that is not in use.
const LOW: usize = SLOW - 1;

/// Brings a table of ten records down to `level`. One of them is a delete that hides nothing, but
/// that a snapshot needed on the way.
fn with_a_delete_on(level: usize, scene: &Scene) -> FileId {
    let snapshot = scene.db.snapshot();
    scene.put_all(&KEYS, "new");
    scene.delete("k05");
    scene.db.flush().unwrap();
    (0..level).for_each(|from| scene.lower(from));
    drop(snapshot);
    let version = scene.tree().version();
    let tables = &version.levels[level].tables;
    let table = tables.iter().find(|table| table.meta.deletes == 1);
    table.expect("it has moved").meta.id
}

/// A table whose deletes hide nothing any more is written anew on its way down. When there was no
/// room for that, tables of the last fast level were sent to the slow disk to make some, or the
/// table went there itself, though it could have moved at no cost.
#[test]
fn a_table_moves_as_it_is_where_there_is_no_room_to_drop_its_deletes() {
    let scene = Scene::new();
    scene.fill_l0(300);
    scene.to_last_fast();
    let before = on_last_fast(&scene);
    let table = with_a_delete_on(F - 1, &scene);
    let _full = scene.take_all_space();
    let plan = scene.pick(F - 1, &everything(), true);
    let plan = plan.expect("a compaction of the level above");
    assert!(!plan.is_move, "its delete would go");
    scene.engine().start_manual(scene.tree(), plan).unwrap();
    scene.drain();
    assert_eq!(on_last_fast(&scene), [&before[..], &[table]].concat());
    assert_eq!(scene.tree().bytes_on(1), [0; MAX_LEVELS], "the slow tier");
}

/// Where L0 had deletes, all of it went down together, while before its oldest table had moved.
#[test]
fn the_oldest_table_of_l0_moves_as_it_is_where_there_is_no_room_for_all() {
    let scene = Scene::new();
    for keys in [["a0", "a1"], ["b0", "b1"]] {
        scene.put_all(&keys, "new");
        scene.delete(keys[0]);
        scene.db.flush().unwrap();
    }
    let _full = scene.take_all_space();
    let plan = scene.pick(0, &everything(), true);
    let plan = plan.expect("a compaction of L0");
    assert_eq!(plan.upper.tables().len(), 2);
    scene.engine().start_manual(scene.tree(), plan).unwrap();
    scene.drain();
    let version = scene.tree().version();
    let first = |level: usize| version.levels[level].tables[0].meta.range.first.clone();
    assert_eq!([first(0), first(1)], ["b0", "a0"]);
    assert_eq!(scene.tree().bytes_on(1), [0; MAX_LEVELS], "the slow tier");
}

/// A reader held the room that a table of the last fast level needed to be written anew. So the
/// table was written to the slow disk, only for its delete to go, and never came up again.
#[test]
fn compacting_a_range_leaves_what_has_no_room_to_be_written_anew() {
    let scene = Scene::new();
    scene.fill_l0(1000);
    scene.to_last_fast();
    let table = with_a_delete_on(F, &scene);
    let reader = scene.db.iter();
    while scene.engine().graveyard.pinned(0).0 < 200 << 10 {
        scene.start(scene.crossing());
        scene.drain();
    }
    scene.engine().clock.sleep(Duration::from_secs(60));
    let full = scene.take_all_space();
    let before = on_last_fast(&scene);
    assert!(before.len() > 1 && before.contains(&table));
    scene.db.compact_range::<&str>(..).unwrap();
    assert_eq!(on_last_fast(&scene), before);
    assert_eq!(scene.tree().bytes_on(1)[F], 0, "on the slow tier");

    drop((full, reader));
    scene.db.compact_range::<&str>(..).unwrap();
    let version = scene.tree().version();
    let deletes: u64 = version.tables().map(|table| table.meta.deletes).sum();
    assert_eq!(deletes, 0, "there is room");
    assert_eq!(scene.tree().bytes_on(1)[F], 0, "on the slow tier");
}

/// A store with a table of [`LOW`] that is to go down, and a table on the last fast level that
/// meets nothing. The slow tier has less room than the compaction of the former wants, but enough
/// for the latter.
fn with_full_slow_tier() -> (Scene, Reservation) {
    let mut options = options();
    options.tiers[1].capacity = 64 << 20;
    let scene = Scene::with(options);
    let engine = scene.engine();
    // All places are taken meanwhile: none begins by itself.
    let threads = engine.options.compaction_threads;
    (0..threads).for_each(|_| engine.background.compactions.begin());
    scene.fill_l0(100);
    scene.to_slow();
    for key in 1..=25 {
        let value: [u8; 500] = rand::random();
        scene.db.put(format!("{key:05}"), value).unwrap();
    }
    scene.to_last_fast();
    scene.cross_to(LOW);
    scene.put_all(&KEYS, "new");
    for key in 0..12 {
        let value: [u8; 500] = rand::random();
        scene.db.put(format!("l{key}"), value).unwrap();
    }
    scene.to_last_fast();
    let slow = &engine.tiers[1];
    let taken = slow.reserve(slow.free_for_jobs() - (24 << 10)).unwrap();
    (0..threads).for_each(|_| engine.background.compactions.end());
    (scene, taken)
}

/// A compaction below f that lacked room on the slow tier had tables of the last fast level sent
/// down, onto the very tier that was full. They went one after the other, until not even they had
/// room, or none was left.
#[test]
fn a_compaction_without_room_on_the_slow_tier_sends_nothing_there() {
    let (scene, _taken) = with_full_slow_tier();
    let engine = scene.engine();
    let before = on_last_fast(&scene);
    assert_eq!(before.len(), 1);
    let plan = scene.pick(LOW, &everything(), true);
    let plan = plan.expect("a compaction of the slow tier");
    let refused = engine.start(scene.tree(), plan.clone());
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    assert!(!engine.start_without_room(scene.tree(), plan));
    assert!(!engine.is_compacting());
    let failure = engine.background.failure(Work::Compaction);
    assert!(failure.is_some_and(|error| error.is_no_space()));
    engine.schedule();
    scene.drain();
    assert_eq!(on_last_fast(&scene), before);
}

/// Room was made only for the most urgent of the compactions that had none. One that no crossing
/// helps would have kept the others from getting any.
#[test]
fn a_compaction_without_room_on_the_slow_tier_keeps_none_from_making_room_on_the_fast_one() {
    let (scene, _taken) = with_full_slow_tier();
    let engine = scene.engine();
    // L0 meets what lies there, which is more than it brings.
    for _ in 1..engine.sizes.l0_trigger {
        scene.put_all(&["00001", "l0"], "new");
        scene.db.flush().unwrap();
    }
    assert_eq!(on_last_fast(&scene).len(), 1);
    scene.put_all(&["00001", "l0"], "newer");
    // The flush has room, and the compaction of L0 has not.
    let free = engine.fast().free_for_jobs();
    let _full = engine.fast().reserve(free - (24 << 10)).unwrap();
    scene.db.flush().unwrap();
    scene.drain();
    assert!(on_last_fast(&scene).is_empty(), "it made room");
}

/// Regression: what is only written anew where it lies waits for room, but for a table that had
/// been spilled this counted as work that is due. It did not begin, it did not fail, and so
/// `wait_idle` never returned.
#[test]
fn a_spilled_table_waits_for_room_to_be_rid_of_its_deletes() {
    let scene = Scene::new();
    let keys: Vec<_> = (0..20).map(|n| format!("k{n:02}")).collect();
    keys.iter().for_each(|key| scene.put(key, "new"));
    let snapshot = scene.db.snapshot();
    keys.iter().for_each(|key| scene.delete(key));
    scene.db.flush().unwrap();
    (0..F - 1).for_each(|from| scene.lower(from));
    let mut plan = scene.pick(F - 1, &everything(), true).unwrap();
    plan.is_move = false;
    plan.outputs[0].tier = 1;
    scene.start(plan);
    scene.without_compactions(|| scene.drain());
    let on_slow = || scene.tree().bytes_on(1)[F];
    assert!(on_slow() > 0, "it is spilled");

    let full = scene.take_all_space();
    drop(snapshot);
    scene.db.wait_idle().unwrap();
    assert!(on_slow() > 0, "there is no room");
    drop(full);
    scene.db.wait_idle().unwrap();
    assert_eq!(scene.tree().bytes_on(0), [0; MAX_LEVELS], "nothing is left");
    assert_eq!(on_slow(), 0);
}

/// Regression: a table that has to leave the fast tier is written anew on its level, too, and
/// where it had no room, nobody heard of it: `wait_idle` never returned.
#[test]
fn a_table_that_cannot_leave_the_fast_tier_is_told_of() {
    let mut options = options();
    options.tiers[1].capacity = 64 << 20;
    let scene = Scene::with(options);
    scene.fill_l0(100);
    scene.to_last_fast();
    let mut plan = scene.crossing();
    plan.is_move = false;
    plan.outputs.iter_mut().for_each(|output| output.tier = 0);
    scene.start(plan);
    scene.without_compactions(|| scene.drain());
    assert!(
        scene.tree().bytes_on(0)[SLOW] > 0,
        "it lies on the fast tier"
    );

    let slow = Arc::clone(&scene.engine().tiers[1]);
    let full = slow.reserve(slow.free_for_jobs()).unwrap();
    let refused = scene.db.wait_idle();
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    drop(full);
    scene.db.wait_idle().unwrap();
    assert_eq!(scene.tree().bytes_on(0)[SLOW], 0);
}
