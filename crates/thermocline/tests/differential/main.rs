//! Random scripts against a `BTreeMap`: whatever the options, the executor and the moment, the
//! store answers as an ordered map would.
//!
//! Every script follows from its seed, which a failure names together with the step.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod model;
mod script;
mod threads;

use script::{Coverage, Driver, Script};
use thermocline::Options;
use thermocline_torture::random_options::random_options;
use thermocline_torture::stores::option_sets;

/// The shared option sets, on a fast tier so small that a short script spills over it.
fn small_sets() -> Vec<(&'static str, Options)> {
    let mut sets = option_sets();
    for (_, options) in &mut sets {
        if options.tiers.len() > 1 {
            let tier = &mut options.tiers[0];
            tier.capacity = tier.capacity.min(1 << 20);
        }
    }
    sets
}

/// Runs a script with few keys, overwritten again and again, and one with so many that they
/// spread over all levels.
fn run_both(name: &str, options: &Options, driver: Driver, seed: u64) -> Coverage {
    let mut coverage = Coverage::default();
    for keys in [40, 3000] {
        let name = format!("{name}, {keys} keys, {driver:?}, seed {seed}");
        let script = Script {
            name,
            options: options.clone(),
            driver,
            seed,
            keys,
            steps: 450,
        };
        coverage.add(&script.run());
    }
    coverage
}

#[test]
fn every_option_set_answers_like_an_ordered_map_on_threads() {
    for (seed, (name, options)) in small_sets().into_iter().enumerate() {
        let coverage = run_both(name, &options, Driver::Threads, seed as u64);
        coverage.check(name, options.tiers.len());
    }
}

#[test]
fn every_option_set_answers_like_an_ordered_map_step_by_step() {
    let mut all = Coverage::default();
    for (seed, (name, options)) in small_sets().into_iter().enumerate() {
        let coverage = run_both(name, &options, Driver::Stepped, 100 + seed as u64);
        coverage.check(name, options.tiers.len());
        all.add(&coverage);
    }
    assert!(all.moves > 0, "tables moved without being rewritten");
}

/// Blocks of tables that are gone stay in flash, beside new ones; with hardly any cache in memory
/// most reads are answered from there.
#[cfg(feature = "flash-cache")]
#[test]
fn with_a_flash_cache_a_store_answers_like_an_ordered_map() {
    let root = tempfile::tempdir().unwrap();
    let mut all = Coverage::default();
    for (seed, driver) in [(300, Driver::Threads), (301, Driver::Stepped)] {
        let (_, mut options) = small_sets().remove(0);
        options.placement = thermocline::Placement::FlashCache;
        options.block_cache = Some(seed % 2 * (64 << 10));
        // The cache lies in the file system, whatever the tiers are made of.
        options.tiers[0].path = root.path().join(seed.to_string()).join("fast");
        let coverage = run_both("flash cache", &options, driver, seed);
        // All tables are on one.
        coverage.check("flash cache", 1);
        all.add(&coverage);
    }
    assert!(all.flash_reads > 0, "{all:?}");
}

#[test]
fn random_option_sets_answer_like_an_ordered_map() {
    let mut coverage = Coverage::default();
    for seed in 200..212 {
        let options = random_options(seed);
        let driver = match seed % 2 {
            0 => Driver::Stepped,
            _ => Driver::Threads,
        };
        coverage.add(&run_both("random options", &options, driver, seed));
    }
    coverage.check("random options", 3);
    assert!(coverage.moves > 0, "tables moved without being rewritten");
    assert!(coverage.middle_levels > 0, "levels between were used");
    assert!(coverage.promoted.iter().all(|bytes| *bytes > 0));
    assert!(coverage.retained > 0, "{coverage:?}");
}
