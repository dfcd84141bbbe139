//! What is turned off is off (the paper's ablations, HotRAP §4.5). Each scene is played with
//! everything on, too: there the technique shows.

use super::bypass::{AROUND, bypass, run, to_above};
use crate::metrics::{HotRapMetrics, Refusal};
use crate::options::{HotRapOptions, Placement, Switches};
use crate::testing::scene::{F, KEYS, SLOW, Scene, options};

/// A scene in which everything is on but what `turn` turns off.
fn with(turn: impl FnOnce(&mut Switches)) -> Scene {
    let mut hotrap = HotRapOptions::default();
    turn(&mut hotrap.switches);
    let mut options = options();
    options.placement = Placement::HotRap(hotrap);
    Scene::with(options)
}

fn counted(scene: &Scene) -> HotRapMetrics {
    scene.db.metrics().hotrap.unwrap()
}

/// The level of the newest version of `key`, and how many levels hold one.
fn place(scene: &Scene, key: &str) -> (usize, usize) {
    let levels = scene.levels_of(key);
    (usize::from(levels[0].0), levels.len())
}

/// Puts all keys on the slow tier and a table over all of them on level f, and makes them hot. If
/// they are to be `cached`, puts them into the promotion cache, too.
fn hot_below_level_f(scene: &Scene, cached: bool) {
    scene.put_all(&KEYS, "old");
    scene.to_slow();
    scene.put_all(&AROUND, "old");
    scene.to_last_fast();
    if cached {
        scene.read_into_cache(&KEYS);
    }
    scene.heat(&KEYS);
}

#[test]
fn without_retention_hot_records_go_down() {
    for is_on in [true, false] {
        let scene = with(|switches| switches.retention = is_on);
        scene.put_all(&KEYS, "old");
        scene.to_last_fast();
        scene.heat(&KEYS);
        scene.cross();
        assert_eq!(counted(&scene).retained_bytes > 0, is_on);
        let level = if is_on { F } else { SLOW };
        assert_eq!(place(&scene, KEYS[0]), (level, 1), "retention: {is_on}");
    }
}

/// Records that a bypass brought up went down with the next job, and came up with the one after
/// that, without end: the store never came to rest.
#[test]
fn without_retention_a_bypass_brings_nothing_up() {
    for is_on in [true, false] {
        let scene = with(|switches| switches.retention = is_on);
        scene.put_all(&KEYS, "old");
        scene.to_slow();
        scene.put_all(&AROUND, "old");
        scene.put_all(&["ka", "kb", "kc"], "old");
        to_above(&scene);
        scene.heat(&KEYS[..1]);
        run(&scene, bypass(&scene));
        let level = if is_on { F - 1 } else { SLOW };
        assert_eq!(place(&scene, KEYS[0]).0, level, "retention: {is_on}");
    }
}

#[test]
fn without_the_hotness_check_cold_records_are_promoted() {
    for is_on in [true, false] {
        let scene = with(|switches| switches.hotness_check = is_on);
        scene.put_all(&KEYS, "old");
        scene.to_slow();
        scene.be_selective();
        scene.read_into_cache(&KEYS);
        scene.promote().unwrap();
        let counted = counted(&scene);
        assert_eq!(counted.promoted_flush_bytes > 0, !is_on);
        assert_eq!(counted.dropped_cold > 0, is_on);
        let place = place(&scene, KEYS[0]);
        let wanted = if is_on { (SLOW, 1) } else { (0, 2) };
        assert_eq!(place, wanted, "the check: {is_on}");
    }
}

/// Hot records in the table below do not come up, nor do those that wait in the promotion cache.
#[test]
fn without_promotion_by_compaction_nothing_comes_up() {
    for cached in [true, false] {
        for is_on in [true, false] {
            let at = format!("cached: {cached}, promotion by compaction: {is_on}");
            let scene = with(|switches| switches.promotion_by_compaction = is_on);
            hot_below_level_f(&scene, cached);
            scene.cross();
            let promoted = counted(&scene).promoted_compaction_bytes;
            assert_eq!(promoted > 0, is_on, "{at}");
            let level = if is_on { F } else { SLOW };
            assert_eq!(place(&scene, KEYS[0]), (level, 1), "{at}");
        }
    }
}

/// The cache's records of the crossing's keys are not written anew where the crossing goes, either.
#[test]
fn without_promotion_by_compaction_no_record_of_the_cache_joins_a_crossing() {
    // This is above the level of the records: a record that is found there has joined.
    const LOW: usize = SLOW - 1;
    for is_on in [true, false] {
        let scene = with(|switches| switches.promotion_by_compaction = is_on);
        hot_below_level_f(&scene, true);
        scene.cross_to(LOW);
        // The last record has no room above, since a crossing brings some down.
        let wanted = if is_on { (LOW, 2) } else { (SLOW, 1) };
        let last = KEYS[KEYS.len() - 1];
        assert_eq!(place(&scene, last), wanted, "joins: {is_on}");
        assert_eq!(scene.cached(last), None);
    }
}

/// A full cache becomes no table, and is not looked at again and again for that.
#[test]
fn without_promotion_by_flush_a_full_cache_becomes_no_table() {
    let keys: Vec<String> = (0..40).map(|n| format!("m{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for is_on in [true, false] {
        let scene = with(|switches| switches.promotion_by_flush = is_on);
        scene.put_all(&keys, "old");
        scene.to_slow();
        scene.heat(&keys);
        // Nothing runs meanwhile: it is full, and its promotion queued.
        keys.iter()
            .for_each(|key| assert!(scene.get(key).is_some()));
        assert!(scene.refused(Refusal::Full) > 0);
        let steps = (0..1000).take_while(|_| scene.stepped.step()).count();
        assert!(steps < 100, "it is queued again and again");
        assert_eq!(counted(&scene).promoted_flush_bytes > 0, is_on);
        let level = if is_on { 0 } else { SLOW };
        assert_eq!(place(&scene, keys[0]).0, level, "by flush: {is_on}");
        let is_cached = scene.cached(keys[0]).is_some();
        assert_eq!(is_cached, !is_on, "what is hot stays in the cache");
    }
}
