//! Corpora of fuzz targets as ordinary tests: each input, and many that are nearly it.
//!
//! For the unit tests of the engine and of the benchmarks. A crate that knows neither: in one that
//! depends on the engine, as the harnesses do, they would wait for it, and so would its readers.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The inputs in directory `dir`, in the order of their names.
///
/// # Panics
/// When they cannot be read, or are fewer than two.
#[allow(clippy::panic, reason = "for tests, which fail by it")]
pub fn read(dir: &Path) -> Vec<Vec<u8>> {
    let say = |error| -> ! { panic!("{}: {error}", dir.display()) };
    let files = std::fs::read_dir(dir).unwrap_or_else(|error| say(error));
    let mut paths: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    paths.sort();
    let inputs = paths
        .iter()
        .map(|path| std::fs::read(path).unwrap_or_else(|error| say(error)));
    let inputs: Vec<Vec<u8>> = inputs.collect();
    assert!(inputs.len() >= 2, "{} holds no corpus", dir.display());
    inputs
}

/// Gives `entry` every input in `dir`, and `mutations` inputs that are nearly one of them.
///
/// # Panics
/// When `entry` does; the input is named.
pub fn run(dir: &Path, mutations: u32, entry: impl Fn(&[u8])) {
    let corpus = read(dir);
    corpus.iter().for_each(|input| entry(input));
    let mut rng = SmallRng::seed_from_u64(u64::from(mutations));
    for round in 0..mutations {
        let mut input = corpus[rng.random_range(0..corpus.len())].clone();
        mutate(&mut input, &mut rng);
        let ran = catch_unwind(AssertUnwindSafe(|| entry(&input)));
        let dir = dir.display();
        assert!(ran.is_ok(), "{dir}, mutation {round}: {input:02x?}");
    }
}

/// Changes a few bytes, as damage and overflow would have them.
pub fn mutate(bytes: &mut Vec<u8>, rng: &mut SmallRng) {
    for _ in 0..rng.random_range(1..5) {
        let at = rng.random_range(0..=bytes.len());
        match rng.random_range(0..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.random()),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at < bytes.len() => {
                bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][rng.random_range(0..6)]
            }
            // A number of the largest size.
            4 => drop(bytes.splice(
                at..at,
                [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            )),
            _ if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            _ => bytes.push(rng.random()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_reach_what_an_input_alone_does_not() {
        let dir = tempfile::tempdir().unwrap();
        for (name, len) in [("long", 3000u32), ("short", 1200)] {
            let bytes: Vec<u8> = (0..len).map(|n| (n * 7919 % 251) as u8).collect();
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let dir = dir.path();
        let intact = read(dir);
        let seen = std::cell::RefCell::new(Vec::new());
        run(dir, 30, |input| seen.borrow_mut().push(input.to_vec()));
        let seen = seen.into_inner();
        assert_eq!(seen[..intact.len()], intact);
        let changed = seen[intact.len()..].iter();
        assert!(changed.filter(|input| !intact.contains(input)).count() > 20);
        let ran = catch_unwind(|| run(dir, 30, |input| assert!(input.len() > 1000)));
        assert!(ran.is_err(), "one of thirty is cut short");
    }
}
