//! The map of records that outlive it.

mod pinned;
pub(crate) mod record;

use std::fmt;

use crate::core::Core;
use crate::error::TableError;
use crate::options::Options;
use crate::reclaim;
use record::Record;

pub use pinned::{Exchanged, PinnedRecords, RecordEntries, RecordRef};
pub use record::{Held, NewRecord};

/// A [`HotRing`](crate::HotRing) of records. A record is a header of any type, a key and a value of
/// bytes, in one allocation. Who reads a value can [hold](RecordRef::hold) it for as long as he
/// likes: it outlives its record's removal, the handle and the map.
///
/// The map hashes nothing and knows no keys but by what it is told: each call brings the hash of
/// its key, and a closure that says whether a record, by its header and key, is the one. All calls
/// with a key must bring the same hash, whose *upper* bits choose the bucket.
///
/// # Examples
///
/// ```
/// use hotring::{NewRecord, Options, RecordRing};
///
/// let map = RecordRing::with_options(Options::default())?;
/// let ring = map.pin();
/// let ada = NewRecord::new(7, "a header", b"Ada", b"1815")?;
/// assert!(ring.insert_if_absent(ada, |_, key| key == b"Ada").is_ok());
/// let ada = ring.get(7, |_, key| key == b"Ada").map(|record| record.hold());
/// drop(ring);
/// drop(map);
/// assert_eq!(ada.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecordRing<H: 'static> {
    core: Core<Record<H>>,
}

impl<H> fmt::Debug for RecordRing<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordRing")
            .field("len", &self.core.tally.entries())
            .finish_non_exhaustive()
    }
}

// SAFETY: records are shared by reference, and their headers dropped by any thread.
unsafe impl<H: Send + Sync> Send for RecordRing<H> {}
// SAFETY: as above.
unsafe impl<H: Send + Sync> Sync for RecordRing<H> {}

impl<H: Send + Sync + 'static> RecordRing<H> {
    /// An empty map.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the first table could not be allocated.
    pub fn with_options(options: Options) -> Result<Self, TableError> {
        Ok(Self {
            core: Core::new(options)?,
        })
    }

    /// A handle; see [`HotRing::pin`](crate::HotRing::pin).
    #[inline]
    pub fn pin(&self) -> PinnedRecords<'_, H> {
        PinnedRecords {
            map: self,
            guard: reclaim::pin(),
        }
    }

    /// The number of records. Exact when nobody writes.
    pub fn len(&self) -> usize {
        self.core.tally.entries()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`HotRing::table_memory`](crate::HotRing::table_memory).
    pub fn table_memory(&self) -> usize {
        self.core.tally.table_bytes()
    }

    /// The number of buckets.
    pub fn buckets(&self) -> usize {
        self.core.table(&reclaim::pin()).len()
    }

    /// See [`HotRing::mean_visits`](crate::HotRing::mean_visits).
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

    /// See [`HotRing::is_resizing`](crate::HotRing::is_resizing).
    pub fn is_resizing(&self) -> bool {
        self.core.is_resizing()
    }
}
