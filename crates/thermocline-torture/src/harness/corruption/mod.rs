//! Bytes of a store's files are not what was written. Each time that is detected, by an error that names
//! the file, or harmless: never a wrong answer, never a panic.
//!
//! | module | what it holds |
//! |---|---|
//! | `scene` | the stores that are damaged, and what they hold |
//! | `layout` | where blocks and records lie in a file, read without the engine |
//! | `damage` | what is done to the files |
//! | `judge` | what the store may then say |

mod damage;
mod judge;
mod layout;
mod scene;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::Harness;
use crate::cases;
use crate::verdict::{Tally, Violation};
use scene::scenes;

/// A flipped bit at each byte of each file, one case after another.
pub(crate) const EVERY_BYTE: Harness = Harness {
    name: "every-byte",
    about: "a bit of one byte of a small store is flipped",
    small: 1_500,
    long: 130_000,
    run: |plan| cases::run(EVERY_BYTE.name, plan, every_byte),
};

/// Damage of every other kind.
pub(crate) const CORRUPTION: Harness = Harness {
    name: "corruption",
    about: "bytes flipped, files cut, blocks swapped or misdirected, files lost",
    small: 1_500,
    long: 100_000,
    run: |plan| cases::run(CORRUPTION.name, plan, corruption),
};

/// Coprime to any number of bytes that it does not divide: a few cases are spread over all files, and
/// as many as there are bytes reach each of them once.
const STRIDE: u64 = 1_000_003;

fn every_byte(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let total: u64 = scenes().iter().map(|scene| scene.bytes()).sum();
    let mut at = seed.wrapping_mul(STRIDE) % total;
    for scene in scenes() {
        if at < scene.bytes() {
            return judge::judge(scene, damage::flip_one(scene, at), tally);
        }
        at -= scene.bytes();
    }
    Ok(())
}

fn corruption(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let scene = &scenes()[(seed % scenes().len() as u64) as usize];
    judge::judge(scene, damage::draw(scene, &mut rng, tally), tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Plan;

    #[test]
    fn a_long_run_reaches_every_byte() {
        let total: u64 = scenes().iter().map(|scene| scene.bytes()).sum();
        assert!(total <= EVERY_BYTE.long, "{total} bytes");
        assert_ne!(total % STRIDE, 0);
        assert_ne!(STRIDE % total, 0);
    }

    /// A harness that never meets a kind of file, or to which nothing is ever refused, proves nothing.
    #[test]
    fn a_small_run_meets_every_kind_of_file_and_every_outcome() {
        let verdict = (EVERY_BYTE.run)(&Plan::new(1, 300));
        assert!(verdict.is_clean(), "{verdict}");
        let common = [
            "refused at opening",
            "found by a read, and by verify",
            "harmless",
            "of a table",
            "of a log",
            "of a manifest",
        ];
        for what in common {
            assert!(verdict.tally.get(what) > 0, "{what}: {verdict}");
        }
        let verdict = (CORRUPTION.run)(&Plan::new(1, 300));
        assert!(verdict.is_clean(), "{verdict}");
        for what in common.iter().chain(damage::KINDS) {
            assert!(verdict.tally.get(what) > 0, "{what}: {verdict}");
        }
    }
}
