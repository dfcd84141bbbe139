//! What becomes of a compaction that has no room for its output.

use super::*;
use crate::version::MAX_LEVELS;

/// Brings a table of ten records down to `level`, with a delete among them that hides nothing: a snapshot needed it on the way.
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

/// A table whose deletes hide nothing any more is written anew on its way down. Where there was no room for that, tables of the last fast level were
/// sent to the slow disk for it, or it went there itself, though it could move for nothing.
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

/// Of L0 with deletes all went down together, where before its oldest table had moved.
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
    assert_eq!(plan.upper.len(), 2);
    scene.engine().start_manual(scene.tree(), plan).unwrap();
    scene.drain();
    let version = scene.tree().version();
    let first = |level: usize| version.levels[level].tables[0].meta.range.first.clone();
    assert_eq!([first(0), first(1)], ["b0", "a0"]);
    assert_eq!(scene.tree().bytes_on(1), [0; MAX_LEVELS], "the slow tier");
}

/// A table of the last fast level was written to the slow disk, of which it never came up again, only for its delete to go: a reader held the
/// room that it would have taken on the fast one.
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
