//! Recorded accesses, replayed under many prefixes.

mod access;
mod cache2k;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod input;
mod metakv;
mod oracle_general;
mod sinking;
mod stats;
mod stats_text;
mod twitter;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use xxhash_rust::xxh3::Xxh3Default;

use crate::keys::KeySpace;
use crate::record_sizes::ValueLens;
use access::Access;
pub(crate) use access::Action;
#[cfg(test)]
pub(crate) use sinking::Sinking;
pub use stats::{TraceStats, TraceStatsArgs, trace_stats};

/// A trace file's format. Each may be plain, or in an .xz or .zst file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Little-endian 32-bit integers, one per access
    Cache2k,
    /// Twitter's cache traces, CSV
    Twitter,
    /// Meta's key-value traces, as CacheBench replays them, CSV with a header
    Metakv,
    /// libCacheSim's oracleGeneral, 24 bytes per access
    OracleGeneral,
}

impl Format {
    /// Whether keys that are near each other in the trace have numbers that are. Of text keys a
    /// trace keeps a hash.
    pub(crate) fn keeps_key_order(self) -> bool {
        matches!(self, Format::Cache2k | Format::OracleGeneral)
    }
}

/// The bits of an access that hold the number of its key. The others hold its action.
const KEY_BITS: u32 = 30;

/// Accesses in order, by the number of the key. In memory they take 4 bytes each, and 13 for each
/// distinct key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    accesses: Vec<u32>,
    keys: Arc<[u64]>,
    /// Length of each key's value, or 0 if the trace never tells it. A key keeps its first length,
    /// because a store is loaded before it is read, and answers are checked for their length.
    value_lens: Arc<[u32]>,
    /// Whether a key is deleted anywhere.
    deleted: Vec<bool>,
    /// Bytes of all distinct keys, if the trace tells them.
    key_bytes: Option<u64>,
    /// Accesses by their name in the trace.
    operations: BTreeMap<&'static str, u64>,
}

/// The accesses of a file, one after the other.
type Accesses = Box<dyn Iterator<Item = Result<Access>>>;

fn accesses(input: input::Input, format: Format) -> Result<Accesses> {
    Ok(match format {
        Format::Cache2k => Box::new(cache2k::read(input)?),
        Format::Twitter => Box::new(twitter::read(input)),
        Format::Metakv => Box::new(metakv::read(input)?),
        Format::OracleGeneral => Box::new(oracle_general::read(input)),
    })
}

impl Trace {
    /// Reads `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not of that format; the line or offset is named.
    pub(crate) fn read(path: &Path, format: Format) -> Result<Self> {
        input::open(path)
            .and_then(|input| accesses(input, format))
            .and_then(Self::new)
            .with_context(|| format!("trace {}", path.display()))
    }

    /// As [`Trace::read`], from the bytes of a file.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn decode(bytes: Vec<u8>, format: Format) -> Result<Self> {
        input::unpack(std::io::Cursor::new(bytes))
            .and_then(|input| accesses(input, format))
            .and_then(Self::new)
    }

    fn new(read: Accesses) -> Result<Self> {
        let mut numbers = HashMap::new();
        let (mut accesses, mut keys, mut value_lens) = (Vec::new(), Vec::new(), Vec::new());
        let (mut deleted, mut key_bytes) = (Vec::new(), Some(0));
        let mut operations = BTreeMap::new();
        for access in read {
            let access = access?;
            let number = *numbers.entry(access.key).or_insert_with(|| {
                keys.push(access.key);
                value_lens.push(0);
                deleted.push(false);
                key_bytes = key_bytes
                    .zip(access.key_len)
                    .map(|(sum, len): (u64, u32)| sum + u64::from(len));
                keys.len() - 1
            });
            ensure!(
                number < 1 << KEY_BITS,
                "it has more than {} keys",
                1 << KEY_BITS
            );
            if let (Some(len @ 0), Some(found)) = (value_lens.get_mut(number), access.value_len) {
                *len = found;
            }
            if let (Some(deleted), Action::Delete) = (deleted.get_mut(number), access.action) {
                *deleted = true;
            }
            *operations.entry(access.operation).or_default() += u64::from(access.repeats);
            let packed = number as u32 | (access.action as u32) << KEY_BITS;
            accesses.extend((0..access.repeats).map(|_| packed));
        }
        ensure!(!accesses.is_empty(), "there are no accesses in it");
        Ok(Self {
            accesses,
            keys: keys.into(),
            value_lens: value_lens.into(),
            deleted,
            key_bytes,
            operations,
        })
    }

    /// Accesses in it. There is at least one.
    pub(crate) fn accesses(&self) -> u64 {
        self.accesses.len() as u64
    }

    /// Distinct keys in it.
    pub(crate) fn distinct(&self) -> u64 {
        self.keys.len() as u64
    }

    /// A hash of its distinct keys and their values' lengths. Traces with the same hash load the
    /// same records, if they use the same length for keys without one.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        for key in self.keys.iter() {
            hash.update(&key.to_le_bytes());
        }
        for len in self.value_lens.iter() {
            hash.update(&len.to_le_bytes());
        }
        hash.digest()
    }

    /// The keys of its records.
    pub(crate) fn key_space(&self) -> KeySpace {
        KeySpace::Trace {
            keys: Arc::clone(&self.keys),
        }
    }

    /// The lengths of its records' values. `usual` for those that it does not tell.
    pub(crate) fn value_lens(&self, usual: usize) -> ValueLens {
        ValueLens::by_key(usual, Arc::clone(&self.value_lens))
    }

    /// Its distinct keys, by number.
    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// How often each of its records is read, by the number of the key.
    pub(crate) fn reads(&self) -> Vec<u64> {
        let mut reads = vec![0; self.keys.len()];
        for (action, number) in self.accesses.iter().map(|access| unpack(*access)) {
            if let (Action::Read, Some(reads)) = (action, reads.get_mut(number)) {
                *reads += 1;
            }
        }
        reads
    }

    /// What operation `index` does, and to which record, if each access is replayed under `copies`
    /// prefixes, one after the other. Starts again after the end.
    pub(crate) fn operation(&self, index: u64, copies: u64) -> (Action, u64) {
        let position = (index / copies % self.accesses()) as usize;
        let (action, number) = unpack(self.accesses.get(position).copied().unwrap_or(0));
        (action, index % copies * self.distinct() + number as u64)
    }

    /// Whether any record is deleted anywhere.
    pub(crate) fn deletes_any(&self) -> bool {
        self.deleted.contains(&true)
    }

    /// Whether the record is deleted anywhere.
    pub(crate) fn deletes(&self, record: u64) -> bool {
        let number = (record % self.distinct()) as usize;
        self.deleted.get(number).is_some_and(|deleted| *deleted)
    }
}

/// What a packed access does, and the number of its key.
fn unpack(access: u32) -> (Action, usize) {
    let action = match access >> KEY_BITS {
        0 => Action::Read,
        1 => Action::Write,
        _ => Action::Delete,
    };
    (action, (access & ((1 << KEY_BITS) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    /// The accesses in `bytes`, which are a valid file.
    pub(super) fn decode(format: Format, bytes: &[u8]) -> Vec<Access> {
        let file = file(bytes);
        let read = accesses(input::open(file.path()).unwrap(), format).unwrap();
        read.collect::<Result<_>>().unwrap()
    }

    /// Why `bytes` are not a trace.
    pub(super) fn refusal(format: Format, bytes: &[u8]) -> String {
        let file = file(bytes);
        let error = Trace::read(file.path(), format).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains(&file.path().display().to_string()), "{text}");
        text
    }

    fn trace(accesses: impl IntoIterator<Item = Access>) -> Trace {
        let accesses: Vec<_> = accesses.into_iter().map(Ok).collect();
        Trace::new(Box::new(accesses.into_iter())).unwrap()
    }

    fn reads(keys: &[u64]) -> Trace {
        trace(keys.iter().map(|key| Access::read(*key)))
    }

    #[test]
    fn accesses_keep_their_order_and_are_copied() {
        let trace = reads(&[9, 5, 9, 7]);
        assert_eq!((trace.accesses(), trace.distinct()), (4, 3));
        let records: Vec<u64> = (0..10).map(|index| trace.operation(index, 2).1).collect();
        assert_eq!(records, [0, 3, 1, 4, 0, 3, 2, 5, 0, 3]);
        let space = trace.key_space();
        assert_eq!(&space.key(0), b"000000000000000000000009");
        assert_eq!(&space.key(5), b"000000010000000000000007");
    }

    #[test]
    fn actions_sizes_and_repeats_are_kept() {
        let access = |key, action, value_len| Access {
            action,
            value_len,
            key_len: Some(10),
            ..Access::read(key)
        };
        let trace = trace([
            access(1, Action::Read, None),
            Access {
                repeats: 2,
                ..access(1, Action::Write, Some(500))
            },
            access(1, Action::Write, Some(900)),
            access(2, Action::Delete, None),
        ]);
        let operations: Vec<_> = (0..5).map(|index| trace.operation(index, 1)).collect();
        assert_eq!(
            operations,
            [
                (Action::Read, 0),
                (Action::Write, 0),
                (Action::Write, 0),
                (Action::Write, 0),
                (Action::Delete, 1)
            ]
        );
        let lens = trace.value_lens(77);
        assert_eq!((lens.of(0), lens.of(1), lens.of(2)), (500, 77, 500));
        assert_eq!((trace.deletes(0), trace.deletes(1)), (false, true));
        assert!(trace.deletes(3), "of every copy");
        assert_eq!(trace.key_bytes, Some(20));
    }

    #[test]
    fn the_fingerprint_is_of_the_keys_and_their_sizes() {
        let print = |keys: &[u64]| reads(keys).fingerprint();
        assert_eq!(print(&[9, 5, 9]), print(&[9, 9, 5, 5]));
        assert_ne!(print(&[9, 5]), print(&[9, 6]));
        let sized = trace([9, 5].map(|key| Access {
            value_len: Some(50),
            ..Access::read(key)
        }));
        assert_ne!(print(&[9, 5]), sized.fingerprint());
    }

    #[test]
    fn files_that_are_missing_or_empty_are_named() {
        for format in Format::value_variants() {
            let error = Trace::read(Path::new("/no/such.trace"), *format).unwrap_err();
            assert!(format!("{error:#}").contains("/no/such.trace"));
            let error = refusal(*format, b"");
            assert!(error.contains("no accesses"), "{error}");
        }
    }
}
