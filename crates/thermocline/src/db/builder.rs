//! Opening with parts of one's own: settings are data, components come by builder.

use super::{Db, RepairReport, destroy, open, repair};
use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::executor::{Executor, ThreadPool};
use crate::options::Options;
use crate::points::Points;
use crate::storage::{Disk, Medium};
use crate::sync::Arc;

/// Opens a store whose storage, clock or executor is not the default one.
pub struct DbBuilder {
    pub(super) options: Options,
    media: Vec<Option<Arc<dyn Medium>>>,
    pub(super) clock: Arc<dyn Clock>,
    executor: Option<Arc<dyn Executor>>,
    pub(super) points: Points,
    given_up: Vec<usize>,
    /// The greatest number of a tier that was named.
    named: usize,
}

impl DbBuilder {
    pub(super) fn new(options: Options) -> Self {
        Self {
            media: options.tiers.iter().map(|_| None).collect(),
            options,
            clock: Arc::new(SystemClock::default()),
            executor: None,
            points: Points::default(),
            given_up: Vec::new(),
            named: 0,
        }
    }

    /// Uses `medium` for tier `tier`, 0 being the fastest, instead of the disk.
    #[must_use]
    pub fn medium(mut self, tier: usize, medium: Arc<dyn Medium>) -> Self {
        self.named = self.named.max(tier);
        if let Some(slot) = self.media.get_mut(tier) {
            *slot = Some(medium);
        }
        self
    }

    /// Takes time from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Runs background work on `executor`, which the store shuts down when it closes.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = Some(executor);
        self
    }

    /// Hangs the actions of `points` on the store's named points. They run in builds with debug
    /// assertions only.
    #[must_use]
    pub fn points(mut self, points: Points) -> Self {
        self.points = points;
        self
    }

    /// Lets [`DbBuilder::repair`] and [`DbBuilder::destroy`] go on though nothing is in the directory of tier `tier`: the device is
    /// lost, and not merely absent. All that it held is lost then; should it turn up again, its tables
    /// are no part of the store any more, and opening the store with it removes them. After a destruction, another one that gives up the
    /// others does.
    #[must_use]
    pub fn give_up_tier(mut self, tier: usize) -> Self {
        self.named = self.named.max(tier);
        self.given_up.push(tier);
        self
    }

    /// Refuses a tier that there is not: on the disk it would be another.
    pub(super) fn check_tiers(&self) -> Result<()> {
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

    pub(super) fn has_given_up(&self, tier: u8) -> bool {
        self.given_up.contains(&usize::from(tier))
    }

    pub(super) fn medium_of(&self, tier: usize) -> Arc<dyn Medium> {
        match self.media.get(tier) {
            Some(Some(medium)) => Arc::clone(medium),
            _ => Arc::new(Disk::new(self.options.tiers[tier].direct_io)),
        }
    }

    /// Whether any tier is on the disk, and not on a medium of one's own.
    pub(super) fn is_on_disks(&self) -> bool {
        self.media.iter().any(Option::is_none)
    }

    pub(super) fn make_executor(&self) -> Result<Arc<dyn Executor>> {
        if let Some(executor) = &self.executor {
            return Ok(Arc::clone(executor));
        }
        let started = ThreadPool::new(self.options.compaction_threads);
        let path = &self.options.tiers[0].path;
        let pool = started.map_err(|e| Error::io("start background threads for", path, e))?;
        Ok(Arc::new(pool))
    }

    /// Opens the store.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(self) -> Result<Db> {
        self.check_tiers()?;
        open::open(&self)
    }

    /// Makes a store that no longer opens one that does.
    ///
    /// # Errors
    /// As [`Db::repair`].
    pub fn repair(self, dry_run: bool) -> Result<RepairReport> {
        self.check_tiers()?;
        repair::repair(&self, dry_run)
    }

    /// Removes the store's files.
    ///
    /// # Errors
    /// As [`Db::destroy`].
    pub fn destroy(self) -> Result<()> {
        self.check_tiers()?;
        destroy::destroy(&self)
    }
}
