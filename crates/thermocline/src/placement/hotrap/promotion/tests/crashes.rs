//! The power goes at each named point of a promotion, of a crossing that retains records, and of a
//! bypass of level f. What comes back has every record, with its newest version that was
//! acknowledged (I4, I5).

use super::bypass::{AROUND, all_keys, bypass, run, to_above};
use crate::metrics::HotRapMetrics;
use crate::options::{Durability, Options};
use crate::storage::Faulty;
use crate::sync::{Arc, Mutex};
use crate::testing::scene::{F, Hook, KEYS, Model, SLOW, Scene, everything, model, options};

/// Points of a promotion by flush.
const BY_FLUSH: [&str; 7] = [
    "promotion.start",
    "promotion.weighed",
    "promotion.purged",
    "promotion.frozen",
    "promotion.written",
    "promotion.before_edit",
    "promotion.installed",
];

/// Points of every crossing.
const CROSSING: [&str; 10] = [
    "compaction.start",
    "compaction.claimed",
    "crossing.claimed",
    "compaction.table_written",
    "crossing.before_edit",
    "compaction.before_edit",
    "crossing.installed",
    "compaction.installed",
    "files.before_remove",
    "files.removed",
];

/// Points of a crossing that is a move.
const MOVE: [&str; 2] = ["move.before_edit", "compaction.installed"];

/// Points of the edit that each of them ends with.
const EDIT: [&str; 3] = [
    "manifest.before_append",
    "manifest.before_sync",
    "manifest.after_sync",
];

/// What is acknowledged is durable.
fn durable() -> Options {
    let mut options = options();
    options.durability = Durability::Sync;
    options
}

/// Runs a `pathway` in a store that `prepare` has filled. Then opens what a loss of power at each
/// of `points` leaves of the store, with and without what was not synced. Returns what the store
/// counted in the end.
fn check_losses(
    points: &[&'static str],
    prepare: impl FnOnce(&Scene) -> Model,
    pathway: impl FnOnce(&Scene),
) -> HotRapMetrics {
    let disk = Faulty::new(1);
    let scene = Scene::on(Arc::new(disk.clone()), durable());
    let mut wanted = prepare(&scene);
    // These are newer than what is on its way, and only in memory and the log.
    scene.put("k03", "newest");
    wanted.insert("k03".into(), "newest".into());
    scene.delete("k04");
    wanted.remove("k04");
    let left = Arc::new(Mutex::new(Vec::new()));
    let lose_power = |point: &'static str| {
        let (disk, left) = (disk.clone(), Arc::clone(&left));
        scene.at(point, move |_| {
            for is_kept in [false, true] {
                let image = disk.image(|_| is_kept);
                left.lock().push((point, is_kept, image));
            }
            Ok(())
        })
    };
    let points = points.iter().chain(&EDIT).copied();
    let hooks: Vec<Hook> = points.map(lose_power).collect();
    pathway(&scene);
    // Each has been reached.
    drop(hooks);
    scene.check(&wanted, &all_keys(), "in the end");
    let images = std::mem::take(&mut *left.lock());
    for (point, is_kept, image) in images {
        let at = format!("the power goes at {point}, what is not synced is kept: {is_kept}");
        let scene = Scene::on(Arc::new(image), durable());
        scene.check(&wanted, &all_keys(), &at);
        // Nor does anything older come to light.
        scene.to_slow();
        scene.check(&wanted, &all_keys(), &at);
    }
    scene.db.metrics().hotrap.unwrap()
}

/// Runs the crossing of what lies on level f.
fn cross_one(scene: &Scene) {
    run(scene, scene.crossing());
}

#[test]
fn a_loss_of_power_in_a_promotion_by_flush_loses_nothing() {
    let prepare = |scene: &Scene| {
        scene.put_all(&KEYS, "old");
        scene.to_slow();
        scene.read_into_cache(&KEYS);
        scene.heat(&KEYS);
        model(&KEYS, "old")
    };
    let metrics = check_losses(&BY_FLUSH, prepare, |scene| scene.promote().unwrap());
    assert!(metrics.promoted_flush_bytes > 0);
}

#[test]
fn a_loss_of_power_in_a_promotion_by_compaction_loses_nothing() {
    let prepare = |scene: &Scene| {
        scene.put_all(&KEYS, "old");
        scene.to_slow();
        // A table of level f over all of them.
        scene.put_all(&AROUND, "old");
        scene.to_last_fast();
        scene.read_into_cache(&KEYS);
        scene.heat(&KEYS);
        model(&all_keys(), "old")
    };
    let points = [&CROSSING[..], &["promotion.by_compaction"]].concat();
    let metrics = check_losses(&points, prepare, cross_one);
    assert!(metrics.promoted_compaction_bytes > 0);
}

#[test]
fn a_loss_of_power_while_hot_records_are_retained_loses_nothing() {
    let prepare = |scene: &Scene| {
        scene.put_all(&KEYS, "old");
        scene.to_slow();
        scene.put_all(&KEYS, "new");
        scene.to_last_fast();
        scene.heat(&KEYS[..5]);
        model(&KEYS, "new")
    };
    let metrics = check_losses(&CROSSING, prepare, cross_one);
    assert!(metrics.retained_bytes > 0);
    assert_eq!(metrics.promoted_compaction_bytes, 0, "all below is older");
}

/// A table of level f that was spilled lies on the slow tier, and crosses by an edit alone.
#[test]
fn a_loss_of_power_while_a_table_moves_across_loses_nothing() {
    let prepare = |scene: &Scene| {
        scene.put_all(&KEYS, "old");
        to_above(scene);
        let mut plan = scene.pick(F - 1, &everything(), true).unwrap();
        (plan.outputs[0].tier, plan.is_move) = (1, false);
        // With compactions the table would come up at once.
        scene.without_compactions(|| run(scene, plan));
        model(&KEYS, "old")
    };
    check_losses(&MOVE, prepare, |scene| {
        let crossing = scene.crossing();
        assert!(crossing.is_move);
        run(scene, crossing);
        assert_eq!(scene.levels_of("k00"), [(SLOW as u8, "old".into())]);
    });
}

#[test]
fn a_loss_of_power_on_the_way_past_level_f_loses_nothing() {
    let prepare = |scene: &Scene| {
        scene.put_all(&all_keys(), "old");
        scene.to_slow();
        scene.put("k01", "mid");
        scene.to_last_fast();
        let new = [&AROUND[..], &["k01", "k02", "k05"]].concat();
        scene.put_all(&new, "new");
        to_above(scene);
        scene.heat(&["k05"]);
        let mut wanted = model(&all_keys(), "old");
        wanted.extend(model(&new, "new"));
        wanted
    };
    let metrics = check_losses(&CROSSING, prepare, |scene| run(scene, bypass(scene)));
    assert!(metrics.bypassed_bytes > 0);
}
