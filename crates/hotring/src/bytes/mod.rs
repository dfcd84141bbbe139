//! The map for byte strings.

mod pinned;
pub(crate) mod record;

use std::fmt;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::core::Core;
use crate::error::TableError;
use crate::options::Options;
use crate::reclaim;
use crate::rehash::Size;
use record::Record;

pub use pinned::{BytesEntries, BytesEntry, BytesIter, PinnedBytes};

/// A [`HotRing`](crate::HotRing) from byte strings to byte strings. Header, key and value are one
/// allocation, so that a lookup that finds its key at the head reads one bucket and one record.
///
/// # Examples
///
/// ```
/// use hotring::BytesRing;
///
/// let map = BytesRing::new();
/// let ring = map.pin();
/// ring.insert(b"user:1", b"Ada")?;
/// assert_eq!(ring.get(b"user:1"), Some(&b"Ada"[..]));
/// assert_eq!(ring.remove(b"user:1"), Some(&b"Ada"[..]));
/// # Ok::<(), hotring::StoreError>(())
/// ```
pub struct BytesRing<S = RandomState> {
    pub(crate) core: Core<Record>,
    hasher: S,
}

impl<S> fmt::Debug for BytesRing<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BytesRing")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// SAFETY: records are bytes, shared by reference and freed by any thread.
unsafe impl<S: Send> Send for BytesRing<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for BytesRing<S> {}

impl BytesRing {
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

impl Default for BytesRing {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: BuildHasher> BytesRing<S> {
    /// An empty map. See
    /// [`HotRing::with_options_and_hasher`](crate::HotRing::with_options_and_hasher) for what the
    /// hasher has to be like.
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

    /// A handle; see [`HotRing::pin`](crate::HotRing::pin).
    #[inline]
    pub fn pin(&self) -> PinnedBytes<'_, S> {
        PinnedBytes {
            map: self,
            guard: reclaim::pin(),
        }
    }
}

impl<S> BytesRing<S> {
    /// The number of entries. Exact when nobody writes.
    pub fn len(&self) -> usize {
        self.core.tally.entries()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the records in the map and of its tables, as asked of the allocator. Removed
    /// records that wait for a handle to go do not count.
    pub fn memory_used(&self) -> usize {
        size_of::<Self>() + self.core.tally.bytes()
    }

    /// See [`HotRing::table_memory`](crate::HotRing::table_memory).
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

    /// See [`HotRing::grow`](crate::HotRing::grow).
    ///
    /// # Errors
    ///
    /// As for [`HotRing::grow`](crate::HotRing::grow).
    pub fn grow(&self) -> Result<(), TableError> {
        self.core.grow()
    }

    /// See [`HotRing::reserve`](crate::HotRing::reserve).
    ///
    /// # Errors
    ///
    /// [`TableError::Busy`] if an earlier change is not over, which may be because this thread
    /// holds a handle; the other kinds if there is no memory. The map stays as it was.
    pub fn reserve(&self, buckets: usize) -> Result<(), TableError> {
        self.core.resize(Size::AtLeast(buckets))
    }

    /// See [`HotRing::shrink_to`](crate::HotRing::shrink_to).
    ///
    /// # Errors
    ///
    /// As for [`BytesRing::reserve`].
    pub fn shrink_to(&self, buckets: usize) -> Result<(), TableError> {
        self.core.resize(Size::AtMost(buckets))
    }

    /// See [`HotRing::is_resizing`](crate::HotRing::is_resizing).
    pub fn is_resizing(&self) -> bool {
        self.core.is_resizing()
    }

    /// See [`HotRing::settle`](crate::HotRing::settle).
    pub fn settle(&self) -> bool {
        self.core.settle()
    }
}
