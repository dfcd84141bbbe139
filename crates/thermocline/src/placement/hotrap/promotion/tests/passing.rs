//! A level of the slow tier that is out of use: what goes past it, what must not (I1), and that it
//! empties.

use crate::testing::scene::{F, KEYS, SLOW, Scene, model};

/// Out of use: so little lies on the slow tier that the last level is enough.
const UNUSED: usize = SLOW - 1;

fn at(level: usize, version: &str) -> (u8, String) {
    (level as u8, version.to_owned())
}

/// As long as such a level held a table, everything that crossed went there, and from there on to
/// the last level. It never emptied, and each record was written once more on its way.
#[test]
fn a_level_out_of_use_gets_only_what_it_has_older_versions_of_and_empties() {
    let scene = Scene::with_old(&KEYS);
    let engine = scene.engine();
    let threads = engine.options.compaction_threads;
    // All places are taken meanwhile, so that no compaction begins by itself.
    (0..threads).for_each(|_| engine.background.compactions.begin());
    scene.put_all(&["k00", "k02"], "mid");
    scene.to_last_fast();
    scene.cross_to(UNUSED);
    let mut wanted = model(&KEYS, "old");
    wanted.extend(model(&["k00", "k02"], "mid"));

    // For all that the picker knows, k01 lies within the range of what is there.
    for (keys, to) in [(["k03", "k04"], SLOW), (["k01", "k02"], UNUSED)] {
        scene.put_all(&keys, "new");
        wanted.extend(model(&keys, "new"));
        scene.to_last_fast();
        assert_eq!(scene.crossing().to, to, "{keys:?}");
        scene.cross();
        assert_eq!(scene.levels_of(keys[0])[0], at(to, "new"));
    }
    assert_eq!(scene.levels_of("k03"), [at(SLOW, "new")]);
    let of_both = [at(UNUSED, "new"), at(SLOW, "old")];
    assert_eq!(scene.levels_of("k02"), of_both);
    assert_eq!(
        scene.levels_of("k00"),
        [at(UNUSED, "mid"), at(SLOW, "old")],
        "as it was"
    );

    (0..threads).for_each(|_| engine.background.compactions.end());
    engine.schedule();
    scene.drain();
    let levels = &scene.tree().pin().version.levels;
    assert!(levels[F].tables.is_empty() && levels[UNUSED].tables.is_empty());
    scene.check(&wanted, &KEYS, "emptied");
}
