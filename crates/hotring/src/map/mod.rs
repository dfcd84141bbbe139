//! The map for keys and values of any type.

mod collect;
mod in_place;
pub(crate) mod item;
mod iter;
mod pinned;

use std::fmt;
use std::hash::{BuildHasher, Hash};

use foldhash::quality::RandomState;

use crate::core::Core;
use crate::error::TableError;
use crate::options::Options;
use crate::reclaim;
use crate::rehash::Size;
use item::Item;

pub use in_place::InPlace;
pub use iter::{Entries, EntryRef, Iter};
pub use pinned::{CompareAndSwap, Pinned};

/// A concurrent hash map whose rings turn their hottest item to the head. See [the crate](crate)
/// for how it works and what it promises.
///
/// All access goes through a handle, [`HotRing::pin`].
///
/// # Examples
///
/// ```
/// use hotring::HotRing;
///
/// let map = HotRing::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4u64 {
///         let map = &map;
///         scope.spawn(move || {
///             let ring = map.pin();
///             for i in 0..100 {
///                 ring.insert(i, thread);
///             }
///         });
///     }
/// });
/// assert_eq!(map.len(), 100);
/// assert!(map.pin().get(&7).is_some_and(|&thread| thread < 4));
/// ```
pub struct HotRing<K: 'static, V: 'static, S = RandomState> {
    pub(crate) core: Core<Item<K, V>>,
    hasher: S,
}

impl<K, V, S> fmt::Debug for HotRing<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HotRing")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// SAFETY: entries are shared by reference, and dropped by any thread.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Send> Send for HotRing<K, V, S> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for HotRing<K, V, S> {}

impl<K, V> HotRing<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// An empty map with the default [`Options`] and a hasher with a random seed.
    ///
    /// # Panics
    ///
    /// If there is no memory for 64 buckets.
    #[must_use]
    pub fn new() -> Self {
        match Self::with_options(Options::default()) {
            Ok(map) => map,
            Err(error) => panic!("hotring: {error}"),
        }
    }

    /// An empty map with a hasher with a random seed.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the first table could not be allocated.
    pub fn with_options(options: Options) -> Result<Self, TableError> {
        Self::with_options_and_hasher(options, RandomState::default())
    }
}

impl<K, V> Default for HotRing<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, S> HotRing<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher,
{
    /// An empty map.
    ///
    /// The hasher's *upper* bits choose the bucket, so those have to be good too. `foldhash::fast`,
    /// for one, spreads consecutive numbers unevenly over them with one seed in fifteen; that is
    /// why the default is `foldhash::quality`. Without a seed that an adversary does not know, they
    /// can choose keys whose hashes are equal. Then all of these keys are in one ring, every access
    /// to it takes time proportional to their number, and the table grows in vain, to at most two
    /// buckets an item. Nothing else breaks.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the first table could not be allocated.
    pub fn with_options_and_hasher(options: Options, hasher: S) -> Result<Self, TableError> {
        Ok(Self {
            core: Core::new(options)?,
            hasher,
        })
    }

    /// A handle. As long as it lives, everything that could be seen through it stays in memory. So
    /// do not keep it for long while others write, or [`Pinned::repin`] it.
    ///
    /// Once for every few dozen entries that a thread has removed or replaced, its next handle
    /// first frees several times as many entries that no handle can reach any more, whoever removed
    /// them, unless the thread holds another handle. So destructors of keys and values of any map
    /// run here. A thread whose handles find all of those entries kept by others tries again now
    /// and then.
    #[inline]
    pub fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned {
            map: self,
            guard: reclaim::pin(),
        }
    }
}

impl<K, V, S> HotRing<K, V, S> {
    /// The number of entries. Exact when nobody writes.
    pub fn len(&self) -> usize {
        self.core.tally.entries()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the entries in the map and of its tables, as asked of the allocator. What keys
    /// and values own elsewhere does not count, nor do removed entries and old tables that wait for
    /// a handle to go.
    pub fn memory_used(&self) -> usize {
        size_of::<Self>() + self.core.tally.bytes()
    }

    /// The bytes of the table of buckets, which are part of [`HotRing::memory_used`]. While the
    /// table changes its size, the bytes of both tables.
    pub fn table_memory(&self) -> usize {
        self.core.tally.table_bytes()
    }

    /// The number of buckets.
    pub fn buckets(&self) -> usize {
        self.core.table(&reclaim::pin()).len()
    }

    /// How many items an access visited lately, on average. Of the accesses that end a period, one
    /// in four is sampled.
    pub fn mean_visits(&self) -> f64 {
        self.core.tally.cost().mean()
    }

    /// Begins to double the table. The requests that follow do the rest piece by piece, as when the
    /// table grows by itself. This is for those who turned growth off ([`Options::grow_above`]) to
    /// see to the memory first: the new table takes twice as much as the present one, whose memory
    /// comes back when the change is over, as [`HotRing::reserve`] says.
    ///
    /// # Errors
    ///
    /// [`TableError::Busy`] if an earlier change is not over; the other kinds if there is no
    /// memory. The map stays as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use hotring::{HotRing, Options};
    ///
    /// let options = Options::default().buckets(2).grow_above(f64::INFINITY);
    /// let mut map: HotRing<u64, u64> = HotRing::with_options(options)?;
    /// map.extend((0..100).map(|key| (key, key)));
    /// assert_eq!(map.buckets(), 2);
    /// map.grow()?;
    /// assert!(map.is_resizing());
    /// assert!(map.settle() && !map.is_resizing());
    /// assert_eq!(map.buckets(), 4);
    /// # Ok::<(), hotring::TableError>(())
    /// ```
    pub fn grow(&self) -> Result<(), TableError> {
        self.core.grow()
    }

    /// Makes the table at least `buckets` large, rounded up to a power of two. When this returns,
    /// new accesses use the larger table. Later accesses, or [`HotRing::settle`], take the old one
    /// out of use. Its memory comes back with the next handles of the thread that ends this work,
    /// after the memory of what was removed before, unless other handles keep it.
    ///
    /// # Errors
    ///
    /// [`TableError::Busy`] if an earlier change is not over, which may be because this thread
    /// holds a handle; the other kinds if there is no memory. The map stays as it was.
    pub fn reserve(&self, buckets: usize) -> Result<(), TableError> {
        self.core.resize(Size::AtLeast(buckets))
    }

    /// Makes the table at most `buckets` large, rounded up to a power of two, and at least one. The
    /// longer the new rings are, the more work is left for the requests that do the rest, or for
    /// [`HotRing::settle`]: every 64 of the old buckets read one of the new rings.
    ///
    /// # Errors
    ///
    /// As for [`HotRing::reserve`].
    pub fn shrink_to(&self, buckets: usize) -> Result<(), TableError> {
        self.core.resize(Size::AtMost(buckets))
    }

    /// Whether a change of the table's size runs. No other change begins before it ends, so whoever
    /// sees to the memory before [`HotRing::grow`] need not do so meanwhile.
    pub fn is_resizing(&self) -> bool {
        self.core.is_resizing()
    }

    /// Brings a running change of the table's size forward as far as it goes without waiting for
    /// handles, and says whether no change is left to do. On the way it frees what was removed
    /// before and can no longer be reached by any handle. At the end it frees the old table, unless
    /// a handle keeps it.
    pub fn settle(&self) -> bool {
        self.core.settle()
    }
}
