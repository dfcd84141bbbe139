//! Recorded accesses, replayed under many prefixes.

mod cache2k;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use xxhash_rust::xxh3::Xxh3Default;

use crate::keys::KeySpace;

/// A trace file's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Little-endian 32-bit integers, one per access, possibly in an .xz file.
    Cache2k,
}

/// Accesses in order, by number of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    accesses: Vec<u32>,
    keys: Vec<u32>,
}

impl Trace {
    /// Reads `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not of that format.
    pub(crate) fn read(path: &Path, format: Format) -> Result<Self> {
        let keys = match format {
            Format::Cache2k => cache2k::read(path),
        };
        Ok(Self::new(
            keys.with_context(|| format!("trace {}", path.display()))?,
        ))
    }

    fn new(mut accesses: Vec<u32>) -> Self {
        let mut numbers = HashMap::new();
        let mut keys = Vec::new();
        for access in &mut accesses {
            let number = *numbers.entry(*access).or_insert_with(|| {
                keys.push(*access);
                (keys.len() - 1) as u32
            });
            *access = number;
        }
        Self { accesses, keys }
    }

    /// Accesses in it; at least one.
    pub(crate) fn accesses(&self) -> u64 {
        self.accesses.len() as u64
    }

    /// Distinct keys in it.
    pub(crate) fn distinct(&self) -> u64 {
        self.keys.len() as u64
    }

    /// A hash of its distinct keys: traces that share it load the same records.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        for key in &self.keys {
            hash.update(&key.to_le_bytes());
        }
        hash.digest()
    }

    /// The keys of its records.
    pub(crate) fn key_space(&self) -> KeySpace {
        KeySpace::Trace {
            keys: self.keys.clone(),
        }
    }

    /// The record that operation `index` reads when each access is replayed under `copies`
    /// prefixes, one after the other. Starts again at the end.
    pub(crate) fn record(&self, index: u64, copies: u64) -> u64 {
        let position = (index / copies % self.accesses()) as usize;
        let copy = index % copies;
        copy * self.distinct() + u64::from(self.accesses[position])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_keep_their_order_and_are_copied() {
        let trace = Trace::new(vec![9, 5, 9, 7]);
        assert_eq!((trace.accesses(), trace.distinct()), (4, 3));
        let records: Vec<u64> = (0..10).map(|index| trace.record(index, 2)).collect();
        assert_eq!(records, [0, 3, 1, 4, 0, 3, 2, 5, 0, 3]);
        let space = trace.key_space();
        assert_eq!(&space.key(0), b"000000000000000000000009");
        assert_eq!(&space.key(5), b"000000010000000000000007");
    }

    #[test]
    fn the_fingerprint_is_of_the_keys() {
        let trace = |accesses| Trace::new(accesses).fingerprint();
        assert_eq!(trace(vec![9, 5, 9]), trace(vec![9, 9, 5, 5]));
        assert_ne!(trace(vec![9, 5]), trace(vec![9, 6]));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Trace::read(Path::new("/no/such.trace"), Format::Cache2k).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such.trace"));
    }
}
