//! Copies of a slower tier's tables, in space of this tier that nothing else uses. A copy has a
//! table as a whole, or only its tail: filters and indexes, which are read before its records.
//!
//! A fast tier is never completely full: flushes, compactions and the log need space now and then.
//! Copies use that space in between. Nobody depends on a copy: whoever claims the space has it at
//! once, and the copies in it are removed, first the one that is being written. No edit names
//! copies and no opening keeps them, so nothing of them is synced.
//!
//! A capacity is a promise not to use more; it does not promise that the device has that much. If
//! the device has less, all copies are removed at the first write that finds no space, and the
//! write is repeated if it can be.

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
    /// Bytes of finished copies, and of the one being written.
    bytes: AtomicU64,
    /// Most bytes that they may take, and 1 more; 0 if they take what nobody else uses.
    paid: AtomicU64,
    /// The copy that is being written. Locked while the copy is begun, appended to and finished.
    /// Taken before `slots`.
    unfinished: Mutex<Option<Unfinished>>,
    slots: Mutex<Vec<Weak<CopySlot>>>,
    /// How often all copies were given up because the device had no space.
    given_up: AtomicU64,
    /// Whether the directory may belong to another store by now. Locked while a file is removed;
    /// taken after all other locks.
    have_ended: Mutex<bool>,
}

impl Tier {
    /// Bytes of finished copies, and of the one being written.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copies.bytes.load(Ordering::Relaxed)
    }

    /// From now on copies may take `bytes`, or, without a number, what nobody else uses.
    pub(crate) fn pay_for_copies(&self, bytes: Option<u64>) {
        let paid = bytes.map_or(0, |bytes| bytes.saturating_add(1));
        self.copies.paid.store(paid, Ordering::Relaxed);
    }

    /// Bytes that copies may take, if somebody has said how many.
    pub(super) fn paid_for_copies(&self) -> Option<u64> {
        self.copies.paid.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Runs `write`. If the device has no space, gives up the copies and runs `write` once more.
    ///
    /// # Errors
    /// Those of `write`, which must be repeatable after [`Error::NoSpace`].
    pub(crate) fn with_room<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        let before = self.copies_given_up();
        match write() {
            // It does not matter who gave them up: another write may have found no space at the
            // same time.
            Err(error)
                if error.is_no_space()
                    && (self.give_up_copies() || self.copies_given_up() != before) =>
            {
                write()
            }
            done => done,
        }
    }

    /// Gives up the copies if a write that cannot be repeated has failed because the device has no
    /// space. When its caller begins anew, the space is there.
    pub(crate) fn note_want_of_room<T>(&self, written: &Result<T>) {
        if written.as_ref().is_err_and(Error::is_no_space) {
            self.give_up_copies();
        }
    }

    /// How often copies were given up because the device had no space.
    pub(crate) fn copies_given_up(&self) -> u64 {
        self.copies.given_up.load(Ordering::Acquire)
    }

    /// Gives up all copies; returns whether that freed space. A copy that is being read or cannot
    /// be removed frees none. Reporting only space that was freed makes callers that try again come
    /// to an end.
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

    /// Removes copies until the space that was just claimed is free (I8).
    pub(super) fn take_back_room(&self) {
        // A claim and the begin of a copy are each noted first, and only then each side looks. So
        // at least one of the two sees the other.
        fence(Ordering::SeqCst);
        let free = self.note_free();
        if self.copied_bytes() > free {
            self.remove_copies();
        }
    }

    /// Removes copies until the remaining ones fit: those of whole tables first, and of these the
    /// newest. The file of a copy that is being read is removed at the end of that read, and counts
    /// until then.
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

    /// Removes the copies that a crash left behind. This happens before anything is written,
    /// because they may occupy the device's last space.
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

    /// From now on, no copy's file is removed. A copy that is being read stays, and the next
    /// opening removes it.
    pub(crate) fn end_copies(&self) {
        *self.copies.have_ended.lock() = true;
    }

    /// Begins a copy of `bytes` as file `number`. Only one copy is written at a time.
    ///
    /// # Errors
    /// Those of the medium. `Ok(None)` if there is no space.
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

/// The bytes of a copy, and its file once it is written. Dropping this gives up both.
#[derive(Debug)]
struct CopyBytes {
    tier: Arc<Tier>,
    bytes: u64,
    name: String,
}

impl Drop for CopyBytes {
    fn drop(&mut self) {
        let have_ended = self.tier.copies.have_ended.lock();
        // A file that cannot be removed still counts, and is removed by the next opening.
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
    /// Appends `bytes`; `false` if the space was claimed meanwhile and the copy is gone.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<bool> {
        match &mut *self.0.copies.unfinished.lock() {
            None => Ok(false),
            Some(copy) => copy.writer.append(bytes).map(|()| true),
        }
    }

    /// Finishes the copy, which has the table of `slot` from byte `start` on; from now on, blocks
    /// that lie there are read from it. Does nothing if the space was claimed meanwhile.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn finish(self, slot: &Arc<CopySlot>, start: u64) -> Result<()> {
        let tier = &self.0;
        // If somebody claims the space now, they wait until the copy is in `slots`, where it can be
        // removed.
        let mut unfinished = tier.copies.unfinished.lock();
        let Some(Unfinished { writer, claim }) = unfinished.take() else {
            return Ok(());
        };
        writer.finish_unsynced()?;
        let copy = TableCopy {
            file: tier.open(&claim.name)?,
            start,
            claim,
        };
        let mut slots = tier.copies.slots.lock();
        slots.retain(|slot| slot.upgrade().is_some_and(|slot| !slot.is_empty()));
        // The last one goes first. A tail saves as many reads as the rest of its table, and takes
        // a small part of the room.
        let place = if start > 0 { 0 } else { slots.len() };
        slots.insert(place, Arc::downgrade(slot));
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

/// A copy. Its file stays for as long as somebody reads it.
#[derive(Debug)]
pub(crate) struct TableCopy {
    pub(crate) file: TierFile,
    /// Where in the table it begins.
    pub(crate) start: u64,
    claim: CopyBytes,
}

/// Holds a copy of a table or of its tail, if there is one.
#[derive(Debug, Default)]
pub(crate) struct CopySlot {
    copy: ArcSwapOption<TableCopy>,
    /// Whether what is to be copied could not be read completely.
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

    /// Whether a copy may be made now.
    pub(crate) fn is_open(&self) -> bool {
        self.is_empty() && !self.is_unreadable.load(Ordering::Relaxed)
    }

    /// No copy is made from now on, because what is to be copied cannot be read completely.
    pub(crate) fn close(&self) {
        self.is_unreadable.store(true, Ordering::Relaxed);
    }

    fn put(&self, copy: TableCopy) {
        self.copy.store(Some(Arc::new(copy)));
    }

    /// Drops the copy; returns its bytes.
    pub(crate) fn clear(&self) -> u64 {
        // To take out nothing is dear: a swap looks at what every thread may be reading.
        if self.is_empty() {
            return 0;
        }
        self.copy.swap(None).map_or(0, |copy| copy.claim.bytes)
    }
}
