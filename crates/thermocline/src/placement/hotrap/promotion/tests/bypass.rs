//! What goes past level f, what must not (I1), and what runs beside it (I6, I8, I11).

use crate::error::{Error, Result};
use crate::levels::Plan;
use crate::metrics::Refusal;
use crate::options::Compression;
use crate::placement::UP;
use crate::testing::scene::{F, KEYS, Model, SLOW, Scene, VALUE, everything, model, options};

/// Keys that lie around the others: a table of L1 with both of them has all others in its range.
pub(super) const AROUND: [&str; 2] = ["k", "l"];

/// The level that a bypass starts from.
const ABOVE: usize = F - 1;

pub(super) fn all_keys() -> Vec<&'static str> {
    [&KEYS[..], &AROUND].concat()
}

/// Brings everything that is in memory down to L1.
pub(super) fn to_above(scene: &Scene) {
    scene.db.flush().unwrap();
    scene.lower(0);
}

/// A bypass of level f with the first table of L1.
pub(super) fn bypass(scene: &Scene) -> Plan {
    let state = scene.tree().state.lock();
    let table = scene.tree().pin().version.levels[ABOVE].tables[0].clone();
    let plan = scene
        .tree()
        .with_picker(&scene.engine(), &state, true, |picker| {
            picker.plan_bypass(ABOVE, &table)
        });
    plan.expect("a way past level f")
}

pub(super) fn run(scene: &Scene, plan: Plan) {
    scene.start(plan);
    scene.drain();
}

/// Runs a bypass. Returns the bytes that it writes to L1 and those that it reserves for that. The
/// latter include what a table has beside its records: a sixteenth, for tables as small as these.
fn written_above(scene: &Scene, plan: Plan) -> (u64, u64) {
    let on_above = || scene.tree().bytes_on(0)[ABOVE];
    let others = on_above() - plan.upper.tables()[0].meta.len;
    let space = scene.engine().reserve_for(&mut plan.clone()).unwrap();
    let reserved = space[UP].left();
    drop(space);
    run(scene, plan);
    (on_above() - others, reserved / 16 * 17)
}

/// A model with `keys` at "new" and the others at "old".
fn with_new(keys: &[&str]) -> Model {
    let mut all = model(&all_keys(), "old");
    all.extend(model(keys, "new"));
    all
}

#[test]
fn what_is_cold_and_unknown_to_level_f_goes_past_it() {
    let scene = Scene::with_old(&all_keys());
    scene.put_all(&["k01", "k08"], "mid");
    scene.to_last_fast();
    scene.put_all(&["k01", "k02", "k03"], "new");
    scene.put_all(&AROUND, "old");
    to_above(&scene);
    scene.heat(&["k03", "k05"]);
    run(&scene, bypass(&scene));
    let at = |level: usize, version: &str| (level as u8, version.to_owned());
    assert_eq!(
        scene.levels_of("k01"),
        [at(ABOVE, "new"), at(F, "mid")],
        "what lies on level f is older"
    );
    assert_eq!(scene.levels_of("k02"), [at(SLOW, "new")], "cold");
    assert_eq!(scene.levels_of("k03"), [at(ABOVE, "new")], "hot");
    assert_eq!(scene.levels_of("k05"), [at(ABOVE, "old")], "brought up");
    assert_eq!(scene.levels_of("k06"), [at(SLOW, "old")]);
    let bypassed = scene.db.metrics().hotrap.unwrap().bypassed_bytes;
    assert_eq!(bypassed, 3 * VALUE as u64 + 5, "k02 and those around");
    let mut wanted = with_new(&["k01", "k02", "k03"]);
    wanted.insert("k08".into(), "mid".into());
    scene.check(&wanted, &all_keys(), "past level f");
    assert_eq!(
        scene.tree().averages.cold(),
        1.0,
        "of level f nothing is known"
    );
    scene.to_slow();
    scene.check(&wanted, &all_keys(), "all below");
}

/// If a hot record of the slow tier has a newer version on level f, it would come to lie above
/// that.
#[test]
fn nothing_comes_up_that_level_f_has_a_newer_version_of() {
    let scene = Scene::with_old(&all_keys());
    scene.put("k05", "new");
    scene.to_last_fast();
    scene.put_all(&AROUND, "old");
    to_above(&scene);
    scene.heat(&["k05"]);
    run(&scene, bypass(&scene));
    let levels = scene.levels_of("k05");
    assert_eq!(
        levels,
        [(F as u8, "new".into()), (SLOW as u8, "old".into())]
    );
    scene.check(&with_new(&["k05"]), &all_keys(), "past level f");
}

/// A deletion that hides nothing below the slow level may still hide something on level f.
#[test]
fn a_deletion_stays_above_what_it_hides() {
    let scene = Scene::new();
    scene.put("k05", "old");
    scene.to_last_fast();
    scene.put_all(&AROUND, "old");
    scene.delete("k05");
    scene.delete("k06");
    to_above(&scene);
    run(&scene, bypass(&scene));
    let levels = scene.levels_of("k05");
    assert_eq!(
        levels,
        [(ABOVE as u8, "gone".into()), (F as u8, "old".into())]
    );
    assert_eq!(scene.levels_of("k06"), [], "it hides nothing");
    scene.check(&model(&AROUND, "old"), &all_keys(), "past level f");
}

/// All versions of a key that level f has stay. Of other keys all versions but the newest go down.
#[test]
fn snapshots_see_the_same_past_level_f() {
    let scene = Scene::new();
    let mut wanted = model(&all_keys(), "old");
    scene.put("k05", "old");
    scene.to_last_fast();
    let others = all_keys().into_iter().filter(|key| *key != "k05");
    others.for_each(|key| scene.put(key, "old"));
    let first = scene.db.snapshot();
    let before = wanted.clone();
    let mut seen = Vec::new();
    for version in ["mid", "new"] {
        scene.put_all(&["k05", "k06", "k07"], version);
        wanted.extend(model(&["k05", "k06", "k07"], version));
        seen.push((scene.db.snapshot(), wanted.clone()));
    }
    to_above(&scene);
    scene.heat(&["k06"]);
    for round in ["once", "twice"] {
        run(&scene, bypass(&scene));
        assert_eq!(scene.levels_of("k05")[0].0, ABOVE as u8);
        assert_eq!(scene.levels_of("k05")[1], (F as u8, "old".into()));
        let levels = scene.levels_of("k06");
        assert_eq!(
            levels,
            [(ABOVE as u8, "new".into()), (SLOW as u8, "mid".into())]
        );
        scene.check(&wanted, &all_keys(), round);
        scene.check_snapshot(&first, &before, &all_keys(), round);
        for (snapshot, wanted) in &seen {
            scene.check_snapshot(snapshot, wanted, &all_keys(), round);
        }
    }
}

/// A version that came to level f meanwhile would lie above a newer one, so no job writes there.
#[test]
fn no_job_writes_to_level_f_beside_a_bypass_of_its_keys() {
    let scene = Scene::with_old(&all_keys());
    scene.put_all(&["k03", "k07"], "old");
    scene.to_last_fast();
    scene.put_all(&AROUND, "new");
    to_above(&scene);
    let into_f = scene.pick(ABOVE, &everything(), true).unwrap();
    let crossing = scene.crossing();
    let plan = bypass(&scene);
    let hook = scene.at("compaction.claimed", move |scene| {
        assert!(scene.pick(ABOVE, &everything(), true).is_none());
        assert!(scene.pick(F, &everything(), true).is_none());
        // A job that was picked before does not start either.
        let state = scene.tree().state.lock();
        assert!(!state.running.admits(&into_f));
        assert!(!state.running.admits(&crossing));
        // As if neither its inputs nor the slow levels were in its way.
        let alone = Plan {
            to: F,
            upper: crossing.upper.clone(),
            between: Vec::new(),
            lower: Vec::new(),
            outputs: vec![crossing.outputs[1]],
            ..crossing.clone()
        };
        assert!(!state.running.admits(&alone));
        Ok(())
    });
    run(&scene, plan);
    drop(hook);
    scene.check(&with_new(&AROUND), &all_keys(), "past level f");
}

/// The other way round: a bypass does not begin beside a job that writes to level f.
#[test]
fn a_bypass_waits_for_a_job_on_level_f() {
    let scene = Scene::with_old(&all_keys());
    scene.put_all(&["k03", "k07"], "old");
    scene.to_last_fast();
    scene.heat(&["k03", "k07"]);
    scene.put_all(&AROUND, "new");
    to_above(&scene);
    let mut plan = bypass(&scene);
    // As if the slow levels were not in its way.
    plan.to = F + 1;
    plan.lower.clear();
    plan.outputs.remove(0);
    let hook = scene.at("compaction.claimed", move |scene| {
        assert!(!scene.tree().state.lock().running.admits(&plan));
        Ok(())
    });
    run(&scene, scene.crossing());
    drop(hook);
    scene.check(&with_new(&AROUND), &all_keys(), "crossed");
}

/// A read that began before has found the old version. Before it adds that version, the new one is
/// below level f, or about to be.
#[test]
fn what_a_bypass_supersedes_is_not_admitted() {
    for (point, why) in [
        ("compaction.before_edit", Refusal::Claimed),
        ("compaction.installed", Refusal::Overtaken),
    ] {
        let scene = Scene::with_old(&all_keys());
        // The table on level f has none of the keys in L1.
        scene.put_all(&AROUND, "old");
        scene.to_last_fast();
        let reader = scene.reader();
        scene.put_all(&["k05", "k09"], "new");
        to_above(&scene);
        let plan = bypass(&scene);
        let hook = scene.at(point, move |_| {
            assert_eq!(reader.get("k05").as_deref(), Some("old"));
            Ok(())
        });
        run(&scene, plan);
        drop(hook);
        assert_eq!(scene.refused(why), 1, "{point}");
        assert_eq!(scene.cached("k05"), None);
        assert_eq!(scene.get("k05").as_deref(), Some("new"));
    }
}

/// A claim does not stand against a record if the table that goes down says nothing of its key.
/// Such a record may be brought up meanwhile; then it leaves the cache.
#[test]
fn a_read_that_has_seen_the_table_that_passes_is_admitted() {
    let scene = Scene::with_old(&all_keys());
    scene.put_all(&["k03"], "old");
    scene.to_last_fast();
    scene.put_all(&AROUND, "new");
    to_above(&scene);
    scene.heat(&["k06"]);
    let hook = scene.at("compaction.before_edit", |scene| {
        for key in ["k05", "k06"] {
            assert_eq!(scene.get(key).as_deref(), Some("old"));
            assert_eq!(scene.cached(key).as_deref(), Some("old"));
        }
        Ok(())
    });
    run(&scene, bypass(&scene));
    drop(hook);
    assert_eq!(scene.cached("k05").as_deref(), Some("old"));
    assert_eq!(scene.cached("k06"), None, "it lies in L1");
    assert_eq!(scene.levels_of("k06")[0], (ABOVE as u8, "old".into()));
    // A deletion hides it wherever it is.
    scene.delete("k06");
    to_above(&scene);
    let mut wanted = with_new(&AROUND);
    wanted.remove("k06");
    scene.check(&wanted, &all_keys(), "deleted");
    scene.to_slow();
    scene.check(&wanted, &all_keys(), "deleted below");
}

/// The part of its input that one job from the level above f, of either kind, finds to be fresh.
/// Its input is ten records: level f has a version of three of them, and those of `hot` are hot.
/// The average is over some eight jobs, and this is one of them.
fn fresh_by_one_job(is_bypass: bool, hot: &[&str]) -> f64 {
    let scene = Scene::new();
    scene.put_all(&KEYS[..3], "old");
    scene.to_last_fast();
    scene.put_all(&KEYS, "new");
    to_above(&scene);
    scene.heat(hot);
    let fresh = || scene.engine().hotrap().fresh(scene.tree());
    assert_eq!(fresh(), 0.0, "nothing is known");
    if is_bypass {
        run(&scene, bypass(&scene));
    } else {
        scene.lower(ABOVE);
    }
    fresh() * 8.0
}

/// Ordinary jobs and bypasses find the same part of their input to be fresh.
#[test]
fn what_is_fresh_is_measured_by_jobs_of_either_kind() {
    for is_bypass in [false, true] {
        let fresh = fresh_by_one_job(is_bypass, &[]);
        assert!((fresh - 0.7).abs() < 1e-9, "{is_bypass}: {fresh}");
    }
}

/// An ordinary job took hot records for fresh ones, and a bypass, which leaves them where they are,
/// did not. If most new records were hot, the two kinds took turns, and the bypasses rewrote what
/// they met below for the sake of a few records.
#[test]
fn what_is_hot_is_not_fresh_to_jobs_of_either_kind() {
    for is_bypass in [false, true] {
        let fresh = fresh_by_one_job(is_bypass, &KEYS[5..]);
        assert!((fresh - 0.2).abs() < 1e-9, "{is_bypass}: {fresh}");
    }
}

/// Records of the promotion cache come up with a bypass, since everything that was read counts as
/// hot while little is known.
#[test]
fn promotion_joins_a_bypass() {
    let scene = Scene::with_old(&all_keys());
    scene.put("k09", "old");
    scene.to_last_fast();
    let new = [&AROUND[..], &["k00", "k01", "k02"]].concat();
    scene.put_all(&new, "new");
    to_above(&scene);
    scene.read_into_cache(&["k04", "k06"]);
    run(&scene, bypass(&scene));
    for key in ["k04", "k06"] {
        assert_eq!(scene.cached(key), None, "{key}");
        assert_eq!(scene.levels_of(key), [(ABOVE as u8, "old".into())]);
    }
    assert_eq!(scene.levels_of("k05"), [(SLOW as u8, "old".into())]);
    scene.check(&with_new(&new), &all_keys(), "past level f");
}

/// What has to stay has the room that was reserved for it, however much is hot below (I8).
#[test]
fn what_comes_up_takes_no_room_from_what_has_to_stay() {
    let scene = Scene::new();
    let keys: Vec<String> = (0..120).map(|n| format!("k{n:03}")).collect();
    let part = |n: usize| {
        let keys = keys.iter().skip(n).step_by(4);
        keys.map(String::as_str).collect::<Vec<_>>()
    };
    scene.put_all(&part(0), "old");
    scene.to_slow();
    for key in part(1).into_iter().chain(part(2)).chain(part(3)) {
        scene.put(key, "old");
    }
    scene.to_last_fast();
    for key in part(1).into_iter().chain(part(2)).chain(part(3)) {
        scene.put(key, "new");
    }
    scene.put_all(&AROUND, "new");
    to_above(&scene);
    scene.heat(&part(0));
    let (written, reserved) = written_above(&scene, bypass(&scene));
    assert!(written <= reserved, "{written} bytes, {reserved} reserved");
}

/// What has to stay was expected to remain as long as it was. If the tables had been compressed and
/// are no longer, it became several times as long, beyond what was reserved of a capacity that is a
/// promise (I8).
#[test]
fn what_has_to_stay_has_room_however_it_was_compressed() {
    let mut options = options();
    options.tiers[0].compression = Compression::Lz4;
    let scene = Scene::with(options.clone());
    for version in ["old", "new"] {
        scene.put_all(&all_keys(), version);
        to_above(&scene);
        if version == "old" {
            scene.lower(ABOVE);
        }
    }
    options.tiers[0].compression = Compression::None;
    let scene = scene.reopen(options);
    let (written, reserved) = written_above(&scene, bypass(&scene));
    assert!(written > 12 * VALUE as u64, "all of it stays");
    assert!(written <= reserved, "{written} bytes, {reserved} reserved");
}

/// A bypass does not begin without room for what has to stay.
#[test]
fn a_bypass_without_room_on_the_fast_tier_is_refused() -> Result<()> {
    let scene = Scene::with_old(&all_keys());
    scene.put("k05", "new");
    scene.to_last_fast();
    scene.put_all(&["k05"], "new");
    scene.put_all(&AROUND, "old");
    to_above(&scene);
    let plan = bypass(&scene);
    let space = scene.take_all_space();
    let refused = scene.engine().start(scene.tree(), plan);
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    drop(space);
    scene.check(&with_new(&["k05"]), &all_keys(), "as it was");
    Ok(())
}

/// New records beside a full level f: most go past it. Records that replace hot ones of level f do
/// not, and the store comes to rest with every level within its target.
#[test]
fn new_records_pass_a_full_level_f_and_newer_ones_do_not() {
    const CAPACITY: u64 = 1 << 20;
    let mut options = options();
    options.tiers[0].capacity = CAPACITY;
    options.memtable_size = Some(16 << 10);
    (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (2, 8, 12);
    options.level_ratio = 10;
    let scene = Scene::with(options);
    let key = |n: usize| format!("m{:05}", n * 7919 % 20_000);
    let passed = || {
        let metrics = scene.db.metrics();
        let past = |from: u8, to: u8| usize::from(from) == ABOVE && usize::from(to) > F;
        let jobs = metrics.compactions.iter().filter(|c| past(c.from, c.to));
        jobs.map(|c| c.jobs).sum::<u64>()
    };
    let rest = |at: &str| {
        scene.db.wait_idle().unwrap();
        let metrics = scene.db.metrics();
        for level in &metrics.levels[1..=F] {
            assert!(level.bytes <= level.target_bytes, "{at}: {level:?}");
        }
        assert!(metrics.tiers[0].file_bytes <= CAPACITY, "{at}");
    };
    for n in 0..12_000 {
        scene.put(&key(n), "first");
        if n == 800 {
            rest("few");
            assert_eq!(passed(), 0, "level f has room");
        }
    }
    rest("new");
    let (new, records) = (passed(), 12_000 * (VALUE as u64 + 6));
    assert!(new * (16 << 10) > records / 10, "{new} jobs");
    for n in (0..12_000).step_by(37) {
        assert_eq!(scene.get(&key(n)).as_deref(), Some("first"), "{n}");
    }
    let held: Vec<String> = (0..12_000).map(key).collect();
    let held = held.iter().map(String::as_str);
    let is_on_f = |key: &&str| {
        scene
            .levels_of(key)
            .iter()
            .any(|(level, _)| *level == F as u8)
    };
    let held: Vec<&str> = held.filter(is_on_f).take(400).collect();
    assert_eq!(held.len(), 400);
    scene.heat(&held);
    for round in 0..20 {
        scene.put_all(&held, &round.to_string());
    }
    rest("newer");
    let newer = passed() - new;
    assert!(newer * 10 < new, "{newer} after {new}");
    for key in &held {
        assert_eq!(scene.get(key).as_deref(), Some("19"));
    }
}
