//! The sequence numbers that somebody may still read at.

use std::collections::BTreeMap;

use crate::key::SeqNo;
use crate::sync::Mutex;

/// Open snapshots, and the readers that hold one for the time of their read.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    open: Mutex<BTreeMap<SeqNo, usize>>,
}

impl Snapshots {
    /// Registers a reader at the sequence number that `visible` gives. `visible` is asked under the
    /// lock: a compaction that looks at the list later sees the reader, and one that looked before
    /// had a boundary at or below what `visible` gives now.
    pub(crate) fn register(&self, visible: impl FnOnce() -> SeqNo) -> SeqNo {
        let mut open = self.open.lock();
        let seq = visible();
        *open.entry(seq).or_insert(0) += 1;
        seq
    }

    /// As [`Snapshots::register`], until one read has ended, in whatever way, even by a panic.
    pub(crate) fn hold(&self, visible: impl FnOnce() -> SeqNo) -> Held<'_> {
        Held {
            seq: self.register(visible),
            snapshots: self,
        }
    }

    pub(crate) fn release(&self, seq: SeqNo) {
        let mut open = self.open.lock();
        if let Some(readers) = open.get_mut(&seq) {
            *readers -= 1;
            if *readers == 0 {
                open.remove(&seq);
            }
        }
    }

    /// What a compaction must keep versions for: the open snapshots and `visible`, ascending.
    pub(crate) fn boundaries(&self, visible: impl FnOnce() -> SeqNo) -> Vec<SeqNo> {
        let open = self.open.lock();
        let visible = visible();
        let mut boundaries: Vec<SeqNo> = open.keys().copied().collect();
        if boundaries.last() != Some(&visible) {
            boundaries.push(visible);
        }
        boundaries
    }

    pub(crate) fn count(&self) -> usize {
        self.open.lock().values().sum()
    }

    pub(crate) fn oldest(&self) -> Option<SeqNo> {
        self.open.lock().keys().next().copied()
    }
}

/// A reader that is registered for as long as this lives.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    snapshots: &'a Snapshots,
    /// What it reads at.
    pub(crate) seq: SeqNo,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.snapshots.release(self.seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_counts_until_its_last_reader_leaves() {
        let snapshots = Snapshots::default();
        assert_eq!(snapshots.boundaries(|| 7), [7]);
        snapshots.register(|| 3);
        snapshots.register(|| 3);
        snapshots.register(|| 7);
        assert_eq!(snapshots.boundaries(|| 9), [3, 7, 9]);
        assert_eq!(snapshots.boundaries(|| 7), [3, 7]);
        snapshots.release(3);
        assert_eq!(snapshots.oldest(), Some(3));
        snapshots.release(3);
        assert_eq!((snapshots.oldest(), snapshots.count()), (Some(7), 1));
    }
}
