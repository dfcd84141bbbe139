//! Following the log of an open store: incremental backup, followers.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::batch::{Ops, detached};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::sync::Arc;
use crate::wal;

/// The batches of a store's log from a sequence number on, in the order they took effect.
/// [`crate::Db::log_since`] makes one; it ends with the last batch written before that call, or
/// after its first error.
///
/// A backup or a follower starts from a checkpoint, or from a backup that was restored, and takes
/// over what was written since. Writing a batch again, in order, ends in the same state:
///
/// ```
/// # fn main() -> thermocline::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let at = |name: &str| dir.path().join(name);
/// use thermocline::{Db, Options};
///
/// let mut options = Options::one_tier(at("store"));
/// // Flushed log is kept for those who follow, up to so many bytes.
/// options.log_retention = 64 << 20;
/// let db = Db::open(options)?;
/// db.put("city", "Basel")?;
///
/// db.checkpoint(&[at("backup")])?;
/// let backup = Db::open(Options::one_tier(at("backup")))?;
/// // The last write that it holds. Asked once: what is written to it gets numbers of its own.
/// let mut next = backup.snapshot().seq() + 1;
///
/// db.put("river", "Rhine")?;
/// db.delete("city")?;
/// for batch in db.log_since(next)? {
///     let batch = batch?;
///     backup.write(batch.to_batch(&backup)?)?;
///     next = batch.last_seq() + 1;
/// }
/// assert_eq!(backup.get("river")?.as_deref(), Some(&b"Rhine"[..]));
/// assert_eq!(backup.get("city")?, None);
/// # Ok(())
/// # }
/// ```
pub struct LogReader {
    log: wal::LogReader,
    names: BTreeMap<KeyspaceId, Arc<str>>,
    pub(crate) path: std::path::PathBuf,
    failed: bool,
}

/// A batch as the log holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedBatch {
    /// Sequence number of its first write; the others follow without a gap.
    pub first_seq: SeqNo,
    /// Its writes, at least one.
    pub ops: Vec<LoggedOp>,
}

/// A write of a [`LoggedBatch`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedOp {
    /// Name of its keyspace; none if the keyspace was dropped before the log was asked for.
    pub keyspace: Option<Arc<str>>,
    /// The keyspace's number in the store that is followed. A keyspace that was dropped and made
    /// again under its name has another number: a follower that already has one of that name drops
    /// its own first.
    pub keyspace_number: u32,
    /// [`Kind::Put`] or [`Kind::Delete`].
    pub kind: Kind,
    /// The key. A caller that keeps it keeps the value in memory, too, and nothing else of the log.
    pub key: Bytes,
    /// The value; empty for a delete.
    pub value: Bytes,
}

impl LoggedBatch {
    /// Sequence number of its last write.
    pub fn last_seq(&self) -> SeqNo {
        self.first_seq + (self.ops.len() as SeqNo).saturating_sub(1)
    }
}

impl Engine {
    pub(crate) fn log_since(&self, seq: SeqNo) -> Result<LogReader> {
        self.check_open()?;
        let log = {
            // The log is locked until it is known how far to read: a group whose writers have not
            // been answered yet is nothing to follow.
            let mut log = self.commit.log.lock();
            if seq > log.last_seq + 1 {
                let newest = log.last_seq;
                return Err(Error::LogAhead { asked: seq, newest });
            }
            log.wal.hand_over_all()?;
            self.commit.log_sync.read_since(seq)?
        };
        // Synced without the lock, which would hold writers up. A power cut must not take what a
        // follower has: its numbers would go to other writes, and the follower would take those for
        // the ones that it knows.
        if let Some(through) = log.last_seq() {
            self.commit
                .log_sync
                .sync_through(through)
                .inspect_err(|error| self.background.note_poison(error))?;
        }
        // Taken after the log, so that only dropped keyspaces are missing of those that the log
        // writes into.
        let name = |name: &Bytes| String::from_utf8_lossy(name).into();
        let trees = self.all_trees();
        Ok(LogReader {
            log,
            names: trees.iter().map(|t| (t.id, name(&t.name))).collect(),
            path: self.fast().options.path.clone(),
            failed: false,
        })
    }
}

impl LogReader {
    fn decode(&self, first_seq: SeqNo, bytes: Bytes) -> Result<LoggedBatch> {
        let refused = |at: usize| {
            let what =
                format!("the batch at sequence {first_seq} does not decode at its byte {at}");
            Error::corruption(&self.path, 0, what)
        };
        let mut ops = Vec::new();
        for op in Ops::new(bytes).map_err(|bad| refused(bad.at))? {
            let op = op.map_err(|bad| refused(bad.at))?;
            if op.kind == Kind::Ingestion {
                return Err(Error::LogIngested {
                    seq: first_seq,
                    keyspace: op.keyspace,
                });
            }
            // Kept as a slice, one key would keep all that was read of its segment (I8).
            let (key, value) = detached(&op.key, &op.value);
            ops.push(LoggedOp {
                keyspace: self.names.get(&op.keyspace).cloned(),
                keyspace_number: op.keyspace,
                kind: op.kind,
                key,
                value,
            });
        }
        Ok(LoggedBatch { first_seq, ops })
    }
}

impl Iterator for LogReader {
    type Item = Result<LoggedBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let decoded = loop {
            match self.log.next()? {
                Ok((first_seq, bytes)) => match self.decode(first_seq, bytes) {
                    // Nothing was written: there is nothing to take over.
                    Ok(batch) if batch.ops.is_empty() => {}
                    decoded => break decoded,
                },
                Err(error) => break Err(error),
            }
        };
        self.failed = decoded.is_err();
        Some(decoded)
    }
}

impl std::iter::FusedIterator for LogReader {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Db;
    use crate::executor::Stepped;
    use crate::metrics::Purpose;
    use crate::options::Options;
    use crate::storage::Memory;

    fn open() -> Db {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
    }

    /// Each call read and verified the segment that is being written, from its beginning. A
    /// follower that asked once a second read thirty times what was written, and one that asked
    /// more often read correspondingly more.
    #[test]
    fn a_follower_that_is_close_reads_little() {
        let db = open();
        db.put("large", vec![7u8; 1 << 20]).unwrap();
        let last = db.put("key", "value").unwrap();
        let bytes_read = || db.engine().fast().io(Purpose::Maintenance).read_bytes;
        let before = bytes_read();
        let batches: Result<Vec<_>> = db.log_since(last).unwrap().collect();
        let batches = batches.unwrap();
        assert_eq!((batches.len(), batches[0].first_seq), (1, last));
        assert_eq!(batches[0].ops[0].key, "key");
        let read = bytes_read() - before;
        assert!(read > 0 && read < 64 << 10, "{read} bytes");
    }

    /// Keys and values were slices of all that was read of their segment: a consumer that kept one
    /// key kept up to 64 MiB (I8).
    #[test]
    fn a_key_that_is_kept_does_not_keep_its_segment() {
        let db = open();
        db.put("key", "value").unwrap();
        db.put("large", vec![7u8; 1 << 20]).unwrap();
        let mut batches = db.log_since(1).unwrap();
        let key = batches.next().unwrap().unwrap().ops[0].key.clone();
        // After this nothing else holds a part of the memory.
        drop(batches);
        let memory = key.try_into_mut().unwrap();
        assert_eq!(&memory[..], b"key");
        assert!(memory.capacity() < 1000, "{} bytes", memory.capacity());
    }
}
