//! A store that is closed while a promotion is under way, with a place in L0 reserved and a cache
//! frozen: closing waits for what runs, and nothing is lost or left over.

use std::sync::mpsc;
use std::time::Duration;

use super::flush::STEPS;
use crate::api::{Db, Keyspace};
use crate::points::Points;
use crate::storage::Faulty;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, yield_now};
use crate::testing::scene::{KEYS, Scene, model, options};

/// More than it takes to get to a step. A promotion that takes longer has not begun.
const PATIENCE: Duration = Duration::from_secs(20);

/// A disk with a closed store, all of whose keys lie on the slow tier.
fn closed_store() -> Faulty {
    let disk = Faulty::new(1);
    let scene = Scene::on(Arc::new(disk.clone()), options());
    scene.put_all(&KEYS, "old");
    scene.to_slow();
    scene.db.close().unwrap();
    disk
}

/// The store on `disk`, with threads of its own: an executor that is stepped cannot wait for a step
/// below it.
fn with_threads(disk: &Faulty, points: &Points) -> Db {
    let options = options();
    let tiers = options.tiers.len();
    let mut builder = Db::builder(options).points(points.clone());
    for tier in 0..tiers {
        builder = builder.medium(tier, Arc::new(disk.clone()));
    }
    builder.open().unwrap()
}

#[test]
fn closing_waits_for_a_promotion_that_holds_a_place() {
    for step in STEPS {
        for is_dropped in [false, true] {
            let at = format!("closed at {step}, dropped: {is_dropped}");
            let (disk, points) = (closed_store(), Points::default());
            let db = with_threads(&disk, &points);
            let (engine, tree) = (Arc::clone(Keyspace::engine(&db)), Arc::clone(db.tree()));
            for key in KEYS {
                assert!(db.get(key).unwrap().is_some(), "{at}");
            }
            let (arrives, has_arrived) = mpsc::channel();
            let closing = Arc::clone(&engine);
            points.set(step, move || {
                arrives.send(()).unwrap();
                // The place is held until closing waits for nothing else.
                while closing.check_open().is_ok() {
                    yield_now();
                }
                Ok(())
            });
            let has_ended = Arc::new(AtomicBool::new(false));
            let (ended, promoted) = (Arc::clone(&has_ended), Arc::clone(&tree));
            points.set("close.work_ended", move || {
                let is_over = !promoted.placed.promoting.load(Ordering::Acquire);
                ended.store(is_over, Ordering::Relaxed);
                Ok(())
            });
            engine.hotrap().schedule_promotion(&engine, &tree);
            has_arrived.recv_timeout(PATIENCE).expect(&at);
            let held = || tree.state.lock().l0_places.limit(false);
            assert_ne!(held(), u64::MAX, "{at}: a place is held");
            assert_eq!(tree.pin().waiting.caches.len(), 2, "{at}: one is frozen");
            if is_dropped {
                drop(db);
            } else {
                db.close().unwrap();
            }
            assert!(has_ended.load(Ordering::Relaxed), "{at}: it is waited for");
            assert_eq!(held(), u64::MAX, "{at}: no place is held");
            assert_eq!(engine.fast().reserved_bytes(), 0, "{at}: nor any space");
            // The hooks hold the store whose points they hang on.
            points.clear(step);
            points.clear("close.work_ended");

            let scene = Scene::on(Arc::new(disk), options());
            assert_eq!(scene.db.recovery().orphans, 0, "{at}");
            scene.check(&model(&KEYS, "old"), &KEYS, &at);
            // As after a promotion that was not interrupted.
            scene.delete("k05");
            let mut wanted = model(&KEYS, "old");
            wanted.remove("k05");
            scene.to_slow();
            scene.check(&wanted, &KEYS, &at);
        }
    }
}
