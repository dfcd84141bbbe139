//! Planned bytes against reservations, and reservations against each other.

use crate::placement::SpacePlan;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::testing::scene::Scene;

/// A reservation was added before it was checked, so a refused one counted for a moment. A large
/// job that found no space made a flush fail for which there was space.
#[test]
fn a_refused_reservation_takes_no_other_ones_room() {
    let scene = Scene::new();
    let tier = Arc::clone(scene.engine().fast());
    let ended = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                assert!(tier.reserve(1 << 40).is_err());
            }
        });
        let refused = (0..20_000).filter(|_| tier.reserve(1024).is_err()).count();
        ended.store(true, Ordering::Relaxed);
        refused
    });
    assert_eq!(refused, 0);
    assert_eq!((tier.reserved_bytes(), tier.in_flight()), (0, 0));
}

/// If a planned size held up jobs or writers, they would stop while the store shrinks to it. If
/// plans did not follow it, it would never be reached.
#[test]
fn plans_see_what_is_planned_and_reservations_keep_to_the_capacity() {
    let scene = Scene::new();
    let (engine, tree) = (scene.engine(), scene.tree());
    let tier = engine.fast();
    let whole = tier.capacity();
    assert_eq!(tier.planned_bytes(), whole);
    // Two spans of time during all of which it was free.
    (0..2).for_each(|_| tier.begin_span());
    let plans = || (engine.fast_rooms().of(tree), tier.free_for_copies());
    let keeps = || {
        (
            tier.free_bytes(),
            tier.free_for_jobs(),
            engine.compaction_margin(),
        )
    };
    let (before, kept) = (plans(), keeps());

    // So little that the plan's margin is smaller, too.
    let planned = whole / 8;
    tier.plan_for(planned);
    let (room, copies) = plans();
    assert_eq!(before.0.last - room.last, whole - planned);
    assert_eq!(before.1 - copies, whole - planned);
    let plan = SpacePlan::new(&engine.options, &engine.sizes, planned);
    assert_eq!(room.planned, plan.levels);
    let above_f = engine.fast_rooms().above_f(tree);
    assert_eq!(above_f, plan.l0 + plan.levels / engine.options.level_ratio);

    assert_eq!(keeps(), kept);
    assert!(plan.margin < engine.compaction_margin());
    assert!(tier.reserve(tier.free_for_jobs() + 1).is_err());
    assert!(tier.reserve(tier.free_for_jobs()).is_ok());
}

/// A tier may hold more than is planned for it.
#[test]
fn what_is_there_beyond_what_is_planned_leaves_plans_no_room_and_jobs_theirs() {
    let scene = Scene::new();
    let engine = scene.engine();
    let tier = engine.fast();
    (0..2).for_each(|_| tier.begin_span());
    let mut space = tier.reserve(1 << 20).unwrap();
    space.use_for_file(1 << 20);
    drop(space);
    tier.plan_for(1 << 19);
    assert_eq!(tier.free_for_copies(), 0);
    let plan = SpacePlan::new(&engine.options, &engine.sizes, 1 << 19);
    // Even if there is no room, the last levels are to have this much.
    let least = plan.levels / 4;
    assert_eq!(engine.fast_rooms().of(scene.tree()).last, least);
    assert!(tier.reserve(1 << 20).is_ok());
    tier.remove_file_bytes(1 << 20);
}

#[test]
fn a_manifest_is_as_long_as_the_planned_size_allows() {
    let scene = Scene::new();
    let engine = scene.engine();
    let is_long = || engine.files.manifest.lock().is_long();
    for version in 0..8 {
        scene.put("key", &version.to_string());
        scene.freeze();
        scene.drain();
    }
    assert!(!is_long());
    engine.fast().plan_for(1);
    assert!(is_long());
}
