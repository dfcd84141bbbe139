//! Recency along the levels (I1) and what one job may do to them (I11), in places that plain
//! scripts rarely reach.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::executor::Stepped;
use thermocline::storage::Medium;
use thermocline::{Db, ManualClock, Options, Points};
use thermocline_torture::stores::{memory, open_on, small_options};

const KEYS: u32 = 4000;

fn key(n: u32) -> String {
    // Spread, so that every table spans most of the key space.
    format!("key{:06}", n.wrapping_mul(7919) % KEYS)
}

/// The generation, and bytes that do not compress.
fn value(generation: u8, n: u32) -> Vec<u8> {
    let mut rng = SmallRng::seed_from_u64(u64::from(n));
    let mut value = vec![generation; 400];
    rng.fill(&mut value[1..]);
    value
}

fn check_all(db: &Db, generation: u8, when: &str) {
    for n in 0..KEYS {
        let found = db.get(key(n)).unwrap();
        assert_eq!(
            found.as_deref(),
            Some(&value(generation, n)[..]),
            "{}: {when}",
            key(n)
        );
    }
    let generations = db.iter().map(|record| record.unwrap().1[0]);
    assert!(
        generations.into_iter().all(|found| found == generation),
        "{when}"
    );
}

fn occupied(db: &Db) -> Vec<usize> {
    let levels = db.metrics().levels;
    (1..levels.len())
        .filter(|&l| levels[l].tables > 0)
        .collect()
}

/// The generation with which each key was written last.
type Written = Arc<Mutex<Vec<u8>>>;

fn open_stepped(options: &Options, medium: &Arc<dyn Medium>, points: &Points) -> Db {
    let mut builder = Db::builder(options.clone())
        .points(points.clone())
        .executor(Arc::new(Stepped::new(11)))
        .clock(Arc::new(ManualClock::default()));
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(medium));
    }
    builder.open().unwrap()
}

/// Looks at the store after every compaction, before the next one can set things right again.
fn look_after_each_compaction(db: &Db, points: &Points, written: &Written) {
    let (db, written) = (db.clone(), Arc::clone(written));
    points.set("compaction.installed", move || {
        let written = written.lock().unwrap();
        for n in (0..KEYS).step_by(5) {
            let found = db.get(key(n))?.map(|value| value[0]);
            assert_eq!(
                found,
                Some(written[n as usize]),
                "{} after a compaction",
                key(n)
            );
        }
        Ok(())
    });
}

/// The shape that options ask for changes between openings, and levels that were in use stay
/// occupied for a while. If a compaction passed over tables of a level that it meets, it would put
/// newer records below older ones.
fn reshape(narrow: Options, wide: Options) {
    let medium = memory();
    let (mut skipped, mut before) = (false, Vec::new());
    let written: Written = Arc::new(Mutex::new(vec![0; KEYS as usize]));
    for generation in 0..4 {
        let options = if generation % 2 == 1 { &wide } else { &narrow };
        let points = Points::default();
        let db = open_stepped(options, &medium, &points);
        let targets = db.metrics().levels;
        // A level that holds tables, has no place in the new shape and has not been emptied yet.
        let out_of_use = |l: usize| targets[l].tables > 0 && targets[l].target_bytes == 0;
        skipped |= before.into_iter().any(out_of_use);
        if generation > 0 {
            look_after_each_compaction(&db, &points, &written);
        }
        for n in 0..KEYS {
            db.put(key(n), value(generation, n)).unwrap();
            written.lock().unwrap()[n as usize] = generation;
        }
        check_all(&db, generation, "written");
        db.wait_idle().unwrap();
        check_all(&db, generation, "settled");
        before = occupied(&db);
        if generation > 1 {
            db.compact_range::<&str>(..).unwrap();
            check_all(&db, generation, "compacted");
        }
        points.clear("compaction.installed");
    }
    assert!(skipped, "no level went out of use");
}

/// Here the picker empties such a level before it sends anything below it. That nothing passes over
/// what it meets is tested on one tier, and with `LevelTargets::next`.
#[test]
fn levels_that_go_out_of_use_on_the_slow_tier_are_not_passed_over() {
    let mut narrow = small_options();
    narrow.tiers[0].capacity = 24 * (32 << 10);
    narrow.level_ratio = 2;
    // One job at a time: a level out of use is not emptied before the next job is chosen.
    narrow.compaction_threads = 1;
    let mut wide = narrow.clone();
    wide.level_ratio = 100;
    reshape(narrow, wide);
}

#[test]
fn levels_that_go_out_of_use_on_one_tier_are_not_passed_over() {
    let mut narrow = small_options();
    narrow.tiers.truncate(1);
    narrow.tiers[0].capacity = u64::MAX;
    narrow.level_ratio = 2;
    // One job at a time: a level out of use is not emptied before the next job is chosen.
    narrow.compaction_threads = 1;
    narrow.l0_trigger = 1;
    let mut wide = narrow.clone();
    wide.level_ratio = 100;
    wide.l0_trigger = 2;
    wide.memtable_size = Some(320 << 10);
    reshape(narrow, wide);
}

/// Snapshots keep more versions of a key than a table holds. If tables were cut between these
/// versions, a table would hide the older ones from a point read, which looks into one table of a
/// level (I11).
#[test]
fn a_key_with_more_versions_than_a_table_holds_stays_in_one_table() {
    let (medium, options) = (memory(), small_options());
    let db = open_on(&options, &medium).unwrap();
    let mut seen = BTreeMap::new();
    let mut snapshots = Vec::new();
    for version in 0..300u32 {
        let value = version.to_le_bytes().repeat(120);
        db.put("many", &value).unwrap();
        for near in ["a", "z"] {
            db.put(format!("{near}{version:04}"), &value).unwrap();
        }
        let snapshot = db.snapshot();
        seen.insert(snapshot.seq(), value);
        snapshots.push(snapshot);
    }
    for _ in 0..2 {
        db.compact_range::<&str>(..).unwrap();
        for snapshot in &snapshots {
            let wanted = &seen[&snapshot.seq()];
            assert_eq!(snapshot.get("many").unwrap().as_deref(), Some(&wanted[..]));
            let found = snapshot
                .range("many"..="many")
                .next_back()
                .unwrap()
                .unwrap();
            assert_eq!(found.1, wanted[..]);
        }
        // Moves on, with one more layer of versions above what is below.
        db.put("many", "newest").unwrap();
    }
    let tables = db.metrics().levels;
    assert!(tables.iter().skip(1).map(|l| l.tables).sum::<u64>() > 1);
    drop((snapshots, db));
    let db = open_on(&options, &medium).unwrap();
    assert_eq!(db.get("many").unwrap().as_deref(), Some(&b"newest"[..]));
}
