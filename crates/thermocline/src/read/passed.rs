//! What iterators pass without returning it: deletes, and versions that newer ones hide.
//!
//! If the head of a queue is read and deleted, again and again, each read passes all that was
//! deleted since the last flush, or the last compaction. So an iterator that passes many such
//! entries has them taken away. The memtable is frozen, which leaves one version of a key. Tables
//! that have deletes there are compacted, for as long as these hide anything.

use std::sync::Weak;

use bytes::Bytes;

use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::executor::{Lane, Step};
use crate::ids::KeyspaceId;
use crate::iter::InternalIterator;
use crate::key::{KeyRange, SeqNo};
use crate::memtable::Memtable;
use crate::merge::MergingIter;
use crate::metrics::Activity;
use crate::read::Superversion;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex};
use crate::version::Version;

/// An iterator that passes this many entries on its way to one record has them taken away. Passing
/// them takes about as long as one read of a disk, and flushing them about as long as a few.
pub(crate) const MANY: u64 = 1024;

/// What an end of an iterator has passed since the last record that it returned.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    entries: u64,
    /// How many of them came from the first source of the merge: the active memtable, unless that
    /// was empty.
    of_first: u64,
    /// The key it passed first.
    first: Vec<u8>,
}

impl Passing {
    /// Enters what `cursor` stands on.
    pub(crate) fn count(&mut self, cursor: &MergingIter) {
        if self.entries == 0 {
            self.first.clear();
            self.first.extend_from_slice(cursor.key().user_key);
        }
        self.entries += 1;
        self.of_first += u64::from(cursor.source() == 0);
    }

    /// Takes off an entry that was returned after all.
    pub(crate) fn give_one(&mut self) {
        self.entries = self.entries.saturating_sub(1);
    }

    /// Tells `engine` of the entries, the last of which has the key `last`, and begins anew.
    pub(crate) fn end(
        &mut self,
        engine: &Engine,
        keyspace: KeyspaceId,
        pinned: &Superversion,
        last: &[u8],
    ) {
        if self.entries == 0 {
            return;
        }
        engine.stats.count_passed(self.entries);
        if self.entries >= MANY {
            let in_memtable = !pinned.active.is_empty() && self.of_first >= self.entries / 2;
            engine.take_away(keyspace, pinned, [&self.first, last], in_memtable);
        }
        (self.entries, self.of_first) = (0, 0);
    }
}

/// Where an iterator has passed many entries in tables. Deletes that lay there then are taken to
/// what they hide.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub(crate) range: KeyRange,
    /// The last sequence number at that time. What is newer is not meant, or each delete to come
    /// would be.
    pub(crate) seq: SeqNo,
    /// The version in which they were passed. It is not held, for its files' sake.
    version: Weak<Version>,
}

impl Passed {
    /// Whether `other` says the same.
    pub(crate) fn is_as(&self, other: &Passed) -> bool {
        Weak::ptr_eq(&self.version, &other.version)
            && self.seq == other.seq
            && self.range == other.range
    }
}

/// What was last told about a keyspace.
#[derive(Debug, Default)]
pub(crate) struct LastPassed(Mutex<Option<Passed>>);

impl LastPassed {
    pub(crate) fn get(&self) -> Option<Passed> {
        self.0.lock().clone()
    }

    /// Takes in `passed`. Returns whether it says more than what was told before.
    fn tell(&self, passed: Passed) -> bool {
        let mut last = self.0.lock();
        let is_known = last.as_ref().is_some_and(|last| {
            Weak::ptr_eq(&last.version, &passed.version)
                && last.range.contains(&passed.range.first)
                && last.range.contains(&passed.range.last)
        });
        *last = Some(passed).filter(|_| !is_known).or(last.take());
        !is_known
    }
}

impl Engine {
    /// Has the entries taken away that an iterator passed in `pinned` between two keys, in
    /// whichever order the keys are.
    pub(crate) fn take_away(
        &self,
        keyspace: KeyspaceId,
        pinned: &Superversion,
        [a, b]: [&[u8]; 2],
        in_memtable: bool,
    ) {
        let Some(tree) = self
            .tree(keyspace)
            .filter(|_| self.check_writable().is_ok())
        else {
            return;
        };
        if in_memtable {
            self.freeze_soon(&tree, &pinned.active);
            return;
        }
        let passed = Passed {
            range: KeyRange {
                first: Bytes::copy_from_slice(a.min(b)),
                last: Bytes::copy_from_slice(a.max(b)),
            },
            seq: self.visible(),
            version: Arc::downgrade(&pinned.version),
        };
        if tree.passed.tell(passed) {
            self.schedule_compactions();
        }
    }

    /// Queues the freeze of `memtable`, if it is still the active one of `tree`. It is queued
    /// because a reader does not wait for the log.
    fn freeze_soon(&self, tree: &Arc<Tree>, memtable: &Arc<Memtable>) {
        let is_active =
            |tree: &Tree, memtable: &Arc<Memtable>| Arc::ptr_eq(&tree.peek().active, memtable);
        let Some(engine) = self.me().filter(|_| is_active(tree, memtable)) else {
            return;
        };
        if tree.freezes_soon.swap(true, Ordering::AcqRel) {
            return;
        }
        let (tree, memtable) = (Arc::clone(tree), Arc::clone(memtable));
        self.spawn(Lane::Flush, Activity::Flush, move || {
            let mut log = engine.commit.log.lock();
            tree.freezes_soon.store(false, Ordering::Release);
            let has_room = engine.keyspaces.tally.frozen() < engine.max_immutables();
            let may = has_room && !engine.commit.freezes_held() && engine.check_writable().is_ok();
            if may && is_active(&tree, &memtable) {
                // If this fails, a writer or a flush meets the failure too, and the next read asks
                // again.
                let _: Result<()> = engine.freeze(&mut log, &tree);
            }
            Step::Done
        });
    }
}
