//! Walking through all entries.

use std::marker::PhantomData;

use super::item::Item;
use crate::core::Core;
use crate::link::{At, order_of};
use crate::reclaim::Guard;
use crate::walk::Walk;

/// The entries of a map with their access counts; see [`Pinned::entries`](super::Pinned::entries).
#[derive(Debug)]
pub struct Entries<'p, K: 'static, V: 'static> {
    walk: Walk<'p>,
    _entry: PhantomData<&'p Item<K, V>>,
}

/// The entries of a map; see [`Pinned::iter`](super::Pinned::iter).
#[derive(Debug)]
pub struct Iter<'p, K: 'static, V: 'static>(Entries<'p, K, V>);

/// An entry of a map, as an iterator met it.
#[derive(Debug)]
pub struct EntryRef<'p, K: 'static, V: 'static> {
    at: At<'p>,
    _entry: PhantomData<&'p Item<K, V>>,
}

impl<'p, K, V> Entries<'p, K, V> {
    pub(super) fn new(core: &Core<Item<K, V>>, guard: &'p Guard) -> Self {
        Self {
            walk: core.walk(guard),
            _entry: PhantomData,
        }
    }

    pub(super) fn starting_at(core: &Core<Item<K, V>>, hash: u64, guard: &'p Guard) -> Self {
        Self {
            walk: core.walk_from(order_of(hash), guard),
            _entry: PhantomData,
        }
    }
}

impl<'p, K, V> Iterator for Entries<'p, K, V> {
    type Item = EntryRef<'p, K, V>;

    fn next(&mut self) -> Option<Self::Item> {
        self.walk.next().map(|at| EntryRef {
            at,
            _entry: PhantomData,
        })
    }
}

impl<'p, K, V> Iter<'p, K, V> {
    pub(super) fn new(entries: Entries<'p, K, V>) -> Self {
        Self(entries)
    }
}

impl<'p, K, V> Iterator for Iter<'p, K, V> {
    type Item = (&'p K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| (entry.key(), entry.value()))
    }
}

impl<'p, K, V> EntryRef<'p, K, V> {
    /// The key.
    pub fn key(&self) -> &'p K {
        // SAFETY: a node of this map, kept by the guard of the handle.
        unsafe { Item::<K, V>::key(self.at.node_ptr()) }
    }

    /// The value.
    pub fn value(&self) -> &'p V {
        // SAFETY: as for the key.
        unsafe { Item::<K, V>::value(self.at.node_ptr()) }
    }

    /// The hash of the key, as [`Pinned::entries_from`] takes it. Its lowest bit always counts as
    /// set here.
    ///
    /// [`Pinned::entries_from`]: super::Pinned::entries_from
    pub fn hash(&self) -> u64 {
        self.at.order()
    }

    /// How often the entry was accessed, as far as it was counted: accesses are counted during
    /// rounds of sampling, and a new round begins at zero. A new value begins at zero too.
    pub fn count(&self) -> u32 {
        self.at.node().map_or(0, |node| node.count())
    }

    /// Sets the count to zero.
    pub fn clear_count(&self) {
        if let Some(node) = self.at.node() {
            node.clear_count();
        }
    }
}
