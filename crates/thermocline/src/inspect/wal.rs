//! The write-ahead log, segment by segment and group by group.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{Content, Entry, Key, damage, open_tier};
use crate::batch::Ops;
use crate::error::{Error, Result};
use crate::key::{Kind, SeqNo};
use crate::log_format::{FileHeader, FileKind, Found, Records};
use crate::options::Options;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::wal::{log_store, record, segment_file_name, segment_number};

/// A segment of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentReport {
    /// The file.
    pub file: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// The header of the file. Without one the groups are still read: the checksum of each says
    /// that it belongs there.
    pub header: Content<SegmentHeader>,
    /// Its groups, oldest first. What is damaged is among them.
    pub groups: Vec<Entry<Group>>,
}

impl SegmentReport {
    /// Entries that are damaged, the header among them; a torn end is not.
    pub fn damaged(&self) -> usize {
        let groups = self.groups.iter().filter(|g| g.content.is_damaged());
        groups.count() + usize::from(self.header.is_damaged())
    }
}

/// What the header of a segment says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentHeader {
    /// Number of the segment.
    pub number: u64,
    /// The database it belongs to.
    pub database: u128,
    /// The segment that it continues, and the length in bytes that the continued segment ended
    /// with.
    pub previous: Option<(u64, u64)>,
    /// Every group of it has higher sequence numbers than this.
    pub base_seq: SeqNo,
}

impl fmt::Display for SegmentHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "segment {} of database {:032x}, sequence numbers above {}, ",
            self.number, self.database, self.base_seq
        )?;
        match self.previous {
            Some((number, bytes)) => write!(f, "continues segment {number} of {bytes} bytes"),
            None => f.write_str("the first segment"),
        }
    }
}

/// A commit group: one record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// Sequence number of the first write.
    pub first_seq: SeqNo,
    /// Writes in all batches; 0 in the record that a clean close leaves.
    pub count: u64,
    /// Whether every older segment was durable when this was written.
    pub older_durable: bool,
    /// Bytes of this segment that were durable then.
    pub durable_bytes: u64,
    /// The batches of the group, each with its writes.
    pub batches: Vec<Vec<Write>>,
}

impl Group {
    /// All its writes, in order.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.batches.iter().flatten()
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let older = if self.older_durable { "" } else { "not " };
        let durable = self.durable_bytes;
        if self.count == 0 {
            return write!(f, "closed: {durable} bytes durable");
        }
        write!(
            f,
            "sequence {} to {} in {} batches; older segments {older}durable, {durable} bytes of \
             this one",
            self.first_seq,
            self.first_seq + self.count - 1,
            self.batches.len()
        )
    }
}

/// One write of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Write {
    /// Its sequence number.
    pub seq: SeqNo,
    /// Number of the keyspace.
    pub keyspace: u32,
    /// What it does.
    pub kind: Kind,
    /// The key.
    pub key: Bytes,
    /// Length of the value in bytes; 0 for a delete.
    pub value_bytes: u64,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = Key(&self.key);
        write!(f, "{} keyspace {}: ", self.seq, self.keyspace)?;
        match self.kind {
            Kind::Delete => write!(f, "delete {key}"),
            Kind::Put => write!(f, "put {key}, value of {} bytes", self.value_bytes),
            Kind::Ingestion => f.write_str("tables were ingested"),
            other => write!(f, "{other:?} {key}"),
        }
    }
}

/// The segments of a log, oldest first; each is read when it is asked for.
#[derive(Debug)]
pub struct Segments {
    store: Arc<dyn LogStore>,
    numbers: VecDeque<u64>,
}

/// The log of the store that `options` describe. Only the first tier is looked at.
///
/// # Errors
/// [`Error::NotFound`] when the directory is not there; I/O errors. Errors of a segment come with
/// the segment.
pub fn wal(options: &Options) -> Result<Segments> {
    options.validate()?;
    let tier = open_tier(0, &options.tiers[0])?;
    let store = log_store(&tier)?;
    let files = store.list()?;
    let mut numbers: Vec<u64> = files
        .iter()
        .filter_map(|file| segment_number(&file.name))
        .collect();
    numbers.sort_unstable();
    Ok(Segments {
        store,
        numbers: numbers.into(),
    })
}

impl Iterator for Segments {
    type Item = Result<SegmentReport>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let number = self.numbers.pop_front()?;
            let name = segment_file_name(number);
            match self.store.read(&name) {
                // Removed since it was listed: somebody has the store open.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Some(Err(error)),
                Ok(bytes) => {
                    let file = self.store.path().join(&name);
                    return Some(describe(number, file, bytes.into()));
                }
            }
        }
    }
}

fn describe(number: u64, file: PathBuf, bytes: Bytes) -> Result<SegmentReport> {
    let header = header(&file, number, &bytes)?;
    let mut groups = Vec::new();
    let mut records = Records::new(number, &bytes);
    loop {
        let (offset, content) = match records.next() {
            Found::End => break,
            Found::Torn { offset } => (offset, Content::Torn),
            Found::Damaged { offset, gave_up } => {
                let more = if gave_up { "may" } else { "do" };
                let what = format!("a group does not match its checksum; valid ones {more} follow");
                (offset, Content::Damaged(what))
            }
            Found::Record { offset, payload } => {
                let group = group(&bytes.slice(payload));
                let bad = || Content::Damaged("a group does not decode".into());
                (offset, group.map_or_else(bad, Content::Valid))
            }
        };
        groups.push(Entry { offset, content });
    }
    Ok(SegmentReport {
        file,
        bytes: bytes.len() as u64,
        header,
        groups,
    })
}

fn header(file: &Path, number: u64, bytes: &[u8]) -> Result<Content<SegmentHeader>> {
    let header = match FileHeader::decode(file, FileKind::Wal, bytes) {
        Ok(header) => header,
        Err(error) => return Ok(Content::Damaged(damage(error, file)?.1)),
    };
    Ok(match header {
        // A rotation that a crash cut short; behind an intact header there is at least it.
        None if Records::new(number, bytes).next() == Found::End => Content::Torn,
        None => Content::Damaged("the file header is damaged".into()),
        Some(header) if header.number != number => {
            Content::Damaged(format!("it is the header of segment {}", header.number))
        }
        Some(header) => Content::Valid(SegmentHeader {
            number,
            database: header.database,
            previous: header.previous,
            base_seq: header.base_seq,
        }),
    })
}

fn group(payload: &Bytes) -> Option<Group> {
    let decoded = record::Group::decode(payload)?;
    let mut seq = decoded.header.first_seq;
    let mut batches = Vec::with_capacity(decoded.batches.len());
    for range in decoded.batches {
        let mut writes = Vec::new();
        for op in Ops::new(payload.slice(range)).ok()? {
            let op = op.ok()?;
            writes.push(Write {
                seq,
                keyspace: op.keyspace,
                kind: op.kind,
                key: op.key,
                value_bytes: op.value.len() as u64,
            });
            seq += 1;
        }
        batches.push(writes);
    }
    Some(Group {
        first_seq: decoded.header.first_seq,
        count: decoded.header.count,
        older_durable: decoded.header.older_durable,
        durable_bytes: decoded.header.durable_len,
        batches,
    })
}
