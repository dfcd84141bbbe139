//! The baseline: a lock-free chained hash table, made of the same parts as the ring.
//!
//! Nodes have the same layout as the ring's, including the words in which the ring keeps
//! statistics. Hashes are compared before keys. Memory is reclaimed by the same epochs, equally
//! often. Items are deleted by marking them (Harris) and replaced by one exchange, as in the ring.
//! New items go to the front of their chain. The chain is not ordered, as in the paper's baseline.
//! The number of buckets is fixed.

use std::cell::Cell;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_epoch::{self as epoch, Atomic, Guard, Owned, Shared};
use foldhash::quality::RandomState;
use memmap2::{MmapMut, MmapRaw};

use super::{Handle, Table, Visits, Wide};

/// The tag of a `next` whose node is deleted.
const MARK: usize = 1;

/// How many deleted nodes a bag of the epochs has room for.
const BAG: usize = 64;

/// The most turns of freeing that are taken at once.
const TURNS: usize = 4;

thread_local! {
    /// Nodes that this thread has deleted and has not yet paid for by freeing as many.
    static DELETED: Cell<usize> = const { Cell::new(0) };
}

#[repr(C)]
struct Node<V> {
    next: Atomic<Node<V>>,
    hash: u64,
    /// Room for what a node of the ring has here: its count of heads and its count of accesses.
    _room: u64,
    key: u64,
    value: V,
}

#[repr(C)]
struct Bucket<V, const ROOM: usize> {
    first: Atomic<Node<V>>,
    _room: [u64; ROOM],
}

/// The buckets, in huge pages as the ring's are.
struct Buckets<B> {
    memory: MmapRaw,
    _buckets: PhantomData<B>,
}

impl<V, const ROOM: usize> Buckets<Bucket<V, ROOM>> {
    /// Empty buckets: null pointers and zeros, which is what new memory contains.
    fn new(len: usize) -> Self {
        let memory = MmapMut::map_anon(len * size_of::<Bucket<V, ROOM>>());
        let memory = memory.unwrap_or_else(|error| panic!("no memory for {len} buckets: {error}"));
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Self {
            memory: memory.into(),
            _buckets: PhantomData,
        }
    }

    #[inline(always)]
    fn all(&self) -> &[Bucket<V, ROOM>] {
        let len = self.memory.len() / size_of::<Bucket<V, ROOM>>();
        // SAFETY: the memory is of that length and aligned to pages, and zeros are a bucket; from
        // then on only atomics change it.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), len) }
    }
}

/// See the module. A bucket takes `ROOM` words more than it needs, to see what larger ones cost.
pub(crate) struct Chained<V, const ROOM: usize = 0> {
    bits: u32,
    buckets: Buckets<Bucket<V, ROOM>>,
    hasher: RandomState,
}

/// A handle to a [`Chained`].
pub(crate) struct Pinned<'t, V, const ROOM: usize = 0> {
    table: &'t Chained<V, ROOM>,
    guard: Guard,
}

/// What a writer's search found.
struct Place<'g, V> {
    /// The pointer that leads to `found`.
    before: &'g Atomic<Node<V>>,
    /// The key's node, or null.
    found: Shared<'g, Node<V>>,
}

impl<V, const ROOM: usize> Chained<V, ROOM> {
    /// An empty table with a power of two of buckets.
    pub(crate) fn new(buckets: usize) -> Self {
        let len = buckets.next_power_of_two();
        Self {
            bits: len.trailing_zeros(),
            buckets: Buckets::new(len),
            hasher: RandomState::default(),
        }
    }

    fn bucket(&self, hash: u64) -> &Atomic<Node<V>> {
        &self.buckets.all()[(hash >> 1 >> (63 - self.bits)) as usize].first
    }

    /// The value of `key`, and how many items were looked at.
    #[inline(always)]
    fn search<'g>(&'g self, key: u64, guard: &'g Guard) -> (Option<&'g V>, u32) {
        let hash = self.hasher.hash_one(key);
        let mut visits = 0;
        let mut at = self.bucket(hash).load(Ordering::Acquire, guard);
        // SAFETY: a node that is reached under a guard is not freed while the guard lives.
        while let Some(node) = unsafe { at.as_ref() } {
            visits += 1;
            let next = node.next.load(Ordering::Acquire, guard);
            if node.hash == hash && node.key == key && next.tag() != MARK {
                return (Some(&node.value), visits);
            }
            at = next;
        }
        (None, visits)
    }

    /// Finds a key's node, and unlinks the marked ones on the way.
    fn find<'g>(&'g self, hash: u64, key: u64, guard: &'g Guard) -> Place<'g, V> {
        'again: loop {
            let mut before = self.bucket(hash);
            let mut at = before.load(Ordering::Acquire, guard);
            // SAFETY: as in `search`.
            while let Some(node) = unsafe { at.as_ref() } {
                let next = node.next.load(Ordering::Acquire, guard);
                if next.tag() == MARK {
                    if !self.unlink(before, at, guard) {
                        continue 'again;
                    }
                    at = next.with_tag(0);
                    continue;
                }
                if node.hash == hash && node.key == key {
                    break;
                }
                before = &node.next;
                at = next;
            }
            return Place { before, found: at };
        }
    }

    /// Leads `before` past the marked `at`.
    fn unlink<'g>(
        &self,
        before: &Atomic<Node<V>>,
        at: Shared<'g, Node<V>>,
        guard: &'g Guard,
    ) -> bool {
        // SAFETY: as in `search`; a marked node's `next` is frozen.
        let next = unsafe { at.deref() }.next.load(Ordering::Acquire, guard);
        let done = before
            .compare_exchange(
                at,
                next.with_tag(0),
                Ordering::AcqRel,
                Ordering::Relaxed,
                guard,
            )
            .is_ok();
        if done {
            DELETED.set(DELETED.get() + 1);
            // SAFETY: one exchange unlinks a node, and guards taken from now on do not reach it.
            unsafe { guard.defer_destroy(at) };
        }
        done
    }

    /// Stores a value. If the key is absent, it does so only if `insert` is set.
    fn store(&self, key: u64, value: V, insert: bool, guard: &Guard) {
        let hash = self.hasher.hash_one(key);
        let mut new = Owned::new(Node {
            next: Atomic::null(),
            hash,
            _room: 0,
            key,
            value,
        });
        loop {
            let first = self.bucket(hash).load(Ordering::Acquire, guard);
            let place = self.find(hash, key, guard);
            // SAFETY: as in `search`.
            let stored = match unsafe { place.found.as_ref() } {
                Some(old) => {
                    let next = old.next.load(Ordering::Acquire, guard);
                    if next.tag() == MARK {
                        continue;
                    }
                    new.next.store(next, Ordering::Relaxed);
                    // Deletes the old node and links the new one behind it, in one step.
                    old.next.compare_exchange(
                        next,
                        new.with_tag(MARK),
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                        guard,
                    )
                }
                None if !insert => return,
                None => {
                    new.next.store(first, Ordering::Relaxed);
                    // If this succeeds, the front has not changed since before the search, so
                    // nobody has inserted the key.
                    self.bucket(hash).compare_exchange(
                        first,
                        new.with_tag(0),
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                        guard,
                    )
                }
            };
            match stored {
                Ok(_) if place.found.is_null() => return,
                Ok(_) => {
                    if !self.unlink(place.before, place.found, guard) {
                        self.find(hash, key, guard);
                    }
                    return;
                }
                Err(failed) => new = failed.new,
            }
        }
    }
}

impl<V, const ROOM: usize> Drop for Chained<V, ROOM> {
    fn drop(&mut self) {
        // SAFETY: nobody else has the table.
        let guard = unsafe { epoch::unprotected() };
        for bucket in self.buckets.all() {
            let mut at = bucket.first.load(Ordering::Relaxed, guard);
            while !at.is_null() {
                // SAFETY: still linked, so not retired, and reached once.
                let node = unsafe { at.into_owned() };
                at = node.next.load(Ordering::Relaxed, guard);
            }
        }
    }
}

impl<V: Send + Sync + 'static, const ROOM: usize> Chained<V, ROOM> {
    fn pin(&self) -> Pinned<'_, V, ROOM> {
        Pinned {
            table: self,
            guard: epoch::pin(),
        }
    }
}

impl<V, const ROOM: usize> Pinned<'_, V, ROOM> {
    /// Lets go of what was seen so far, and frees memory as the ring does: once for each bag of
    /// deleted nodes. By themselves, the epochs would free nothing while a guard is only renewed.
    #[inline(always)]
    fn renew(&mut self) {
        self.guard.repin();
        if DELETED.get() >= BAG {
            self.free_some();
        }
    }

    #[cold]
    fn free_some(&mut self) {
        for _ in 0..TURNS {
            let deleted = DELETED.get();
            if deleted < BAG {
                break;
            }
            DELETED.set(deleted - BAG);
            self.guard.flush();
            self.guard.repin();
        }
    }
}

impl<const ROOM: usize> Table for Chained<AtomicU64, ROOM> {
    type Handle<'t> = Pinned<'t, AtomicU64, ROOM>;

    fn handle(&self) -> Self::Handle<'_> {
        self.pin()
    }
}

impl<const ROOM: usize> Handle for Pinned<'_, AtomicU64, ROOM> {
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        let (value, _) = self.table.search(key, &self.guard);
        value.map(|value| value.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        if let (Some(present), _) = self.table.search(key, &self.guard) {
            present.store(value, Ordering::Release);
        }
    }

    fn insert(&self, key: u64, value: u64) {
        self.table
            .store(key, AtomicU64::new(value), true, &self.guard);
    }

    fn repin(&mut self) {
        self.renew();
    }
}

impl<const ROOM: usize> Visits for Pinned<'_, AtomicU64, ROOM> {
    fn visits(&self, key: u64) -> u32 {
        self.table.search(key, &self.guard).1
    }
}

impl Table for Chained<Wide> {
    type Handle<'t> = Pinned<'t, Wide>;

    fn handle(&self) -> Self::Handle<'_> {
        self.pin()
    }
}

impl Handle for Pinned<'_, Wide> {
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        self.table.search(key, &self.guard).0.map(Wide::read)
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        self.table
            .store(key, Wide::holding(value), false, &self.guard);
    }

    fn insert(&self, key: u64, value: u64) {
        self.table
            .store(key, Wide::holding(value), true, &self.guard);
    }

    fn repin(&mut self) {
        self.renew();
    }
}
