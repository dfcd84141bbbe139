//! Segments: the files of the log.

use crate::error::{Error, Result};
use crate::ids::{FileId, MAX_NUMBER};
use crate::key::SeqNo;
use crate::log_format::FILE_HEADER_LEN;
use crate::storage::{LogFile, LogStore};
use crate::sync::Arc;
use crate::tier::Tier;

/// Where the first record of a segment begins.
const FIRST_RECORD: u64 = FILE_HEADER_LEN as u64;

const SUFFIX: &str = ".wal";

/// A segment counts for at least this many bytes. However short it is, it is a file and takes a
/// block of the disk, and every trim and opening looks at it.
const LEAST_COUNTED: u64 = 1 << 20;

/// This many short segments stay, however few bytes the log may take. If this many times
/// [`LEAST_COUNTED`] is more than those bytes, each counts only for its part of them.
const ALWAYS_STAY: u64 = 256;

/// Bytes between two records of a segment whose places are remembered.
const MARK_DISTANCE: u64 = 256 << 10;

/// The name of segment `number`.
pub(crate) fn segment_file_name(number: FileId) -> String {
    format!("{number:08}{SUFFIX}")
}

/// The number of the segment called `name`; `None` if `name` is not a segment's.
pub(crate) fn segment_number(name: &str) -> Option<FileId> {
    let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (number <= MAX_NUMBER && segment_file_name(number) == name).then_some(number)
}

/// The log store of the first tier.
///
/// # Errors
/// [`Error::WrongTier`] for a tier without one.
pub(crate) fn log_store(tier: &Tier) -> Result<Arc<dyn LogStore>> {
    tier.log.clone().ok_or_else(|| Error::WrongTier {
        tier: usize::from(tier.index),
        path: tier.options.path.clone(),
        problem: "it holds no log; the log lies on the first tier".into(),
    })
}

/// Begins the log file `name` with `bytes`. If that fails, the file is removed. If that fails too,
/// what is left has no record, and is removed at the next rotation or rollover.
///
/// # Errors
/// I/O errors of the log store.
pub(crate) fn begin_file(
    tier: &Tier,
    store: &dyn LogStore,
    name: &str,
    bytes: &[u8],
) -> Result<Arc<dyn LogFile>> {
    tier.with_room(|| {
        let file = store.create(name)?;
        file.append(bytes).inspect_err(|_| {
            let _ = store.remove(name);
        })?;
        Ok(file)
    })
}

/// A segment that takes no more records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClosedSegment {
    pub(crate) number: FileId,
    /// Last sequence number before its first record.
    pub(crate) base_seq: SeqNo,
    /// File length in bytes.
    pub(crate) len: u64,
    /// Its last sequence number; `base_seq` when it has no records.
    pub(crate) last_seq: SeqNo,
}

/// The last sequence number after which `segments` hold every write. If a segment does not go on
/// from where the one before it ends, the writes in between were given up.
pub(super) fn gapless_after(segments: impl Iterator<Item = ClosedSegment>) -> Option<SeqNo> {
    let (mut after, mut end) = (None, None);
    for segment in segments {
        if end != Some(segment.base_seq) {
            after = Some(segment.base_seq);
        }
        end = Some(segment.last_seq);
    }
    after
}

/// The segments that are left out if the newest ones may take `bytes` in all; segments are given
/// and returned newest first. Each counts for at least [`LEAST_COUNTED`], or for one of
/// [`ALWAYS_STAY`] parts of `bytes` if that is less.
pub(super) fn beyond<'a>(
    newest_first: impl Iterator<Item = &'a Segment>,
    bytes: u64,
) -> impl Iterator<Item = ClosedSegment> {
    let least = LEAST_COUNTED.min(bytes / ALWAYS_STAY);
    let mut taken = 0u64;
    newest_first
        .map(|segment| segment.extent)
        .skip_while(move |extent| {
            taken = taken.saturating_add(extent.len.max(least));
            taken <= bytes
        })
}

/// The segments that are not durable; segments are given and returned newest first. Syncs go oldest
/// first (I5): from the first durable one on, all are durable, and no further one is looked at.
pub(super) fn unsynced<'a>(
    newest_first: impl Iterator<Item = &'a Segment>,
) -> impl Iterator<Item = &'a Segment> {
    newest_first.take_while(|segment| !segment.is_durable())
}

/// A segment of the open log.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) extent: ClosedSegment,
    /// Number of its bytes known to be durable.
    pub(crate) durable_len: u64,
    /// Where some of its records begin, with the first sequence number of each, for readers that
    /// want only later ones. Nothing that an earlier opening wrote is marked.
    pub(crate) marks: Vec<(SeqNo, u64)>,
    /// Open for appends and syncs; `None` once the segment takes no more records and is durable.
    pub(crate) file: Option<Arc<dyn LogFile>>,
}

impl Segment {
    /// Remembers that the record that begins with `first_seq` will be at `offset`, if the last
    /// remembered place is far enough before it. If the record is withdrawn, the next one has the
    /// same number and place.
    pub(crate) fn mark(&mut self, first_seq: SeqNo, offset: u64) {
        let last = self.marks.last().map_or(FIRST_RECORD, |(_, last)| *last);
        if offset >= last + MARK_DISTANCE {
            self.marks.push((first_seq, offset));
        }
    }

    /// A place in the segment. Every record that has a write at or above `seq` begins there or
    /// later.
    pub(crate) fn start_of(&self, seq: SeqNo) -> u64 {
        let before = self.marks.partition_point(|(first, _)| *first <= seq);
        let mark = before.checked_sub(1).and_then(|at| self.marks.get(at));
        mark.map_or(FIRST_RECORD, |(_, offset)| *offset)
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.durable_len == self.extent.len
    }

    /// Closes the file if nothing is left to be synced. To be called once nothing is appended any
    /// more. There may be many segments, of many keyspaces or of a log that is kept for followers.
    pub(crate) fn let_go(&mut self) {
        if self.is_durable() {
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oldest `count` segments of a log, durable ones of `len` bytes.
    fn segments(count: u64, len: u64) -> Vec<Segment> {
        let segment = |number: FileId| Segment {
            extent: ClosedSegment {
                number,
                base_seq: number,
                len,
                last_seq: number + 1,
            },
            durable_len: len,
            marks: Vec::new(),
            file: None,
        };
        (0..count).map(segment).collect()
    }

    /// How many of `count` segments of `len` bytes are left out if the newest may take `bytes`.
    fn left_out(count: u64, len: u64, bytes: u64) -> usize {
        beyond(segments(count, len).iter().rev(), bytes).count()
    }

    /// Each segment counted for at least a 256th of what all may take. So a retention of 64 GiB
    /// kept only 256 segments of a memtable's length, and a follower that was a sixth of it behind
    /// had to begin anew.
    #[test]
    fn segments_that_are_not_short_count_for_what_they_are() {
        assert_eq!(left_out(300, 2 << 20, 1 << 30), 0);
        assert_eq!(left_out(2000, 42 << 20, 64 << 30), 2000 - 64 * 1024 / 42);
    }

    #[test]
    fn of_short_segments_so_many_stay_at_most() {
        assert_eq!(left_out(2000, 500, 1 << 30), 2000 - 1024);
        assert_eq!(left_out(2000, 500, 64 << 20), 2000 - 256);
        assert_eq!(left_out(3, 500, 0), 3);
    }

    /// Each sync looked at every segment of the log, while it held the lock that appends need.
    /// Where many short segments are kept for followers, each write that asked for a sync looked at
    /// tens of thousands of them.
    #[test]
    fn a_sync_looks_no_further_than_at_the_first_durable_segment() {
        let mut log = segments(2002, 500);
        for segment in &mut log[2000..] {
            segment.durable_len = 100;
        }
        let mut looked_at = 0;
        let newest_first = log.iter().rev().inspect(|_| looked_at += 1);
        let found: Vec<_> = unsynced(newest_first).map(|s| s.extent.number).collect();
        assert_eq!((found, looked_at), (vec![2001, 2000], 3));
    }
}
