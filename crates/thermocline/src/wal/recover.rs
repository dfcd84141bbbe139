//! Replaying the log when a store is opened.
//!
//! What lies behind a bad or missing place is told apart by evidence. Records say which bytes were
//! durable when they were written. If a place that was durable is bad, that is damage. Otherwise a
//! crash may have taken it, together with everything after it, none of which was acknowledged as
//! synced: the log is cut there, and what is left is a prefix (I5). What an earlier opening has
//! found ([`Bounds`]) was durable, whatever records say.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;

use super::FoundLog;
use super::bounds::Bounds;
use super::evidence::evidence;
use super::record::Group;
use super::segment::{ClosedSegment, gapless_after, log_store, segment_file_name, segment_number};
use super::settle::settle;
use crate::batch::{Op, Ops};
use crate::error::{Error, Result};
use crate::ids::{FileId, KeyspaceId};
use crate::key::{Kind, SeqNo};
use crate::log_format::{FILE_HEADER_LEN, FileHeader, FileKind, Found, Records};
use crate::metrics::Purpose;
use crate::options::RecoveryMode;
use crate::points::Points;
use crate::storage::LogStore;
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
    /// What was found there.
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
}

impl Recovered {
    /// Whether durable data is missing.
    pub(crate) fn is_damaged(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.damaged)
    }

    /// Whether writes are missing between those that the log holds, or behind them.
    pub(crate) fn has_gap(&self) -> bool {
        let (first, last) = (self.segments.first(), self.segments.last());
        self.cut.is_some()
            || last.is_some_and(|last| last.last_seq < self.last_seq)
            || gapless_after(self.segments.iter().copied()) != first.map(|first| first.base_seq)
    }

    /// What an opening takes over that begins segments of its own with number `next`.
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

/// What receives the writes of the log. Keys and values are slices of their whole segment: what is to be kept of them is
/// copied (I8).
pub(crate) type Visit<'a> = &'a mut dyn FnMut(SeqNo, KeyspaceId, Kind, Bytes, Bytes) -> Result<()>;

/// Replays the log: `visit` gets every write in order, those included that tables hold too. On
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
    /// Segments that are given up.
    pub(crate) doomed: Vec<FileId>,
    /// Of the segments that stay, how many are proven to be durable.
    durable: usize,
}

impl Surveyed {
    /// Makes the segments that stay durable, and shortens those that a crash left too long; a crash on the way
    /// changes nothing that a repeated survey would find. Segments that are obsolete or given up stay as they
    /// are, and so does everything where the log is damaged, for [`super::remove_others`].
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
        },
        doomed,
        durable: replay.durable,
    })
}

fn is_empty(segment: &ClosedSegment) -> bool {
    segment.len <= FILE_HEADER_LEN as u64
}

/// A place where the replay cannot go on.
struct Trouble {
    offset: u64,
    /// Bytes of its segment that are given up.
    bytes: u64,
    what: String,
    /// Whether this segment alone proves that durable data is missing.
    proven: bool,
}

/// Why a segment neither continues the chain nor starts it.
#[derive(Default)]
struct Unlinked {
    what: &'static str,
    /// Whether durable data must be missing.
    proven: bool,
}

impl Unlinked {
    fn because(what: &'static str) -> Self {
        Self {
            what,
            proven: false,
        }
    }
}

struct Replay<'a> {
    tier: &'a Tier,
    store: &'a dyn LogStore,
    database: u128,
    bounds: &'a Bounds,
    /// Segments that should be there and are not.
    missing: Vec<FileId>,
    chain: Vec<ClosedSegment>,
    /// Segments at the start of the chain that are proven to be durable.
    durable: usize,
    /// Segments without records that are no part of the chain: rotations given up.
    abandoned: Vec<FileId>,
    last_seq: SeqNo,
}

impl Replay<'_> {
    fn path(&self, number: FileId) -> PathBuf {
        self.store.path().join(segment_file_name(number))
    }

    fn read(&self, number: FileId) -> Result<Bytes> {
        if self.missing.contains(&number) {
            return Ok(Bytes::new());
        }
        let mut bytes = self.store.read(&segment_file_name(number))?;
        self.tier.count_read(Purpose::Open, bytes.len() as u64);
        if let Some(len) = self.bounds.found_len(number) {
            // A cut that was undone.
            bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        }
        Ok(Bytes::from(bytes))
    }

    /// Replays one segment and links it to the chain. What an opening has found was durable: if
    /// anything of it is bad, that is damage.
    fn segment(&mut self, number: FileId, visit: Visit<'_>) -> Result<Option<Trouble>> {
        let trouble = self.content(number, visit)?;
        let Some(len) = self.bounds.found_len(number) else {
            return Ok(trouble);
        };
        let own = self.chain.last().filter(|segment| segment.number == number);
        let reached = own.map_or(0, |segment| segment.len);
        if trouble.is_none() && reached == len {
            self.durable = self.chain.len();
            return Ok(None);
        }
        let trouble = trouble.unwrap_or_else(|| Trouble {
            offset: reached,
            bytes: 0,
            what: format!(
                "the segment is missing or shorter than the {len} bytes that were found before"
            ),
            proven: true,
        });
        Ok(Some(Trouble {
            proven: true,
            ..trouble
        }))
    }

    fn content(&mut self, number: FileId, visit: Visit<'_>) -> Result<Option<Trouble>> {
        let bytes = self.read(number)?;
        let path = self.path(number);
        let header = FileHeader::decode(&path, FileKind::Wal, &bytes)?;
        let header = header.filter(|header| header.number == number);
        let has_records = !matches!(
            Records::new(number, &bytes).next(),
            Found::End | Found::Torn { .. }
        );
        if let Some(header) = &header
            && header.database != self.database
        {
            let what = "the log belongs to another database";
            return Err(Error::corruption(path, 0, what));
        }
        let header_holds = header.is_some();
        let linked = match &header {
            Some(header) => self.link(header),
            None => Err(Unlinked::because("the file header is damaged")),
        };
        let header = match (header, linked) {
            (Some(header), Ok(())) => header,
            (_, linked) => {
                let why = linked.err().unwrap_or_default();
                self.abandoned.push(number);
                if !has_records && !why.proven {
                    return Ok(None);
                }
                let evidence = evidence(number, &bytes);
                return Ok(Some(Trouble {
                    offset: 0,
                    bytes: bytes.len() as u64,
                    what: why.what.into(),
                    // Durable bytes prove the header and all older segments, as syncs go oldest
                    // first; the flag proves older segments only, not this header.
                    proven: why.proven
                        || evidence.durable_len > 0
                        || (header_holds && evidence.older_durable),
                }));
            }
        };
        self.last_seq = header.base_seq;
        let mut extent = ClosedSegment {
            number,
            base_seq: header.base_seq,
            len: FILE_HEADER_LEN as u64,
            last_seq: header.base_seq,
        };
        let trouble = self.records(&mut extent, &bytes, visit)?;
        self.chain.push(extent);
        Ok(trouble)
    }

    /// Whether the segment continues the chain, or starts it.
    fn link(&mut self, header: &FileHeader) -> Result<(), Unlinked> {
        // Segments without records at the end of the chain may be rotations that were given up; the one
        // that counts then continues what was before them, or is the first of all.
        let mut at = self.chain.len();
        while let Some(tail) = at.checked_sub(1).and_then(|i| self.chain.get(i)) {
            if header.previous == Some((tail.number, tail.len)) {
                if header.base_seq < tail.last_seq {
                    return Err(Unlinked::because("sequence numbers go back"));
                }
                break;
            }
            if !is_empty(tail) {
                return Err(Unlinked::because(
                    "the log before this segment is missing or too short",
                ));
            }
            at -= 1;
        }
        if at == 0 && header.base_seq > self.bounds.floor {
            return Err(Unlinked::because("the start of the log is missing"));
        }
        // Every record through the floor was durable (I5), and an obsolete segment goes as a whole.
        let is_there = |(number, len)| {
            let mut chained = self.chain.iter().map(|segment| segment.number);
            let is_known = self.abandoned.contains(&number) || chained.any(|own| own == number);
            len > FILE_HEADER_LEN as u64 && is_known
        };
        if at == 0 && header.previous.is_some_and(is_there) {
            return Err(Unlinked {
                what: "the log before this segment is too short",
                proven: true,
            });
        }
        let given_up = self.chain.drain(at..).map(|segment| segment.number);
        self.abandoned.extend(given_up);
        self.durable = self.durable.min(at);
        Ok(())
    }

    /// Whether one of the `later` segments continues segment `number` exactly where its valid
    /// records end. What is behind them was cut off before that one was begun, because it could not
    /// be written whole, and a loss of power undid that.
    fn is_continued(&self, number: FileId, later: &[FileId]) -> Result<bool> {
        let Some(end) = self.chain.last().filter(|last| last.number == number) else {
            return Ok(false);
        };
        for &segment in later {
            let header =
                FileHeader::decode(&self.path(segment), FileKind::Wal, &self.read(segment)?)?;
            let continues = |header: FileHeader| {
                (header.number, header.database) == (segment, self.database)
                    && (header.previous, header.base_seq)
                        == (Some((end.number, end.len)), end.last_seq)
            };
            if header.is_some_and(continues) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn records(
        &mut self,
        extent: &mut ClosedSegment,
        bytes: &Bytes,
        visit: Visit<'_>,
    ) -> Result<Option<Trouble>> {
        let mut records = Records::new(extent.number, bytes);
        loop {
            let trouble = |offset: u64, proven, what: &str| {
                Ok(Some(Trouble {
                    offset,
                    bytes: bytes.len() as u64 - offset,
                    what: what.into(),
                    proven,
                }))
            };
            let (offset, payload) = match records.next() {
                Found::Record { offset, payload } => (offset, payload),
                Found::End => return Ok(None),
                Found::Torn { offset } => return trouble(offset, false, "the log is torn"),
                Found::Damaged { offset, gave_up } => {
                    let durable = evidence(extent.number, bytes).durable_len > offset;
                    let what = "a log record does not match its checksum";
                    return trouble(offset, durable || gave_up, what);
                }
            };
            let end = payload.end as u64;
            let payload = bytes.slice(payload);
            let Some(group) = Group::decode(&payload) else {
                return trouble(offset, true, "a log record does not decode");
            };
            if group.header.first_seq != self.last_seq + 1 {
                return trouble(offset, true, "sequence numbers have a gap");
            }
            // All of a record is decoded before any of it is replayed: a group is atomic.
            let Some(ops) = decode_ops(&payload, &group) else {
                return trouble(offset, true, "a batch does not decode");
            };
            if group.header.older_durable {
                self.durable = self.durable.max(self.chain.len());
            }
            for (seq, op) in (group.header.first_seq..).zip(ops) {
                visit(seq, op.keyspace, op.kind, op.key, op.value)?;
            }
            self.last_seq = group.header.last_seq();
            extent.last_seq = self.last_seq;
            extent.len = end;
        }
    }

    /// Through which sequence number nothing is missing but what was given up before.
    fn reached(&self) -> SeqNo {
        let last = self.chain.last().map(|last| (last.number, last.len));
        let found = self.bounds.found.as_ref();
        let found = found.filter(|found| found.segments.last().copied() == last);
        let given_up = found.and_then(|found| found.reaches);
        self.last_seq.max(given_up.unwrap_or(0))
    }

    /// Decides what a bad place in segment `number` means; `later` are the segments that go
    /// with it.
    fn judge(
        &self,
        trouble: Trouble,
        number: FileId,
        later: &[FileId],
        mode: RecoveryMode,
    ) -> Result<Cut> {
        let mut damaged = trouble.proven || self.reached() < self.bounds.floor;
        let mut bytes = trouble.bytes;
        for &segment in later {
            let content = self.read(segment)?;
            bytes += content.len() as u64;
            damaged = damaged || evidence(segment, &content).older_durable;
        }
        self.decide(
            Cut {
                path: self.path(number),
                offset: trouble.offset,
                bytes,
                damaged,
                what: trouble.what,
            },
            mode,
        )
    }

    /// Decides what the end of an intact log means.
    fn judge_end(&self, mode: RecoveryMode) -> Result<Option<Cut>> {
        let Some(last) = self.chain.last() else {
            return Ok(None);
        };
        if self.reached() >= self.bounds.floor {
            return Ok(None);
        }
        let cut = Cut {
            path: self.path(last.number),
            offset: last.len,
            bytes: 0,
            damaged: true,
            what: format!(
                "the log ends at sequence {}, flushed through {}",
                self.last_seq, self.bounds.floor
            ),
        };
        self.decide(cut, mode).map(Some)
    }

    fn decide(&self, cut: Cut, mode: RecoveryMode) -> Result<Cut> {
        match (cut.damaged, mode) {
            (true, RecoveryMode::Strict) => Err(Error::corruption(cut.path, cut.offset, cut.what)),
            _ => Ok(cut),
        }
    }
}

fn decode_ops(payload: &Bytes, group: &Group) -> Option<Vec<Op>> {
    let mut ops = Vec::new();
    for range in &group.batches {
        for op in Ops::new(payload.slice(range.clone())).ok()? {
            ops.push(op.ok()?);
        }
    }
    Some(ops)
}
