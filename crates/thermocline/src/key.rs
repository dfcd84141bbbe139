//! Internal keys: a user key, the sequence number of the write, and what the record is.

use std::cmp::Ordering;

/// Number of a write; every record of a store has its own, in commit order.
pub type SeqNo = u64;

/// Largest sequence number: it shares eight bytes with the record's kind.
pub(crate) const MAX_SEQ: SeqNo = (1 << 56) - 1;

/// Longest user key, in bytes.
pub const MAX_KEY_LEN: usize = 65_535;

/// Longest value, in bytes (64 MiB): a value lives in one block.
pub const MAX_VALUE_LEN: usize = 64 << 20;

/// What a record says about its key. The byte values are part of the format; those
/// without a variant here are taken by later features and refused when read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// The key has no value from here on.
    Delete = 0,
    /// The key has this value.
    Put = 1,
    /// Reserved: every key of a range has no value from here on.
    RangeDelete = 2,
    /// Reserved: a value that ends at a time stored with it.
    ExpiringPut = 3,
    /// Reserved: an operand to be folded into an older value.
    Merge = 4,
    /// Reserved: the value lies in another file.
    ValuePointer = 5,
    /// Only in the log: tables were ingested. Their records are in them alone.
    Ingestion = 6,
}

impl Kind {
    /// The kind of a stored byte, unless this build does not know it.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Kind::Delete,
            1 => Kind::Put,
            2 => Kind::RangeDelete,
            3 => Kind::ExpiringPut,
            4 => Kind::Merge,
            5 => Kind::ValuePointer,
            6 => Kind::Ingestion,
            _ => return None,
        })
    }

    /// Whether this build can answer reads over records of this kind.
    pub(crate) fn is_supported(self) -> bool {
        matches!(self, Kind::Delete | Kind::Put)
    }
}

/// A borrowed internal key. Orders by user key ascending, then newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InternalKey<'a> {
    pub(crate) user_key: &'a [u8],
    pub(crate) seq: SeqNo,
    pub(crate) kind: Kind,
}

impl<'a> InternalKey<'a> {
    pub(crate) fn new(user_key: &'a [u8], seq: SeqNo, kind: Kind) -> Self {
        Self {
            user_key,
            seq,
            kind,
        }
    }

    /// The smallest internal key that a reader at `seq` may see of `user_key`: seeking to
    /// it finds the newest visible version.
    pub(crate) fn seek_to(user_key: &'a [u8], seq: SeqNo) -> Self {
        Self::new(user_key, seq, Kind::ValuePointer)
    }

    /// Sequence number and kind as stored: `seq << 8 | kind`.
    pub(crate) fn trailer(&self) -> u64 {
        self.seq << 8 | self.kind as u64
    }
}

impl Ord for InternalKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.user_key
            .cmp(other.user_key)
            .then_with(|| other.trailer().cmp(&self.trailer()))
    }
}

impl PartialOrd for InternalKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An inclusive range of user keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) first: bytes::Bytes,
    pub(crate) last: bytes::Bytes,
}

impl KeyRange {
    /// Whether `key` lies in the range.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        &self.first[..] <= key && key <= &self.last[..]
    }

    /// Whether the two ranges share a key.
    pub(crate) fn meets(&self, other: &KeyRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Grows the range so that it holds `other` too.
    pub(crate) fn include(&mut self, other: &KeyRange) {
        if other.first < self.first {
            self.first = other.first.clone();
        }
        if other.last > self.last {
            self.last = other.last.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_of_a_key_sort_first() {
        let old = InternalKey::new(b"k", 1, Kind::Put);
        let new = InternalKey::new(b"k", 2, Kind::Delete);
        assert!(new < old);
        assert!(InternalKey::new(b"a", 1, Kind::Put) < new);
        assert!(
            InternalKey::new(b"ka", 9, Kind::Put) > old,
            "a longer key sorts after its prefix"
        );
    }

    #[test]
    fn seeking_at_a_sequence_number_lands_on_it_and_on_nothing_newer() {
        let target = InternalKey::seek_to(b"k", 5);
        for kind in [Kind::Delete, Kind::Put, Kind::ValuePointer] {
            assert!(InternalKey::new(b"k", 5, kind) >= target);
            assert!(InternalKey::new(b"k", 6, kind) < target);
        }
    }
}
