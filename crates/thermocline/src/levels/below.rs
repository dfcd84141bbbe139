//! What lies below a compaction's output, as far as the job has to know it.

use crate::key::KeyRange;
use crate::sync::Arc;
use crate::version::{Level, MAX_LEVELS, Version};

/// What a job has to know of a table below its output.
#[derive(Debug)]
pub(crate) struct TableBelow {
    pub(crate) range: KeyRange,
    /// Its length in bytes.
    pub(crate) len: u64,
}

/// The tables that meet a job's keys, level by level, as of when the job was picked. Only their
/// ranges and lengths are kept: a version that is held for as long as a job runs holds every file
/// that other jobs replace meanwhile (I8).
///
/// Until the job is installed it stays true which keys lie below. Other jobs may move keys between
/// the levels below, but bring none of the job's keys down to there: the job has locked its keys
/// where it writes, and whoever passes there locks what passes (I11).
#[derive(Debug, Default)]
pub(crate) struct Below {
    /// None for a level without tables.
    levels: [Option<Arc<Vec<TableBelow>>>; MAX_LEVELS],
}

impl Below {
    /// What `version` has of the keys in `range`.
    pub(crate) fn new(version: &Version, range: &KeyRange) -> Self {
        let known = |level: &Level| {
            let met = level.overlapping(range).iter().map(|table| TableBelow {
                range: table.meta.range.clone(),
                len: table.meta.len,
            });
            Arc::new(met.collect::<Vec<_>>())
        };
        let levels = std::array::from_fn(|number| {
            // L0 is below nothing.
            let level = version.levels.get(number).filter(|_| number > 0)?;
            (!level.tables.is_empty()).then(|| known(level))
        });
        Self { levels }
    }

    /// Whether a level below `level` may hold `key`, which is one of the job's.
    pub(crate) fn may_hold(&self, level: usize, key: &[u8]) -> bool {
        self.levels.iter().skip(level + 1).flatten().any(|tables| {
            let at = tables.partition_point(|table| &table.range.last[..] < key);
            tables.get(at).is_some_and(|t| &t.range.first[..] <= key)
        })
    }

    /// The tables of the next level in use below `level` that meet the job's keys; none where no
    /// level below is in use.
    pub(crate) fn next(&self, level: usize) -> Option<Arc<Vec<TableBelow>>> {
        self.levels.iter().skip(level + 1).flatten().next().cloned()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::Memory;
    use crate::{Db, Options};

    /// Tables of one length: a to c and r to t on L2, m to z on L4.
    fn version() -> (Db, Version) {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        let sample = db.tree().pin().version.levels[0].tables[0].clone();
        let table = |(level, first, last): (u8, &'static str, &'static str)| {
            let mut table = (*sample).clone();
            (table.meta.level, table.meta.range) = (level, range(first, last));
            Arc::new(table)
        };
        let tables = [(2, "a", "c"), (2, "r", "t"), (4, "m", "z")];
        let version = Version::default().with(&[], tables.into_iter().map(table).collect());
        (db, version)
    }

    fn range(first: &'static str, last: &'static str) -> KeyRange {
        KeyRange {
            first: Bytes::from_static(first.as_bytes()),
            last: Bytes::from_static(last.as_bytes()),
        }
    }

    #[test]
    fn what_may_lie_below_is_known_by_level_and_range() {
        let (_db, version) = version();
        let below = Below::new(&version, &range("a", "z"));
        assert!(below.may_hold(1, b"b") && below.may_hold(1, b"n"));
        assert!(!below.may_hold(1, b"d"), "between tables");
        assert!(!below.may_hold(2, b"b") && below.may_hold(2, b"s"));
        assert!(!below.may_hold(4, b"s"), "the last that holds any");
        assert!(!below.may_hold(MAX_LEVELS - 1, b"s"));
    }

    #[test]
    fn a_level_in_use_counts_though_none_of_its_tables_meets_the_keys() {
        let (_db, version) = version();
        let below = Below::new(&version, &range("d", "e"));
        let met = |level| below.next(level).map(|tables| tables.len());
        assert_eq!([1, 2, 4].map(met), [Some(0), Some(0), None]);
        let below = Below::new(&version, &range("b", "s"));
        let met = |level| below.next(level).map(|tables| tables.len());
        assert_eq!([1, 2, 3, 4].map(met), [Some(2), Some(1), Some(1), None]);
    }
}
