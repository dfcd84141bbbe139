use super::*;
use crate::levels::{Manual, Meant};
use crate::testing::scene::{self, Scene, everything};

#[test]
fn speed_falls_smoothly_with_pressure() {
    assert_eq!(rate_at(0.0), UNLIMITED);
    let rates: Vec<u64> = (1..=10).map(|p| rate_at(f64::from(p) / 10.0)).collect();
    assert!(
        rates
            .windows(2)
            .all(|w| w[1] < w[0] && w[1] as f64 > w[0] as f64 * 0.3),
        "{rates:?}"
    );
    assert!((rates[9] as f64 / SLOWEST - 1.0).abs() < 0.01);
}

#[test]
fn bytes_are_let_through_at_the_rate_set() {
    let stall = Stall::default();
    stall.set(1.0, Reason::L0);
    let mut now = Duration::ZERO;
    let mut sent = 0;
    while now < Duration::from_secs(10) {
        let place = stall.book(64 << 10, now).unwrap();
        now += stall.wait_for(place, now);
        sent += 64 << 10;
    }
    let expected = SLOWEST * now.as_secs_f64();
    assert!(
        (sent as f64 / expected - 1.0).abs() < 0.02,
        "{sent} bytes in {now:?}"
    );
}

/// What was owed was kept as a moment, at the speed at which it was booked. After large batches at
/// a low speed, small writes waited for a minute at a speed at which they cost nothing.
#[test]
fn what_is_owed_costs_what_the_speed_of_the_day_says() {
    let stall = Stall::default();
    stall.set(1.0, Reason::L0);
    let (start, bytes) = (Duration::ZERO, 256 << 20);
    let first = stall.book(bytes, start).unwrap();
    assert_eq!(stall.wait_for(first, start), start, "nothing is owed yet");
    let second = stall.book(100, start).unwrap();
    let slow = stall.wait_for(second, start).as_secs_f64();
    assert!((slow / 256.0 - 1.0).abs() < 0.02, "{slow} s");
    stall.set(0.01, Reason::L0);
    let quick = stall.wait_for(second, start).as_secs_f64();
    assert!((0.1..0.2).contains(&quick), "{quick} s");
    stall.set(0.0, Reason::L0);
    assert_eq!(stall.wait_for(second, start), start);
    stall.set(1.0, Reason::L0);
    let third = stall.book(100, start).unwrap();
    assert!(stall.wait_for(third, start) < SHORTEST_WAIT, "it is paid");
}

/// A write went on after a quarter of a second, however much the writes before it had taken of the
/// speed. Batches, and many writers, were not slowed, but stopped by what comes after the limit.
#[test]
fn a_write_waits_for_all_that_was_booked_before_it() {
    let mut options = scene::options();
    options.tiers[0].capacity = 64 << 20;
    let scene = Scene::with(options);
    let engine = scene.engine();
    engine.stall.set(1.0, Reason::L0);
    let started = engine.clock.now();
    for _ in 0..4 {
        engine.make_room(4 << 20).unwrap();
    }
    let took = (engine.clock.now() - started).as_secs_f64();
    assert!((took / 12.0 - 1.0).abs() < 0.02, "{took} s");
}

/// No test checked that writers stop at `l0_stop`. The work that they wait for may fail: then they
/// are told, as nothing else would end their wait.
#[test]
fn writers_stop_while_l0_is_full_and_hear_why_it_stays_so() {
    let mut options = scene::options();
    (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (2, 2, 3);
    let scene = Scene::with(options);
    let engine = scene.engine();
    scene.put("key", "1");
    scene.db.flush().unwrap();
    // A compaction of L0 that takes long.
    let plan = scene.pick(0, &everything(), false).unwrap();
    let job = Tree::start_compaction(&mut scene.tree().state.lock(), &plan);
    for (version, stops) in [("2", None), ("3", Some(Reason::L0))] {
        scene.put("key", version);
        scene.freeze();
        scene.drain();
        assert_eq!(engine.must_stop(1), stops);
    }
    scene.tree().end_compaction(job, &plan);
    scene.points.set("compaction.start", || {
        Err(Error::corruption("/fast/7.sst", 0, "a block"))
    });
    let refused = scene.db.put("key", "4");
    assert!(
        matches!(refused, Err(Error::Corruption { .. })),
        "{refused:?}"
    );
    scene.points.clear("compaction.start");
    scene.put("key", "4");
    assert_eq!(engine.must_stop(1), None);
    assert_eq!(scene.get("key").as_deref(), Some("4"));
}

/// Nor did any test check that writers are slowed for what waits to be compacted, long before L0
/// has many tables.
#[test]
fn writers_are_slowed_for_compaction_debt() {
    let mut options = scene::options();
    options.l0_trigger = 4;
    let scene = Scene::with(options);
    let engine = scene.engine();
    scene.put("first", "new");
    scene.db.flush().unwrap();
    // A compaction of L0 that takes forever.
    let plan = scene.pick(0, &everything(), false).unwrap();
    Tree::start_compaction(&mut scene.tree().state.lock(), &plan);
    let start = 32 * engine.sizes.memtable_size;
    scene.fill_l0(2000);
    assert!(engine.compaction_debt() < start);
    assert_eq!(engine.stall.reason(), None);
    scene.fill_l0(1000);
    assert!(engine.compaction_debt() > start);
    assert_eq!(engine.stall.reason(), Some(Reason::Debt));
}

/// Writers stayed slowed for what had waited in a keyspace that was gone, until the next memtable
/// was full.
#[test]
fn nobody_is_slowed_for_a_keyspace_that_is_gone() {
    let mut options = scene::options();
    (options.l0_trigger, options.l0_slowdown) = (4, 5);
    let scene = Scene::with(options);
    let (engine, side) = (scene.engine(), scene.db.create_keyspace("side").unwrap());
    side.put("key", "value").unwrap();
    scene.db.flush().unwrap();
    let tree = side.tree();
    let picked = tree.with_picker(&engine, &tree.state.lock(), false, |picker| {
        picker.pick_range(0, &Meant::all_of(&everything()))
    });
    let Manual::Start(plan) = picked else {
        panic!("a table of L0");
    };
    // A compaction of L0 that takes forever.
    Tree::start_compaction(&mut tree.state.lock(), &plan);
    for _ in 0..10 {
        side.put("key", "value").unwrap();
        scene.freeze();
        scene.drain();
    }
    assert_eq!(engine.stall.reason(), Some(Reason::L0));
    scene.db.drop_keyspace("side").unwrap();
    assert_eq!(engine.stall.reason(), None);
}

/// Takes so much of the fast tier that writers are slowed for it. Returns how much.
fn fill_fast_tier(engine: &Engine) -> u64 {
    let tier = engine.fast();
    let taken = tier.free_bytes() - engine.sizes.memtable_size / 2 * 3;
    tier.add_file_bytes(taken);
    engine.update_pressure();
    assert_eq!(engine.stall.reason(), Some(Reason::FastTier));
    taken
}

/// Writers stayed slowed for what a reader had held of the fast tier, until the next memtable was
/// full.
#[test]
fn nobody_is_slowed_for_files_that_a_reader_has_let_go() {
    let scene = Scene::new();
    scene.fill_l0(500);
    scene.to_last_fast();
    let (engine, reader) = (scene.engine(), scene.db.iter());
    scene.cross();
    assert!(engine.graveyard.pinned(0).0 > 4 * engine.sizes.memtable_size);
    let taken = fill_fast_tier(&engine);
    drop(reader);
    scene.drain();
    assert_eq!(engine.graveyard.pinned(0).0, 0);
    assert_eq!(engine.stall.reason(), None);
    engine.fast().remove_file_bytes(taken);
}

/// Writers stayed slowed for a dropped keyspace, too: how far behind the store was had been found
/// before the keyspace's files were gone.
#[test]
fn nobody_is_slowed_for_the_files_of_a_keyspace_that_is_gone() {
    let scene = Scene::new();
    let side = scene.db.create_keyspace("side").unwrap();
    for key in 0..500_u32 {
        side.put(key.to_be_bytes(), rand::random::<[u8; 500]>())
            .unwrap();
    }
    scene.db.flush().unwrap();
    scene.drain();
    let engine = scene.engine();
    let taken = fill_fast_tier(&engine);
    scene.db.drop_keyspace("side").unwrap();
    scene.drain();
    assert_eq!(engine.stall.reason(), None);
    engine.fast().remove_file_bytes(taken);
}

/// RALT's files, and what its merges reserve, count for the fast tier. Writers that were slowed for
/// them stayed slowed when they were gone, until the next memtable was full.
#[test]
fn nobody_is_slowed_for_what_access_records_have_given_back() {
    let scene = Scene::new();
    scene.drain();
    let engine = scene.engine();
    let taken = fill_fast_tier(&engine);
    // As the end of a merge does: its reservation and its inputs go, and no version changes.
    engine.fast().remove_file_bytes(taken);
    engine.hotrap().schedule_tracking(&engine);
    scene.drain();
    assert_eq!(engine.stall.reason(), None);
}

/// A slowed writer slept until its turn before it heard that no write would be taken any more:
/// behind large batches, for minutes.
#[test]
fn who_is_slowed_hears_at_once_that_the_store_is_poisoned() {
    let scene = Scene::new();
    let engine = scene.engine();
    engine.stall.set(1.0, Reason::L0);
    let before = engine.clock.now();
    engine.stall.book(256 << 20, before).unwrap();
    let cause = "planted".into();
    engine.background.note_poison(&Error::Poisoned { cause });
    // As a writer that has passed the check before it began to wait.
    let refused = engine.make_room(1);
    assert!(
        matches!(refused, Err(Error::Poisoned { .. })),
        "{refused:?}"
    );
    assert!(engine.clock.now() - before <= LONGEST_WAIT);
}

/// A batch that does not fit into an empty tier either had every table of the last fast level sent
/// down before it was refused.
#[test]
fn a_batch_that_can_never_fit_evicts_nothing() {
    let scene = Scene::new();
    scene.put_all(&scene::KEYS, "old");
    scene.to_last_fast();
    let on_last_fast = || -> Vec<_> {
        let version = &scene.tree().pin().version;
        let tables = version.levels[scene::F].tables.iter();
        tables.map(|table| table.meta.id).collect()
    };
    let before = on_last_fast();
    assert!(!before.is_empty());
    let capacity = scene.engine().fast().capacity();
    let refused = scene.db.put("large", vec![7; capacity as usize]);
    assert!(
        matches!(refused, Err(Error::DoesNotFit { .. })),
        "{refused:?}"
    );
    scene.drain();
    assert_eq!(on_last_fast(), before);
}
