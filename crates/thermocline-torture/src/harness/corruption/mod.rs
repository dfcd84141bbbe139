//! Bytes of a store's files are not what was written. Each time, either that is detected, by an
//! error that names the file, or it is harmless. There is never a wrong answer and never a panic.
//!
//! | module | what it holds |
//! |---|---|
//! | `scene` | the stores that are damaged, and what they hold |
//! | `layout` | where blocks and records lie in a file, read without the engine |
//! | `damage` | what is done to the files |
//! | `judge` | what the store may then say |

pub(super) mod damage;
mod judge;
mod layout;
pub(super) mod scene;

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
    run: |plan| {
        let verdict = cases::run(EVERY_BYTE.name, plan, every_byte);
        let verdict = verdict.having_reached(EVERY_BYTE.small, REACHED);
        let verdict = verdict.having_reached(EVERY_BYTE.long, FEW_BYTES);
        verdict.having_reached(EVERY_BYTE.long, &[judge::CUT_OFF])
    },
};

/// Damage of every other kind.
pub(crate) const CORRUPTION: Harness = Harness {
    name: "corruption",
    about: "bytes flipped, files cut, blocks swapped or misdirected, files lost",
    small: 1_500,
    long: 100_000,
    run: |plan| {
        let verdict = cases::run(CORRUPTION.name, plan, corruption);
        let verdict = verdict.having_reached(CORRUPTION.small, REACHED);
        let verdict = verdict.having_reached(CORRUPTION.small, FEW_BYTES);
        let verdict = verdict.having_reached(CORRUPTION.long, &[judge::CUT_OFF]);
        verdict.having_reached(CORRUPTION.small, damage::KINDS)
    },
};

/// A run proves nothing if it never meets a kind of file, or if nothing is ever refused in it.
const REACHED: &[&str] = &[
    "refused at opening",
    "found by a read, and by verify",
    "access records begun anew",
    "harmless",
    "of a table",
    "of a log",
    "of a manifest",
    "of RALT",
];

/// Files of a few bytes. It is chance whether `every-byte` has a case for them.
const FEW_BYTES: &[&str] = &["of CURRENT", "of TIER"];

/// Coprime to any number of bytes that it does not divide. So a few cases are spread over all
/// files, and as many cases as there are bytes reach each byte once.
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

    #[test]
    fn damage_is_noticed_or_harmless() {
        for harness in [EVERY_BYTE, CORRUPTION] {
            let verdict = (harness.run)(&Plan::new(1, 200)).having_reached(200, REACHED);
            assert!(verdict.is_clean(), "{verdict}");
        }
    }
}
