//! A walk through all entries, in the order of their hashes.

use crate::core::Core;
use crate::link::{At, Entry, Next};
use crate::reclaim::Guard;

/// A walk through all nodes that are not marked.
///
/// A node is yielded when its `next` is read without a mark, and the walk goes on with what was
/// read: so it does not meet a version that replaces the node afterwards.
#[derive(Debug)]
pub(crate) struct Walk<'g> {
    next: Next<'g>,
}

impl<E: Entry> Core<E> {
    /// A walk from the beginning.
    pub(crate) fn walk<'g>(&self, guard: &'g Guard) -> Walk<'g> {
        Walk {
            next: self.begin(guard).next(),
        }
    }

    /// A walk from the first node whose order is not below `order`.
    pub(crate) fn walk_from<'g>(&self, order: u64, guard: &'g Guard) -> Walk<'g> {
        let mut next = self.spot(order, guard).anchor().next();
        while let Some(at) = next.at()
            && at.order() < order
        {
            next = at.next();
        }
        Walk { next }
    }
}

impl<'g> Iterator for Walk<'g> {
    type Item = At<'g>;

    fn next(&mut self) -> Option<At<'g>> {
        loop {
            let at = self.next.at()?;
            self.next = at.next();
            if at.is_node() && !self.next.marked() {
                return Some(at);
            }
        }
    }
}
