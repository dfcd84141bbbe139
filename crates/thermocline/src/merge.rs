//! Merging of sorted cursors: what scans and compactions share.

use bytes::Bytes;

use crate::error::Result;
use crate::iter::InternalIterator;
use crate::key::InternalKey;

/// The records of several cursors in one order. Equal internal keys come out one after the
/// other, that of the earlier child first (I1 allows them).
pub(crate) struct MergingIter {
    children: Vec<Box<dyn InternalIterator>>,
    /// Indices of the valid children, a binary heap whose root is the next record.
    heap: Vec<usize>,
    direction: Direction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl MergingIter {
    /// Merges `children`; those that come first win among equal keys.
    pub(crate) fn new(children: Vec<Box<dyn InternalIterator>>) -> Self {
        Self {
            heap: Vec::with_capacity(children.len()),
            children,
            direction: Direction::Forward,
        }
    }

    /// The index of the child that the present record comes from. Only on a valid cursor.
    pub(crate) fn source(&self) -> usize {
        self.heap[0]
    }

    fn rebuild(&mut self, direction: Direction) {
        self.direction = direction;
        self.heap.clear();
        let valid = (0..self.children.len()).filter(|&i| self.children[i].valid());
        self.heap.extend(valid);
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
    }

    /// Whether child `a` comes out before child `b`.
    fn before(&self, a: usize, b: usize) -> bool {
        let order = self.children[a].key().cmp(&self.children[b].key());
        match self.direction {
            Direction::Forward => order.then(a.cmp(&b)).is_lt(),
            Direction::Backward => order.then(a.cmp(&b)).is_gt(),
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return;
            }
            let mut least = left;
            if right < self.heap.len() && self.before(self.heap[right], self.heap[left]) {
                least = right;
            }
            if !self.before(self.heap[least], self.heap[at]) {
                return;
            }
            self.heap.swap(least, at);
            at = least;
        }
    }

    fn settle_root(&mut self) {
        let root = self.heap[0];
        if !self.children[root].valid() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
    }
}

impl InternalIterator for MergingIter {
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        for child in &mut self.children {
            child.seek_to_first()?;
            // Only one large value of all inputs is in memory at a time (I8).
            child.let_go();
        }
        self.rebuild(Direction::Forward);
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.children
            .iter_mut()
            .try_for_each(|c| c.seek_to_last())?;
        self.rebuild(Direction::Backward);
        Ok(())
    }

    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        for child in &mut self.children {
            child.seek(target)?;
            child.let_go();
        }
        self.rebuild(Direction::Forward);
        Ok(())
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.children
            .iter_mut()
            .try_for_each(|c| c.seek_for_prev(target))?;
        self.rebuild(Direction::Backward);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Forward);
        let moved = self.heap[0];
        self.children[moved].next()?;
        self.settle_root();
        if self.heap.first().is_some_and(|root| *root != moved) {
            self.children[moved].let_go();
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.direction == Direction::Backward);
        self.children[self.heap[0]].prev()?;
        self.settle_root();
        Ok(())
    }

    fn key(&self) -> InternalKey<'_> {
        self.children[self.heap[0]].key()
    }

    fn value(&self) -> &[u8] {
        self.children[self.heap[0]].value()
    }

    fn value_bytes(&self) -> Bytes {
        self.children[self.heap[0]].value_bytes()
    }

    fn value_len(&self) -> usize {
        self.children[self.heap[0]].value_len()
    }

    fn load(&mut self) -> Result<()> {
        let root = self.heap[0];
        self.children[root].load()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::Kind;
    use crate::memtable::{Memtable, MemtableIter};
    use crate::sync::Arc;

    fn merged(parts: &[Vec<(u8, u64)>]) -> MergingIter {
        let child = |part: &Vec<(u8, u64)>| -> Box<dyn InternalIterator> {
            let memtable = Arc::new(Memtable::default());
            for &(key, seq) in part {
                memtable.insert(Bytes::copy_from_slice(&[key]), seq, Kind::Put, Bytes::new());
            }
            Box::new(MemtableIter::new(memtable))
        };
        MergingIter::new(parts.iter().map(child).collect())
    }

    proptest! {
        #[test]
        fn comes_out_sorted_both_ways(parts in prop::collection::vec(
            prop::collection::btree_set((0u8..8, 1u64..6), 0..12), 0..5)
        ) {
            let parts: Vec<Vec<_>> = parts.into_iter().map(|p| p.into_iter().collect()).collect();
            let mut expected: Vec<(u8, u64)> = parts.concat();
            expected.sort_by_key(|&(key, seq)| (key, std::cmp::Reverse(seq)));
            let mut iter = merged(&parts);
            let mut forward = Vec::new();
            iter.seek_to_first().unwrap();
            while iter.valid() {
                forward.push((iter.key().user_key[0], iter.key().seq));
                iter.next().unwrap();
            }
            prop_assert_eq!(&forward, &expected);
            let mut backward = Vec::new();
            iter.seek_to_last().unwrap();
            while iter.valid() {
                backward.push((iter.key().user_key[0], iter.key().seq));
                iter.prev().unwrap();
            }
            backward.reverse();
            prop_assert_eq!(&backward, &expected);
        }
    }
}
