//! Copies of a slower tier's tables in room of this one that nothing uses.
//!
//! A fast tier is never full: flushes, compactions and the log need room that they use now and then. Copies lie in it
//! meanwhile. They are never needed: whoever claims the room has it at once, and the copies in it are gone. No edit
//! names them, and no opening keeps them.

use std::sync::Weak;

use arc_swap::ArcSwapOption;

use super::{CountedWriter, Purpose, Tier, TierFile};
use crate::error::Result;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::version::edit::MAX_NUMBER;

const SUFFIX: &str = ".copy";

fn name_of(number: u64) -> String {
    format!("{number:08}{SUFFIX}")
}

/// The number in the name of a copy, if it is one.
pub(crate) fn copy_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (number <= MAX_NUMBER && name_of(number) == name).then_some(number)
}

/// The copies on a tier, and how much room they may take.
#[derive(Debug)]
pub(super) struct Copies {
    /// Bytes of files, and of those being written.
    bytes: AtomicU64,
    /// The least that was free: in this span of time so far, and in the one before.
    least: [AtomicU64; 2],
    slots: Mutex<Vec<Weak<CopySlot>>>,
}

impl Default for Copies {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            // Nothing is known to be of no use yet.
            least: [AtomicU64::new(0), AtomicU64::new(0)],
            slots: Mutex::default(),
        }
    }
}

impl Tier {
    /// Bytes of copies, and of those being written.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copies.bytes.load(Ordering::Relaxed)
    }

    /// Bytes that nobody has claimed of late, nor a copy has.
    pub(crate) fn free_for_copies(&self) -> u64 {
        let least = self.copies.least.iter();
        let unused = least.map(|least| least.load(Ordering::Relaxed)).min();
        let unused = unused.unwrap_or(0).min(self.free_for_jobs());
        unused.saturating_sub(self.copied_bytes())
    }

    /// Begins a span of time: what was free all through the last one, and still is, is free for copies.
    pub(crate) fn begin_span(&self) {
        let [now, before] = &self.copies.least;
        before.store(now.load(Ordering::Relaxed), Ordering::Relaxed);
        now.store(self.free_for_jobs(), Ordering::Relaxed);
    }

    /// Has nothing copied for the rest of this span.
    pub(crate) fn refuse_copies(&self) {
        self.copies.least[0].store(0, Ordering::Relaxed);
    }

    /// Takes copies away until what was just claimed has room (I8).
    pub(super) fn take_back_room(&self) {
        let free = self.free_for_jobs();
        let least = &self.copies.least[0];
        if free < least.load(Ordering::Relaxed) {
            least.fetch_min(free, Ordering::Relaxed);
        }
        if self.copied_bytes() > free {
            self.remove_copies();
        }
    }

    /// Removes copies, the last that was made first, until the others have room. A file that is being read goes with the
    /// end of that read, and counts until then.
    fn remove_copies(&self) {
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
        let slots = std::mem::take(&mut *self.copies.slots.lock());
        slots.iter().filter_map(Weak::upgrade).for_each(|slot| {
            slot.clear();
        });
    }

    /// Begins a copy of `bytes`, to be file `number`.
    ///
    /// # Errors
    /// Those of the medium. None is given where there is no room.
    pub(crate) fn begin_copy(
        self: &Arc<Self>,
        number: u64,
        bytes: u64,
    ) -> Result<Option<CopyWriter>> {
        let claim = CopyBytes {
            tier: Arc::clone(self),
            bytes,
            name: name_of(number),
        };
        self.copies.bytes.fetch_add(bytes, Ordering::Relaxed);
        if !claim.has_room() {
            return Ok(None);
        }
        let writer = self.create(&claim.name, bytes, Purpose::Copy)?;
        Ok(Some(CopyWriter { writer, claim }))
    }
}

/// The bytes of a copy, and its file once that is written. Both go with this.
#[derive(Debug)]
struct CopyBytes {
    tier: Arc<Tier>,
    bytes: u64,
    name: String,
}

impl CopyBytes {
    /// Whether nobody else has claimed the room.
    fn has_room(&self) -> bool {
        self.tier.copied_bytes() <= self.tier.free_for_jobs()
    }
}

impl Drop for CopyBytes {
    fn drop(&mut self) {
        // What cannot be removed goes on to count, and goes with the next opening.
        if self.tier.tables.remove(&self.name).is_ok() {
            let bytes = &self.tier.copies.bytes;
            bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// A copy that is being written.
#[derive(Debug)]
pub(crate) struct CopyWriter {
    writer: CountedWriter,
    claim: CopyBytes,
}

impl CopyWriter {
    /// Appends `bytes`, unless the room was claimed meanwhile; whether it was not.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<bool> {
        let has_room = self.claim.has_room();
        if has_room {
            self.writer.append(bytes)?;
        }
        Ok(has_room)
    }

    /// Has the blocks of the table of `slot` read from here from now on.
    ///
    /// # Errors
    /// Those of the medium, of its syncs among them (I9).
    pub(crate) fn finish(self, slot: &Arc<CopySlot>) -> Result<()> {
        self.writer.finish()?;
        let tier = Arc::clone(&self.claim.tier);
        let copy = TableCopy {
            file: tier.open(&self.claim.name)?,
            claim: self.claim,
        };
        let mut slots = tier.copies.slots.lock();
        slots.retain(|slot| slot.upgrade().is_some_and(|slot| !slot.is_empty()));
        slots.push(Arc::downgrade(slot));
        slot.0.store(Some(Arc::new(copy)));
        drop(slots);
        // Who claimed the room meanwhile did not find the copy.
        tier.take_back_room();
        Ok(())
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
pub(crate) struct CopySlot(ArcSwapOption<TableCopy>);

impl CopySlot {
    /// The copy.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<TableCopy>> {
        self.0.load_full()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load().is_none()
    }

    /// Does without the copy from now on; its bytes come back.
    pub(crate) fn clear(&self) -> u64 {
        self.0.swap(None).map_or(0, |copy| copy.claim.bytes)
    }
}
