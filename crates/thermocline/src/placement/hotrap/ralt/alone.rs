//! RALT without a store around it, for measurements of what it costs.

use std::collections::BTreeSet;
use std::path::Path;

use super::shared::Shared;
use super::sizes::Sizes;
use super::{Ralt, RaltParts};
use crate::error::Result;
use crate::metrics::{Purpose, RaltMetrics};
use crate::options::{HotRapOptions, TierOptions};
use crate::points::Points;
use crate::storage::Medium;
use crate::sync::Arc;
use crate::thread_time;
use crate::tier::Tier;

const KEYSPACE: u32 = 0;

/// The table of recent accesses alone, as it is on a fast tier of any size: one thread logs
/// accesses and does the work that they make due.
///
/// It may be one part of many of such a table, with as many records fewer. Then buffers, tables,
/// slices and limits are so many times smaller, and there are as many of each as in the whole.
#[derive(Debug)]
pub struct RaltAlone {
    ralt: Ralt,
    work_nanos: std::cell::Cell<u64>,
}

/// What [`RaltAlone`] has done so far.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct RaltWork {
    /// Accesses that were logged.
    pub accesses: u64,
    /// Bytes of tables that were written.
    pub table_bytes: u64,
    /// Bytes of the state that were written.
    pub state_bytes: u64,
    /// Processor time of flushes and merges, in nanoseconds.
    pub work_nanos: u64,
    /// Tables that there are.
    pub tables: u64,
}

impl RaltAlone {
    /// One of `parts` of a table of accesses for a fast tier of `capacity` bytes, which are
    /// accesses to `data` bytes of records. Its files are in the directory `dir` of `medium`.
    ///
    /// # Errors
    /// I/O errors of the medium.
    pub fn new(
        medium: Arc<dyn Medium>,
        dir: &Path,
        capacity: u64,
        data: u64,
        parts: u64,
    ) -> Result<Self> {
        let options = HotRapOptions::default();
        let tables = medium.table_store(dir, true)?;
        let tier = TierOptions::fast(dir).capacity(capacity / parts);
        let sizes = Sizes::new(&options, capacity, capacity).one_of(parts);
        let shared = Shared::with_sizes(
            RaltParts {
                database: 1,
                options,
                fast: Arc::new(Tier::new(0, tier, tables, None)),
                medium,
                path: dir.join("ralt"),
                points: Points::default(),
                keyspaces: BTreeSet::from([KEYSPACE]),
                before: None,
                reads_only: false,
            },
            sizes,
        );
        let ralt = Ralt {
            shared: Arc::new(shared),
        };
        ralt.set_data(data / parts);
        Ok(Self {
            ralt,
            work_nanos: std::cell::Cell::new(0),
        })
    }

    /// Logs one access, and does the work that it makes due.
    pub fn log(&self, key: &[u8], value_len: usize) {
        if self.ralt.log(KEYSPACE, key, value_len, 1) {
            let before = thread_time::used();
            while self.ralt.work() {}
            let used = thread_time::used() - before;
            self.work_nanos.set(self.work_nanos.get() + used);
        }
    }

    /// Whether a key is hot, as a compaction asks.
    #[must_use]
    pub fn is_hot(&self, key: &[u8]) -> bool {
        self.ralt.is_hot(KEYSPACE, key)
    }

    /// What was done so far.
    #[must_use]
    pub fn work(&self) -> RaltWork {
        let of = |purpose| {
            let files = self.ralt.shared.files.as_ref();
            files.map_or(0, |files| files.tier.io(purpose).write_bytes)
        };
        RaltWork {
            accesses: self.metrics().accesses,
            table_bytes: of(Purpose::Hotness),
            state_bytes: of(Purpose::Manifest),
            work_nanos: self.work_nanos.get(),
            tables: self.ralt.shared.version.load().tables().count() as u64,
        }
    }

    /// What a store would tell of its table of accesses.
    #[must_use]
    pub fn metrics(&self) -> RaltMetrics {
        self.ralt.metrics()
    }
}
