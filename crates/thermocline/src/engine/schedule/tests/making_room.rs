//! Which tables give way where the fast tier is full, and come back where it is not.

use super::*;
use crate::Keyspace;
use crate::version::MAX_LEVELS;

/// A new keyspace with three overlapping tables in L0, of about 90 KiB together.
fn idle_keyspace(scene: &Scene, name: &str) -> Keyspace {
    let keyspace = scene.db.create_keyspace(name).unwrap();
    for _ in 0..3 {
        for key in 0..60_u8 {
            let value: [u8; 500] = rand::random();
            keyspace.put([key], value).unwrap();
        }
        scene.db.flush().unwrap();
        scene.drain();
    }
    assert_eq!(keyspace.tree().version().levels[0].tables.len(), 3);
    keyspace
}

fn on_fast(keyspace: &Keyspace) -> u64 {
    keyspace.tree().bytes_down_to_f()
}

/// Each keyspace may keep a few tables in L0 for ever, and nothing that makes room touched them.
/// Some forty keyspaces that nobody wrote to any more filled the fast tier, and nothing was
/// promoted again.
#[test]
fn idle_keyspaces_give_way_to_what_is_hot() {
    let scene = Scene::with_old(&KEYS);
    let engine = scene.engine();
    let idle: Vec<_> = (0..40)
        .take_while(|_| engine.fast().free_for_jobs() > engine.compaction_margin())
        .map(|n| idle_keyspace(&scene, &format!("idle{n}")))
        .collect();
    assert!(idle.len() > 10, "{}", idle.len());
    assert_eq!(scene.tree().bytes_of_f(), 0);
    for _ in 0..5 {
        for key in KEYS {
            assert!(scene.get(key).is_some());
        }
        scene.drain();
    }
    let metrics = scene.db.metrics().hotrap.unwrap();
    assert!(metrics.promoted_flush_bytes > 0, "{metrics:?}");
    for keyspace in &idle {
        for key in 0..60_u8 {
            assert!(keyspace.get([key]).unwrap().is_some());
        }
    }
}

/// Where all room had gone to idle keyspaces, tables with hot records went down before any of
/// theirs.
#[test]
fn idle_keyspaces_give_way_before_hot_tables_do() {
    let mut options = options();
    (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (8, 16, 24);
    let scene = Scene::with(options);
    scene.put_all(&KEYS, "old");
    scene.to_last_fast();
    scene.heat(&KEYS);
    let hot = on_last_fast(&scene);
    assert_eq!(hot.len(), 1);
    let idle: Vec<_> = (0..8)
        .map(|n| idle_keyspace(&scene, &format!("idle{n}")))
        .collect();
    let _full = scene.take_all_space();
    let left = || idle.iter().map(on_fast).sum::<u64>();
    let before = left();
    while left() > before / 4 * 3 {
        assert!(scene.engine().start_crossing());
        scene.drain();
    }
    assert_eq!(on_last_fast(&scene), hot);
}

/// Everything on the fast tier lay above the last fast level, in levels within their targets.
/// Nothing could go down, and a writer was told that the tier had no room.
#[test]
fn all_levels_give_way_to_a_writer() {
    let scene = Scene::new();
    let idle = idle_keyspace(&scene, "idle");
    let _full = scene.take_all_space();
    while scene.engine().start_crossing() {
        scene.drain();
    }
    assert_eq!(on_fast(&idle), 0);
    assert_eq!(idle.get([7]).unwrap().map(|value| value.len()), Some(500));
}

/// When nothing can move and the fast tier has no room, the table goes to the slow tier with what
/// it meets there.
#[test]
fn a_table_over_what_was_spilled_gives_way_without_room() {
    let scene = Scene::new();
    with_spilled(&scene, 1);
    scene.put_all(&KEYS, "newer");
    scene.without_compactions(|| {
        scene.db.flush().unwrap();
        scene.drain();
    });
    assert!(scene.tree().bytes_on(0)[0] > 0);
    let _full = scene.take_all_space();
    while scene.engine().start_crossing() {
        scene.drain();
    }
    assert_eq!(scene.tree().bytes_down_to_f(), 0);
    assert_eq!(scene.get("k07").as_deref(), Some("newer"));
}

/// The tables that a compaction brings down stay until it has ended. They were counted among those
/// that could go to make room for it. So a compaction of all of a large L0 had all of the last fast
/// level sent down, and then still had no room.
#[test]
fn nothing_goes_down_for_a_compaction_that_can_never_have_room() {
    let scene = Scene::new();
    scene.fill_l0(600);
    scene.to_last_fast();
    let before = on_last_fast(&scene);
    let engine = scene.engine();
    scene.without_compactions(|| (0..48).for_each(|_| scene.fill_l0(100)));
    let plan = scene.pick(0, &everything(), true).unwrap();
    let (wanted, all) = (
        engine.wanted_on_fast(&plan),
        engine.options.tiers[0].capacity,
    );
    let held: u64 = plan.upper.bytes();
    assert!(
        wanted < all && wanted + held > all,
        "{wanted} beside {held}"
    );
    assert!(engine.start_without_room(scene.tree(), plan));
    scene.drain();
    assert_eq!(on_last_fast(&scene), before);
    assert!(scene.tree().version().levels[0].tables.is_empty());
}

/// All of a large L0 was to be compacted first. As that could never have room, all of it went to
/// the slow tier, though for a part of it only a table of the last fast level had to go.
#[test]
fn a_large_l0_that_can_have_no_room_does_not_stand_for_its_part() {
    let scene = Scene::new();
    scene.fill_l0(600);
    scene.to_last_fast();
    let before = on_last_fast(&scene);
    let engine = scene.engine();
    scene.without_compactions(|| (0..48).for_each(|_| scene.fill_l0(100)));
    // Half of what the part wants.
    let left = engine.sizes.l0_trigger as u64 * (25 << 10);
    let free = engine.fast().free_for_jobs();
    let _taken = engine.fast().reserve(free - left).unwrap();
    engine.schedule();
    let on_slow = || scene.tree().bytes_on(1);
    while on_slow() == [0; MAX_LEVELS] {
        assert!(scene.stepped.step());
    }
    assert_eq!(on_slow()[1], 0);
    assert!(on_last_fast(&scene).len() < before.len());
}

/// Tables that were written to the slow tier for lack of room stayed there until their keys were
/// written again: records of levels down to f are not promoted, however often they are read.
#[test]
fn what_was_spilled_comes_up_once_there_is_room() {
    for level in [0, 1, F] {
        let scene = Scene::new();
        with_spilled(&scene, level);
        assert!(scene.tree().bytes_on(1)[level] > 0, "L{level}");
        scene.engine().hotrap().update_hot_room(&scene.engine());
        scene.engine().schedule();
        scene.drain();
        assert_eq!(scene.tree().bytes_on(1), [0; MAX_LEVELS], "L{level}");
        assert_eq!(scene.get("k07").as_deref(), Some("new"), "L{level}");
    }
}

/// A spilled table waited there for room to spare. Where much is hot there is none, and no read of
/// the table promoted anything.
#[test]
fn what_was_spilled_is_promoted_where_there_is_no_room_to_spare() {
    for level in [1, F] {
        let scene = Scene::new();
        scene.fill_l0(3000);
        scene.to_last_fast();
        with_spilled(&scene, level);
        scene.heat(&KEYS);
        scene.be_selective();
        let full = scene.take_all_space();
        scene.engine().hotrap().update_hot_room(&scene.engine());
        assert!(
            !scene
                .engine()
                .hotrap()
                .has_spare_room
                .load(Ordering::Relaxed)
        );
        scene.engine().schedule();
        scene.drain();
        drop(full);
        assert_eq!(scene.tree().bytes_on(1)[..=F], [0; F + 1], "L{level}");
        scene.read_into_cache(&KEYS);
        scene.promote().unwrap();
        assert_eq!(scene.levels_of("k07")[0].0, 0, "L{level}");
    }
}

/// Has a table of `level` written to the slow tier.
fn with_spilled(scene: &Scene, level: usize) {
    scene.put_all(&KEYS, "new");
    if level == 0 {
        let engine = scene.engine();
        let taken = engine.fast().free_bytes();
        engine.fast().add_file_bytes(taken);
        scene.db.flush().unwrap();
        engine.fast().remove_file_bytes(taken);
        return;
    }
    scene.db.flush().unwrap();
    (0..level - 1).for_each(|from| scene.lower(from));
    let mut plan = scene.pick(level - 1, &everything(), true).unwrap();
    plan.is_move = false;
    plan.outputs[0].tier = 1;
    scene.start(plan);
    scene.without_compactions(|| scene.drain());
}
