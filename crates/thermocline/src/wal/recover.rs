//! Replaying the log when a store is opened.
//!
//! What lies behind a bad or missing place is told apart by evidence. Records say which bytes
//! were durable when they were written. If a place that was durable is bad, that is damage.
//! Otherwise a crash may have taken it, together with everything after it, none of which was
//! acknowledged as synced: the log is cut there, and what is left is a prefix (I5).

use std::path::PathBuf;

use bytes::Bytes;

use super::record::Group;
use super::segment::{ClosedSegment, log_store, segment_file_name, segment_number};
use super::settle::settle;
use crate::batch::{Op, Ops};
use crate::error::{Error, Result};
use crate::key::{Kind, SeqNo};
use crate::log_format::{FILE_HEADER_LEN, FileHeader, FileKind, Found, Records};
use crate::options::RecoveryMode;
use crate::points::Points;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::tier::{Purpose, Tier};
use crate::version::edit::{FileId, KeyspaceId};

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

/// What the manifest says of the log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    /// Segments with lower numbers are obsolete.
    pub(crate) start: FileId,
    /// The highest sequence number that any flush edit names: through it the log was synced (I5), and no
    /// segment beyond it was removed. A log that starts behind `floor + 1` or ends before
    /// `floor` is damaged.
    pub(crate) floor: SeqNo,
}

/// What receives the writes of the log.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(SeqNo, KeyspaceId, Kind, Bytes, Bytes) -> Result<()>;

/// Replays the log: `visit` gets every write in order, those included that tables hold too.
/// On return the segments are durable, cut ones shortened, and later ones removed; a crash
/// on the way changes nothing that a repeated call would find. Obsolete segments stay where they are.
///
/// # Errors
/// [`Error::Corruption`] for damage in strict mode, and in any mode for a log of another
/// database; [`Error::FormatVersion`]; I/O errors; the errors of `visit`.
pub(crate) fn recover(
    tier: &Arc<Tier>,
    database: u128,
    mode: RecoveryMode,
    bounds: Bounds,
    points: &Points,
    visit: Visit<'_>,
) -> Result<Recovered> {
    let replayed = survey(tier, database, mode, bounds, visit)?;
    let segments = &replayed.recovered.segments;
    let unproven = segments.get(replayed.durable..).unwrap_or_default();
    settle(tier, &*log_store(tier)?, replayed.doomed, unproven, points)?;
    Ok(replayed.recovered)
}

/// What [`recover`] finds before it changes anything.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub(crate) recovered: Recovered,
    /// Segments that are going to be removed.
    pub(crate) doomed: Vec<FileId>,
    /// Of the segments that stay, how many are proven to be durable.
    durable: usize,
}

/// As [`recover`], without changing anything.
///
/// # Errors
/// As [`recover`].
pub(crate) fn survey(
    tier: &Arc<Tier>,
    database: u128,
    mode: RecoveryMode,
    bounds: Bounds,
    visit: Visit<'_>,
) -> Result<Surveyed> {
    let store = log_store(tier)?;
    let mut numbers: Vec<FileId> = Vec::new();
    numbers.extend(store.list()?.iter().filter_map(|f| segment_number(&f.name)));
    numbers.retain(|number| *number >= bounds.start);
    numbers.sort_unstable();
    let mut replay = Replay {
        tier,
        store: &*store,
        database,
        floor: bounds.floor,
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
            if let Some(skipped) = replay.passed_over_by(number, later)? {
                rest = later.get(skipped..).unwrap_or_default();
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

/// Removes segments with numbers below `start`, which the manifest in force says are obsolete: their removal did not
/// last.
///
/// # Errors
/// I/O errors of the log store.
pub(crate) fn remove_before(tier: &Tier, start: FileId) -> Result<()> {
    let store = log_store(tier)?;
    for file in store.list()? {
        if segment_number(&file.name).is_some_and(|number| number < start) {
            store.remove(&file.name)?;
        }
    }
    Ok(())
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

struct Replay<'a> {
    tier: &'a Tier,
    store: &'a dyn LogStore,
    database: u128,
    floor: SeqNo,
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
        let bytes = self.store.read(&segment_file_name(number))?;
        self.tier.count_read(Purpose::Open, bytes.len() as u64);
        Ok(Bytes::from(bytes))
    }

    /// Replays one segment and links it to the chain.
    fn segment(&mut self, number: FileId, visit: Visit<'_>) -> Result<Option<Trouble>> {
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
            None => Err("the file header is damaged"),
        };
        let (Some(header), Ok(())) = (header, linked) else {
            self.abandoned.push(number);
            if !has_records {
                return Ok(None);
            }
            let evidence = evidence(number, &bytes);
            return Ok(Some(Trouble {
                offset: 0,
                bytes: bytes.len() as u64,
                what: linked.err().unwrap_or_default().into(),
                // Durable bytes prove the header and all older segments, as syncs go oldest
                // first; the flag proves older segments only, not this header.
                proven: evidence.durable_len > 0 || (header_holds && evidence.older_durable),
            }));
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
    fn link(&mut self, header: &FileHeader) -> Result<(), &'static str> {
        // Segments without records at the end of the chain may be rotations that were given up, or
        // segments whose removal a loss of power undid; the one that counts then continues what was
        // before them, or is the first of all.
        let mut at = self.chain.len();
        while let Some(tail) = at.checked_sub(1).and_then(|i| self.chain.get(i)) {
            if header.previous == Some((tail.number, tail.len)) {
                if header.base_seq < tail.last_seq {
                    return Err("sequence numbers go back");
                }
                break;
            }
            if !is_empty(tail) {
                return Err("the log before this segment is missing or too short");
            }
            at -= 1;
        }
        if at == 0 && header.base_seq > self.floor {
            return Err("the start of the log is missing");
        }
        let given_up = self.chain.drain(at..).map(|segment| segment.number);
        self.abandoned.extend(given_up);
        self.durable = self.durable.min(at);
        Ok(())
    }

    /// Whether one of the `later` segments says that `number`, where the replay cannot go on, is no part of the log, and then
    /// how many come before that one. Whoever wrote it had given up, or removed as obsolete, what lies between the
    /// segment that it continues and itself; a loss of power undid the removal.
    ///
    /// Nothing of `number` was replayed: of a segment that is given up nothing ever is.
    fn passed_over_by(&mut self, number: FileId, later: &[FileId]) -> Result<Option<usize>> {
        let kept = match self.chain.last() {
            Some(last) if last.number == number && !is_empty(last) => return Ok(None),
            Some(last) if last.number == number => self.chain.len() - 1,
            _ => self.chain.len(),
        };
        let before = self.chain.get(..kept).unwrap_or_default();
        // Empty ones at the end may have been given up as well.
        let full = before.iter().rposition(|segment| !is_empty(segment));
        let ends = before.get(full.unwrap_or(0)..).unwrap_or_default();
        for (skipped, &segment) in later.iter().enumerate() {
            let path = self.path(segment);
            let header = FileHeader::decode(&path, FileKind::Wal, &self.read(segment)?)?;
            let is_ours = |h: &FileHeader| h.number == segment && h.database == self.database;
            let Some((header, (previous, len))) = header
                .filter(is_ours)
                .and_then(|header| Some((header, header.previous?)))
            else {
                continue;
            };
            let continues = ends
                .iter()
                .any(|end| (end.number, end.len) == (previous, len));
            // Obsolete segments go oldest first: `number` went before the one that is named.
            let begins = full.is_none() && previous > number && header.base_seq <= self.floor;
            if continues || begins {
                let given_up = self.chain.drain(kept..).map(|segment| segment.number);
                self.abandoned.extend(given_up);
                self.abandoned.extend(later.iter().take(skipped));
                return Ok(Some(skipped));
            }
        }
        Ok(None)
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

    /// Decides what a bad place in segment `number` means; `later` are the segments that go
    /// with it.
    fn judge(
        &self,
        trouble: Trouble,
        number: FileId,
        later: &[FileId],
        mode: RecoveryMode,
    ) -> Result<Cut> {
        let mut damaged = trouble.proven || self.last_seq < self.floor;
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
        if self.last_seq >= self.floor {
            return Ok(None);
        }
        let cut = Cut {
            path: self.path(last.number),
            offset: last.len,
            bytes: 0,
            damaged: true,
            what: format!(
                "the log ends at sequence {}, flushed through {}",
                self.last_seq, self.floor
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

/// What the valid records of a segment say about durability.
struct Evidence {
    older_durable: bool,
    durable_len: u64,
}

fn evidence(number: FileId, bytes: &[u8]) -> Evidence {
    let mut evidence = Evidence {
        older_durable: false,
        durable_len: 0,
    };
    let mut records = Records::new(number, bytes);
    loop {
        match records.next() {
            Found::Record { payload, .. } => {
                if let Some(group) = bytes.get(payload).and_then(Group::decode) {
                    evidence.older_durable |= group.header.older_durable;
                    evidence.durable_len = evidence.durable_len.max(group.header.durable_len);
                }
            }
            Found::Damaged { .. } => {}
            Found::End | Found::Torn { .. } => return evidence,
        }
    }
}
