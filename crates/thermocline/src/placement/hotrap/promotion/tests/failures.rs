//! Promotions that come to nothing: for want of room, by a failure, by a shutdown, or because their
//! keyspace is gone. Nothing is lost, and nothing is held.

use std::time::Duration;

use super::flush::{STEPS, check_released, promoted_bytes, with_full_cache};
use crate::error::{Error, Result};
use crate::metrics::Refusal;
use crate::placement::hotrap::promotion::FrozenPromotion;
use crate::sync::atomic::Ordering;
use crate::testing::scene::{F, KEYS, Scene, everything, model, options};
use crate::tier::Reservation;

#[test]
fn a_promotion_that_fails_lets_go_of_its_place_and_loses_nothing() {
    let steps = ["promotion.start", "manifest.before_append"];
    for step in STEPS.into_iter().chain(steps) {
        let scene = with_full_cache();
        let hook = scene.at(step, |_| Err(no_space()));
        assert!(scene.promote().is_err(), "{step}");
        drop(hook);
        check_released(&scene);
        assert_eq!(promoted_bytes(&scene), 0, "{step}");
        scene.check(&model(&KEYS, "old"), &KEYS, step);
        let used = scene.engine().fast().reserved_bytes();
        assert_eq!(used, 0, "{step}: space goes back");
        // It works the next time.
        scene.to_slow();
        scene.read_into_cache(&KEYS);
        scene.promote().unwrap();
        assert!(promoted_bytes(&scene) > 0, "{step}");
        check_all_the_way_down_unchanged(&scene, step);
    }
}

fn check_all_the_way_down_unchanged(scene: &Scene, at: &str) {
    for level in 0..F {
        scene.lower(level);
        scene.check(&model(&KEYS, "old"), &KEYS, at);
    }
}

fn no_space() -> Error {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    Error::io("write", "/fast", full)
}

/// A failure after the edit does not undo it: the table is part of the store.
#[test]
fn a_failure_after_the_installation_leaves_the_table_in_place() {
    let scene = with_full_cache();
    let hook = scene.at("promotion.installed", |_| Err(no_space()));
    let _: Result<()> = scene.promote();
    drop(hook);
    assert!(promoted_bytes(&scene) > 0);
    let report = scene.db.verify(&mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    let scene = scene.reopen(options());
    assert_eq!(scene.levels_of("k05")[0].0, 0);
    scene.check(&model(&KEYS, "old"), &KEYS, "after reopening");
}

/// A full fast tier keeps a promotion from happening, and nothing else: it waits for no space, and
/// holds no place in L0.
#[test]
fn without_room_nothing_is_frozen_and_the_promotion_happens_once_there_is_some() {
    let scene = with_full_cache();
    scene.put("other", "old");
    scene.to_last_fast();
    let space = scene.take_all_space();
    scene.promote().unwrap();
    assert_eq!(promoted_bytes(&scene), 0);
    check_released(&scene);
    let all = [&KEYS[..], &["other"]].concat();
    scene.check(&model(&all, "old"), &all, "full");
    drop(space);
    scene.promote().unwrap();
    assert!(promoted_bytes(&scene) > 0);
    scene.check(&model(&all, "old"), &all, "promoted");
}

/// Every promotion that found no room used to start a crossing of its own, and with a full cache
/// each record that is read starts a promotion: some forty crossings at once emptied the fast tier.
#[test]
fn promotions_without_room_start_one_crossing_between_them() {
    let scene = with_full_cache();
    for key in ["other", "yet another"] {
        scene.put(key, "old");
        scene.to_last_fast();
    }
    let engine = scene.engine();
    let running = || engine.background.compactions.look().running();
    let before = running();
    let space = scene.take_all_space();
    for _ in 0..3 {
        scene.promote().unwrap();
    }
    assert_eq!(running(), before + 1);
    drop(space);
    scene.drain();
    let all = [&KEYS[..], &["other", "yet another"]].concat();
    scene.check(&model(&all, "old"), &all, "drained");
}

/// Promotes a full cache a minute later, when there is no room and the promotion wants less than
/// readers hold in obsolete files. Returns whether a table goes down for it.
fn promotion_makes_room(scene: &Scene) -> bool {
    let engine = scene.engine();
    engine.clock.sleep(Duration::from_secs(60));
    let _space = scene.take_all_space();
    let in_cache = || {
        KEYS.iter()
            .filter(|key| scene.cached(key).is_some())
            .count()
    };
    assert_eq!(in_cache(), KEYS.len());
    scene.promote().unwrap();
    let makes_room = engine.is_compacting();
    assert_eq!(in_cache(), if makes_room { KEYS.len() } else { 0 });
    makes_room
}

/// A promotion that found no room had a table of level f sent down for it, although readers held
/// more room than it wanted, and held that table, too.
#[test]
fn a_promotion_sends_nothing_down_where_readers_hold_the_room() {
    let scene = with_full_cache();
    scene.fill_l0(1000);
    scene.to_last_fast();
    let reader = scene.db.iter();
    while scene.engine().graveyard.pinned(0).0 < 200 << 10 {
        scene.start(scene.crossing());
        scene.drain();
    }
    assert!(scene.tree().bytes_of_f() > 0);
    assert!(!promotion_makes_room(&scene));
    drop(reader);
}

/// A promotion that found no room was given up if readers held more room than it wanted, although
/// level f had a table that had come since and that none of them held.
#[test]
fn a_promotion_sends_down_what_no_reader_holds() {
    let scene = with_full_cache();
    scene.fill_l0(500);
    scene.to_last_fast();
    let reader = scene.db.iter();
    scene.cross();
    scene.put("other", "old");
    scene.to_last_fast();
    assert!(promotion_makes_room(&scene));
    drop(reader);
}

/// Keys of more records than a promotion cache takes.
fn keys_of_a_full_cache() -> Vec<String> {
    (0..40).map(|n| format!("m{n:02}")).collect()
}

/// A cache full of hot records of `keys`, whose promotion is queued, with a record on level f and
/// no room on the fast tier.
fn full_without_room(keys: &[&str]) -> (Scene, Reservation) {
    let scene = Scene::with_old(keys);
    scene.heat(keys);
    scene.put("other", "old");
    scene.to_last_fast();
    let space = scene.take_all_space();
    // Nothing runs meanwhile.
    keys.iter()
        .for_each(|key| assert!(scene.get(key).is_some()));
    assert!(scene.refused(Refusal::Full) > 0);
    (scene, space)
}

/// A promotion that found no room is tried again when a compaction has ended, not only with the
/// next admission: a cache that is full admits nothing, and would stay as it is for good.
#[test]
fn a_full_cache_is_promoted_when_a_compaction_has_made_room() {
    let keys = keys_of_a_full_cache();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let (scene, space) = full_without_room(&keys);
    // The promotion that is queued starts a crossing. There is room only when that ends.
    let hook = scene.at("compaction.before_edit", |scene| {
        assert_eq!(promoted_bytes(scene), 0);
        drop(space);
        Ok(())
    });
    scene.drain();
    drop(hook);
    assert!(promoted_bytes(&scene) > 0);
    let all = [&keys[..], &["other"]].concat();
    scene.check(&model(&all, "old"), &all, "promoted");
}

/// A compaction could end just when a promotion had found no room, and before the promotion was
/// over. The compaction found it under way, so nobody tried again, and in a store that was only
/// read nothing was promoted any more.
#[test]
fn a_full_cache_is_promoted_when_the_compaction_it_waits_for_has_just_ended() {
    let keys = keys_of_a_full_cache();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let (scene, space) = full_without_room(&keys);
    let hook = scene.at("promotion.waits", |scene| {
        drop(space);
        scene.drain();
        assert!(!scene.engine().is_compacting());
        Ok(())
    });
    scene.drain();
    assert!(hook.has_run());
    assert!(promoted_bytes(&scene) > 0);
}

/// The crossing that was to make the room failed. Nobody came for the full cache any more, and a
/// full cache admits nothing. If the store was only read from then on, nothing was promoted.
#[test]
fn a_full_cache_whose_crossing_fails_is_given_up_and_fills_again() {
    let keys = keys_of_a_full_cache();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let (scene, space) = full_without_room(&keys);
    let hook = scene.at("compaction.before_edit", |_| Err(no_space()));
    scene.drain();
    assert!(hook.has_run());
    drop((hook, space));
    assert_eq!(promoted_bytes(&scene), 0);
    keys.iter()
        .for_each(|key| assert!(scene.get(key).is_some()));
    scene.drain();
    assert!(promoted_bytes(&scene) > 0);
    let all = [&keys[..], &["other"]].concat();
    scene.check(&model(&all, "old"), &all, "promoted");
}

/// Among very many keyspaces, a keyspace's share of the promotion caches came to no byte. Its empty
/// cache counted as full, and its promotion, which found nothing, was begun again for ever.
#[test]
fn an_empty_cache_is_never_full() {
    let scene = Scene::new();
    let (engine, tree) = (scene.engine(), scene.tree());
    tree.placed.promotion_share.set(1e-9);
    assert_eq!(tree.placed.gate.mutable().bytes(), 0);
    engine.hotrap().schedule_promotions(&engine);
    assert!(!tree.placed.promoting.load(Ordering::Acquire));
}

/// When another keyspace grew, the share of this one shrank, and its cache was over that share. It
/// admitted nothing, so nobody came who would have promoted it.
#[test]
fn a_cache_that_is_full_since_its_share_shrank_is_promoted() {
    let keys = [&KEYS[..], &["extra"]].concat();
    let scene = Scene::with_old(&keys);
    scene.heat(&keys);
    scene.read_into_cache(&KEYS);
    let (engine, tree) = (scene.engine(), scene.tree());
    let in_cache = || tree.placed.gate.mutable().bytes();
    assert!(in_cache() > 0 && in_cache() < engine.hotrap().promotion_capacity(&engine, tree));
    let other = scene.db.create_keyspace("other").unwrap();
    for key in 0..60u8 {
        other.put([key], rand::random::<[u8; 500]>()).unwrap();
    }
    scene.db.flush().unwrap();
    scene.drain();
    assert!(in_cache() < engine.hotrap().promotion_capacity(&engine, tree));
    assert!(promoted_bytes(&scene) > 0);
}

/// The share also shrank by what another keyspace's promotion had measured, without a flush or a
/// compaction. In a store that was only read nothing of this keyspace was promoted any more.
#[test]
fn a_cache_that_its_share_has_made_too_full_is_promoted_by_whoever_is_refused() {
    let keys = [&KEYS[..], &["extra"]].concat();
    let scene = Scene::with_old(&keys);
    scene.heat(&keys);
    scene.read_into_cache(&KEYS);
    scene.drain();
    let (engine, tree) = (scene.engine(), scene.tree());
    let in_cache = || tree.placed.gate.mutable().bytes();
    assert!(in_cache() > 0 && in_cache() < engine.hotrap().promotion_capacity(&engine, tree));
    // As it is measured after a promotion of another keyspace that froze nothing.
    tree.placed.promotion_share.set(0.25);
    assert!(in_cache() > engine.hotrap().promotion_capacity(&engine, tree) / 4 * 5);
    assert_eq!(scene.get("extra").as_deref(), Some("old"));
    assert_eq!(scene.refused(Refusal::Full), 1);
    scene.drain();
    assert!(promoted_bytes(&scene) > 0);
    assert_eq!(in_cache(), 0);
    scene.check(&model(&keys, "old"), &keys, "promoted");
}

/// If a crossing took records out of the cache and had no room for them, they were counted as cold.
#[test]
fn a_hot_record_that_a_crossing_has_no_room_for_is_not_counted_as_cold() {
    let scene = with_full_cache();
    for key in ["a", "z"] {
        scene.put(key, "old");
    }
    scene.to_last_fast();
    let dropped = |scene: &Scene| scene.db.metrics().hotrap.unwrap().dropped_cold;
    let before = dropped(&scene);
    assert!(KEYS.iter().all(|key| scene.cached(key).is_some()));
    let _space = scene.take_all_space();
    scene.cross();
    assert!(KEYS.iter().all(|key| scene.cached(key).is_none()));
    assert_eq!(dropped(&scene), before);
}

/// Whoever filled the next cache while one was being flushed found a promotion under way. A full
/// cache admits nothing more, so nobody came who would have asked again: without a compaction
/// nothing was promoted any more.
#[test]
fn a_cache_that_fills_while_another_is_flushed_is_promoted_too() {
    let keys: Vec<String> = (0..80).map(|n| format!("m{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let scene = Scene::with_old(&keys);
    scene.heat(&keys);
    let in_cache = |scene: &Scene| scene.tree().placed.gate.mutable().bytes();
    let full = scene
        .engine()
        .hotrap()
        .promotion_capacity(&scene.engine(), scene.tree());
    let (first, rest) = keys.split_at(40);
    let rest: Vec<String> = rest.iter().map(|key| (*key).to_owned()).collect();
    let hook = scene.at("promotion.frozen", move |scene| {
        rest.iter()
            .for_each(|key| assert!(scene.get(key).is_some()));
        assert!(in_cache(scene) >= full);
        Ok(())
    });
    first
        .iter()
        .for_each(|key| assert!(scene.get(key).is_some()));
    scene.drain();
    assert!(hook.has_run());
    drop(hook);
    assert!(in_cache(&scene) < full, "{} of {full}", in_cache(&scene));
    scene.check(&model(&keys, "old"), &keys, "promoted");
}

/// Without its cold records the cache was not worth a table, and it was full again before the job
/// had ended. Nobody came for it, and in a store that was only read nothing was promoted any more.
#[test]
fn a_cache_that_fills_while_it_is_found_empty_is_promoted_too() {
    let keys: Vec<String> = (0..80).map(|n| format!("m{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let scene = Scene::with_old(&keys);
    let (cold, hot) = keys.split_at(40);
    scene.heat(hot);
    scene.be_selective();
    let in_cache = |scene: &Scene| scene.tree().placed.gate.mutable().bytes();
    let full = scene
        .engine()
        .hotrap()
        .promotion_capacity(&scene.engine(), scene.tree());
    let read: Vec<String> = hot.iter().map(|key| (*key).to_owned()).collect();
    let hook = scene.at("promotion.weighed", move |scene| {
        assert!(in_cache(scene) < full / 2);
        read.iter()
            .for_each(|key| assert!(scene.get(key).is_some()));
        assert!(in_cache(scene) >= full);
        Ok(())
    });
    cold.iter()
        .for_each(|key| assert!(scene.get(key).is_some()));
    scene.drain();
    assert!(hook.has_run());
    drop(hook);
    assert!(in_cache(&scene) < full, "{} of {full}", in_cache(&scene));
    assert!(promoted_bytes(&scene) > 0);
    scene.check(&model(&keys, "old"), &keys, "promoted");
}

/// A shutdown drops a queued promotion; its records are where they were.
#[test]
fn a_promotion_cut_short_by_a_shutdown_loses_nothing() {
    let scene = with_full_cache();
    scene
        .engine()
        .hotrap()
        .schedule_promotion(&scene.engine(), scene.tree());
    let engine = scene.engine();
    assert!(engine.hotrap().is_promoting(&engine));
    engine.executor.shutdown();
    assert!(
        !engine.hotrap().is_promoting(&engine),
        "the flag is not left set"
    );
    scene.db.close().unwrap();
    drop(engine);
    let scene = scene.reopen(options());
    scene.check(&model(&KEYS, "old"), &KEYS, "after a shutdown");
    scene.heat(&KEYS);
    scene.read_into_cache(&KEYS);
    scene.promote().unwrap();
    assert!(promoted_bytes(&scene) > 0);
}

/// Handles to a dropped keyspace find nothing, not even what was on its way up.
#[test]
fn a_dropped_keyspace_leaves_nothing_in_its_promotion_cache() {
    let scene = Scene::new();
    let side = scene.db.create_keyspace("side").unwrap();
    side.put("key", "value").unwrap();
    scene.db.flush().unwrap();
    let (engine, tree) = (scene.engine(), side.tree());
    for from in 0..=F {
        let plan = scene.pick_in(tree, from, &everything(), true);
        engine.start(tree, plan.expect("a table")).unwrap();
        scene.drain();
    }
    assert!(side.get("key").unwrap().is_some());
    assert!(tree.placed.gate.bytes() > 0);
    let frozen = FrozenPromotion::freeze(tree);
    assert!(side.get("key").unwrap().is_some());
    scene.db.drop_keyspace("side").unwrap();
    assert_eq!(side.get("key").unwrap(), None);
    assert_eq!(side.multi_get(&["key"]).unwrap(), [None]);
    frozen.abandon(tree);
    assert_eq!(
        (side.get("key").unwrap(), tree.placed.gate.bytes()),
        (None, 0)
    );
}

/// Each keyspace but the first was taken for a dropped one from its creation on: nothing that was
/// read there became hot, and every record of it went to the slow tier for good. A dropped keyspace
/// was not taken for one: its records kept their place in the hot set.
#[test]
fn a_keyspace_is_tracked_from_its_creation_until_it_is_dropped() {
    let scene = Scene::new();
    let side = scene.db.create_keyspace("side").unwrap();
    let (engine, id) = (scene.engine(), side.tree().id);
    scene.heat_in(id, &KEYS);
    let ralt = &engine.hotrap().ralt;
    assert!(ralt.is_hot(id, KEYS[0].as_bytes()));
    scene.db.drop_keyspace("side").unwrap();
    assert!(!ralt.is_hot(id, KEYS[0].as_bytes()));
}

/// Builds from before the bug above was found have written down the numbers of living keyspaces as
/// those of dropped ones.
#[test]
fn a_keyspace_that_is_there_is_tracked_whatever_access_records_say() {
    let scene = Scene::new();
    let id = scene.db.create_keyspace("side").unwrap().tree().id;
    scene.engine().hotrap().ralt.forget(id);
    let scene = scene.reopen(options());
    scene.heat_in(id, &KEYS);
    let engine = scene.engine();
    assert!(engine.hotrap().ralt.is_hot(id, KEYS[0].as_bytes()));
}
