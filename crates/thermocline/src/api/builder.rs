//! Opening with components of the caller's own: settings are data, components come by builder.

use std::time::Duration;

use super::Db;
use crate::clock::Clock;
use crate::error::Result;
use crate::executor::Executor;
use crate::opening::request::Request;
use crate::opening::{RepairReport, destroy, open, repair};
use crate::options::Options;
#[cfg(test)]
use crate::placement::PlacementPolicy;
use crate::points::Points;
use crate::storage::Medium;
use crate::sync::Arc;

/// Opens a store whose storage, clock or executor is not the default one.
pub struct DbBuilder(Request);

impl DbBuilder {
    pub(crate) fn new(options: Options) -> Self {
        Self(Request::new(options))
    }

    /// Places records by `placement`, whatever the options ask for.
    #[cfg(test)]
    pub(crate) fn placement(mut self, placement: Option<Arc<dyn PlacementPolicy>>) -> Self {
        self.0.placement = placement;
        self
    }

    pub(crate) fn request(&self) -> &Request {
        &self.0
    }

    /// Uses `medium` for tier `tier`, 0 being the fastest, instead of the disk.
    #[must_use]
    pub fn medium(mut self, tier: usize, medium: Arc<dyn Medium>) -> Self {
        self.0.named = self.0.named.max(tier);
        if let Some(slot) = self.0.media.get_mut(tier) {
            *slot = Some(medium);
        }
        self
    }

    /// Takes time from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.0.clock = clock;
        self
    }

    /// Runs background work on `executor`, which the store shuts down when it closes.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.0.executor = Some(executor);
        self
    }

    /// Hangs the actions of `points` on the store's named points. They run in builds with debug
    /// assertions only.
    #[must_use]
    pub fn points(mut self, points: Points) -> Self {
        self.0.points = points;
        self
    }

    /// Waits for a store that is open elsewhere, at most this long for the lock of each tier,
    /// instead of failing with [`crate::Error::Locked`] at once. The time is the clock's.
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
        self.0.lock_wait = most;
        self
    }

    /// Whether reads tell what is hot, as they do by default. With `false`, hotness stays as it
    /// was, and records stay where they are: for a program that looks at the store of another.
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
        self.0.counts_accesses = count;
        self
    }

    /// Lets [`DbBuilder::repair`] and [`DbBuilder::destroy`] go on though nothing is in the
    /// directory of tier `tier`: the device is lost, and not merely absent. All that it held is
    /// then lost, and the report of a repair has an entry that says so. If the device turns up
    /// again, its tables are no longer part of the store, and opening the store with it removes
    /// them. After a destruction, another destruction that gives up the other tiers removes them.
    #[must_use]
    pub fn give_up_tier(mut self, tier: usize) -> Self {
        self.0.named = self.0.named.max(tier);
        self.0.given_up.push(tier);
        self
    }

    /// Opens an existing store for reading only: none of its files changes, and what would write is
    /// refused with [`crate::Error::ReadOnly`]. For the command's own use as yet: the store is
    /// locked as by any other opening.
    #[doc(hidden)]
    #[must_use]
    pub fn reads_only(mut self) -> Self {
        self.0.reads_only = true;
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(self) -> Result<Db> {
        self.0.check_tiers()?;
        let (engine, report) = open::open(&self.0)?;
        Db::new(engine, report)
    }

    /// Makes a store that no longer opens one that does.
    ///
    /// # Errors
    /// As [`Db::repair`].
    pub fn repair(self, dry_run: bool) -> Result<RepairReport> {
        self.0.check_tiers()?;
        repair::repair(&self.0, dry_run)
    }

    /// Removes the store's files.
    ///
    /// # Errors
    /// As [`Db::destroy`].
    pub fn destroy(self) -> Result<()> {
        self.0.check_tiers()?;
        destroy::destroy(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::error::Error;
    use crate::storage::Memory;
    use crate::sync::Mutex;

    /// A clock that closes a store once sleeping has brought it to `at`.
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

    /// When two commands on one store met, one behind the other in a pipe, the second was told that
    /// the store is open elsewhere, however long it would have waited.
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
