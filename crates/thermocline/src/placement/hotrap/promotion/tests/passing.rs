//! A run between level f and the first slow level in use: what goes past it, and what takes it
//! along (I1).

use crate::testing::scene::{KEYS, SLOW, Scene, model};

/// So little lies on the slow tier that the last level is enough.
const RUN: usize = SLOW - 1;

fn at(level: usize, version: &str) -> (u8, String) {
    (level as u8, version.to_owned())
}

/// As long as a level out of use held a table, everything that crossed went there, and from there
/// on to the last level: each record was written once more on its way.
#[test]
fn a_crossing_takes_along_the_runs_that_it_meets() {
    let scene = Scene::with_old(&KEYS);
    let mut wanted = model(&KEYS, "old");
    scene.without_compactions(|| {
        scene.put_all(&["k00", "k02"], "mid");
        scene.to_last_fast();
        scene.cross_to(RUN);
        wanted.extend(model(&["k00", "k02"], "mid"));
        let in_run = [at(RUN, "mid"), at(SLOW, "old")];

        // For all that the picker knows, k01 lies within the range of what is there.
        for (keys, takes_along) in [(["k03", "k04"], false), (["k01", "k02"], true)] {
            scene.put_all(&keys, "new");
            wanted.extend(model(&keys, "new"));
            scene.to_last_fast();
            assert_eq!(scene.levels_of("k00"), in_run, "before {keys:?}");
            let crossing = scene.crossing();
            assert_eq!(crossing.to, SLOW);
            assert_eq!(!crossing.between.is_empty(), takes_along, "{keys:?}");
            scene.cross();
            for key in keys {
                assert_eq!(scene.levels_of(key), [at(SLOW, "new")]);
            }
        }
    });
    assert_eq!(scene.levels_of("k00"), [at(SLOW, "mid")], "taken along");
    scene.check(&wanted, &KEYS, "merged");
}
