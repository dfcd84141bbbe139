//! Opening with parts of one's own: settings are data, components come by builder.

use std::time::Duration;

use super::Db;
use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::executor::{Executor, ThreadPool};
use crate::opening::{RepairReport, destroy, open, repair};
use crate::options::Options;
#[cfg(test)]
use crate::placement::PlacementPolicy;
use crate::points::Points;
use crate::storage::{Disk, Medium, StoreLock};
use crate::sync::Arc;

/// How often it is tried whether a store is open elsewhere still.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Opens a store whose storage, clock or executor is not the default one.
pub struct DbBuilder {
    pub(crate) options: Options,
    media: Vec<Option<Arc<dyn Medium>>>,
    pub(crate) clock: Arc<dyn Clock>,
    executor: Option<Arc<dyn Executor>>,
    pub(crate) points: Points,
    lock_wait: Duration,
    pub(crate) counts_accesses: bool,
    given_up: Vec<usize>,
    /// The greatest number of a tier that was named.
    named: usize,
    pub(crate) reads_only: bool,
    /// Instead of what the options ask for.
    #[cfg(test)]
    pub(crate) placement: Option<Arc<dyn PlacementPolicy>>,
}

impl DbBuilder {
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

    /// Waits for a store that is open elsewhere, so long at most for the lock of each tier, instead
    /// of giving [`Error::Locked`] at once. The time is the clock's.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// use std::time::Duration;
    /// use thermocline::{Db, Options};
    /// let open = Db::open(Options::one_tier(dir.path()))?;
    /// let closer = std::thread::spawn(move || open.close());
    /// let wait = Duration::from_secs(60);
    /// let db = Db::builder(Options::one_tier(dir.path())).lock_wait(wait).open()?;
    /// # closer.join().expect("closes")?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lock_wait(mut self, most: Duration) -> Self {
        self.lock_wait = most;
        self
    }

    /// Whether reads tell what is hot, as they do by default. Without, hotness stays as it was, and
    /// so do records where they are: for a program that looks at the store of another.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let (fast, slow) = (dir.path().join("fast"), dir.path().join("slow"));
    /// let options = thermocline::Options::two_tiers(fast, 64 << 20, slow);
    /// let db = thermocline::Db::builder(options).count_accesses(false).open()?;
    /// db.put("lake", "deep")?;
    /// db.get("lake")?;
    /// assert!(db.heat(1)?.hottest.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn count_accesses(mut self, count: bool) -> Self {
        self.counts_accesses = count;
        self
    }

    /// Takes the lock that `take` tries to take, waiting for it as long as was asked for.
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

    /// Lets [`DbBuilder::repair`] and [`DbBuilder::destroy`] go on though nothing is in the
    /// directory of tier `tier`: the device is lost, and not merely absent. All that it held is
    /// lost then, and the report of a repair has an entry that says so; should it turn up again,
    /// its tables are no part of the store any more, and opening the store with it removes them.
    /// After a destruction, another one that gives up the others does.
    #[must_use]
    pub fn give_up_tier(mut self, tier: usize) -> Self {
        self.named = self.named.max(tier);
        self.given_up.push(tier);
        self
    }

    /// Opens a store that is there for reading only: no file of it changes, and what would write is
    /// refused with [`Error::ReadOnly`]. For the command's own use as yet: the store is locked as
    /// by any other opening.
    #[doc(hidden)]
    #[must_use]
    pub fn reads_only(mut self) -> Self {
        self.reads_only = true;
        self
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::storage::Memory;
    use crate::sync::Mutex;

    /// Time that closes a store once so much of it was slept through.
    #[derive(Debug)]
    struct Closing {
        time: ManualClock,
        at: Duration,
        store: Mutex<Option<Db>>,
    }

    impl Clock for Closing {
        fn now(&self) -> Duration {
            self.time.now()
        }

        fn sleep(&self, duration: Duration) {
            self.time.advance(duration);
            if self.now() >= self.at
                && let Some(db) = self.store.lock().take()
            {
                db.close().unwrap();
            }
        }
    }

    /// Two commands on one store, one behind the other in a pipe, met: the second was told that the
    /// store is open elsewhere, whatever it would have waited.
    #[test]
    fn a_store_that_is_open_elsewhere_is_waited_for_so_long() {
        let medium = Arc::new(Memory::new());
        let builder = || {
            let fast: Arc<dyn Medium> = Arc::clone(&medium) as _;
            let builder = Db::builder(Options::two_tiers("/fast", 64 << 20, "/slow"));
            builder.medium(0, Arc::clone(&fast)).medium(1, fast)
        };
        let clock = Arc::new(Closing {
            time: ManualClock::default(),
            at: Duration::from_secs(3),
            store: Mutex::new(Some(builder().open().unwrap())),
        });
        let refused = builder().clock(Arc::clone(&clock) as _).open();
        assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
        assert_eq!(clock.now(), Duration::ZERO);
        let waiting = |most| {
            let clock: Arc<dyn Clock> = Arc::clone(&clock) as _;
            builder().clock(clock).lock_wait(most)
        };
        // No longer than was asked for, whatever the interval.
        let refused = waiting(Duration::from_millis(1020)).open();
        assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
        assert_eq!(clock.now(), Duration::from_millis(1020));
        let refused = waiting(Duration::from_secs(1)).repair(true);
        assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
        let db = waiting(Duration::from_secs(5)).open().unwrap();
        assert!(
            clock.now() < Duration::from_millis(3100),
            "{:?}",
            clock.now()
        );
        db.close().unwrap();
    }
}
