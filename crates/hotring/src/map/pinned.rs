//! The handle by which a map is used.

use std::hash::{BuildHasher, Hash};
use std::ptr::NonNull;

use equivalent::Equivalent;

use super::item::{Apart, Item, NewItem};
use super::{Entries, HotRing, Iter};
use crate::draft::New;
use crate::link::{At, Node, order_of};
use crate::reclaim::Guard;
use crate::write::Stored;

/// A handle to a [`HotRing`]. What it returns by reference stays valid as long as the handle lives.
///
/// References that were taken before a value was replaced or removed can still see it. None
/// outlives the handle, or its [`Pinned::repin`]:
///
/// ```compile_fail,E0505
/// let map = hotring::HotRing::new();
/// let ring = map.pin();
/// ring.insert("Ada", 1815);
/// let born = ring.get("Ada");
/// drop(ring);
/// println!("{born:?}");
/// ```
///
/// ```compile_fail,E0502
/// let map = hotring::HotRing::new();
/// let mut ring = map.pin();
/// ring.insert("Ada", 1815);
/// let born = ring.get("Ada");
/// ring.repin();
/// println!("{born:?}");
/// ```
///
/// What one handle stores, another returns. So no map is lent as a map of a subtype or a supertype.
/// Here `narrow` could store a function that asks for a `'static` string, and `map` would return it
/// as one that takes any string.
///
/// ```compile_fail,E0308
/// use hotring::HotRing;
///
/// let map: HotRing<u8, for<'a> fn(&'a str)> = HotRing::new();
/// let narrow: &HotRing<u8, fn(&'static str)> = &map;
/// ```
#[derive(Debug)]
pub struct Pinned<'m, K: 'static, V: 'static, S> {
    pub(crate) map: &'m HotRing<K, V, S>,
    pub(crate) guard: Guard,
}

/// What [`Pinned::compare_and_swap`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareAndSwap<'p, V: ?Sized> {
    /// The value was as expected, and was replaced; this is the old one.
    Swapped(&'p V),
    /// The value is this other one, and stays.
    Differs(&'p V),
    /// The key is absent.
    Absent,
}

impl<K, V, S> Pinned<'_, K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher,
{
    #[inline]
    fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.map.hasher.hash_one(key)
    }

    /// The value of `key`.
    // Without `always` it is a call, which takes as long as two items on the way.
    #[inline(always)]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let found = self
            .map
            .core
            .get(self.hash(key), &self.guard, is::<K, V, Q>(key))?;
        Some(value_of::<K, V>(found))
    }

    /// Whether `key` is there. Counts as an access like [`Pinned::get`].
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get(key).is_some()
    }

    /// How many items a lookup of `key` would read now: 1 if the head serves it. For an absent key
    /// this includes the item at which the search ends. Counts no access and moves no head.
    ///
    /// # Examples
    ///
    /// ```
    /// use hotring::HotRing;
    ///
    /// let map = HotRing::new();
    /// let ring = map.pin();
    /// ring.insert("Ada", 1815);
    /// assert_eq!(ring.steps("Ada"), 1);
    /// ```
    pub fn steps<Q>(&self, key: &Q) -> u32
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.map
            .core
            .steps(self.hash(key), &self.guard, is::<K, V, Q>(key))
    }

    /// Stores a value, whether `key` is there or not, and returns the value it had.
    pub fn insert(&self, key: K, value: V) -> Option<&V> {
        match self.store(key, value, true, |_| true) {
            Stored::Replaced(old, _) => Some(value_of::<K, V>(old)),
            _ => None,
        }
    }

    /// Stores a value if `key` is there, and returns the value it had; else nothing is stored.
    pub fn update(&self, key: K, value: V) -> Option<&V> {
        match self.store(key, value, false, |_| true) {
            Stored::Replaced(old, _) => Some(value_of::<K, V>(old)),
            _ => None,
        }
    }

    /// Stores a value if `key` is absent, and returns it.
    ///
    /// # Errors
    ///
    /// The present value, with the key and the value that were not stored.
    pub fn try_insert(&self, key: K, value: V) -> Result<&V, (&V, K, V)> {
        match self.store(key, value, true, |_| false) {
            Stored::New(at) | Stored::Replaced(_, at) => Ok(value_of::<K, V>(at)),
            Stored::Kept(at, unused) => {
                let (key, value) = unused.take();
                Err((value_of::<K, V>(at), key, value))
            }
            Stored::Absent => unreachable!("an absent key is inserted"),
        }
    }

    /// The value of `key`. If `key` is absent, stores and returns what `make` returns. If another
    /// thread stores a value meanwhile, that one is returned.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V {
        if let Some(value) = self.get(&key) {
            return value;
        }
        match self.try_insert(key, make()) {
            Ok(value) | Err((value, ..)) => value,
        }
    }

    /// Replaces the value of `key` if it equals `expected`. For values that change in place see
    /// [`Pinned::update_if`].
    ///
    /// # Examples
    ///
    /// ```
    /// use hotring::{CompareAndSwap, HotRing};
    ///
    /// let map = HotRing::new();
    /// let ring = map.pin();
    /// ring.insert("lock", "free");
    /// assert_eq!(ring.compare_and_swap("lock", &"free", "mine"), CompareAndSwap::Swapped(&"free"));
    /// assert_eq!(ring.compare_and_swap("lock", &"free", "yours"), CompareAndSwap::Differs(&"mine"));
    /// ```
    pub fn compare_and_swap(&self, key: K, expected: &V, value: V) -> CompareAndSwap<'_, V>
    where
        V: PartialEq,
    {
        self.update_if(key, value, |present| present == expected)
    }

    /// Replaces the value of `key` if `agrees` says yes to it. `agrees` may be called several
    /// times, with different values. Its last answer, about the value that was replaced, is what
    /// counts.
    ///
    /// A value that can change in place, such as an atomic ([`InPlace`](crate::InPlace)), may have
    /// changed since `agrees` saw it, and is replaced all the same. Looking at the value and
    /// replacing it are one step only if values change in no other way than by being replaced. To
    /// change an atomic if it is as expected, use [`Pinned::exchange`].
    pub fn update_if(
        &self,
        key: K,
        value: V,
        agrees: impl FnMut(&V) -> bool,
    ) -> CompareAndSwap<'_, V> {
        match self.store(key, value, false, agrees) {
            Stored::Replaced(old, _) => CompareAndSwap::Swapped(value_of::<K, V>(old)),
            Stored::Kept(at, _) => CompareAndSwap::Differs(value_of::<K, V>(at)),
            Stored::New(_) | Stored::Absent => CompareAndSwap::Absent,
        }
    }

    /// Removes `key`, and returns the value it had.
    pub fn remove<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.remove_if(key, |_| true)
    }

    /// Removes `key` if `agrees` says yes to its value, and returns the value. `agrees` may be
    /// called several times, as for [`Pinned::update_if`].
    ///
    /// As there, a value that changes in place may do so after `agrees` saw it, and is removed all
    /// the same. To be certain of the state in which it is removed, first [`Pinned::exchange`] it
    /// for a value that nobody exchanges for another, and remove it as that.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::AtomicU64;
    /// use hotring::{HotRing, InPlace};
    ///
    /// const CLOSED: u64 = u64::MAX;
    ///
    /// let users: HotRing<&str, AtomicU64> = HotRing::new();
    /// let ring = users.pin();
    /// ring.put("/", 0);
    /// // Who comes in adds one if it is not closed; who finds nobody in closes it, and nobody can come in any more.
    /// if ring.exchange("/", 0, CLOSED) == Some(Ok(0)) {
    ///     assert!(ring.remove_if("/", |count| count.read() == CLOSED).is_some());
    /// }
    /// ```
    pub fn remove_if<Q>(&self, key: &Q, mut agrees: impl FnMut(&V) -> bool) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        // SAFETY: `remove` calls it for nodes of this map, kept by the guard.
        let agrees = |node| agrees(unsafe { Item::<K, V>::value(node) });
        let removed =
            self.map
                .core
                .remove(self.hash(key), &self.guard, is::<K, V, Q>(key), agrees)?;
        Some(value_of::<K, V>(removed))
    }

    fn store(
        &self,
        key: K,
        value: V,
        insert: bool,
        mut agrees: impl FnMut(&V) -> bool,
    ) -> Stored<'_, Apart<K, V>, Item<K, V>> {
        let order = order_of(self.hash(&key));
        let new = New::Draft(Apart { order, key, value });
        let is_key = |new: &NewItem<K, V>, node| {
            // SAFETY: `store` calls it for nodes of this map, kept by the guard.
            *new.key() == *unsafe { Item::<K, V>::key(node) }
        };
        // SAFETY: as above.
        let agrees = |node| agrees(unsafe { Item::<K, V>::value(node) });
        let core = &self.map.core;
        let Ok(stored) = core.store(order, new, &self.guard, insert, is_key, agrees);
        stored
    }

    /// Removes every entry that is present when this begins and is not replaced before its turn
    /// comes. Of the entries that come meanwhile it removes some.
    pub fn clear(&self) {
        self.map.core.clear(&self.guard);
    }
}

impl<K, V, S> Pinned<'_, K, V, S> {
    /// All entries, in no order that means anything.
    ///
    /// *Weakly consistent*: an entry that is present all the time is yielded once, with a value
    /// that it had meanwhile. One that comes or goes meanwhile may be yielded or not. One that goes
    /// and comes again may be yielded twice if other keys have its hash.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(self.entries())
    }

    /// As [`Pinned::iter`], with the access count of each entry.
    pub fn entries(&self) -> Entries<'_, K, V> {
        Entries::new(&self.map.core, &self.guard)
    }

    /// As [`Pinned::entries`], without the entries whose hash is below `hash`. Entries come in the
    /// order of their hashes, so a walk can be left and taken up again, like the hand of a clock. A
    /// walk that is left between entries of equal hash goes on behind all of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use hotring::HotRing;
    ///
    /// let map = HotRing::new();
    /// let ring = map.pin();
    /// (0..100).for_each(|i| drop(ring.insert(i, ())));
    /// let first: Vec<_> = ring.entries().take(60).collect();
    /// // The lowest bit of a hash does not count: the next one is two further on. Behind the last there is none.
    /// let next = first[59].hash().checked_add(2);
    /// let rest = next.map_or(0, |next| ring.entries_from(next).count());
    /// assert_eq!(first.len() + rest, 100);
    /// ```
    pub fn entries_from(&self, hash: u64) -> Entries<'_, K, V> {
        Entries::starting_at(&self.map.core, hash, &self.guard)
    }

    /// Brings forward the freeing of what was removed. What this thread has removed is handed to
    /// all threads now, and not with the next few dozen. Of the entries that no handle can reach
    /// any more, some hundred are freed, in the order in which they were removed. Destructors of
    /// keys and values of any map run here.
    ///
    /// Needed only by a thread that removes and then takes or renews no handle for long:
    /// [`HotRing::pin`] and [`Pinned::repin`] free what is removed as well.
    pub fn flush(&self) {
        self.guard.flush();
    }

    /// Lets go of everything seen so far, so that its memory can be given back, unless the thread
    /// holds another handle. No reference survives it. Frees what [`HotRing::pin`] would.
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

/// The value of a node that one of the map's functions found.
fn value_of<K: 'static, V: 'static>(at: At<'_>) -> &V {
    // SAFETY: so it is a node of the map.
    unsafe { Item::<K, V>::value_at(at) }
}

/// Whether a node's key is `key`.
#[inline(always)]
fn is<'k, K: 'static, V: 'static, Q>(key: &'k Q) -> impl Fn(NonNull<Node>) -> bool + 'k
where
    Q: Equivalent<K> + ?Sized,
{
    // SAFETY: the map's functions call it for nodes of the map, kept by the guard.
    move |node| key.equivalent(unsafe { Item::<K, V>::key(node) })
}
