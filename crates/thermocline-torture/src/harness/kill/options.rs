//! Options of a store that is opened again and again, each time with others.

use std::path::PathBuf;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use thermocline::Options;

use crate::random_options::random_options;

/// Where a store, its checkpoint and its journal lie.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::harness) struct Directories {
    pub(in crate::harness) home: PathBuf,
}

impl Directories {
    /// The journal's file, outside of the store.
    pub(in crate::harness) fn journal(&self) -> PathBuf {
        self.home.join("journal")
    }

    /// Directories for the checkpoint of a store with this many tiers.
    pub(in crate::harness) fn copy(&self, tiers: usize) -> Vec<PathBuf> {
        (0..tiers)
            .map(|tier| self.home.join(format!("copy{tier}")))
            .collect()
    }
}

/// How many clients a store has.
pub(in crate::harness) fn clients(seed: u64) -> u8 {
    SmallRng::seed_from_u64(seed ^ 0x00C1_1E27).random_range(1..=3)
}

/// The options of opening `opening`. The number of tiers is the store's own, and so is whether the
/// second is the last. Everything else changes with each opening.
pub(in crate::harness) fn drawn(seed: u64, opening: u64, directories: &Directories) -> Options {
    let mut rng = SmallRng::seed_from_u64(seed);
    let tiers = [1, 2, 2, 2, 3][rng.random_range(0..5)];
    let mut rng = SmallRng::seed_from_u64(seed.wrapping_mul(31) ^ opening);
    loop {
        let mut options = random_options(rng.random());
        if options.tiers.len() != tiers {
            continue;
        }
        for (index, tier) in options.tiers.iter_mut().enumerate() {
            tier.path = directories.home.join(format!("tier{index}"));
            tier.direct_io = rng.random_bool(0.5);
        }
        // Small, so that a life of a second reaches the slow tier.
        let memtable = rng.random_range(16..=24u64) << 10;
        options.memtable_size = Some(memtable);
        options.table_size = Some(memtable);
        if let [fast, _, ..] = &mut options.tiers[..] {
            fast.capacity = memtable * rng.random_range(24..=32);
        }
        // Drawn anew: the database's number must not follow from the seed.
        options.seed = None;
        return options;
    }
}
