//! The one iterator interface that memtables, tables and merges share.

use bytes::Bytes;

use crate::error::Result;
use crate::key::InternalKey;

/// A cursor over internal keys in order. A caller moves it in one direction after a seek:
/// `next` after `seek` or `seek_to_first`, `prev` after `seek_for_prev` or `seek_to_last`.
///
/// After an error the position is unspecified, and the cursor must be sought again.
pub(crate) trait InternalIterator: Send {
    /// Whether the cursor stands on a record.
    fn valid(&self) -> bool;

    /// Moves to the first record.
    fn seek_to_first(&mut self) -> Result<()>;

    /// Moves to the last record.
    fn seek_to_last(&mut self) -> Result<()>;

    /// Moves to the first record at or after `target`.
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()>;

    /// Moves to the last record at or before `target`.
    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()>;

    /// Moves forward. Only on a valid cursor.
    fn next(&mut self) -> Result<()>;

    /// Moves backward. Only on a valid cursor.
    fn prev(&mut self) -> Result<()>;

    /// The record's key. Only on a valid cursor.
    fn key(&self) -> InternalKey<'_>;

    /// The record's value. Only on a valid cursor.
    fn value(&self) -> &[u8];

    /// The record's value, sharing the memory it lies in where that is possible.
    fn value_bytes(&self) -> Bytes;

    /// How long the record's value is, in memory or not. Only on a valid cursor.
    fn value_len(&self) -> usize {
        self.value().len()
    }

    /// Lets go of the record's value if it is large and can be read again, because records of other
    /// cursors come first. The cursor stays on the record. A caller that wants the value calls
    /// [`InternalIterator::load`] first.
    fn let_go(&mut self) {}

    /// Brings the value back into memory if the cursor has let go of it. Only on a valid cursor.
    fn load(&mut self) -> Result<()> {
        Ok(())
    }
}
