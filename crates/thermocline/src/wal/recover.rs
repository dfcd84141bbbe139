//! Replaying the log when a store is opened.
//!
//! Evidence tells what a bad or missing place in the log means. Records say which bytes were
//! durable when they were written. If a place that was durable is bad, that is damage. Otherwise a
//! crash may have taken it, together with everything after it, none of which was acknowledged as
//! synced. The log is then cut there, and what is left is a prefix (I5). What an earlier opening
//! found ([`Bounds`]) was durable, whatever records say.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;

use super::FoundLog;
use super::bounds::Bounds;
use super::ingestion::Ingestion;
use super::replay::Replay;
use super::segment::{ClosedSegment, gapless_after, log_store, segment_number};
use super::settle::settle;
use crate::error::Result;
use crate::ids::{FileId, KeyspaceId};
use crate::key::{Kind, SeqNo};
use crate::log_format::FILE_HEADER_LEN;
use crate::options::RecoveryMode;
use crate::points::Points;
use crate::sync::Arc;
use crate::tier::Tier;

/// Where the replay ended before the log did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) path: PathBuf,
    /// First byte of that file that was not replayed.
    pub(crate) offset: u64,
    /// Bytes of log given up, later segments included.
    pub(crate) bytes: u64,
    /// Whether durable data is missing; otherwise a crash explains it.
    pub(crate) damaged: bool,
    /// What is wrong there.
    pub(crate) what: String,
}

/// What a replay found, and what the log goes on from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Highest sequence number in use, in the log or below it.
    pub(crate) last_seq: SeqNo,
    /// Segments that stay, oldest first; all of them durable.
    pub(crate) segments: Vec<ClosedSegment>,
    pub(crate) cut: Option<Cut>,
    /// The ingestions that the log tells of, oldest first.
    pub(crate) ingestions: Vec<Ingestion>,
}

impl Recovered {
    /// Whether durable data is missing.
    pub(crate) fn is_damaged(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.damaged)
    }

    /// Whether writes are missing between those that the log holds, or after them.
    pub(crate) fn has_gap(&self) -> bool {
        let (first, last) = (self.segments.first(), self.segments.last());
        self.cut.is_some()
            || last.is_some_and(|last| last.last_seq < self.last_seq)
            || gapless_after(self.segments.iter().copied()) != first.map(|first| first.base_seq)
    }

    /// What an opening takes over of the log, if its own segments begin with number `next`.
    pub(crate) fn found_log(&self, next: FileId) -> FoundLog {
        let segments = self.segments.iter();
        let last = self.segments.last();
        let is_short = last.is_some_and(|last| last.last_seq < self.last_seq);
        FoundLog {
            segments: segments.map(|s| (s.number, s.len)).collect(),
            next,
            reaches: is_short.then_some(self.last_seq),
        }
    }
}

/// Receives the writes of the log. Keys and values are slices of a whole segment, so a receiver
/// copies what it keeps of them (I8).
pub(crate) type Visit<'a> = &'a mut dyn FnMut(SeqNo, KeyspaceId, Kind, Bytes, Bytes) -> Result<()>;

/// Replays the log: `visit` gets every write in order, including those that tables hold, too. On
/// return the segments are durable, as [`Surveyed::settle`] says.
///
/// # Errors
/// [`Error::Corruption`] for damage in strict mode, and in any mode for a log of another
/// database; [`Error::FormatVersion`]; I/O errors; the errors of `visit`.
pub(crate) fn recover(
    tier: &Arc<Tier>,
    database: u128,
    mode: RecoveryMode,
    bounds: &Bounds,
    points: &Points,
    visit: Visit<'_>,
) -> Result<Recovered> {
    survey(tier, database, mode, bounds, visit)?.settle(tier, points)
}

/// What [`recover`] finds before it changes anything.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub(crate) recovered: Recovered,
    /// Segments that will be given up.
    pub(crate) doomed: Vec<FileId>,
    /// How many of the segments that stay are proven to be durable.
    durable: usize,
}

impl Surveyed {
    /// Makes the segments that stay durable, and shortens those that a crash left too long. A crash
    /// on the way changes nothing that a repeated survey would find. Obsolete segments and those
    /// that are given up stay as they are for [`super::remove_others`], and where the log is
    /// damaged, everything does.
    ///
    /// # Errors
    /// I/O errors of the log store.
    pub(crate) fn settle(self, tier: &Arc<Tier>, points: &Points) -> Result<Recovered> {
        let recovered = self.recovered;
        let unproven = recovered.segments.get(self.durable..).unwrap_or_default();
        let is_damaged = recovered.is_damaged();
        settle(tier, &*log_store(tier)?, unproven, is_damaged, points)?;
        Ok(recovered)
    }
}

/// As [`recover`], without changing anything.
///
/// # Errors
/// As [`recover`].
pub(crate) fn survey(
    tier: &Arc<Tier>,
    database: u128,
    mode: RecoveryMode,
    bounds: &Bounds,
    visit: Visit<'_>,
) -> Result<Surveyed> {
    let store = log_store(tier)?;
    let files = store.list()?;
    let there = files.iter().filter_map(|file| segment_number(&file.name));
    let there: BTreeSet<FileId> = there.collect();
    let numbers = bounds.segments(there.iter().copied());
    let mut replay = Replay {
        tier,
        store: &*store,
        database,
        bounds,
        missing: numbers
            .iter()
            .filter(|number| !there.contains(number))
            .copied()
            .collect(),
        chain: Vec::new(),
        durable: 0,
        abandoned: Vec::new(),
        last_seq: bounds.floor,
        ingestions: Vec::new(),
    };
    let mut cut = None;
    let mut dropped: &[FileId] = &[];
    let mut rest = numbers.as_slice();
    while let Some((&number, later)) = rest.split_first() {
        rest = later;
        if let Some(trouble) = replay.segment(number, visit)? {
            if replay.is_continued(number, later)? {
                continue;
            }
            dropped = later;
            cut = Some(replay.judge(trouble, number, dropped, mode)?);
            break;
        }
    }
    if cut.is_none() {
        cut = replay.judge_end(mode)?;
    }
    let mut doomed = replay.abandoned;
    doomed.extend(dropped);
    while let Some(empty) = replay.chain.pop_if(|s| is_empty(s)) {
        doomed.push(empty.number);
    }
    Ok(Surveyed {
        recovered: Recovered {
            last_seq: replay.last_seq.max(bounds.floor),
            segments: replay.chain,
            cut,
            ingestions: replay.ingestions,
        },
        doomed,
        durable: replay.durable,
    })
}

pub(super) fn is_empty(segment: &ClosedSegment) -> bool {
    segment.len <= FILE_HEADER_LEN as u64
}
