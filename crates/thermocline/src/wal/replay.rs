//! Reading the segments one after the other, and judging how they end.

use std::path::PathBuf;

use bytes::Bytes;

use super::bounds::Bounds;
use super::evidence::evidence;
use super::ingestion::Ingestion;
use super::record::Group;
use super::recover::{Cut, Visit, is_empty};
use super::segment::{ClosedSegment, segment_file_name};
use crate::batch::{Op, Ops};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::key::SeqNo;
use crate::log_format::{FILE_HEADER_LEN, FileHeader, FileKind, Found, Records};
use crate::metrics::Purpose;
use crate::options::RecoveryMode;
use crate::storage::LogStore;
use crate::tier::Tier;

/// A place where the replay cannot go on.
pub(super) struct Trouble {
    pub(super) offset: u64,
    /// Bytes of its segment that are given up.
    pub(super) bytes: u64,
    pub(super) what: String,
    /// Whether this segment alone proves that durable data is missing.
    pub(super) proven: bool,
}

/// Why a segment neither continues the chain nor starts it.
#[derive(Default)]
pub(super) struct Unlinked {
    pub(super) what: &'static str,
    /// Whether durable data must be missing.
    pub(super) proven: bool,
}

impl Unlinked {
    pub(super) fn because(what: &'static str) -> Self {
        Self {
            what,
            proven: false,
        }
    }
}

pub(super) struct Replay<'a> {
    pub(super) tier: &'a Tier,
    pub(super) store: &'a dyn LogStore,
    pub(super) database: u128,
    pub(super) bounds: &'a Bounds,
    /// Segments that should be there and are missing.
    pub(super) missing: Vec<FileId>,
    pub(super) chain: Vec<ClosedSegment>,
    /// Segments at the start of the chain that are proven to be durable.
    pub(super) durable: usize,
    /// Segments without records that are no part of the chain: rotations given up.
    pub(super) abandoned: Vec<FileId>,
    pub(super) last_seq: SeqNo,
    /// The ingestions that it tells of, oldest first.
    pub(super) ingestions: Vec<Ingestion>,
}

impl Replay<'_> {
    pub(super) fn path(&self, number: FileId) -> PathBuf {
        self.store.path().join(segment_file_name(number))
    }

    pub(super) fn read(&self, number: FileId) -> Result<Bytes> {
        if self.missing.contains(&number) {
            return Ok(Bytes::new());
        }
        let mut bytes = self.store.read(&segment_file_name(number))?;
        self.tier.count_read(Purpose::Open, bytes.len() as u64);
        if let Some(len) = self.bounds.found_len(number) {
            // The rest was cut off before, and the cut was undone.
            bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        }
        Ok(Bytes::from(bytes))
    }

    /// Replays one segment and links it to the chain. What an earlier opening found was durable: if
    /// any of it is bad, that is damage.
    pub(super) fn segment(&mut self, number: FileId, visit: Visit<'_>) -> Result<Option<Trouble>> {
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

    pub(super) fn content(&mut self, number: FileId, visit: Visit<'_>) -> Result<Option<Trouble>> {
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
                    // first. The flag proves only the older segments, not this header.
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

    /// Checks that the segment continues the chain, or starts it.
    pub(super) fn link(&mut self, header: &FileHeader) -> Result<(), Unlinked> {
        // Segments without records at the end of the chain may be rotations that were given up. The
        // segment that counts then continues what was before them, or is the first of all.
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
        // Every record through the floor was durable (I5), and an obsolete segment is removed as a
        // whole.
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
    /// records end. If so, what comes after them could not be written completely and was cut off
    /// before the later segment was begun, and a loss of power undid the cut.
    pub(super) fn is_continued(&self, number: FileId, later: &[FileId]) -> Result<bool> {
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

    pub(super) fn records(
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
                if let Some(ingestion) = Ingestion::of(seq, &op) {
                    self.ingestions.push(ingestion);
                    continue;
                }
                visit(seq, op.keyspace, op.kind, op.key, op.value)?;
            }
            self.last_seq = group.header.last_seq();
            extent.last_seq = self.last_seq;
            extent.len = end;
        }
    }

    /// The sequence number through which nothing is missing but what was given up before.
    pub(super) fn reached(&self) -> SeqNo {
        let last = self.chain.last().map(|last| (last.number, last.len));
        let found = self.bounds.found.as_ref();
        let found = found.filter(|found| found.segments.last().copied() == last);
        let given_up = found.and_then(|found| found.reaches);
        self.last_seq.max(given_up.unwrap_or(0))
    }

    /// Decides what a bad place in segment `number` means. `later` are the segments that would be
    /// given up with it.
    pub(super) fn judge(
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
    pub(super) fn judge_end(&self, mode: RecoveryMode) -> Result<Option<Cut>> {
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

    pub(super) fn decide(&self, cut: Cut, mode: RecoveryMode) -> Result<Cut> {
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
