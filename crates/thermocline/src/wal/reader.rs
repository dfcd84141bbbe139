//! Reading the log from a sequence number on, while it is being written.

use std::collections::VecDeque;

use bytes::Bytes;

use super::record::Group;
use super::segment::{ClosedSegment, gapless_after, log_store, segment_file_name};
use crate::batch;
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::log_format::{Found, Records};
use crate::metrics::Purpose;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::tier::Tier;

/// The part of a segment that there is to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) segment: ClosedSegment,
    /// Where in it a record begins. Nobody asked for the records before.
    pub(super) start: u64,
}

/// Yields `(first sequence number, encoded batch)` for every batch that holds a write at or
/// above the sequence number asked for. Ends after the first error.
#[derive(Debug)]
pub(crate) struct LogReader {
    tier: Arc<Tier>,
    store: Arc<dyn LogStore>,
    stretches: VecDeque<Stretch>,
    since: SeqNo,
    batches: VecDeque<(SeqNo, Bytes)>,
}

impl LogReader {
    pub(super) fn new(tier: Arc<Tier>, stretches: VecDeque<Stretch>, since: SeqNo) -> Result<Self> {
        // Sequence numbers start at 1, so a read from 0 on is one from the beginning.
        let since = since.max(1);
        // Writes that recovery gave up are missing between segments.
        if let Some(after) = gapless_after(stretches.iter().map(|stretch| stretch.segment))
            && since <= after
        {
            return Err(gone(since, after + 1));
        }
        let store = log_store(&tier)?;
        let stretches = stretches.into_iter();
        let asked = stretches.filter(|stretch| stretch.segment.last_seq >= since);
        Ok(Self {
            stretches: asked.collect(),
            tier,
            store,
            since,
            batches: VecDeque::new(),
        })
    }

    /// The last sequence number that there is to read; `None` if there is nothing to read.
    pub(crate) fn last_seq(&self) -> Option<SeqNo> {
        self.stretches.back().map(|last| last.segment.last_seq)
    }

    /// Reads the batches of a stretch.
    fn load(&mut self, Stretch { segment, start }: Stretch) -> Result<()> {
        let name = segment_file_name(segment.number);
        // The file may have grown since. What is beyond this length was not promised.
        let promised = segment.len.saturating_sub(start);
        let bytes = match self.store.read_range(&name, start, promised) {
            Ok(bytes) => Bytes::from(bytes),
            // The segment was removed after this reader was made.
            Err(Error::NotFound { .. }) => return Err(gone(self.since, segment.last_seq + 1)),
            Err(error) => return Err(error),
        };
        self.tier
            .count_read(Purpose::Maintenance, bytes.len() as u64);
        let damaged = |offset: u64, what: &str| {
            Err(Error::corruption(
                self.store.path().join(&name),
                offset,
                what,
            ))
        };
        let read = bytes.len() as u64;
        if read < promised {
            return damaged(start + read, "the segment is shorter than it was");
        }
        let mut records = Records::from_offset(segment.number, start, &bytes);
        loop {
            let (offset, payload) = match records.next() {
                Found::Record { offset, payload } => (offset, bytes.slice(payload)),
                Found::End => return Ok(()),
                Found::Torn { offset } | Found::Damaged { offset, .. } => {
                    return damaged(offset, "a log record does not match its checksum");
                }
            };
            let Some(group) = Group::decode(&payload) else {
                return damaged(offset, "a log record does not decode");
            };
            let mut first = group.header.first_seq;
            for range in group.batches {
                let batch = payload.slice(range);
                let next = first + batch::count(&batch).map_or(0, SeqNo::from);
                if next > self.since.max(first) {
                    self.batches.push_back((first, batch));
                }
                first = next;
            }
        }
    }
}

fn gone(asked: SeqNo, oldest: SeqNo) -> Error {
    Error::LogGone { asked, oldest }
}

impl Iterator for LogReader {
    type Item = Result<(SeqNo, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.batches.is_empty() {
            let stretch = self.stretches.pop_front()?;
            if let Err(error) = self.load(stretch) {
                self.stretches.clear();
                self.batches.clear();
                return Some(Err(error));
            }
        }
        self.batches.pop_front().map(Ok)
    }
}
