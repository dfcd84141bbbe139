//! The keys that are asked for. They are drawn beforehand, so that no generator is measured.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// The numbers below `keys` in random order. Loaded like this, keys that are hot together are not
/// neighbours in memory.
pub(crate) fn shuffled(keys: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..keys).collect();
    all.shuffle(&mut StdRng::seed_from_u64(1));
    all
}

/// `len` keys below `keys`; key 0 is the hottest, with the zipfian exponent `theta`.
pub(crate) fn zipfian(keys: u32, theta: f64, len: usize, seed: u64) -> Vec<u32> {
    let mut random = StdRng::seed_from_u64(seed);
    if theta == 0.0 {
        return (0..len).map(|_| random.random_range(0..keys)).collect();
    }
    let Ok(zipf) = Zipf::new(f64::from(keys), theta) else {
        panic!("no zipfian distribution over {keys} keys with exponent {theta}");
    };
    // Ranks begin at 1.
    (0..len)
        .map(|_| (zipf.sample(&mut random) as u32).clamp(1, keys) - 1)
        .collect()
}
