//! Where a crossing sends the versions of a key (monotone routing), and what runs beside it (I11).

use crate::key::MAX_SEQ;
use crate::options::Compression;
use crate::sync::Arc;
use crate::table::HashedKey;
use crate::testing::scene::{F, KEYS, SLOW, Scene, VALUE, everything, model, options, range};

/// Keys that lie around the others: a table of level f with both of them has all others in its
/// range.
const AROUND: [&str; 2] = ["k", "l"];

#[test]
fn hot_records_stay_and_come_up_and_cold_ones_go_down() {
    let scene = Scene::with_old(&KEYS);
    scene.put_all(&AROUND, "old");
    scene.put_all(&["k01", "k02"], "new");
    scene.to_last_fast();
    scene.heat(&["k01", "k05"]);
    scene.cross();
    let newest = |key: &str| scene.levels_of(key)[0].clone();
    assert_eq!(newest("k01"), (F as u8, "new".into()), "retained");
    assert_eq!(newest("k02"), (SLOW as u8, "new".into()), "cold");
    assert_eq!(newest("k05"), (F as u8, "old".into()), "brought up");
    assert_eq!(newest("k06"), (SLOW as u8, "old".into()));
}

/// Records that may come up were counted before compression, and the room reserved for them after
/// it. Hot records that do not compress took several times the room that a table of compressible
/// records had left, beyond the fast tier's capacity (I8).
#[test]
fn what_stays_and_comes_up_has_room_in_what_was_reserved() {
    let mut options = options();
    options.tiers[0].compression = Compression::Lz4;
    let scene = Scene::with(options);
    let keys: Vec<String> = (0..200).map(|n| format!("k{n:03}")).collect();
    let below: Vec<&str> = keys.iter().step_by(4).map(String::as_str).collect();
    for key in &below {
        let value: [u8; VALUE] = rand::random();
        scene.db.put(key, value).unwrap();
    }
    scene.to_slow();
    for key in keys.iter().filter(|key| !below.contains(&key.as_str())) {
        scene.put(key, "new");
    }
    scene.put_all(&AROUND, "new");
    scene.to_last_fast();
    scene.heat(&below);
    let on_level_f = || scene.tree().bytes_on(0)[F];
    let reserved = on_level_f();
    scene.cross();
    let written = on_level_f();
    assert!(
        written > reserved / 2 && written <= reserved / 4 * 5,
        "{written} bytes, {reserved} reserved"
    );
}

/// A delete goes down, however hot its key is, with everything older of the key: an older version
/// that stayed above would come back to life.
#[test]
fn a_hot_key_that_was_deleted_goes_down_with_all_its_versions() {
    let scene = Scene::new();
    scene.put_all(&AROUND, "old");
    scene.put_all(&KEYS, "old");
    let snapshot = scene.db.snapshot();
    scene.delete("k05");
    let before = model(&[&KEYS[..], &AROUND].concat(), "old");
    let mut after = before.clone();
    after.remove("k05");
    scene.to_last_fast();
    scene.heat(&["k05"]);
    for at in ["once", "twice"] {
        scene.cross();
        assert_eq!(
            scene.levels_of("k05"),
            [(SLOW as u8, "gone".into())],
            "{at}"
        );
        scene.check(&after, &KEYS, at);
        scene.check_snapshot(&snapshot, &before, &KEYS, at);
        scene.put_all(&AROUND, "old");
        scene.to_last_fast();
    }
    drop(snapshot);
    scene.cross();
    assert_eq!(scene.levels_of("k05"), [], "both are gone");
    scene.check(&after, &KEYS, "in the end");
}

/// Only the newest version of a hot key stays. The older one, which a snapshot sees, goes down.
#[test]
fn the_older_versions_of_a_hot_key_go_down() {
    let scene = Scene::new();
    scene.put_all(&AROUND, "old");
    scene.put_all(&KEYS, "old");
    let snapshot = scene.db.snapshot();
    scene.put("k05", "new");
    let before = model(&[&KEYS[..], &AROUND].concat(), "old");
    let mut after = before.clone();
    after.insert("k05".into(), "new".into());
    scene.to_last_fast();
    scene.heat(&["k05"]);
    scene.cross();
    let levels = scene.levels_of("k05");
    assert_eq!(
        levels,
        [(F as u8, "new".into()), (SLOW as u8, "old".into())]
    );
    scene.check(&after, &KEYS, "retained");
    scene.check_snapshot(&snapshot, &before, &KEYS, "retained");
    // The older version does not come up again, though it is what a promotion cache would hold.
    scene.put_all(&AROUND, "old");
    scene.to_last_fast();
    scene.cross();
    let pinned = scene.tree().pin();
    for table in pinned.down_to_f().filter_map(|run| run.find(b"k05")) {
        let mut trace = Default::default();
        let old = table
            .table()
            .unwrap()
            .get(&HashedKey::new(b"k05"), snapshot.seq(), &mut trace)
            .unwrap();
        assert!(old.is_none(), "on level {}", table.meta.level);
    }
    scene.check_snapshot(&snapshot, &before, &KEYS, "crossed again");
    assert!(pinned.waiting.get(b"k05", MAX_SEQ).is_none());
}

/// While a crossing runs, no other job writes to level f within its keys, and none takes its
/// inputs.
#[test]
fn a_job_into_level_f_waits_for_a_crossing_of_its_keys() {
    let scene = Scene::with_old(&KEYS);
    scene.put_all(&AROUND, "old");
    scene.to_last_fast();
    scene.heat(&KEYS);
    scene.put_all(&["k03", "m"], "new");
    scene.db.flush().unwrap();
    scene.lower(0);
    let from_l1 = scene.pick(1, &everything(), true).unwrap();
    let hook = scene.at("compaction.claimed", move |scene| {
        assert!(scene.pick(1, &everything(), true).is_none(), "it waits");
        assert!(scene.pick(F, &range("k", "k04"), true).is_none());
        // A job that was picked before the crossing had started does not start either.
        let state = scene.tree().state.lock();
        assert!(!state.running.admits(&from_l1));
        Ok(())
    });
    scene.start(scene.crossing());
    scene.drain();
    drop(hook);
    let mut wanted = model(&[&KEYS[..], &AROUND].concat(), "old");
    wanted.insert("k03".into(), "new".into());
    wanted.insert("m".into(), "new".into());
    let keys = [&KEYS[..], &AROUND, &["m"]].concat();
    scene.check(&wanted, &keys, "crossed");
    scene.to_last_fast();
    scene.check(&wanted, &keys, "met on level f");
    scene.to_slow();
    scene.check(&wanted, &keys, "crossed again");
}

/// The other way round: the crossing waits.
#[test]
fn a_crossing_waits_for_a_job_into_level_f() {
    let scene = Scene::with_old(&KEYS);
    scene.put_all(&AROUND, "old");
    scene.to_last_fast();
    scene.put("k03", "new");
    scene.db.flush().unwrap();
    scene.lower(0);
    let crossing = scene.crossing();
    let hook = scene.at("compaction.before_edit", move |scene| {
        assert!(scene.pick(F, &everything(), true).is_none());
        scene.start(crossing);
        assert_eq!(scene.tree().placed.gate.claims(), 0);
        Ok(())
    });
    scene.lower(1);
    drop(hook);
    scene.cross();
    let mut wanted = model(&[&KEYS[..], &AROUND].concat(), "old");
    wanted.insert("k03".into(), "new".into());
    scene.check(&wanted, &[&KEYS[..], &AROUND].concat(), "in turn");
    assert_eq!(scene.levels_of("k03")[0], (SLOW as u8, "new".into()));
}

/// What stayed was counted before compression, and what had been there was counted after it. If the
/// fast tier compressed well, nothing seemed to come down, and the slow levels were made for that.
#[test]
fn what_comes_down_is_measured_before_compression() {
    let mut options = options();
    options.tiers[0].compression = Compression::Lz4;
    let scene = Scene::with(options);
    scene.put_all(&KEYS, "old");
    scene.to_last_fast();
    scene.heat(&KEYS[..5]);
    let tables = Arc::clone(&scene.tree().pin().version.levels[F].tables);
    let all: u64 = tables.iter().map(|table| table.raw_bytes()).sum();
    scene.cross();
    let kept = scene.db.metrics().hotrap.unwrap().retained_bytes;
    assert!(kept > 0);
    // This is one crossing in an average over some 32.
    let expected = 1.0 - kept as f64 / all as f64 / 32.0;
    let cold = scene.tree().averages.cold();
    assert!((cold - expected).abs() < 1e-9, "{cold}, not {expected}");
}
