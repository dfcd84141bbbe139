//! A tier: a medium that a store uses, with its settings, its space, and counts of its use.

mod copies;
mod files;
mod io;
mod space;

use self::copies::Copies;
pub(crate) use self::copies::{CopySlot, CopyWriter, TableCopy, copy_number};
pub(crate) use self::files::{CountedWriter, TierFile};
use self::io::IoCounters;
pub(crate) use self::space::Reservation;
use self::space::Space;
use crate::cache::LargeBuffers;
use crate::error::{Error, Result};
use crate::options::TierOptions;
use crate::storage::{LogStore, TableStore};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

/// A medium that a store uses.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) index: u8,
    /// The options that the store was opened with. For what the tier may hold, use
    /// [`Tier::capacity`] and [`Tier::planned_bytes`] instead.
    pub(crate) options: TierOptions,
    pub(crate) tables: Arc<dyn TableStore>,
    /// Present on the first tier only: logs are local and fast.
    pub(crate) log: Option<Arc<dyn LogStore>>,
    io: IoCounters,
    space: Space,
    copies: Copies,
    /// How many of its tables were opened so far.
    opened: AtomicU64,
    /// Memory for large values that are being written to the store's tiers or read from them.
    pub(crate) large: Arc<LargeBuffers>,
    /// Whether the store is closed. If so, the directory may belong to another store.
    has_ended: AtomicBool,
    /// Why names in the directory may have been lost, if they may. Locked while names are synced.
    names_lost: Mutex<Option<Arc<str>>>,
}

impl Tier {
    pub(crate) fn new(
        index: u8,
        options: TierOptions,
        tables: Arc<dyn TableStore>,
        log: Option<Arc<dyn LogStore>>,
    ) -> Self {
        Self {
            index,
            space: Space::new(options.capacity),
            options,
            tables,
            log,
            io: IoCounters::default(),
            copies: Copies::default(),
            opened: AtomicU64::new(0),
            large: Arc::default(),
            has_ended: AtomicBool::new(false),
            names_lost: Mutex::default(),
        }
    }

    /// Counts a table that has been opened: who sees the count sees the table open.
    pub(crate) fn count_opened(&self) {
        self.opened.fetch_add(1, Ordering::Release);
    }

    /// How many of its tables were opened so far.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
    }

    /// Makes the tier count its large buffers together with those of the store's other tiers.
    #[must_use]
    pub(crate) fn counting_in(mut self, large: &Arc<LargeBuffers>) -> Self {
        self.large = Arc::clone(large);
        self
    }

    /// Runs `sync`, which makes names in the tier's directory durable; only one such sync runs at a
    /// time. After a failed sync, the system forgets all names that the sync has lost, whoever
    /// created them, and the next sync would report success. So no further sync is made (I9).
    ///
    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed; those of `sync`.
    pub(crate) fn sync_names(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut lost = self.names_lost.lock();
        if let Some(cause) = &*lost {
            let cause = Arc::clone(cause);
            return Err(Error::Poisoned { cause });
        }
        sync().inspect_err(|error| {
            if let Error::Poisoned { cause } = error {
                *lost = Some(Arc::clone(cause));
            }
        })
    }
}
