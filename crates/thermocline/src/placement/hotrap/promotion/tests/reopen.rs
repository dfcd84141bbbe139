//! Opening a store again, with other settings: what was promoted is where it was, and what was
//! cached is on the slow tier.

use crate::options::{HotRapOptions, Placement};
use crate::testing::scene::{F, KEYS, Scene, model, options};

fn by_level() -> crate::Options {
    let mut options = options();
    options.placement = Placement::ByLevel;
    options
}

/// The level and the file of each table.
fn tables(scene: &Scene) -> Vec<(u8, u64)> {
    let pinned = scene.tree().pin();
    let tables = pinned.version.tables();
    tables
        .map(|table| (table.meta.level, table.meta.id))
        .collect()
}

#[test]
fn a_store_goes_from_one_placement_to_the_other_and_back_without_rewriting() {
    let scene = Scene::with_old(&KEYS);
    scene.read_into_cache(&KEYS);
    scene.heat(&KEYS);
    scene.promote().unwrap();
    let all = [&KEYS[..], &["l"]].concat();
    scene.put("l", "old");
    scene.to_last_fast();
    let before = tables(&scene);
    let scene = scene.reopen(by_level());
    assert!(scene.db.metrics().hotrap.is_none());
    assert_eq!(tables(&scene), before);
    scene.check(&model(&all, "old"), &all, "by level");
    assert_eq!(scene.cached("k05"), None);
    let scene = scene.reopen(options());
    assert_eq!(tables(&scene), before);
    scene.check(&model(&all, "old"), &all, "by hotness again");
    // Written by level, crossed by hotness, and the other way round.
    let scene = scene.reopen(by_level());
    scene.put_all(&KEYS, "new");
    scene.to_slow();
    scene.put("k01", "newer");
    let scene = scene.reopen(options());
    let mut wanted = model(&KEYS, "new");
    wanted.insert("k01".into(), "newer".into());
    wanted.insert("l".into(), "old".into());
    scene.check(&wanted, &all, "both");
    scene.heat(&KEYS);
    scene.promote().unwrap();
    scene.to_slow();
    scene.check(&wanted, &all, "crossed");
}

/// Reads of a record in the promotion cache are logged when the record leaves, and closing dropped
/// the cache without that. A service that was restarted before its cache had filled learnt nothing
/// of all that it had read from the slow tier.
#[test]
fn what_the_promotion_cache_answered_is_known_after_a_reopening() {
    let scene = Scene::with_old(&KEYS);
    scene.read_into_cache(&KEYS);
    assert_eq!(scene.db.metrics().hotrap.unwrap().ralt.accesses, 0);
    let scene = scene.reopen(options());
    let mut known = scene.db.heat(100).unwrap().hottest;
    known.sort_by(|a, b| a.key.cmp(&b.key));
    let keys: Vec<_> = known.iter().map(|hot| &hot.key[..]).collect();
    assert_eq!(keys, KEYS.map(str::as_bytes));
    // Each was read twice there: by the read that brought it, and by the one that looked for it.
    assert!(known.iter().all(|hot| hot.is_stable), "{known:?}");
}

/// f belongs to the store, not to the settings: a capacity for more levels, or fewer, changes
/// neither where the promotion cache lies in the search order nor what it may hold.
#[test]
fn a_change_of_capacity_leaves_f_and_every_answer_as_they_were() {
    for capacity in [1600 << 10, 64 << 20] {
        let scene = Scene::with_old(&KEYS);
        scene.read_into_cache(&KEYS);
        scene.put("k05", "new");
        scene.to_last_fast();
        let mut other = options();
        other.tiers[0].capacity = capacity;
        let scene = scene.reopen(other);
        assert_eq!(usize::from(scene.tree().last_fast_level), F);
        assert_eq!(scene.cached("k04"), None, "the cache is memory");
        let mut wanted = model(&KEYS, "old");
        wanted.insert("k05".into(), "new".into());
        scene.check(&wanted, &KEYS, "opened again");
        scene.read_into_cache(&["k04"]);
        assert_eq!(scene.cached("k05"), None);
        scene.cross();
        scene.check(&wanted, &KEYS, "crossed");
    }
}

#[test]
fn settings_of_hotness_out_of_range_are_refused_when_a_store_is_opened() {
    let refused = |change: fn(&mut HotRapOptions)| {
        let mut hotrap = HotRapOptions::default();
        change(&mut hotrap);
        let mut options = options();
        options.placement = Placement::HotRap(hotrap);
        crate::Db::open(options).unwrap_err().to_string()
    };
    assert!(refused(|o| o.decay = 1.5).contains("hotrap.decay"));
    assert!(refused(|o| o.eviction = f64::NAN).contains("hotrap.eviction"));
    assert!(refused(|o| o.ralt_initial = 0.0).contains("hotrap.ralt_initial"));
    assert!(refused(|o| o.hot_set_min = 0.71).contains("hotrap.hot_set_min"));
}
