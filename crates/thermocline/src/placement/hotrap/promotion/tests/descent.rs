//! L0 goes past level f with all that lies between: what stays, what must not be passed (I1), and
//! what runs beside it (I2, I6).

use crate::levels::Plan;
use crate::metrics::Refusal;
use crate::testing::scene::{F, KEYS, SLOW, Scene, model};

fn descent(scene: &Scene) -> Plan {
    let state = scene.tree().state.lock();
    let plan = scene
        .tree()
        .with_picker(&scene.engine(), &state, true, |picker| {
            picker.plan_past_all()
        });
    plan.expect("a way past level f")
}

fn run(scene: &Scene) {
    scene.start(descent(scene));
    scene.drain();
}

/// A version of a key on each level that has one, the highest first.
fn at<const N: usize>(found: [(usize, &str); N]) -> Vec<(u8, String)> {
    let found = found.iter();
    found.map(|(l, v)| (*l as u8, (*v).to_owned())).collect()
}

/// Old versions on the slow tier, newer ones on level f and on the one above, the newest in L0.
fn scene() -> Scene {
    let scene = Scene::with_old(&KEYS);
    scene.put_all(&["k01", "k02", "k03", "k06"], "on f");
    scene.to_last_fast();
    scene.put_all(&["k01", "k04", "k07"], "above");
    scene.db.flush().unwrap();
    scene.lower(0);
    scene.put_all(&["k00", "k01", "k05", "k09"], "new");
    scene.delete("k03");
    scene.db.flush().unwrap();
    scene
}

#[test]
fn what_is_hot_stays_on_level_f_and_all_else_goes_down() {
    let scene = scene();
    scene.heat(&["k01", "k02", "k04", "k05"]);
    run(&scene);
    for (key, version) in [
        ("k01", "new"),
        ("k02", "on f"),
        ("k04", "above"),
        ("k05", "new"),
    ] {
        assert_eq!(scene.levels_of(key)[0], at([(F, version)])[0], "{key}");
    }
    for (key, version) in [
        ("k00", "new"),
        ("k06", "on f"),
        ("k07", "above"),
        ("k09", "new"),
    ] {
        assert_eq!(scene.levels_of(key), at([(SLOW, version)]), "{key}");
    }
    assert_eq!(scene.levels_of("k03"), [], "the delete hid what it met");
    let levels = &scene.tree().pin().version.levels;
    assert!(levels[0].tables.is_empty() && levels[F - 1].tables.is_empty());
    let mut wanted = model(&KEYS, "old");
    wanted.extend(model(&["k00", "k01", "k05", "k09"], "new"));
    wanted.extend(model(&["k02", "k06"], "on f"));
    wanted.extend(model(&["k04", "k07"], "above"));
    wanted.remove("k03");
    scene.check(&wanted, &KEYS, "past level f");
}

/// Without room for what is hot, all of it would go down at once.
#[test]
fn it_waits_for_room_for_what_lies_there() {
    let scene = scene();
    let plan = descent(&scene);
    let space = scene.take_all_space();
    let refused = scene.engine().start(scene.tree(), plan);
    assert!(refused.unwrap_err().is_no_space());
    drop(space);
    scene.start(descent(&scene));
}

/// It brings newer versions below level f, from any of many tables (I6).
#[test]
fn nothing_that_it_supersedes_enters_the_promotion_cache() {
    let scene = scene();
    let reader = scene.reader();
    let hook = scene.at("crossing.claimed", move |_| {
        reader.get("k08");
        Ok(())
    });
    run(&scene);
    drop(hook);
    assert_eq!(scene.refused(Refusal::Claimed), 1);
    assert_eq!(scene.cached("k08"), None);
    scene.read_into_cache(&["k08"]);
}

/// A table of promoted records gets its place in L0 before it is written. What is newer must not
/// have gone down past it meanwhile (I2).
#[test]
fn a_promotion_does_not_come_to_lie_above_what_has_gone_down() {
    for is_before in [true, false] {
        let scene = Scene::with_old(&KEYS);
        scene.heat(&KEYS);
        scene.read_into_cache(&KEYS);
        let supersede = |scene: &Scene| {
            scene.put_all(&["k05"], "new");
            scene.db.flush().unwrap();
        };
        if is_before {
            supersede(&scene);
        }
        let hook = scene.at("promotion.frozen", move |scene| {
            if !is_before {
                supersede(scene);
            }
            run(scene);
            Ok(())
        });
        scene.promote().unwrap();
        drop(hook);
        assert_eq!(scene.get("k05").as_deref(), Some("new"), "{is_before}");
        scene.to_slow();
        assert_eq!(scene.get("k05").as_deref(), Some("new"), "{is_before}");
    }
}
