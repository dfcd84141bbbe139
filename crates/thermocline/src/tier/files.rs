//! Objects of a tier, opened or being written. All that they read and write is counted.

use bytes::Bytes;

use super::Tier;
use crate::error::{Error, Result};
use crate::metrics::Purpose;
use crate::storage::operation::Gathered;
use crate::storage::{IoBuf, TableFile, TableWriter};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

impl Tier {
    /// Opens an object; its reads are counted.
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Tier::end`]; those of the medium.
    pub(crate) fn open(self: &Arc<Self>, name: &str) -> Result<TierFile> {
        let file = self.tables.open(name)?;
        // Checked after the open: an object that was opened before the end belonged to this store.
        if self.has_ended.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        Ok(TierFile {
            file,
            tier: Arc::clone(self),
        })
    }

    /// No object is opened from now on. Somebody who still reads a closed store might otherwise be
    /// given an object of another store.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Starts an object; its writes are counted.
    pub(crate) fn create(
        self: &Arc<Self>,
        name: &str,
        expected_len: u64,
        purpose: Purpose,
    ) -> Result<CountedWriter> {
        let create = || self.tables.create(name, expected_len);
        let writer = match purpose {
            Purpose::Copy => create()?,
            _ => self.with_room(create)?,
        };
        Ok(CountedWriter {
            writer,
            tier: Arc::clone(self),
            purpose,
            gathered: Gathered::default(),
        })
    }
}

/// An object of a tier whose reads are counted by purpose.
#[derive(Debug, Clone)]
pub(crate) struct TierFile {
    pub(crate) file: Arc<dyn TableFile>,
    pub(crate) tier: Arc<Tier>,
}

impl TierFile {
    pub(crate) fn read(&self, purpose: Purpose, offset: u64, len: usize) -> Result<IoBuf> {
        let buffer = self.file.read(offset, len)?;
        self.tier.count_read(purpose, buffer.device_bytes());
        Ok(buffer)
    }

    /// As [`TierFile::read`], copied out of the I/O buffer.
    pub(crate) fn read_bytes(&self, purpose: Purpose, offset: u64, len: usize) -> Result<Bytes> {
        Ok(Bytes::copy_from_slice(&self.read(purpose, offset, len)?))
    }
}

/// A [`TableWriter`] whose bytes are counted.
#[derive(Debug)]
pub(crate) struct CountedWriter {
    writer: Box<dyn TableWriter>,
    tier: Arc<Tier>,
    purpose: Purpose,
    /// The medium gathers appends into operations, and the counts follow it.
    gathered: Gathered,
}

impl CountedWriter {
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let appended = self.writer.append(bytes);
        if self.purpose != Purpose::Copy {
            self.tier.note_want_of_room(&appended);
        }
        appended?;
        let whole = self.gathered.add(bytes.len());
        if whole > 0 {
            self.tier.count_write(self.purpose, whole);
        }
        Ok(())
    }

    /// Makes the object and its name durable (I4).
    pub(crate) fn finish(mut self) -> Result<()> {
        self.count_rest();
        let tier = Arc::clone(&self.tier);
        let mut writer = self.writer;
        let synced = writer.sync_content();
        let finished = synced.and_then(|()| tier.sync_names(|| writer.finish()));
        tier.note_want_of_room(&finished);
        finished
    }

    /// Makes the object readable from now on, without a sync: a crash may take it.
    pub(crate) fn finish_unsynced(mut self) -> Result<()> {
        self.count_rest();
        self.writer.finish_unsynced()
    }

    fn count_rest(&mut self) {
        let rest = self.gathered.take();
        if rest > 0 {
            self.tier.count_write(self.purpose, rest);
        }
    }
}
