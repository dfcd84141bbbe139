//! The map without its types: one list of entries, a table of shortcuts into it.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{catch_unwind, resume_unwind};
use std::ptr::NonNull;

use crate::error::TableError;
use crate::head::Word;
use crate::link::{At, END, Entry, Link, Next, Node};
use crate::options::Options;
use crate::period::Stride;
use crate::reclaim::{self, Guard};
use crate::rehash::Rehash;
use crate::sync::TryLock;
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::table::{Bucket, Slot, Table};
use crate::tally::Tally;

/// See the module.
pub(crate) struct Core<E: Entry> {
    /// The present table; another takes its place only under the lock of `rehash`.
    pub(crate) table: AtomicPtr<Table>,
    /// How far a change of the table's size is. The work is done a chunk at a time.
    pub(crate) rehash: TryLock<Rehash>,
    /// Whether a change runs. If none does, this saves taking the lock.
    pub(crate) rehashing: AtomicBool,
    pub(crate) tally: Tally,
    pub(crate) options: Options,
    /// How far a request goes on the way to a period's end, by the options.
    pub(crate) stride: Stride,
    /// What goes in by `&self` comes out again, so a map of one type of entry must not be used as a
    /// map of a subtype or supertype. `PhantomData<E>` would let it be lent as one.
    entries: PhantomData<fn(E) -> E>,
}

/// A bucket of the table that was the present one when an access began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'g> {
    pub(crate) table: &'g Table,
    pub(crate) index: usize,
    /// Where in the bucket the accessed order is.
    pub(crate) place: usize,
    pub(crate) bucket: &'g Bucket,
    pub(crate) guard: &'g Guard,
}

impl<'g> Spot<'g> {
    /// # Safety
    ///
    /// The bucket of this order is initialised, its anchor was linked at some moment since `guard`
    /// was taken, and the table is retired only after its being unlinked.
    #[inline(always)]
    pub(crate) unsafe fn new(table: &'g Table, order: u64, guard: &'g Guard) -> Self {
        let Slot { index, place } = table.slot_of(order);
        // SAFETY: by the caller's promise; `slot_of` is within the table.
        let bucket = unsafe { table.bucket(index) };
        Self {
            table,
            index,
            place,
            bucket,
            guard,
        }
    }

    #[inline(always)]
    pub(crate) fn anchor(self) -> At<'g> {
        // SAFETY: by the promise made to `new`.
        unsafe { self.table.anchor(self.index, self.guard) }
    }

    /// What the anchor leads to: its [`At::next`], without the way from its pointer to its place.
    #[inline(always)]
    pub(crate) fn first(self) -> Next<'g> {
        reclaim::reached(self.guard, NonNull::from(&self.bucket.anchor));
        self.bucket.anchor.next(self.guard)
    }

    /// Whether a link of this order belongs to this bucket.
    pub(crate) fn holds(self, order: u64) -> bool {
        self.table.index_of(order) == self.index
    }
}

impl<E: Entry> Core<E> {
    /// An empty map.
    pub(crate) fn new(options: Options) -> Result<Self, TableError> {
        let table = Table::allocate(options.buckets)?;
        for index in 0..table.len() {
            // SAFETY: the table is ours alone.
            unsafe { table.initialise(index) };
        }
        let guard = reclaim::pin();
        for index in 1..table.len() {
            // SAFETY: initialised, not shared yet, and linked by the turn before.
            let before = unsafe { table.anchor(index - 1, &guard) };
            // SAFETY: the link before is the last one, and the next anchor leads nowhere.
            unsafe { before.exchange_next(END, table.anchor_ptr(index).as_ptr()) };
        }
        let tally = Tally::default();
        tally.tables(table.bytes() as isize);
        Ok(Self {
            table: AtomicPtr::new(Box::into_raw(table)),
            rehash: TryLock::new(Rehash::default()),
            rehashing: AtomicBool::new(false),
            tally,
            options,
            stride: Stride::of(options.period),
            entries: PhantomData,
        })
    }

    /// The present table.
    #[inline(always)]
    pub(crate) fn table<'g>(&self, _guard: &'g Guard) -> &'g Table {
        // SAFETY: a table is retired after another took its place, so it outlives the guard.
        unsafe { &*self.table.load(Ordering::Acquire) }
    }

    /// Where the list begins, as far as entries go: the present table's first anchor.
    pub(crate) fn begin<'g>(&self, guard: &'g Guard) -> At<'g> {
        self.spot(0, guard).anchor()
    }

    /// The present bucket of an order.
    #[inline(always)]
    pub(crate) fn spot<'g>(&self, order: u64, guard: &'g Guard) -> Spot<'g> {
        // SAFETY: all of a table is initialised and linked before it becomes the present one. Its
        // anchors are marked only when all guards are gone under which it was the present one.
        unsafe { Spot::new(self.table(guard), order, guard) }
    }
}

impl<E: Entry> Drop for Core<E> {
    fn drop(&mut self) {
        // Handles borrow the map, so nobody has a guard under which this map was looked at. What is
        // still linked, or kept only by a head, is freed here. What was retired is freed by the
        // epochs.
        let other = self.rehash.get_mut().other_table();
        let (guard, panic) = pin_whatever_is_freed();
        let Some(present) = NonNull::new(self.table.load(Ordering::Acquire)) else {
            return;
        };
        if let Some((table, initialised)) = other {
            // SAFETY: the rehash owns it, and nobody goes on with the rehash.
            self.drop_heads(unsafe { table.as_ref() }, initialised);
        }
        // SAFETY: the present table, which nobody else uses any more.
        let table = unsafe { present.as_ref() };
        self.drop_heads(table, table.len());
        // SAFETY: the list begins at the present table's first anchor; see `rehash`.
        let mut next = unsafe { table.anchor(0, &guard) }.next();
        while let Some(at) = next.at() {
            next = at.next();
            if at.is_node() {
                // SAFETY: no head keeps it any more, and this walk comes by once.
                unsafe { E::free(at.node_ptr()) };
            }
        }
        for table in other.map(|(table, _)| table).into_iter().chain([present]) {
            // SAFETY: made by `Box::into_raw`, and nothing leads to its anchors any more.
            drop(unsafe { Box::from_raw(table.as_ptr()) });
        }
        drop(guard);
        // Another panic would end the process.
        if let Some(panic) = panic.filter(|_| !std::thread::panicking()) {
            resume_unwind(panic);
        }
    }
}

/// Takes a guard. This may first free what some other map has retired, whose destructors may panic.
/// The first of these panics is returned, to be resumed when nothing is left that it would leak.
fn pin_whatever_is_freed() -> (Guard, Option<Box<dyn Any + Send>>) {
    let mut first = None;
    loop {
        match catch_unwind(reclaim::pin) {
            Ok(guard) => return (guard, first),
            Err(panic) => {
                first.get_or_insert(panic);
            }
        }
    }
}

impl<E: Entry> Core<E> {
    /// Takes the heads off the first `len` buckets, and frees the nodes that only they kept.
    fn drop_heads(&self, table: &Table, len: usize) {
        for index in 0..len {
            // SAFETY: initialised, as the caller says.
            let head = unsafe { table.bucket(index) }.head.load(Ordering::Acquire);
            let Some(head) = Word::from(head).link() else {
                continue;
            };
            let node: NonNull<Node> = NonNull::<Link>::cast(head);
            // SAFETY: a head counts in its node, which is therefore not freed.
            if unsafe { node.as_ref() }.release() {
                // SAFETY: neither linked nor kept by another head.
                unsafe { E::free(node) };
            }
        }
    }
}
