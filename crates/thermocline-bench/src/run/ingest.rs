//! Filling a store with sorted records, by the engine's ingestion.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Watch;
use crate::engine::{Engine, Ingestion};
use crate::plan::Plan;
use crate::value;

/// How often the progress is told.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Records that were to be ingested, in another order than that of their keys, or one key twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotSorted {
    /// The first record whose key is not greater than the one before, counted from 0.
    pub(crate) index: u64,
}

impl fmt::Display for NotSorted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "record {} to ingest: its key is not greater than the one before",
            self.index
        )
    }
}

impl std::error::Error for NotSorted {}

/// The numbers of all records in the order of their keys.
pub(super) fn sorted(plan: &Plan) -> Vec<u64> {
    let keys = plan.source.key_space();
    let mut records: Vec<u64> = (0..plan.records).collect();
    records.sort_by_cached_key(|record| keys.key(*record));
    records
}

/// Takes `records` in, in this order.
///
/// # Errors
/// [`NotSorted`]; the engine's own.
pub(super) fn ingest(
    plan: &Plan,
    records: &[u64],
    engine: &dyn Engine,
    watch: &mut dyn Watch,
) -> Result<()> {
    let keys = plan.source.key_space();
    let mut bytes = vec![0; plan.value_lens.greatest()];
    let mut ingestion = Sorted::new(engine.ingestion()?);
    let mut told = Instant::now();
    for (done, record) in records.iter().enumerate() {
        let key = keys.key(*record);
        let value = bytes.get_mut(..plan.value_lens.of(*record));
        let value = value.unwrap_or_default();
        value::fill(value, &key, 0);
        ingestion.put(&key, value)?;
        if told.elapsed() >= BETWEEN_LOOKS {
            told = Instant::now();
            watch.loaded(done as u64, plan.records);
        }
    }
    ingestion.of.commit()
}

/// Sees to the order, for engines that panic over it.
struct Sorted<'a> {
    of: Box<dyn Ingestion + 'a>,
    last: Vec<u8>,
    records: u64,
}

impl<'a> Sorted<'a> {
    fn new(of: Box<dyn Ingestion + 'a>) -> Self {
        Self {
            of,
            last: Vec::new(),
            records: 0,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.records > 0 && key <= self.last.as_slice() {
            let index = self.records;
            return Err(NotSorted { index }.into());
        }
        self.of.put(key, value)?;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.records += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use super::*;
    use crate::engine::find;
    use crate::plan::tests::parse;
    use crate::settings::Dirs;

    /// Those of this build that ingest.
    const ENGINES: [&str; 6] = [
        "hotrap",
        "tables",
        "fast-only",
        "rocksdb-fast-only",
        "rocksdb-slow-only",
        "fjall",
    ];

    fn each(flags: &str, mut test: impl FnMut(&Plan, &dyn Engine)) {
        for name in ENGINES.into_iter().filter(|name| find(name).is_ok()) {
            let flags = format!("--engine {name} --data-size 4MiB --memory 4MiB {flags}");
            let plan = parse(&flags).unwrap().plan().unwrap();
            let root = tempfile::tempdir().unwrap();
            let dirs = Dirs::two(root.path().join("fast"), root.path().join("slow"));
            let engine = plan.engine.open(&plan.settings, &dirs).unwrap();
            test(&plan, engine.as_ref());
            engine.close().unwrap();
        }
    }

    #[test]
    fn an_ingested_store_holds_every_record_and_was_written_once() {
        each("--ingest", |plan, engine| {
            let loaded = load(plan, engine, &mut ()).unwrap();
            let name = plan.engine.name();
            let (mut count, mut last) = (0, Vec::new());
            let mut each = |key: &[u8], value: &[u8]| {
                assert_eq!(value::verify(value, key, 1000), Ok(0), "{name}");
                assert!(key > last.as_slice(), "{name}");
                last = key.to_vec();
                count += 1;
            };
            engine.scan(b"", 10_000, &mut each).unwrap();
            assert_eq!(count, 4096, "{name}");
            let counters = engine.counters().unwrap();
            assert_eq!(counters.user_write_bytes, Some(4 << 20), "{name}");
            // fjall does not count what it writes.
            if let Some(amplification) = loaded.write_amplification {
                assert!((1.0..1.5).contains(&amplification), "{name}");
            }
            // A log would have had them, and compactions would have been due.
            let written = counters.io.map(|io| (io.fast.sum(), io.slow.sum()));
            let bytes = written.map(|(fast, slow)| fast.write_bytes + slow.write_bytes);
            assert!(bytes.is_none_or(|bytes| bytes < 6 << 20), "{name}");
        });
    }

    #[test]
    fn records_that_are_not_sorted_are_an_error_of_its_own() {
        each("--ingest", |plan, engine| {
            let right = sorted(plan);
            for (first, second) in [(100, 101), (101, 101)] {
                let mut wrong = right.clone();
                (wrong[100], wrong[101]) = (right[second], right[first]);
                let error = ingest(plan, &wrong, engine, &mut ()).unwrap_err();
                let found = error.downcast_ref::<NotSorted>();
                assert_eq!(found, Some(&NotSorted { index: 101 }), "{error}");
            }
            let nothing = &mut |_: &[u8], _: &[u8]| panic!("nothing was ingested");
            engine.scan(b"", 1, nothing).unwrap();
        });
    }

    #[test]
    fn the_bytes_are_those_of_a_store_loaded_by_writes() {
        let read = |flags: &str| {
            let mut stores = Vec::new();
            each(flags, |plan, engine| {
                load(plan, engine, &mut ()).unwrap();
                let mut records = Vec::new();
                let mut each = |key: &[u8], value: &[u8]| {
                    records.push((key.to_vec(), value.to_vec()));
                };
                engine.scan(b"", 10_000, &mut each).unwrap();
                stores.push(records);
            });
            stores
        };
        assert!(read("--ingest") == read(""));
    }
}
