//! What holds of a map when no operation runs.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use crate::HotRing;
use crate::core::Core;
use crate::head::Word;
use crate::link::{At, Entry, Link};
use crate::reclaim::{self, Guard};
use crate::rehash::Rehash;
use crate::table::Table;

impl<K, V, S> HotRing<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher,
{
    /// Panics unless everything holds that holds of a map when no operation runs: the list is
    /// ordered and free of marks, every anchor is in it, every key once, every node knows that it
    /// is linked and how many heads it has, every head points into its ring, and the sums agree.
    pub(super) fn check(&self) {
        let handle = self.pin();
        let mut keys = HashSet::new();
        for (key, _) in handle.iter() {
            assert!(keys.insert(key), "a key twice");
        }
        let entries = self.core.check();
        assert_eq!(entries, keys.len(), "nodes and keys");
        assert_eq!(self.len(), entries, "len");
    }
}

impl<E: Entry> Core<E> {
    /// The part of the check that needs no keys; yields the number of nodes.
    pub(super) fn check(&self) -> usize {
        let guard = reclaim::pin();
        let table = self.table(&guard);
        let mut heads: HashMap<*mut Link, u32> = HashMap::new();
        // The lock is not held while anything is asserted: the model checkers' locks abort after a
        // failure under them.
        let (other, may_be_stale) = {
            let rehash = self.rehash.try_lock().expect("no operation runs");
            // Whoever deletes by one table does not look at the other's heads. When a change ends,
            // stale heads of the present table are taken off.
            let may_be_stale = !matches!(*rehash, Rehash::Idle | Rehash::Split { .. });
            (rehash.other_table(), may_be_stale)
        };
        self.check_heads(table, table.len(), &guard, &mut heads, may_be_stale);
        if let Some((other, initialised)) = other {
            // SAFETY: not retired before the change is over.
            let other = unsafe { other.as_ref() };
            self.check_heads(other, initialised, &guard, &mut heads, true);
        } else {
            assert!(
                heads.values().all(|&count| count == 1),
                "two heads for one node"
            );
        }
        let mut at = Some(self.begin(&guard));
        let mut order = 0;
        let (mut nodes, mut bytes, mut anchors) = (0, 0, 0);
        while let Some(link) = at {
            assert!(link.order() >= order, "order");
            order = link.order();
            assert!(!link.next().marked(), "a marked link is linked");
            if let Some(node) = link.node() {
                nodes += 1;
                // SAFETY: a node of this map, kept by the guard.
                bytes += unsafe { E::bytes(link.node_ptr()) };
                let count = heads.remove(&link.as_ptr()).unwrap_or(0);
                assert_eq!(node.state(), (true, count), "the node's state");
            } else if link.as_ptr() == table.anchor_ptr(table.index_of(order)).as_ptr() {
                assert_eq!(order, table.first(anchors), "an anchor's place");
                anchors += 1;
            }
            at = link.next().at();
        }
        assert_eq!(anchors, table.len(), "every anchor is in the list");
        assert!(
            heads.is_empty(),
            "a head points to a node that is not in the list"
        );
        let tables = table.bytes()
            + other.map_or(0, |(other, _)| {
                // SAFETY: as above.
                unsafe { other.as_ref() }.bytes()
            });
        assert_eq!(self.tally.bytes(), bytes + tables, "bytes");
        nodes
    }

    /// How many items each ring has.
    #[cfg(not(any(hotring_loom, hotring_shuttle)))]
    pub(super) fn ring_sizes(&self) -> Vec<usize> {
        let guard = reclaim::pin();
        let table = self.table(&guard);
        let mut sizes = vec![0; table.len()];
        for at in self.walk(&guard) {
            sizes[table.index_of(at.order())] += 1;
        }
        sizes
    }

    fn check_heads(
        &self,
        table: &Table,
        len: usize,
        guard: &Guard,
        heads: &mut HashMap<*mut Link, u32>,
        may_be_stale: bool,
    ) {
        for index in 0..len {
            // SAFETY: initialised.
            let bucket = unsafe { table.bucket(index) };
            if let Some(link) = Word::of(bucket).link() {
                // SAFETY: counted by the head; used for its own fields alone.
                let at = unsafe { At::new(link, guard) };
                if may_be_stale && at.next().marked() {
                    continue;
                }
                assert!(at.is_node(), "a head at an anchor");
                assert_eq!(
                    table.index_of(at.order()),
                    index,
                    "a head outside its bucket"
                );
                let word = Word::of(bucket);
                assert!(
                    Some(word) == word.moved_to(table, at),
                    "a head says where its node is"
                );
                *heads.entry(link.as_ptr()).or_default() += 1;
            }
        }
    }
}
