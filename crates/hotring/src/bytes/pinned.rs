//! The handle by which a map of byte strings is used.

use std::hash::BuildHasher;
use std::ptr::NonNull;

use super::BytesRing;
use super::record::{Apart, Record};
use crate::draft::New;
use crate::error::StoreError;
use crate::link::{At, Node, order_of};
use crate::map::CompareAndSwap;
use crate::reclaim::Guard;
use crate::walk::Walk;
use crate::write::Stored;

/// A handle to a [`BytesRing`]. What it returns by reference stays valid as long as the handle
/// lives.
#[derive(Debug)]
pub struct PinnedBytes<'m, S> {
    pub(super) map: &'m BytesRing<S>,
    pub(super) guard: Guard,
}

fn value(at: At<'_>) -> &[u8] {
    // SAFETY: only called for nodes of a map of records, which the guard keeps.
    unsafe { Record::value(at.node_ptr()) }
}

/// Whether a node's key is `key`.
#[inline(always)]
fn is(key: &[u8]) -> impl Fn(NonNull<Node>) -> bool {
    // SAFETY: the map's functions call it for nodes of the map, kept by the guard.
    move |node| unsafe { Record::key(node) } == key
}

impl<S: BuildHasher> PinnedBytes<'_, S> {
    fn hash(&self, key: &[u8]) -> u64 {
        self.map.hasher.hash_one(key)
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.map
            .core
            .get(self.hash(key), &self.guard, is(key))
            .map(value)
    }

    /// Whether `key` is there. Counts as an access like [`PinnedBytes::get`].
    pub fn contains_key(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// See [`Pinned::steps`](crate::Pinned::steps).
    pub fn steps(&self, key: &[u8]) -> u32 {
        self.map.core.steps(self.hash(key), &self.guard, is(key))
    }

    /// Stores a value, whether `key` is there or not, and returns the value it had.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is too large or there is no memory; then nothing has changed. What is
    /// not to be stored, because of what is there, needs no memory and is never too large.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<&[u8]>, StoreError> {
        Ok(match self.store(key, value, true, |_| true)? {
            Stored::Replaced(old, _) => Some(self::value(old)),
            _ => None,
        })
    }

    /// Stores a value if `key` is there, and returns the value it had; else nothing is stored.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBytes::insert`].
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<Option<&[u8]>, StoreError> {
        Ok(match self.store(key, value, false, |_| true)? {
            Stored::Replaced(old, _) => Some(self::value(old)),
            _ => None,
        })
    }

    /// Stores a value if `key` is absent; else returns the present one.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBytes::insert`].
    pub fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<&[u8]>, StoreError> {
        Ok(match self.store(key, value, true, |_| false)? {
            Stored::Kept(present, _) => Some(self::value(present)),
            _ => None,
        })
    }

    /// Replaces the value of `key` if it equals `expected`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBytes::insert`].
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: &[u8],
        value: &[u8],
    ) -> Result<CompareAndSwap<'_, [u8]>, StoreError> {
        self.update_if(key, value, |present| present == expected)
    }

    /// Replaces the value of `key` if `agrees` says yes to it. `agrees` may be called several
    /// times, with different values. Its last answer, about the value that was replaced, is what
    /// counts.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBytes::insert`].
    pub fn update_if(
        &self,
        key: &[u8],
        value: &[u8],
        agrees: impl FnMut(&[u8]) -> bool,
    ) -> Result<CompareAndSwap<'_, [u8]>, StoreError> {
        Ok(match self.store(key, value, false, agrees)? {
            Stored::Replaced(old, _) => CompareAndSwap::Swapped(self::value(old)),
            Stored::Kept(present, _) => CompareAndSwap::Differs(self::value(present)),
            Stored::New(_) | Stored::Absent => CompareAndSwap::Absent,
        })
    }

    /// Removes `key`, and returns the value it had.
    pub fn remove(&self, key: &[u8]) -> Option<&[u8]> {
        self.remove_if(key, |_| true)
    }

    /// Removes `key` if `agrees` says yes to its value, and returns the value. `agrees` may be
    /// called several times, as for [`PinnedBytes::update_if`].
    pub fn remove_if(&self, key: &[u8], mut agrees: impl FnMut(&[u8]) -> bool) -> Option<&[u8]> {
        // SAFETY: `remove` calls it for nodes of this map, kept by the guard.
        let agrees = |node| agrees(unsafe { Record::value(node) });
        self.map
            .core
            .remove(self.hash(key), &self.guard, is(key), agrees)
            .map(value)
    }

    fn store<'b>(
        &self,
        key: &'b [u8],
        value: &'b [u8],
        insert: bool,
        mut agrees: impl FnMut(&[u8]) -> bool,
    ) -> Result<Stored<'_, Apart<'b>, Record>, StoreError> {
        let order = order_of(self.hash(key));
        let new = New::Draft(Apart { order, key, value });
        let is_key = is(key);
        // SAFETY: `store` calls it for nodes of this map, kept by the guard.
        let agrees = |node| agrees(unsafe { Record::value(node) });
        let core = &self.map.core;
        core.store(
            order,
            new,
            &self.guard,
            insert,
            |_, node| is_key(node),
            agrees,
        )
    }

    /// See [`Pinned::clear`](crate::Pinned::clear).
    pub fn clear(&self) {
        self.map.core.clear(&self.guard);
    }
}

impl<S> PinnedBytes<'_, S> {
    /// All entries, weakly consistent like [`Pinned::iter`](crate::Pinned::iter).
    ///
    /// # Examples
    ///
    /// ```
    /// let map = hotring::BytesRing::new();
    /// let ring = map.pin();
    /// ring.insert(b"lake", b"deep")?;
    /// assert!(ring.iter().eq([(&b"lake"[..], &b"deep"[..])]));
    /// # Ok::<(), hotring::StoreError>(())
    /// ```
    pub fn iter(&self) -> BytesIter<'_> {
        BytesIter(self.entries())
    }

    /// As [`PinnedBytes::iter`], with the access count of each entry.
    pub fn entries(&self) -> BytesEntries<'_> {
        BytesEntries(self.map.core.walk(&self.guard))
    }

    /// As [`PinnedBytes::entries`], without the entries whose hash is below `hash`. See
    /// [`Pinned::entries_from`](crate::Pinned::entries_from).
    pub fn entries_from(&self, hash: u64) -> BytesEntries<'_> {
        BytesEntries(self.map.core.walk_from(order_of(hash), &self.guard))
    }

    /// See [`Pinned::flush`](crate::Pinned::flush).
    pub fn flush(&self) {
        self.guard.flush();
    }

    /// Lets go of everything seen so far, so that its memory can be given back. No reference
    /// survives it. See [`Pinned::repin`](crate::Pinned::repin).
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

/// The entries of a [`BytesRing`]; see [`PinnedBytes::iter`].
#[derive(Debug)]
pub struct BytesIter<'p>(BytesEntries<'p>);

/// The entries of a [`BytesRing`] with their access counts; see [`PinnedBytes::entries`].
#[derive(Debug)]
pub struct BytesEntries<'p>(Walk<'p>);

/// An entry of a [`BytesRing`], as an iterator met it.
#[derive(Debug)]
pub struct BytesEntry<'p>(At<'p>);

impl<'p> Iterator for BytesEntries<'p> {
    type Item = BytesEntry<'p>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(BytesEntry)
    }
}

impl<'p> Iterator for BytesIter<'p> {
    type Item = (&'p [u8], &'p [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| (entry.key(), entry.value()))
    }
}

impl<'p> BytesEntry<'p> {
    /// The key.
    pub fn key(&self) -> &'p [u8] {
        // SAFETY: a node of the map, kept by the guard of the handle.
        unsafe { Record::key(self.0.node_ptr()) }
    }

    /// The value.
    pub fn value(&self) -> &'p [u8] {
        value(self.0)
    }

    /// See [`EntryRef::hash`](crate::EntryRef::hash).
    pub fn hash(&self) -> u64 {
        self.0.order()
    }

    /// See [`EntryRef::count`](crate::EntryRef::count).
    pub fn count(&self) -> u32 {
        self.0.node().map_or(0, |node| node.count())
    }

    /// Sets the count to zero.
    pub fn clear_count(&self) {
        if let Some(node) = self.0.node() {
            node.clear_count();
        }
    }
}
