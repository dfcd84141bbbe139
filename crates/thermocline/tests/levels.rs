//! Recency along the levels (I1) and what one job may do to them (I11), where plain scripts rarely
//! get.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::collections::BTreeMap;

use common::{memory, open_on, small_options};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::{Db, Options};

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

fn write_all(db: &Db, generation: u8) {
    for n in 0..KEYS {
        db.put(key(n), value(generation, n)).unwrap();
    }
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

/// The shape that options ask for changes between openings; levels that were in use stay occupied
/// for a while. A compaction that passed over one would put newer records below older ones.
fn reshape(narrow: Options, wide: Options) {
    let medium = memory();
    let mut skipped = false;
    let db = open_on(&narrow, &medium).unwrap();
    write_all(&db, 0);
    db.wait_idle().unwrap();
    let before = occupied(&db);
    drop(db);
    for generation in 1..4 {
        let options = if generation % 2 == 1 { &wide } else { &narrow };
        let db = open_on(options, &medium).unwrap();
        let targets = db.metrics().levels;
        // A level that holds tables, has no place in the new shape and is not yet emptied.
        skipped |= before
            .iter()
            .any(|&l| targets[l].tables > 0 && targets[l].target_bytes == 0);
        write_all(&db, generation);
        check_all(&db, generation, "written");
        db.wait_idle().unwrap();
        check_all(&db, generation, "settled");
        db.compact_range::<&str>(..).unwrap();
        check_all(&db, generation, "compacted");
    }
    assert!(skipped, "no level went out of use: {before:?}");
}

#[test]
fn levels_that_go_out_of_use_on_the_slow_tier_are_not_passed_over() {
    let mut narrow = small_options();
    narrow.tiers[0].capacity = 24 * (32 << 10);
    narrow.level_ratio = 2;
    let wide = Options {
        level_ratio: 100,
        ..narrow.clone()
    };
    reshape(narrow, wide);
}

#[test]
fn levels_that_go_out_of_use_on_one_tier_are_not_passed_over() {
    let mut narrow = small_options();
    narrow.tiers.truncate(1);
    narrow.tiers[0].capacity = u64::MAX;
    narrow.level_ratio = 2;
    narrow.l0_trigger = 1;
    let wide = Options {
        level_ratio: 100,
        l0_trigger: 8,
        ..narrow.clone()
    };
    reshape(narrow, wide);
}

/// Snapshots keep more versions of a key than a table holds. Cut between them, a table would hide the
/// older ones from a point read, which looks into one table of a level (I11).
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
