//! What a store is opened with: its options, and the parts that a program brings.

use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::executor::{Executor, ThreadPool};
use crate::options::Options;
#[cfg(test)]
use crate::placement::PlacementPolicy;
use crate::points::Points;
use crate::storage::{Disk, Medium, StoreLock};
use crate::sync::Arc;

/// The time between two attempts to lock a store that is open elsewhere.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// What the caller that opens, repairs or removes a store asks for.
pub(crate) struct Request {
    pub(crate) options: Options,
    pub(crate) media: Vec<Option<Arc<dyn Medium>>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) executor: Option<Arc<dyn Executor>>,
    pub(crate) points: Points,
    pub(crate) lock_wait: Duration,
    pub(crate) counts_accesses: bool,
    pub(crate) given_up: Vec<usize>,
    /// The greatest number of a tier that was named.
    pub(crate) named: usize,
    pub(crate) reads_only: bool,
    /// Used instead of the one that the options ask for.
    #[cfg(test)]
    pub(crate) placement: Option<Arc<dyn PlacementPolicy>>,
}

impl Request {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            media: options.tiers.iter().map(|_| None).collect(),
            options,
            clock: Arc::new(SystemClock::default()),
            executor: None,
            points: Points::default(),
            lock_wait: Duration::ZERO,
            counts_accesses: true,
            given_up: Vec::new(),
            named: 0,
            reads_only: false,
            #[cfg(test)]
            placement: None,
        }
    }

    /// Takes the lock that `take` tries to take, and waits for it as long as was asked for.
    pub(crate) fn lock_by(
        &self,
        take: impl Fn() -> Result<Box<dyn StoreLock>>,
    ) -> Result<Box<dyn StoreLock>> {
        let begun = self.clock.now();
        loop {
            let taken = take();
            let waited = self.clock.now().saturating_sub(begun);
            let left = self.lock_wait.saturating_sub(waited);
            if left.is_zero() || !matches!(taken, Err(Error::Locked { .. })) {
                return taken;
            }
            self.clock.sleep(left.min(LOCK_POLL));
        }
    }

    /// Refuses a tier that there is not: on the disk it would be another.
    pub(crate) fn check_tiers(&self) -> Result<()> {
        let tiers = self.options.tiers.len();
        if self.named < tiers.max(1) {
            return Ok(());
        }
        Err(Error::InvalidOption {
            option: "tiers",
            reason: format!(
                "tier {} is named and there are {tiers}; the first has number 0",
                self.named
            ),
        })
    }

    pub(crate) fn has_given_up(&self, tier: u8) -> bool {
        self.given_up.contains(&usize::from(tier))
    }

    pub(crate) fn medium_of(&self, tier: usize) -> Arc<dyn Medium> {
        match self.media.get(tier) {
            Some(Some(medium)) => Arc::clone(medium),
            _ => Arc::new(Disk::new(self.options.tiers[tier].direct_io)),
        }
    }

    /// Whether any tier is on the disk, and not on a medium of one's own.
    pub(crate) fn is_on_disks(&self) -> bool {
        self.media.iter().any(Option::is_none)
    }

    pub(crate) fn make_executor(&self) -> Result<Arc<dyn Executor>> {
        if let Some(executor) = &self.executor {
            return Ok(Arc::clone(executor));
        }
        let started = ThreadPool::new(self.options.compaction_threads);
        let path = &self.options.tiers[0].path;
        let pool = started.map_err(|e| Error::io("start background threads for", path, e))?;
        Ok(Arc::new(pool))
    }
}
