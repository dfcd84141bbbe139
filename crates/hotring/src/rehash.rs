//! Changing the table's size, concurrently with everything.
//!
//! The table is only a set of shortcuts into one list, so no entry moves. A change goes:
//!
//! 1. **Split.** A table of another size is allocated. Its buckets are initialised one by one: the
//!    anchor is put into the list, behind the old one of equal order if there is one. The head is
//!    taken over from the old bucket if it lies in the new one. Accesses still use the old table,
//!    and step over foreign anchors. Then the new table becomes the present one.
//! 2. **Drain.** A grace period: until every guard that was there before is gone.
//! 3. **Unlink.** Nobody begins at an old anchor any more. They are marked and unlinked, and the
//!    old heads released.
//! 4. **Recheck.** While both tables were in use, whoever deleted a node through the old one did
//!    not look at the new one's head. So stale heads are taken off now. The old table is retired
//!    and handed to all threads. Otherwise it would count as only one object of the many that a
//!    thread keeps by itself.
//!
//! In between there are two heads for a node. Each counts for itself, so neither needs to be
//! frozen. A second change does not begin before the first is over. The old table's first anchor is
//! the list's beginning and has no predecessor. It is not unlinked; nothing leads to it any more.
//!
//! The requests that end a period do the work in chunks. Whichever thread gets the lock does a
//! chunk; a thread that does not get it goes on without. So nobody waits, and no request pays for
//! the growth of a whole table. A chunk reads each ring that its buckets are in once. When a table
//! is made much smaller those rings are long, and for the heads a chunk looks at all old buckets
//! that its new ones replace.
//!
//! The cost of accesses triggers growth: the mean number of items visited, over windows of sampled
//! accesses. The number of entries only bounds it: with more than one bucket an item, long searches
//! come from keys of equal hash.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::core::{Core, Spot};
use crate::error::TableError;
use crate::head::{Head, Word};
use crate::link::{At, END, Entry};
use crate::options::Movement;
use crate::reclaim::{self, Guard};
use crate::search::{Place, Start};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::yield_now;
use crate::table::Table;

/// Buckets that one step treats.
const CHUNK: usize = 64;

/// After so many turns in a row that free nothing, a guard must be keeping what is left. The epoch
/// has to move on twice before something is freed, and one turn may come while another thread holds
/// it up.
const TURNS: usize = 3;

/// How often the end of a grace period is waited for before another is asked for: usually it comes
/// within a few steps.
const PATIENCE: u32 = 16;

/// How large a table is to be, rounded up to a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    AtLeast(usize),
    AtMost(usize),
}

impl Size {
    /// Whether a table of `len` buckets need not change.
    fn holds(self, len: usize) -> bool {
        match self {
            Self::AtLeast(buckets) => buckets <= len,
            // No table is larger than a size that cannot be rounded up.
            Self::AtMost(buckets) => buckets
                .max(1)
                .checked_next_power_of_two()
                .is_none_or(|most| len <= most),
        }
    }
}

/// How far a change of the table's size is.
#[derive(Debug, Default)]
pub(crate) enum Rehash {
    /// There is none.
    #[default]
    Idle,
    /// The new table's first `done` buckets are initialised and in the list.
    Split { new: NonNull<Table>, done: usize },
    /// The new table is the present one; `passed` when nobody uses the old one.
    Drain {
        old: NonNull<Table>,
        passed: Arc<AtomicBool>,
        /// How often the grace period was found not to have passed.
        waited: u32,
    },
    /// The old table's first `done` buckets are unlinked.
    Unlink { old: NonNull<Table>, done: usize },
    /// The old table is out of the list; `done` buckets of the present one were looked at.
    Recheck { old: NonNull<Table>, done: usize },
}

// SAFETY: the tables may be used by any thread, and whoever has the lock owns them.
unsafe impl Send for Rehash {}

impl Rehash {
    /// The table that is not the present one, with how many of its buckets are initialised.
    pub(crate) fn other_table(&self) -> Option<(NonNull<Table>, usize)> {
        match *self {
            Self::Idle => None,
            Self::Split { new, done } => Some((new, done)),
            Self::Drain { old, .. } | Self::Unlink { old, .. } | Self::Recheck { old, .. } => {
                // SAFETY: not retired before the change is over.
                Some((old, unsafe { old.as_ref() }.len()))
            }
        }
    }
}

impl<E: Entry> Core<E> {
    /// Records what a request cost. Begins to grow if that is too much.
    pub(crate) fn note_cost(&self, visits: u32, guard: &Guard) {
        let full = self.tally.sample(visits, self.options.window);
        if full.is_some_and(|cost| cost.mean() > self.options.grow_above) && !self.is_resizing() {
            let buckets = self.table(guard).len();
            // Doubled, it has no more than two buckets an item.
            if buckets <= self.tally.entries() {
                // Without memory for the new table all goes on as before, and the next window tries
                // again.
                let _ = self.begin_rehash(Size::AtLeast(buckets.saturating_mul(2)), guard);
            }
        }
    }

    /// Begins a change to `size`, if the table is not of that size already.
    pub(crate) fn begin_rehash(&self, size: Size, guard: &Guard) -> Result<(), TableError> {
        let mut rehash = self.rehash.try_lock().ok_or(TableError::Busy)?;
        if !matches!(*rehash, Rehash::Idle) {
            return Err(TableError::Busy);
        }
        // This is checked under the lock: since the caller looked, another thread may have changed
        // the table to a size from which this change would go the other way.
        if size.holds(self.table(guard).len()) {
            return Ok(());
        }
        let (Size::AtLeast(buckets) | Size::AtMost(buckets)) = size;
        let new = Table::allocate(buckets)?;
        self.tally.tables(new.bytes() as isize);
        *rehash = Rehash::Split {
            new: NonNull::from(Box::leak(new)),
            done: 0,
        };
        self.rehashing.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Does a chunk of the work, if nobody else does. It is separate from the end of a period, so
    /// that this needs no more of the stack and of the registers than it would otherwise.
    #[cold]
    #[inline(never)]
    pub(crate) fn work(&self, guard: &Guard) {
        if let Some(mut rehash) = self.rehash.try_lock() {
            self.step(&mut rehash, guard);
        }
    }

    fn step(&self, rehash: &mut Rehash, guard: &Guard) {
        match rehash {
            Rehash::Idle => {}
            Rehash::Split { new, done } => {
                // SAFETY: the table is the lock's until it is published.
                let table = unsafe { new.as_ref() };
                self.split_into(table, chunk(done, table.len()), guard);
                if *done == table.len() {
                    let new = *new;
                    // Publishes the buckets and the anchors' being in the list.
                    let old = self.table.swap(new.as_ptr(), Ordering::AcqRel);
                    self.tally.forget_cost();
                    let passed = Arc::new(AtomicBool::new(false));
                    let flag = Arc::clone(&passed);
                    if let Some(old) = NonNull::new(old) {
                        *rehash = Rehash::Drain {
                            old,
                            passed,
                            waited: 0,
                        };
                    }
                    // Last, as it may free what others retired, and their destructors may panic.
                    reclaim::after_grace(guard, move || flag.store(true, Ordering::Release));
                }
            }
            Rehash::Drain {
                old,
                passed,
                waited,
            } => {
                if passed.load(Ordering::Acquire) {
                    *rehash = Rehash::Unlink { old: *old, done: 0 };
                    return;
                }
                *waited = waited.saturating_add(1);
                if *waited >= PATIENCE && waited.is_power_of_two() {
                    // A destructor that panics takes with it what was handed over behind it. That
                    // may have been the end of this grace period. The end of a later one says as
                    // much.
                    let flag = Arc::clone(passed);
                    reclaim::after_grace(guard, move || flag.store(true, Ordering::Release));
                } else {
                    guard.flush();
                }
            }
            Rehash::Unlink { old, done } => {
                // SAFETY: not retired yet.
                let table = unsafe { old.as_ref() };
                self.unlink_all(table, chunk(done, table.len()), guard);
                if *done == table.len() {
                    *rehash = Rehash::Recheck { old: *old, done: 0 };
                }
            }
            Rehash::Recheck { old, done } => {
                let table = self.table(guard);
                for index in chunk(done, table.len()) {
                    let spot = self.spot(table.first(index), guard);
                    // Reading it is enough.
                    self.head(spot);
                }
                if *done == table.len() {
                    self.retire_table(*old, guard);
                    *rehash = Rehash::Idle;
                    self.rehashing.store(false, Ordering::Relaxed);
                    // Last, for the same reason as above.
                    guard.hand_over();
                }
            }
        }
    }

    /// Initialises buckets of the new table and puts their anchors into the list. Each search
    /// begins where the last one ended: together they read a ring once. Yields how many links they
    /// read.
    pub(crate) fn split_into(&self, new: &Table, buckets: Range<usize>, guard: &Guard) -> u64 {
        let (mut last, mut read) = (None, 0);
        for index in buckets {
            let place = self.split(new, index, last, guard);
            last = Some(place.before);
            read += u64::from(place.visits);
        }
        read
    }

    /// Initialises a bucket of the new table and puts its anchor into the list. Yields where.
    fn split<'g>(
        &self,
        new: &Table,
        index: usize,
        last: Option<At<'g>>,
        guard: &'g Guard,
    ) -> Place<'g> {
        // SAFETY: nobody uses the new table before it is published, and each index comes once.
        unsafe { new.initialise(index) };
        // SAFETY: initialised just now.
        let bucket = unsafe { new.bucket(index) };
        let order = new.first(index);
        let anchor = new.anchor_ptr(index);
        let spot = self.spot(order, guard);
        let mut start = start_at(last, spot);
        let place = loop {
            let place = self.find(spot, order, start, |_| false);
            start = Start::Anchor;
            let after = place.after.map_or(END, At::as_ptr);
            bucket.anchor.next.store(after, Ordering::Relaxed);
            // SAFETY: the anchor leads to the successor.
            if unsafe { place.before.exchange_next(after, anchor.as_ptr()) } {
                break place;
            }
        };
        // SAFETY: initialised above, and the anchor has been put into the list.
        let to = unsafe { Spot::new(new, order, guard) };
        if !self.take_over_head(spot.table, to) {
            self.give_head_to(to, place.after);
        }
        place
    }

    /// Takes over the first head that can be taken over, from those buckets of the present table,
    /// `old`, that reach into the new bucket.
    fn take_over_head(&self, old: &Table, to: Spot<'_>) -> bool {
        let (first, last) = (to.table.first(to.index), to.table.last(to.index));
        (old.index_of(first)..=old.index_of(last)).any(|from| {
            // SAFETY: as in `Core::spot`; it is the present table.
            let from = unsafe { Spot::new(old, old.first(from), to.guard) };
            match self.head(from) {
                Head::Live(_, head, _) => {
                    to.holds(head.order()) && self.swing(to, Word::NONE, head)
                }
                Head::None => false,
            }
        })
    }

    /// Gives a head to a ring that could take over none: at the second of its items, which begin at
    /// `first`.
    fn give_head_to<'g>(&self, to: Spot<'g>, first: Option<At<'g>>) {
        if self.options.movement == Movement::Off {
            return;
        }
        let ring = std::iter::successors(first, |at| at.next().at());
        let ring = ring.take_while(|at| to.holds(at.order()));
        if let Some(second) = ring.filter(|at| at.is_node()).nth(1) {
            self.swing(to, Word::NONE, second);
        }
    }

    /// Takes buckets of the old table out of use. Searches as [`Core::split_into`] does, and yields
    /// the same.
    pub(crate) fn unlink_all(&self, old: &Table, buckets: Range<usize>, guard: &Guard) -> u64 {
        let (mut last, mut read) = (None, 0);
        for index in buckets {
            if let Some(place) = self.unlink_bucket(old, index, last, guard) {
                last = Some(place.before);
                read += u64::from(place.visits);
            }
        }
        read
    }

    /// Takes a bucket of the old table out of use. Yields where its anchor was, unless it is the
    /// first, which stays.
    fn unlink_bucket<'g>(
        &self,
        old: &Table,
        index: usize,
        last: Option<At<'g>>,
        guard: &'g Guard,
    ) -> Option<Place<'g>> {
        // SAFETY: all of the table is initialised.
        let bucket = unsafe { old.bucket(index) };
        // Nobody sets it any more.
        let none = Word::NONE.stored();
        if let Some(head) = Word::from(bucket.head.swap(none, Ordering::AcqRel)).link() {
            // SAFETY: counted by the head until now, so not retired when the guard was taken; it is
            // only released.
            self.release(unsafe { At::new(head, guard) });
        }
        let order = old.first(index);
        let before = order.checked_sub(1)?;
        // SAFETY: linked until it is marked below.
        let anchor = unsafe { old.anchor(index, guard) };
        while !anchor.mark(anchor.next().as_ptr()) {}
        // Begins at a present link that stands before it, and unlinks it on the way.
        let spot = self.spot(before, guard);
        Some(self.find(spot, order, start_at(last, spot), |_| false))
    }

    fn retire_table(&self, old: NonNull<Table>, guard: &Guard) {
        // SAFETY: not retired yet.
        let table = unsafe { old.as_ref() };
        self.tally.tables(-(table.bytes() as isize));
        let parts = table.parts();
        // SAFETY: guards taken from now on begin at anchors of the present table, from which no old
        // anchor is reached, and find it in no head. This is the one call, as the change ends with
        // it.
        unsafe {
            reclaim::retire::<Table>(guard, old, parts, |table| {
                drop(Box::from_raw(table.as_ptr()));
            });
        }
    }

    /// Brings a change of the table's size forward as far as it goes without waiting, and then
    /// gives back the old table if no guard keeps it. Says whether no change is left to do. The end
    /// of the grace period stands in the queue behind what was retired before. As long as some of
    /// that is freed, this is no waiting.
    pub(crate) fn settle(&self) -> bool {
        let mut waited = 0;
        while self.is_resizing() && waited < 16 {
            let freed = reclaim::freed();
            // A guard of its own each time: an older one would keep the grace period from passing.
            let guard = reclaim::pin();
            let Some(mut rehash) = self.rehash.try_lock() else {
                waited += 1;
                yield_now();
                continue;
            };
            let drains = matches!(*rehash, Rehash::Drain { .. });
            self.step(&mut rehash, &guard);
            waited += u32::from(drains && reclaim::freed() == freed);
        }
        if self.is_resizing() {
            return false;
        }
        give_back();
        true
    }

    /// Whether a change of the table's size runs.
    pub(crate) fn is_resizing(&self) -> bool {
        self.rehashing.load(Ordering::Relaxed)
    }

    /// Begins to double the table.
    pub(crate) fn grow(&self) -> Result<(), TableError> {
        let guard = reclaim::pin();
        let doubled = self.table(&guard).len().saturating_mul(2);
        self.begin_rehash(Size::AtLeast(doubled), &guard)
    }

    /// Changes the table to `size`; when this returns, new accesses use it. Later requests take
    /// away what is left of the old one.
    pub(crate) fn resize(&self, size: Size) -> Result<(), TableError> {
        // Whether the table may be about to grow: it must not do so after a call that made it
        // small. If it is about to shrink, that is because of another call that has not returned,
        // and either of these two calls may be the later one. This is looked at before the present
        // table: if a larger one comes in between, it is the present one then.
        let grows = matches!(size, Size::AtMost(_)) && self.is_resizing() && self.splits();
        // Whoever has what they ask for need not wait for a change that is not over.
        if !grows && size.holds(self.table(&reclaim::pin()).len()) {
            return Ok(());
        }
        self.settle();
        self.begin_rehash(size, &reclaim::pin())?;
        while !self.settle() && self.splits() {}
        Ok(())
    }

    /// Whether a new table is being made and is not in use yet, or somebody is at work on it.
    fn splits(&self) -> bool {
        self.rehash
            .try_lock()
            .is_none_or(|rehash| matches!(*rehash, Rehash::Split { .. }))
    }
}

/// Frees what was retired before, in the order in which it was retired, and an old table last,
/// unless a guard keeps some of it.
fn give_back() {
    let passed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&passed);
    // Others may retire more all the time. Nothing that comes behind this is waited for.
    reclaim::after_grace(&reclaim::pin(), move || flag.store(true, Ordering::Release));
    let mut in_vain = 0;
    while !passed.load(Ordering::Acquire) && in_vain < TURNS {
        let freed = reclaim::freed();
        reclaim::pin().flush();
        in_vain = if reclaim::freed() == freed {
            in_vain + 1
        } else {
            0
        };
    }
}

/// Where a search begins that follows a search for an earlier place: at that place, if it is in the
/// bucket.
fn start_at<'g>(last: Option<At<'g>>, spot: Spot<'g>) -> Start<'g> {
    last.filter(|last| spot.holds(last.order()))
        .map_or(Start::Anchor, Start::Link)
}

/// The next indices to treat, noted as done.
fn chunk(done: &mut usize, len: usize) -> Range<usize> {
    let from = *done;
    *done = len.min(from + CHUNK);
    from..*done
}
