//! Writes the entries of one block.

use super::stored::{ENVELOPE_LEN, LARGE_BLOCK};
use crate::coding::put_varint;

/// An upper bound of what goes with an entry besides key and value: its lengths, its trailer, and
/// the number of restarts.
const MOST_BESIDE: usize = 64;

/// Payload bytes after which a restart is due. With large values, every record gets one, and a
/// lookup is a binary search down to the record.
const RESTART_BYTES: usize = 1 << 10;

/// Restart interval of data blocks, in entries.
pub(super) const DATA_INTERVAL: usize = 16;

/// Restart interval of index blocks, in entries. It is small because index blocks are searched far
/// more often than they are stored, and their entries are short.
pub(super) const INDEX_INTERVAL: usize = 4;

/// A block under construction. Keys come in ascending order.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    interval: usize,
    payload: Vec<u8>,
    restarts: Vec<u32>,
    entries: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    pub(super) fn new(interval: usize) -> Self {
        Self {
            interval,
            payload: Vec::new(),
            restarts: Vec::new(),
            entries: 0,
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Length of the payload if it were finished now.
    pub(super) fn len(&self) -> usize {
        self.payload.len() + 4 * self.restarts.len() + 4
    }

    /// Appends an entry; index entries have no `trailer` of their own.
    pub(super) fn add(&mut self, key: &[u8], trailer: Option<u64>, value: &[u8]) {
        if value.len() >= LARGE_BLOCK {
            // What follows the value fits in this much. If the memory had to grow, it would be
            // doubled.
            let beside = 4 * self.restarts.len() + MOST_BESIDE + ENVELOPE_LEN;
            self.payload.reserve_exact(value.len() + key.len() + beside);
        }
        self.add_head(key, trailer, value.len());
        self.payload.extend_from_slice(value);
    }

    /// As [`BlockBuilder::add`], but without the value: its `len` bytes belong after the payload as
    /// it is then. Returns the length of that payload.
    pub(super) fn add_head(&mut self, key: &[u8], trailer: Option<u64>, len: usize) -> usize {
        let restart_due = match self.restarts.last() {
            None => true,
            Some(last) => {
                self.since_restart >= self.interval
                    || self.payload.len() - *last as usize >= RESTART_BYTES
            }
        };
        let shared = if restart_due {
            self.restarts.push(self.payload.len() as u32);
            self.since_restart = 0;
            0
        } else {
            common_prefix(&self.last_key, key)
        };
        let suffix = &key[shared..];
        put_varint(&mut self.payload, shared as u64);
        put_varint(&mut self.payload, suffix.len() as u64);
        put_varint(&mut self.payload, len as u64);
        self.payload.extend_from_slice(suffix);
        if let Some(trailer) = trailer {
            self.payload.extend_from_slice(&trailer.to_le_bytes());
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(suffix);
        self.since_restart += 1;
        self.entries += 1;
        self.payload.len()
    }

    /// The finished payload. [`BlockBuilder::reset`] begins the next block.
    pub(super) fn finish(&mut self) -> &mut Vec<u8> {
        for restart in &self.restarts {
            self.payload.extend_from_slice(&restart.to_le_bytes());
        }
        let count = self.restarts.len() as u32;
        self.payload.extend_from_slice(&count.to_le_bytes());
        &mut self.payload
    }

    pub(super) fn reset(&mut self) {
        self.payload.clear();
        if self.payload.capacity() > LARGE_BLOCK {
            self.payload = Vec::new();
        }
        self.restarts.clear();
        self.last_key.clear();
        self.entries = 0;
        self.since_restart = 0;
    }
}

/// Length of the longest common prefix.
#[inline]
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    while let (Some(x), Some(y)) = (
        a.get(at..).and_then(|rest| rest.first_chunk::<8>()),
        b.get(at..).and_then(|rest| rest.first_chunk::<8>()),
    ) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return at + (differing.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    a.iter()
        .zip(b)
        .skip(at)
        .position(|(x, y)| x != y)
        .map_or(a.len().min(b.len()), |tail| at + tail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_common_prefix_is_as_long_as_can_be(a: Vec<u8>, cut in 0usize..40, b: Vec<u8>) {
            let mut other = a[..cut.min(a.len())].to_vec();
            other.extend(&b);
            let plain = a.iter().zip(&other).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_prefix(&a, &other), plain);
        }
    }

    #[test]
    fn large_values_restart_at_every_entry_and_small_ones_share() {
        let mut large = BlockBuilder::new(DATA_INTERVAL);
        let mut small = BlockBuilder::new(DATA_INTERVAL);
        for i in 0..32u8 {
            let key = [b'k', b'e', b'y', i];
            large.add(&key, Some(1), &[0; 1100]);
            small.add(&key, Some(1), b"v");
        }
        assert_eq!(large.restarts.len(), 32);
        assert_eq!(small.restarts.len(), 2);
        let told = small.len();
        assert_eq!(small.finish().len(), told);
    }
}
