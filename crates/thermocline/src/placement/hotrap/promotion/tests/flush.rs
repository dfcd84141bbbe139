//! Promotion by flush: what comes into L0 at its reserved place hides no newer version (I1, I2).

use crate::sync::{Arc, Mutex};
use crate::testing::scene::{F, KEYS, SLOW, Scene, everything, model, options};

/// A scene whose cache holds all keys, each of them hot and old. None of them lies on the fast
/// tier.
pub(super) fn with_full_cache() -> Scene {
    let scene = Scene::with_old(&KEYS);
    scene.read_into_cache(&KEYS);
    scene.heat(&KEYS);
    scene
}

/// Writes `k05` anew, or deletes it.
fn supersede(scene: &Scene, is_delete: bool) {
    if is_delete {
        scene.delete("k05");
    } else {
        scene.put("k05", "new");
    }
}

/// Checks every key now, and again each time that everything has gone down a level; `k05` was
/// superseded.
fn check_all_the_way_down(scene: &Scene, is_delete: bool, at: &str) {
    let mut wanted = model(&KEYS, "old");
    wanted.remove("k05");
    if !is_delete {
        wanted.insert("k05".into(), "new".into());
    }
    scene.check(&wanted, &KEYS, at);
    scene.db.flush().unwrap();
    scene.check(&wanted, &KEYS, at);
    for level in 0..F {
        scene.lower(level);
        scene.check(&wanted, &KEYS, at);
    }
    scene.cross();
    scene.check(&wanted, &KEYS, at);
}

pub(super) fn promoted_bytes(scene: &Scene) -> u64 {
    scene.db.metrics().hotrap.unwrap().promoted_flush_bytes
}

fn voided(scene: &Scene) -> u64 {
    scene.db.metrics().hotrap.unwrap().voided_flushes
}

#[test]
fn hot_records_of_the_cache_become_a_table_of_l0() {
    let scene = with_full_cache();
    scene.promote().unwrap();
    for key in KEYS {
        assert_eq!(scene.levels_of(key)[0], (0, "old".into()));
        assert_eq!(scene.cached(key), None);
    }
    scene.check(&model(&KEYS, "old"), &KEYS, "promoted");
}

/// If a version of the key lies anywhere on the fast tier when the cache is frozen, the record in
/// the cache stays behind.
#[test]
fn a_record_with_a_version_on_the_fast_tier_is_not_promoted() {
    for is_delete in [false, true] {
        for level in [None, Some(0), Some(1), Some(F)] {
            let at = format!("a version on {level:?}, deleted: {is_delete}");
            let scene = with_full_cache();
            supersede(&scene, is_delete);
            match level {
                None => scene.freeze(),
                Some(level) => {
                    scene.db.flush().unwrap();
                    (0..level).for_each(|from| scene.lower(from));
                }
            }
            scene.promote().unwrap();
            let l0 = |key: &str| {
                let levels = scene.levels_of(key);
                levels.iter().filter(|(level, _)| *level == 0).count()
            };
            assert_eq!(l0("k04"), 1, "{at}");
            assert_eq!(l0("k05"), usize::from(level == Some(0)), "{at}");
            check_all_the_way_down(&scene, is_delete, &at);
        }
    }
}

/// The steps of a promotion at which something may come between.
pub(super) const STEPS: [&str; 3] = [
    "promotion.frozen",
    "promotion.written",
    "promotion.before_edit",
];

/// By I10 a write that the freeze does not pin is in the active memtable, and that gets a higher
/// epoch than the one reserved.
#[test]
fn a_write_after_the_freeze_ends_above_what_is_promoted() {
    for is_delete in [false, true] {
        for step in STEPS {
            for is_flushed in [false, true] {
                let at = format!("{step}, deleted: {is_delete}, flushed: {is_flushed}");
                let scene = with_full_cache();
                let hook = scene.at(step, move |scene| {
                    supersede(scene, is_delete);
                    match is_flushed {
                        true => scene.db.flush(),
                        false => Ok(()),
                    }
                });
                scene.promote().unwrap();
                drop(hook);
                assert!(promoted_bytes(&scene) > 0, "{at}");
                check_all_the_way_down(&scene, is_delete, &at);
            }
        }
    }
}

/// A memtable that was frozen before the cache is flushed after.
#[test]
fn a_memtable_flushed_meanwhile_still_counts() {
    for is_delete in [false, true] {
        for step in STEPS {
            let at = format!("{step}, deleted: {is_delete}");
            let scene = with_full_cache();
            supersede(&scene, is_delete);
            scene.freeze();
            let hook = scene.at(step, |scene| scene.db.flush());
            scene.promote().unwrap();
            drop(hook);
            assert!(promoted_bytes(&scene) > 0, "{at}");
            check_all_the_way_down(&scene, is_delete, &at);
        }
    }
}

/// The writer has inserted its record, and nobody sees it yet (I10).
#[test]
fn a_writer_in_flight_ends_above_what_is_promoted() {
    for is_delete in [false, true] {
        let at = format!("a writer in flight, deleted: {is_delete}");
        let scene = with_full_cache();
        let hook = scene.at("commit.inserting", |scene| scene.promote());
        supersede(&scene, is_delete);
        drop(hook);
        assert!(promoted_bytes(&scene) > 0, "{at}");
        check_all_the_way_down(&scene, is_delete, &at);
    }
}

/// An L0 compaction that is not urgent leaves alone what lies above the reserved place.
#[test]
fn compactions_of_l0_stay_below_a_reserved_place() {
    let scene = with_full_cache();
    // The tables meet, or the older one would move alone in any case.
    scene.put_all(&["k01", "k09"], "first");
    scene.db.flush().unwrap();
    let hook = scene.at("promotion.frozen", |scene| {
        scene.put("k05", "new");
        scene.db.flush()?;
        let plan = scene.pick(0, &everything(), false).unwrap();
        assert_eq!(plan.upper.tables().len(), 1, "the older of two");
        scene.start(plan);
        scene.drain();
        assert_eq!(scene.levels_of("k01")[0].0, 1);
        assert_eq!(scene.levels_of("k05")[0].0, 0);
        Ok(())
    });
    scene.promote().unwrap();
    drop(hook);
    assert_eq!(voided(&scene), 0);
    assert_eq!(scene.levels_of("k02")[0].0, 0, "promoted");
    assert_eq!(scene.get("k01").as_deref(), Some("first"));
    assert_eq!(scene.get("k05").as_deref(), Some("new"));
}

/// An urgent compaction of L0 takes what lies above the reserved place: the promotion comes to
/// nothing, and its records are still on the slow tier.
#[test]
fn an_urgent_compaction_of_l0_voids_a_reserved_place() {
    for is_delete in [false, true] {
        for step in STEPS {
            let at = format!("{step}, deleted: {is_delete}");
            let scene = with_full_cache();
            let hook = scene.at(step, move |scene| {
                supersede(scene, is_delete);
                scene.db.flush()?;
                scene.lower(0);
                Ok(())
            });
            scene.promote().unwrap();
            drop(hook);
            assert_eq!((voided(&scene), promoted_bytes(&scene)), (1, 0), "{at}");
            assert!(
                scene.tree().pin().version.levels[0].tables.is_empty(),
                "{at}"
            );
            check_all_the_way_down(&scene, is_delete, &at);
            check_released(&scene);
        }
    }
}

/// The compaction is still running when the promoted table would come in.
#[test]
fn a_running_compaction_of_l0_voids_a_reserved_place() {
    let scene = with_full_cache();
    let hook = scene.at("promotion.before_edit", |scene| {
        scene.put("k05", "new");
        scene.db.flush()?;
        scene.start(scene.pick(0, &everything(), true).unwrap());
        Ok(())
    });
    scene.promote().unwrap();
    drop(hook);
    assert_eq!(voided(&scene), 1);
    scene.drain();
    check_all_the_way_down(&scene, false, "overtaken");
}

/// A compaction is picked urgently, and so past the reserved place. It starts only when the
/// promoted table is already being installed, too late to void it. It must not start any more, or
/// the table would come in above a newer version on its way down.
#[test]
fn a_compaction_picked_before_an_installation_does_not_start_during_it() {
    let scene = with_full_cache();
    // The first hook sets this one, which is reached after the first has ended.
    let late = Arc::new(Mutex::new(None));
    let hung = Arc::clone(&late);
    let hook = scene.at("promotion.before_edit", move |scene| {
        scene.put("k05", "new");
        scene.db.flush()?;
        let plan = scene.pick(0, &everything(), true).unwrap();
        let hook = scene.at("manifest.before_append", move |scene| {
            let picked = scene.pick(0, &everything(), true);
            assert!(picked.is_none(), "nothing above is picked either");
            scene.start(plan);
            Ok(())
        });
        *hung.lock() = Some(hook);
        Ok(())
    });
    scene.promote().unwrap();
    drop((hook, late.lock().take()));
    assert!(promoted_bytes(&scene) > 0);
    scene.drain();
    check_all_the_way_down(&scene, false, "started late");
}

/// A crossing takes the same records up while their table is being written. Then there are two of
/// each, and both are right.
#[test]
fn a_record_promoted_twice_is_one_record() {
    for step in STEPS {
        let scene = Scene::with_old(&KEYS);
        // A table of level f over all of them.
        scene.put_all(&["k", "l"], "old");
        scene.to_last_fast();
        scene.read_into_cache(&KEYS);
        scene.heat(&KEYS);
        let hook = scene.at(step, |scene| {
            scene.cross();
            Ok(())
        });
        scene.promote().unwrap();
        drop(hook);
        let levels = scene.levels_of("k00");
        let twice = [(0, "old".into()), (F as u8, "old".into())];
        assert_eq!(levels, twice, "{step}");
        let keys = [&KEYS[..], &["k", "l"]].concat();
        scene.check(&model(&keys, "old"), &keys, step);
        (0..F).for_each(|level| scene.lower(level));
        scene.check(&model(&keys, "old"), &keys, step);
        scene.delete("k00");
        let mut wanted = model(&keys, "old");
        wanted.remove("k00");
        scene.check(&wanted, &keys, step);
        for _ in 0..3 {
            scene.to_slow();
            scene.check(&wanted, &keys, step);
        }
    }
}

/// The steps of a crossing at which a promotion may come between.
const CROSSING_STEPS: [&str; 6] = [
    "compaction.start",
    "compaction.claimed",
    "crossing.claimed",
    "compaction.table_written",
    "crossing.before_edit",
    "compaction.before_edit",
];

fn delete_both(scene: &Scene) {
    scene.delete("k00");
    scene.delete("k05");
}

/// A promotion begins and ends while a crossing of the same keys runs, which takes one of them up,
/// too. Once the key is deleted, during the crossing or after it, neither copy comes back. Nor does
/// a version that the crossing supersedes.
#[test]
fn a_promotion_within_a_crossing_brings_nothing_back() {
    let keys = [&KEYS[..], &["k", "k10", "l"]].concat();
    for step in CROSSING_STEPS {
        for is_deleted_meanwhile in [false, true] {
            let at = format!("{step}, deleted meanwhile: {is_deleted_meanwhile}");
            let mut options = options();
            // Reads that the record cache answers are not offered to the promotion cache.
            options.record_cache = Some(0);
            let scene = Scene::with(options);
            scene.put_all(&KEYS, "old");
            scene.put("k10", "old");
            scene.to_slow();
            let early = scene.reader();
            // A table of level f over all of them, with a newer version of one.
            scene.put_all(&["k", "k10", "l"], "new");
            scene.to_last_fast();
            scene.read_into_cache(&KEYS);
            scene.heat(&KEYS);
            let hook = scene.at(step, move |scene| {
                // The records that the crossing has taken out of the cache come in again: it brings
                // nothing newer of them.
                scene.read_into_cache(&KEYS);
                assert_eq!(early.get("k10").as_deref(), Some("old"));
                scene.promote()?;
                assert!(promoted_bytes(scene) > 0);
                if is_deleted_meanwhile {
                    delete_both(scene);
                    scene.db.flush()?;
                }
                Ok(())
            });
            scene.cross();
            drop(hook);
            let on_f = (F as u8, "old".to_owned());
            assert!(scene.levels_of("k00").contains(&on_f), "{at}: brought up");
            let mut wanted = model(&keys, "old");
            wanted.extend(model(&["k", "k10", "l"], "new"));
            if !is_deleted_meanwhile {
                scene.check(&wanted, &keys, &at);
                delete_both(&scene);
            }
            wanted.remove("k00");
            wanted.remove("k05");
            scene.check(&wanted, &keys, &at);
            for _ in 0..3 {
                scene.db.flush().unwrap();
                for level in 0..F {
                    scene.lower(level);
                    scene.check(&wanted, &keys, &at);
                }
                scene.cross();
                scene.check(&wanted, &keys, &at);
                // What was read meanwhile goes up again.
                scene.promote().unwrap();
                scene.check(&wanted, &keys, &at);
            }
            for key in ["k00", "k05"] {
                assert_eq!(scene.levels_of(key), [], "{at}: every copy is gone");
            }
        }
    }
}

/// A crossing logs the reads of the records that it takes out of a cache. The promotion that had
/// frozen that cache logged them again: a record that had been read once became stable, like one
/// that is read again and again.
#[test]
fn reads_are_logged_once_whether_a_crossing_takes_the_record_up_or_not() {
    for crosses in [false, true] {
        let scene = Scene::with_old(&KEYS);
        // A table of level f over all of them.
        scene.put_all(&["k", "l"], "old");
        scene.to_last_fast();
        scene.read_into_cache(&KEYS);
        scene.heat(&KEYS);
        let logged = || scene.db.metrics().hotrap.unwrap().ralt.accesses;
        let before = logged();
        let cached = scene.tree().placed.gate.mutable().all();
        let reads = cached.iter().map(|(_, record)| u64::from(record.reads()));
        let hook = crosses.then(|| {
            scene.at("promotion.frozen", |scene| {
                scene.cross();
                Ok(())
            })
        });
        scene.promote().unwrap();
        drop(hook);
        assert_eq!(logged() - before, reads.sum::<u64>(), "crosses: {crosses}");
    }
}

/// Records that came in after the cache had been looked through and before it was frozen were
/// promoted unseen. Under uniform reads, and where reads of the slow tier take microseconds, that
/// was eleven records of twelve: each was compacted down again, and pushed another down.
#[test]
fn a_cold_record_that_comes_in_before_the_freeze_is_not_promoted() {
    let (late, rest) = KEYS.split_last().unwrap();
    let scene = Scene::with_old(&KEYS);
    scene.be_selective();
    scene.read_into_cache(rest);
    scene.heat(rest);
    let reads = || scene.db.metrics().hotrap.unwrap().ralt.accesses;
    let before = reads();
    let late_reads = scene.at("promotion.purged", {
        let late = *late;
        move |scene| {
            scene.read_into_cache(&[late]);
            Ok(())
        }
    });
    scene.promote().unwrap();
    assert!(late_reads.has_run());
    drop(late_reads);
    for key in rest {
        assert_eq!(scene.levels_of(key)[0], (0, "old".into()));
    }
    assert_eq!(scene.levels_of(late), [(SLOW as u8, "old".into())]);
    assert_eq!(scene.cached(late), None);
    // Each was read, and looked for in the cache.
    assert_eq!(reads() - before, 2 * KEYS.len() as u64);
    scene.check(&model(&KEYS, "old"), &KEYS, "promoted");
}

/// A scene with all keys on the slow tier alone, where hot is what was read more than once.
fn wanting_two_reads() -> Scene {
    let scene = Scene::with_old(&KEYS);
    scene.engine().hotrap().ralt.want_two_reads();
    scene.be_selective();
    scene
}

/// Reads every key once, from the slow tier into the cache. Looking for it there would be another
/// read.
fn read_once(scene: &Scene) {
    for key in KEYS {
        assert_eq!(scene.get(key), Some("old".into()));
    }
    assert_eq!(scene.tree().placed.gate.mutable().all().len(), KEYS.len());
}

/// Two reads make a record hot. The second is in the promotion cache, and access records know only
/// of the first: it took a third read of the slow tier.
#[test]
fn a_record_is_promoted_by_the_read_that_makes_it_hot() {
    let scene = wanting_two_reads();
    read_once(&scene);
    scene.promote().unwrap();
    assert_eq!(promoted_bytes(&scene), 0);
    assert!(scene.tree().placed.gate.mutable().all().is_empty());
    scene.track();
    let engine = scene.engine();
    let (ralt, id) = (&engine.hotrap().ralt, scene.tree().id);
    let is_hot = |key: &&str| ralt.is_hot(id, key.as_bytes());
    assert!(!KEYS.iter().any(is_hot), "each was read once");

    read_once(&scene);
    scene.promote().unwrap();
    assert!(promoted_bytes(&scene) > 0);
    for key in KEYS {
        assert_eq!(scene.levels_of(key)[0], (0, "old".into()));
    }
    scene.track();
    // Crossings go by the access records alone.
    ralt.merge_all();
    assert!(KEYS.iter().all(is_hot));
}

/// If a read were logged when it brings a record, it would count twice once it has come into a
/// table of access records: everything that is read would be promoted, however seldom.
#[test]
fn a_record_that_was_read_once_is_not_promoted_however_long_it_waits() {
    let scene = wanting_two_reads();
    read_once(&scene);
    scene.track();
    scene.engine().hotrap().ralt.merge_all();
    scene.promote().unwrap();
    assert_eq!(promoted_bytes(&scene), 0);
    for key in KEYS {
        assert_eq!(scene.levels_of(key), [(SLOW as u8, "old".into())]);
    }
}

/// Nothing keeps the next promotion, or a compaction of L0, from going ahead.
pub(super) fn check_released(scene: &Scene) {
    let state = scene.tree().state.lock();
    assert_eq!(state.l0_places.limit(false), u64::MAX);
    assert_eq!(scene.tree().pin().waiting.caches.len(), 1);
}
