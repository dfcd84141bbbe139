//! The handle by which a map of records is used.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::RecordRing;
use super::record::{Front, Held, NewRecord, Record};
use crate::draft::New;
use crate::link::{At, Node, order_of};
use crate::reclaim::Guard;
use crate::walk::Walk;
use crate::write::Stored;

/// A handle to a [`RecordRing`]. The records that it returns stay as they are for as long as it
/// lives, also those that are no longer in the map.
#[derive(Debug)]
pub struct PinnedRecords<'m, H: 'static> {
    pub(super) map: &'m RecordRing<H>,
    pub(super) guard: Guard,
}

/// A record that a handle has found.
#[derive(Debug)]
pub struct RecordRef<'p, H: 'static> {
    at: At<'p>,
    _record: PhantomData<&'p H>,
}

impl<H> Clone for RecordRef<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for RecordRef<'_, H> {}

impl<'p, H> RecordRef<'p, H> {
    /// Only for nodes of a map of such records.
    fn new(at: At<'p>) -> Self {
        Self {
            at,
            _record: PhantomData,
        }
    }

    /// The header.
    #[inline]
    pub fn header(self) -> &'p H {
        // SAFETY: a node of the map, kept by the guard of the handle.
        unsafe { Record::header(self.at.node_ptr()) }
    }

    /// The key.
    #[inline]
    pub fn key(self) -> &'p [u8] {
        // SAFETY: as for the header.
        unsafe { Front::key(self.at.node_ptr()) }
    }

    /// The value.
    #[inline]
    pub fn value(self) -> &'p [u8] {
        // SAFETY: as for the header.
        unsafe { Front::value(self.at.node_ptr()) }
    }

    /// The value, to be kept.
    #[inline]
    pub fn hold(self) -> Held {
        // SAFETY: as for the header; the map lets go of it after the guard does.
        unsafe { Held::new(self.at.node_ptr()) }
    }

    /// See [`EntryRef::hash`](crate::EntryRef::hash).
    pub fn hash(self) -> u64 {
        self.at.order()
    }
}

/// What became of a record that was to take another one's place.
#[derive(Debug)]
pub enum Exchanged<'p, H: 'static> {
    /// It took the place of this one.
    Replaced(RecordRef<'p, H>),
    /// The present one is not to be replaced.
    Differs(RecordRef<'p, H>),
    /// The key is absent.
    Absent,
}

/// Whether a node's header and key are those that are sought.
#[inline(always)]
fn is<H>(is_key: impl Fn(&H, &[u8]) -> bool) -> impl Fn(NonNull<Node>) -> bool {
    // SAFETY: the map's functions call it for nodes of the map, kept by the guard.
    move |node| is_key(unsafe { Record::header(node) }, unsafe { Front::key(node) })
}

impl<H: Send + Sync + 'static> PinnedRecords<'_, H> {
    /// The record of a key. See [`RecordRing`] for `hash` and `is_key`.
    #[inline(always)]
    pub fn get(&self, hash: u64, is_key: impl Fn(&H, &[u8]) -> bool) -> Option<RecordRef<'_, H>> {
        let found = self.map.core.get(hash, &self.guard, is(is_key));
        found.map(RecordRef::new)
    }

    /// Stores a record if its key is absent. `Err` has the present one.
    ///
    /// # Errors
    ///
    /// The present record; the new one is dropped.
    pub fn insert_if_absent(
        &self,
        new: NewRecord<H>,
        is_key: impl Fn(&H, &[u8]) -> bool,
    ) -> Result<RecordRef<'_, H>, RecordRef<'_, H>> {
        match self.store(new, true, is_key, |_| false) {
            Stored::New(at) | Stored::Replaced(_, at) => Ok(RecordRef::new(at)),
            Stored::Kept(at, _) => Err(RecordRef::new(at)),
            Stored::Absent => unreachable!("an absent key is inserted"),
        }
    }

    /// Stores a record in the place of its key's, if `agrees` says yes to the header of that.
    /// `agrees` may be called several times, as for
    /// [`Pinned::update_if`](crate::Pinned::update_if).
    pub fn replace_if(
        &self,
        new: NewRecord<H>,
        is_key: impl Fn(&H, &[u8]) -> bool,
        agrees: impl FnMut(&H) -> bool,
    ) -> Exchanged<'_, H> {
        match self.store(new, false, is_key, agrees) {
            Stored::Replaced(old, _) => Exchanged::Replaced(RecordRef::new(old)),
            Stored::Kept(at, _) => Exchanged::Differs(RecordRef::new(at)),
            Stored::New(_) | Stored::Absent => Exchanged::Absent,
        }
    }

    /// Removes the record of a key if `agrees` says yes to its header, and returns it. `agrees` may
    /// be called several times, as for [`Pinned::update_if`](crate::Pinned::update_if).
    pub fn remove_if(
        &self,
        hash: u64,
        is_key: impl Fn(&H, &[u8]) -> bool,
        mut agrees: impl FnMut(&H) -> bool,
    ) -> Option<RecordRef<'_, H>> {
        // SAFETY: `remove` calls it for nodes of this map, kept by the guard.
        let agrees = |node| agrees(unsafe { Record::header(node) });
        let removed = self.map.core.remove(hash, &self.guard, is(is_key), agrees);
        removed.map(RecordRef::new)
    }

    fn store(
        &self,
        new: NewRecord<H>,
        insert: bool,
        is_key: impl Fn(&H, &[u8]) -> bool,
        mut agrees: impl FnMut(&H) -> bool,
    ) -> Stored<'_, Infallible, Record<H>> {
        // SAFETY: `store` calls it for nodes of this map, kept by the guard.
        let agrees = |node| agrees(unsafe { Record::header(node) });
        let (core, order, is_key) = (&self.map.core, new.node.order(), is(is_key));
        let (new, is_key) = (New::Made(new.node), |_: &_, node| is_key(node));
        let Ok(stored) = core.store(order, new, &self.guard, insert, is_key, agrees);
        stored
    }

    /// All records, weakly consistent like [`Pinned::iter`](crate::Pinned::iter).
    pub fn entries(&self) -> RecordEntries<'_, H> {
        RecordEntries {
            walk: self.map.core.walk(&self.guard),
            _record: PhantomData,
        }
    }

    /// As [`PinnedRecords::entries`], without the records whose hash is below `hash`. See
    /// [`Pinned::entries_from`](crate::Pinned::entries_from).
    pub fn entries_from(&self, hash: u64) -> RecordEntries<'_, H> {
        RecordEntries {
            walk: self.map.core.walk_from(order_of(hash), &self.guard),
            _record: PhantomData,
        }
    }

    /// See [`Pinned::flush`](crate::Pinned::flush).
    pub fn flush(&self) {
        self.guard.flush();
    }
}

/// The records of a [`RecordRing`]; see [`PinnedRecords::entries`].
#[derive(Debug)]
pub struct RecordEntries<'p, H: 'static> {
    walk: Walk<'p>,
    _record: PhantomData<&'p H>,
}

impl<'p, H> Iterator for RecordEntries<'p, H> {
    type Item = RecordRef<'p, H>;

    fn next(&mut self) -> Option<Self::Item> {
        self.walk.next().map(RecordRef::new)
    }
}
