//! Copies of a slower tier's tables in room of this one that nothing uses.
//!
//! A fast tier is never full: flushes, compactions and the log need room that they use now and
//! then. Copies lie in it meanwhile. They are never needed: whoever claims the room has it at once,
//! and the copies in it are gone, the one that is being written first. No edit names them, no
//! opening keeps them, and so nothing of them is synced.
//!
//! A capacity is a promise to use no more, not one that the device has as much. Where it has less,
//! all copies go at the first write that finds no room, and what can be is written again.

use std::sync::Weak;

use arc_swap::ArcSwapOption;

use super::{CountedWriter, Tier, TierFile};
use crate::error::{Error, Result};
use crate::ids::MAX_NUMBER;
use crate::metrics::Purpose;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::sync::{Arc, Mutex};

const SUFFIX: &str = ".copy";

fn name_of(number: u64) -> String {
    format!("{number:08}{SUFFIX}")
}

/// The number in the name of a copy, if it is one.
pub(crate) fn copy_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (number <= MAX_NUMBER && name_of(number) == name).then_some(number)
}

/// The copies on a tier.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Bytes of files, and of those being written.
    bytes: AtomicU64,
    /// The copy that is being written; locked while it is begun, appended to and finished, and
    /// before `slots`.
    unfinished: Mutex<Option<Unfinished>>,
    slots: Mutex<Vec<Weak<CopySlot>>>,
    /// How often all were given up because the device had no room.
    given_up: AtomicU64,
    /// Whether the directory may be another store's; locked while a file is removed, after all
    /// other locks.
    have_ended: Mutex<bool>,
}

impl Tier {
    /// Bytes of copies, and of those being written.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copies.bytes.load(Ordering::Relaxed)
    }

    /// Does `write`; where the device has no room, once more without copies.
    ///
    /// # Errors
    /// Those of `write`, which may be repeated after [`Error::NoSpace`].
    pub(crate) fn with_room<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        let before = self.copies_given_up();
        match write() {
            // Whoever gave them up: another write may have found no room at the same time.
            Err(error)
                if error.is_no_space()
                    && (self.give_up_copies() || self.copies_given_up() != before) =>
            {
                write()
            }
            done => done,
        }
    }

    /// Gives copies up if a write that cannot be repeated has failed because the device has no
    /// room: whoever begins anew finds theirs.
    pub(crate) fn note_want_of_room<T>(&self, written: &Result<T>) {
        if written.as_ref().is_err_and(Error::is_no_space) {
            self.give_up_copies();
        }
    }

    /// How often copies were given up for want of room on the device.
    pub(crate) fn copies_given_up(&self) -> u64 {
        self.copies.given_up.load(Ordering::Acquire)
    }

    /// Does without copies; whether that gave room. One that is being read, or cannot be removed,
    /// gives none: who tries again as long as there is more room must come to an end.
    fn give_up_copies(&self) -> bool {
        let before = self.copied_bytes();
        if before == 0 {
            return false;
        }
        self.refuse_copies();
        self.remove_all_copies();
        let gave_room = self.copied_bytes() < before;
        if gave_room {
            self.copies.given_up.fetch_add(1, Ordering::Release);
        }
        gave_room
    }

    /// Takes copies away until what was just claimed has room (I8).
    pub(super) fn take_back_room(&self) {
        // Who claims and who begins a copy each note it and then look: one of them sees the other.
        fence(Ordering::SeqCst);
        let free = self.note_free();
        if self.copied_bytes() > free {
            self.remove_copies();
        }
    }

    /// Removes copies, the last that was begun first, until the others have room. A file that is
    /// being read goes with the end of that read, and counts until then.
    fn remove_copies(&self) {
        drop(self.copies.unfinished.lock().take());
        let mut slots = self.copies.slots.lock();
        let mut excess = self.copied_bytes().saturating_sub(self.free_for_jobs());
        while excess > 0
            && let Some(slot) = slots.pop()
        {
            let slot = slot.upgrade();
            let removed = slot.map_or(0, |slot| slot.clear());
            excess = excess.saturating_sub(removed);
        }
    }

    /// Removes all copies.
    pub(crate) fn remove_all_copies(&self) {
        drop(self.copies.unfinished.lock().take());
        let slots = std::mem::take(&mut *self.copies.slots.lock());
        slots.iter().filter_map(Weak::upgrade).for_each(|slot| {
            slot.clear();
        });
    }

    /// Removes the copies that a crash has left, before anything is written: they may have the
    /// device's last room.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn remove_left_copies(&self) -> Result<()> {
        for file in self.tables.list()? {
            if copy_number(&file.name).is_some() {
                self.tables.remove(&file.name)?;
            }
        }
        Ok(())
    }

    /// Has no file of a copy removed from now on: one that is being read stays, for the next
    /// opening to remove.
    pub(crate) fn end_copies(&self) {
        *self.copies.have_ended.lock() = true;
    }

    /// Begins a copy of `bytes`, to be file `number`, the only one that is being written.
    ///
    /// # Errors
    /// Those of the medium. None is given where there is no room.
    pub(crate) fn begin_copy(
        self: &Arc<Self>,
        number: u64,
        bytes: u64,
    ) -> Result<Option<CopyWriter>> {
        let mut unfinished = self.copies.unfinished.lock();
        let claim = CopyBytes {
            tier: Arc::clone(self),
            bytes,
            name: name_of(number),
        };
        self.copies.bytes.fetch_add(bytes, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.copied_bytes() > self.free_for_jobs() {
            return Ok(None);
        }
        let writer = self.create(&claim.name, bytes, Purpose::Copy)?;
        *unfinished = Some(Unfinished { writer, claim });
        Ok(Some(CopyWriter(Arc::clone(self))))
    }
}

/// The bytes of a copy, and its file once that is written. Both go with this.
#[derive(Debug)]
struct CopyBytes {
    tier: Arc<Tier>,
    bytes: u64,
    name: String,
}

impl Drop for CopyBytes {
    fn drop(&mut self) {
        let have_ended = self.tier.copies.have_ended.lock();
        // What cannot be removed goes on to count, and goes with the next opening.
        if !*have_ended && self.tier.tables.remove(&self.name).is_ok() {
            let bytes = &self.tier.copies.bytes;
            bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// A copy that is being written, until it is finished or its room is claimed.
#[derive(Debug)]
struct Unfinished {
    writer: CountedWriter,
    claim: CopyBytes,
}

/// Writes the unfinished copy of a tier.
#[derive(Debug)]
pub(crate) struct CopyWriter(Arc<Tier>);

impl CopyWriter {
    /// Appends `bytes`, unless the room was claimed meanwhile; whether it was not.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<bool> {
        match &mut *self.0.copies.unfinished.lock() {
            None => Ok(false),
            Some(copy) => copy.writer.append(bytes).map(|()| true),
        }
    }

    /// Has the blocks of the table of `slot` read from here from now on, unless the room was
    /// claimed meanwhile.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn finish(self, slot: &Arc<CopySlot>) -> Result<()> {
        let tier = &self.0;
        // Who claims the room meanwhile waits until the copy is where it can be taken from.
        let mut unfinished = tier.copies.unfinished.lock();
        let Some(Unfinished { writer, claim }) = unfinished.take() else {
            return Ok(());
        };
        writer.finish_unsynced()?;
        let copy = TableCopy {
            file: tier.open(&claim.name)?,
            claim,
        };
        let mut slots = tier.copies.slots.lock();
        slots.retain(|slot| slot.upgrade().is_some_and(|slot| !slot.is_empty()));
        slots.push(Arc::downgrade(slot));
        slot.put(copy);
        drop(slots);
        drop(unfinished);
        Ok(())
    }
}

impl Drop for CopyWriter {
    fn drop(&mut self) {
        drop(self.0.copies.unfinished.lock().take());
    }
}

/// A copy, its file there while it is read.
#[derive(Debug)]
pub(crate) struct TableCopy {
    pub(crate) file: TierFile,
    claim: CopyBytes,
}

/// Where a table has its copy, if there is one.
#[derive(Debug, Default)]
pub(crate) struct CopySlot {
    copy: ArcSwapOption<TableCopy>,
    /// Whether the table could not be read as a whole.
    is_unreadable: AtomicBool,
}

impl CopySlot {
    /// The copy.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<TableCopy>> {
        self.copy.load_full()
    }

    fn is_empty(&self) -> bool {
        self.copy.load().is_none()
    }

    /// Whether a copy may be made.
    pub(crate) fn is_open(&self) -> bool {
        self.is_empty() && !self.is_unreadable.load(Ordering::Relaxed)
    }

    /// Has no copy made any more: the table cannot be read as a whole.
    pub(crate) fn close(&self) {
        self.is_unreadable.store(true, Ordering::Relaxed);
    }

    fn put(&self, copy: TableCopy) {
        self.copy.store(Some(Arc::new(copy)));
    }

    /// Does without the copy from now on; its bytes come back.
    pub(crate) fn clear(&self) -> u64 {
        self.copy.swap(None).map_or(0, |copy| copy.claim.bytes)
    }
}
