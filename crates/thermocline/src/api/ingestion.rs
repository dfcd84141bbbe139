//! Bulk ingestion as its users see it.

use super::{Handle, Keyspace};
use crate::error::Result;
use crate::key::SeqNo;
use crate::sync::{Arc, Mutex};
use crate::write::IngestTables;

/// Sorted records on their way into a keyspace; [`Keyspace::ingestion`] begins one.
///
/// Nothing of it is visible before [`Ingestion::commit`], and all of it from then on. One that is
/// dropped before leaves nothing behind.
///
/// ```
/// # fn main() -> thermocline::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
/// let mut ingestion = db.ingestion()?;
/// for number in 0..1000 {
///     ingestion.put(format!("key{number:04}"), "value")?;
/// }
/// assert_eq!(db.get("key0007")?, None, "not yet");
/// let ingested = ingestion.commit()?;
/// assert_eq!((ingested.records, ingested.tables), (1000, 1));
/// assert_eq!(db.get("key0007")?.as_deref(), Some(&b"value"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ingestion {
    /// Keeps the store open.
    handle: Arc<Handle>,
    tables: Arc<Mutex<IngestTables>>,
}

/// What an ingestion has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ingested {
    /// How many records.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// How many tables they are in.
    pub tables: u64,
    /// Bytes of these tables.
    pub table_bytes: u64,
    /// The uppermost level that one of the tables came to. The lower it is, the less compactions
    /// have to do: with 6 nothing.
    pub level: u8,
    /// The sequence number that all of the records have. If there were none, that of the last
    /// write.
    pub seq: SeqNo,
}

impl Ingestion {
    /// Adds a record. Its key has to be greater than the one before.
    ///
    /// # Errors
    /// [`crate::Error::NotSorted`] if it is not; [`crate::Error::TooLarge`] for a key or a value
    /// over its limit; [`crate::Error::NoSpace`] when the tier of the lowest levels has no room for
    /// another table; [`crate::Error::UnknownKeyspace`] when the keyspace was dropped;
    /// [`crate::Error::Closed`], [`crate::Error::Poisoned`], and I/O errors. After an error the
    /// ingestion is over, nothing of it is left, and every later call returns that error.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.tables.lock().add(key.as_ref(), value.as_ref())
    }

    /// Makes all records visible, in one step. They are durable on return.
    ///
    /// What the keyspace holds in memory is flushed before, and writers wait for the last part of
    /// that. A checkpoint that is being taken is waited for.
    ///
    /// # Errors
    /// As [`Ingestion::put`], and those of [`crate::Db::flush`]. Nothing of the ingestion is left
    /// then. After [`crate::Error::Poisoned`] the next opening tells whether it came through.
    pub fn commit(self) -> Result<Ingested> {
        let engine = &self.handle.engine;
        // Held to the end: whoever closes the store waits for it.
        let mut tables = self.tables.lock();
        let Some(request) = tables.finish()? else {
            engine.check_writable()?;
            return Ok(Ingested {
                records: 0,
                bytes: 0,
                tables: 0,
                table_bytes: 0,
                level: 0,
                seq: engine.visible(),
            });
        };
        let request = Arc::new(request);
        let installed = engine.ingest(&request);
        tables.give_back();
        let seq = installed?;
        let levels = request.tables().map(|(_, level)| level);
        Ok(Ingested {
            records: request.records,
            bytes: request.bytes,
            tables: request.tables().count() as u64,
            table_bytes: request.tables().map(|(table, _)| table.len).sum(),
            level: levels.min().unwrap_or(0),
            seq,
        })
    }
}

impl Keyspace {
    /// Begins to ingest sorted records: they go into tables at once, without log and memtables, and
    /// become visible together. For records at hand as an iterator there is [`Keyspace::ingest`].
    ///
    /// # Errors
    /// [`crate::Error::UnknownKeyspace`] when the keyspace was dropped, [`crate::Error::ReadOnly`],
    /// [`crate::Error::Closed`], [`crate::Error::Poisoned`].
    pub fn ingestion(&self) -> Result<Ingestion> {
        let engine = self.engine();
        Ok(Ingestion {
            tables: engine.ingestions.begin(engine, self.tree())?,
            handle: Arc::clone(self.handle()),
        })
    }

    /// Puts `records`, sorted by key and each key once, all of them or none. They become tables at
    /// the lowest level where they meet nothing, so each is written once and no compaction has to
    /// bring it down. A record takes the place of an older one of its key. On return all are
    /// durable.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
    /// let squares = (0u32..1000).map(|n| (n.to_be_bytes(), (n * n).to_string()));
    /// let ingested = db.ingest(squares)?;
    /// assert_eq!((ingested.records, ingested.level), (1000, 6));
    /// assert_eq!(db.get(12u32.to_be_bytes())?.as_deref(), Some(&b"144"[..]));
    /// assert!(db.ingest([("b", ""), ("a", "")]).is_err(), "not sorted");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The log has a note of the ingestion, not its records: who follows it by
    /// [`crate::Db::log_since`] gets [`crate::Error::LogIngested`] there.
    ///
    /// # Errors
    /// As [`Ingestion::put`] and [`Ingestion::commit`]; nothing is left of the ingestion then.
    /// [`crate::Error::NotSorted`] names the record.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Ingested> {
        let mut ingestion = self.ingestion()?;
        for (key, value) in records {
            ingestion.put(key, value)?;
        }
        ingestion.commit()
    }
}
