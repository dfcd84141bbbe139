//! Snapshots see what they saw, wherever records go meanwhile; and whatever is promoted goes in the
//! end.

use crate::Batch;
use crate::api::Snapshot;
use crate::sync::{Arc, Mutex};
use crate::testing::scene::{F, KEYS, Model, SLOW, Scene, model};

/// Every point of the three pathways.
const POINTS: [&str; 8] = [
    "promotion.start",
    "promotion.frozen",
    "promotion.written",
    "promotion.before_edit",
    "promotion.installed",
    "compaction.start",
    "compaction.claimed",
    "compaction.before_edit",
];

/// Writes that leave some keys alone: new versions, deletes, and a batch that is seen whole.
fn change(scene: &Scene, wanted: &mut Model, version: &str) {
    let mut batch = Batch::new();
    for key in ["k01", "k06"] {
        batch.put(key, crate::testing::scene::value(version));
        wanted.insert(key.into(), version.into());
    }
    for key in ["k02", "k07"] {
        batch.delete(key);
        wanted.remove(key);
    }
    scene.db.write(batch).unwrap();
}

/// Each snapshot, the model when it was taken, and when that was.
type Taken = Arc<Mutex<Vec<(Snapshot, Model, String)>>>;

fn check_all(scene: &Scene, taken: &Taken, wanted: &Model, at: &str) {
    scene.check(wanted, &KEYS, at);
    for (snapshot, model, when) in taken.lock().iter() {
        let at = format!("{at}, a snapshot taken {when}");
        scene.check_snapshot(snapshot, model, &KEYS, &at);
    }
}

/// Snapshots taken before a promotion, at each of its points and after it, with writes in between:
/// all of them answer exactly, at every moment.
#[test]
fn snapshots_taken_before_during_and_after_promotions_stay_exact() {
    for point in POINTS {
        let scene = Scene::with_old(&KEYS);
        let taken = Taken::default();
        let wanted = Arc::new(Mutex::new(model(&KEYS, "old")));
        let take = {
            let (taken, wanted) = (Arc::clone(&taken), Arc::clone(&wanted));
            move |scene: &Scene, version: &str, when: &str| {
                let snapshot = scene.db.snapshot();
                let mut wanted = wanted.lock();
                let item = (snapshot, wanted.clone(), when.to_owned());
                taken.lock().push(item);
                change(scene, &mut wanted, version);
            }
        };
        scene.read_into_cache(&KEYS);
        scene.heat(&KEYS);
        take(&scene, "1", "before");
        check_all(&scene, &taken, &wanted.lock(), point);
        scene.to_last_fast();
        let during = take.clone();
        let hook = scene.at(point, move |scene| {
            during(scene, "2", "during");
            Ok(())
        });
        scene.promote().unwrap();
        check_all(&scene, &taken, &wanted.lock(), point);
        scene.cross();
        drop(hook);
        check_all(&scene, &taken, &wanted.lock(), point);
        take(&scene, "3", "after");
        for _ in 0..2 {
            scene.db.flush().unwrap();
            check_all(&scene, &taken, &wanted.lock(), point);
            for level in 0..F {
                scene.lower(level);
                check_all(&scene, &taken, &wanted.lock(), point);
            }
            // What is read now goes up once more.
            scene.promote().unwrap();
            scene.cross();
            check_all(&scene, &taken, &wanted.lock(), point);
        }
        // So the hook's copies of the scene keep nothing alive.
        taken.lock().clear();
    }
}

/// A delete and a promoted copy of what it deletes, on their way down until both are gone.
#[test]
fn a_delete_and_the_promoted_copy_it_hides_both_go_in_the_end() {
    let scene = Scene::with_old(&KEYS);
    scene.read_into_cache(&KEYS);
    scene.heat(&KEYS);
    scene.promote().unwrap();
    scene.delete("k05");
    let mut wanted = model(&KEYS, "old");
    wanted.remove("k05");
    scene.db.flush().unwrap();
    let gone = |level: u8| (level, "gone".to_owned());
    let old = |level: u8| (level, "old".to_owned());
    assert_eq!(scene.levels_of("k05"), [gone(0), old(0), old(SLOW as u8)]);
    scene.check(&wanted, &KEYS, "in L0");
    for level in 0..F {
        scene.lower(level);
        let below = level as u8 + 1;
        // The delete takes the promoted copy along, and is still needed for the one on the slow
        // tier.
        assert_eq!(scene.levels_of("k05"), [gone(below), old(SLOW as u8)]);
        scene.check(&wanted, &KEYS, "on its way");
    }
    scene.cross();
    assert_eq!(scene.levels_of("k05"), [], "both are gone");
    scene.check(&wanted, &KEYS, "in the end");
    let scene = scene.reopen(crate::testing::scene::options());
    scene.check(&wanted, &KEYS, "opened again");
}
