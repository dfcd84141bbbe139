//! Backpressure: writers are slowed early and smoothly, and stopped only at the end (I8).
//!
//! Each reason to slow gives a pressure from 0 to 1; the largest sets the writers' speed, falling
//! geometrically from [`FASTEST`] to [`SLOWEST`]. Between the two there is always a speed at which
//! background work keeps up, and the pressure settles there.

use std::time::Duration;

use crate::engine::{Engine, Tree, Work};
use crate::error::{Error, Result};
use crate::options::MEMTABLES;
use crate::points::point;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

/// Bytes per second at the first sign of pressure: more than writers reach.
const FASTEST: f64 = (2u64 << 30) as f64;
/// Bytes per second just before writers are stopped.
const SLOWEST: f64 = (1u64 << 20) as f64;

/// No limit.
const UNLIMITED: u64 = u64::MAX;

/// Shorter waits are carried over to the next write: sleeping costs more than they do.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Longest single wait before the speed is looked at again.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// Longest that a stopped writer waits for files that readers hold, when nothing else can make
/// room.
const LONGEST_HELD: Duration = Duration::from_secs(10);

/// Why writers are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// All memtables are full.
    Memtables,
    /// L0 holds many tables.
    L0,
    /// Levels are far above their targets.
    Debt,
    /// Hot records have no room for what waits above them.
    HotSet,
    /// The fast tier is nearly full.
    FastTier,
}

impl Reason {
    pub(crate) const ALL: [Reason; 5] = [
        Reason::Memtables,
        Reason::L0,
        Reason::Debt,
        Reason::HotSet,
        Reason::FastTier,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Memtables => "memtables",
            Reason::L0 => "l0 tables",
            Reason::Debt => "compaction debt",
            Reason::HotSet => "hot set's room",
            Reason::FastTier => "fast tier full",
        }
    }
}

/// The writers' speed limit, and how long they waited for it.
#[derive(Debug)]
pub(crate) struct Stall {
    /// Bytes per second.
    rate: AtomicU64,
    /// Index of the reason plus one; 0 for none.
    reason: AtomicUsize,
    /// Pressure and reason of everything but the memtables, which change with every write.
    steady: Mutex<(f64, Reason)>,
    account: Mutex<Account>,
    pub(crate) slowed_nanos: AtomicU64,
    pub(crate) stopped_nanos: AtomicU64,
    pub(crate) longest_nanos: AtomicU64,
    pub(crate) nanos_by_reason: [AtomicU64; Reason::ALL.len()],
}

impl Default for Stall {
    fn default() -> Self {
        Self {
            rate: AtomicU64::new(UNLIMITED),
            reason: AtomicUsize::new(0),
            steady: Mutex::new((0.0, Reason::Debt)),
            account: Mutex::default(),
            slowed_nanos: AtomicU64::new(0),
            stopped_nanos: AtomicU64::new(0),
            longest_nanos: AtomicU64::new(0),
            nanos_by_reason: Default::default(),
        }
    }
}

/// Bytes that writers have booked while there was a limit, and those that time has paid for. What
/// is owed is kept in bytes: it costs what the present speed says, and nothing once there is no
/// limit.
#[derive(Debug, Default)]
struct Account {
    booked: f64,
    paid: f64,
    as_of: Duration,
}

impl Account {
    /// Pays for what may pass between the last payment and `now`, at `rate` bytes per second.
    fn pay(&mut self, rate: u64, now: Duration) {
        let passed = now.saturating_sub(self.as_of).as_secs_f64() * rate as f64;
        self.paid = match rate {
            UNLIMITED => self.booked,
            _ => self.booked.min(self.paid + passed),
        };
        self.as_of = self.as_of.max(now);
    }
}

/// The speed that `pressure` allows, in bytes per second.
fn rate_at(pressure: f64) -> u64 {
    if pressure <= 0.0 {
        return UNLIMITED;
    }
    (FASTEST * (SLOWEST / FASTEST).powf(pressure.min(1.0))) as u64
}

/// How far `value` is from `start` towards `end`, 0 or less before `start`.
fn ramp(value: f64, start: f64, end: f64) -> f64 {
    (value - start) / (end - start)
}

impl Stall {
    pub(crate) fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Relaxed)).filter(|rate| *rate != UNLIMITED)
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        let index = self.reason.load(Ordering::Relaxed).checked_sub(1)?;
        Reason::ALL.get(index).copied()
    }

    fn set(&self, pressure: f64, reason: Reason) {
        let rate = rate_at(pressure);
        self.rate.store(rate, Ordering::Relaxed);
        let reason = if rate == UNLIMITED {
            0
        } else {
            reason as usize + 1
        };
        self.reason.store(reason, Ordering::Relaxed);
    }

    /// Books `bytes`. Returns the place in the account up to which has to be paid before they are
    /// written; none without a limit.
    fn book(&self, bytes: u64, now: Duration) -> Option<f64> {
        let rate = self.rate()?;
        let mut account = self.account.lock();
        account.pay(rate, now);
        let place = account.booked;
        account.booked += bytes as f64;
        Some(place)
    }

    /// How long it takes at the present speed until all is paid for up to `place`.
    fn wait_for(&self, place: f64, now: Duration) -> Duration {
        let rate = self.rate.load(Ordering::Relaxed);
        let mut account = self.account.lock();
        account.pay(rate, now);
        let owed = (place - account.paid).max(0.0);
        Duration::from_secs_f64(owed / rate as f64)
    }

    fn count(&self, reason: Reason, waited: Duration, total: &AtomicU64) {
        let nanos = waited.as_nanos() as u64;
        total.fetch_add(nanos, Ordering::Relaxed);
        self.nanos_by_reason[reason as usize].fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
    }
}

/// Where waiting for room has led.
enum Stopped {
    /// There is room.
    No,
    /// There is none, and nothing is under way that could make any.
    Stuck,
}

impl Engine {
    /// Holds a writer back for as long as `bytes` more would outrun the background work.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] if no room could ever be enough; the error that keeps the background
    /// work from making room, if one does; [`Error::NoSpace`] if none could be made.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<()> {
        // Checked first: nothing is to give way for a batch that does not fit into an empty tier
        // either.
        self.check_fits(bytes)?;
        if self.is_large(bytes) {
            self.freeze_if_full(&mut self.commit.log.lock())?;
        }
        if let Some(reason) = self.must_stop(bytes) {
            self.wait_stopped(reason, bytes)?;
        }
        let started = self.clock.now();
        let Some(place) = self.stall.book(bytes, started) else {
            return Ok(());
        };
        let reason = self.stall.reason().unwrap_or(Reason::Debt);
        let mut now = started;
        loop {
            let wait = self.stall.wait_for(place, now);
            if wait < SHORTEST_WAIT {
                break;
            }
            self.clock.sleep(wait.min(LONGEST_WAIT));
            self.check_writable()?;
            now = self.clock.now();
        }
        if now > started {
            let waited = now.saturating_sub(started);
            self.stall.count(reason, waited, &self.stall.slowed_nanos);
        }
        Ok(())
    }

    fn wait_stopped(&self, first: Reason, bytes: u64) -> Result<()> {
        let started = self.clock.now();
        // A failure that may have passed: try again once for this writer, then report.
        self.background.clear_all();
        self.sweep();
        self.schedule();
        // The counts are read before each wait, so that a compaction that begins meanwhile is seen.
        let wait = || {
            (
                self.background.compactions.look(),
                self.wait_while_stopped(bytes),
            )
        };
        let (mut seen, mut ended) = wait();
        if matches!(ended, Ok(Stopped::Stuck)) {
            // What is left to free is the log of the active memtables, and what an earlier trim has
            // left of it.
            self.freeze_all()?;
            self.trim_log()
                .inspect_err(|error| self.background.note_poison(error))?;
            self.shorten_manifest()
                .inspect_err(|error| self.background.note_poison(error))?;
            (seen, ended) = wait();
        }
        // Nothing is due, every level is within its target, and still there is no room: the last
        // fast level gives way. What another writer sends down serves this one too.
        let pinned = || self.graveyard.pinned(self.fast().index).0;
        let at_first = pinned();
        let mut is_held = false;
        while matches!(ended, Ok(Stopped::Stuck)) {
            point!(self.points, "stall.stuck")?;
            let goes_on = is_held && self.wait_for_readers(started)?
                || self.start_crossing()
                || seen.has_begun_by(self.background.compactions.look())
                || self.wait_for_readers(started)?;
            if !goes_on {
                break;
            }
            (seen, ended) = wait();
            // Readers hold what has gone down, and it would be enough. Then they hold what would go
            // next, too. A read of a key lets go at once. What others have held since before says
            // nothing about what goes down now.
            let wanting = self
                .needed_for(bytes)
                .saturating_sub(self.fast().free_bytes());
            is_held = pinned() > at_first.max(wanting);
        }
        let waited = self.clock.now().saturating_sub(started);
        self.stall.count(first, waited, &self.stall.stopped_nanos);
        match ended? {
            Stopped::No => Ok(()),
            Stopped::Stuck => Err(self.no_space()),
        }
    }

    /// Waits for background work to make room, as long as there is any.
    fn wait_while_stopped(&self, bytes: u64) -> Result<Stopped> {
        let mut outcome = Err(Error::Closed);
        self.executor.wait_until(&mut || {
            let reason = self.must_stop(bytes);
            let failure = reason.and_then(|reason| self.failure_behind(reason));
            outcome = match failure.or_else(|| self.check_open().err()) {
                Some(error) => Err(error),
                None if reason.is_none() => Ok(Stopped::No),
                None if !self.is_stuck() => {
                    // Work may have become possible without any job that would begin it, as by the
                    // end of a snapshot.
                    if !self.is_compacting() {
                        self.schedule_compactions();
                    }
                    return false;
                }
                None => {
                    // Files that nobody reads any more may still wait for their removal.
                    self.sweep();
                    match self.must_stop(bytes) {
                        Some(_) => Ok(Stopped::Stuck),
                        None => Ok(Stopped::No),
                    }
                }
            };
            true
        });
        outcome
    }

    /// The failure of the work that a writer is stopped for.
    fn failure_behind(&self, reason: Reason) -> Option<Error> {
        match reason {
            Reason::Memtables => self.background.failure(Work::Flush),
            _ => self.background.error(),
        }
    }

    /// Waits a little for readers to let go of removed files, whose space is still taken. Returns
    /// `false` if there are none, or if the writer has waited for them too long since `started`:
    /// the one that writes may be the one that holds an iterator.
    fn wait_for_readers(&self, started: Duration) -> Result<bool> {
        let waited = self.clock.now().saturating_sub(started);
        if self.graveyard.pinned(self.fast().index).0 == 0 || waited > LONGEST_HELD {
            return Ok(false);
        }
        point!(self.points, "stall.held")?;
        // The longer it has taken, the longer it may still take.
        let next = (waited / 8).clamp(SHORTEST_WAIT, LONGEST_WAIT);
        self.clock.sleep(next);
        Ok(true)
    }

    /// Whether no background work is under way, or due, that could make room. A job that has
    /// just ended may not have queued the next one yet: what is due counts.
    fn is_stuck(&self) -> bool {
        self.makes_no_room() && !self.commit.freezes_held()
    }

    pub(crate) fn no_space(&self) -> Error {
        Error::NoSpace {
            operation: "write within the capacity of",
            path: self.fast().options.path.clone(),
        }
    }

    /// Why a writer of `bytes` may not go on at all now, if so.
    pub(crate) fn must_stop(&self, bytes: u64) -> Option<Reason> {
        let active = self.commit.active_bytes.load(Ordering::Relaxed);
        let memtable = self.sizes.memtable_size;
        let held = self.commit.freezes_held();
        if active >= memtable
            && (self.keyspaces.tally.frozen() >= self.max_immutables()
                || held && active >= 2 * memtable)
        {
            return Some(Reason::Memtables);
        }
        // One batch that is larger than a memtable may come on top of the others' part of the
        // budget, but no second one (I8).
        if self.is_large(bytes) && active + self.frozen_bytes() > MEMTABLES * memtable {
            return Some(Reason::Memtables);
        }
        if self.keyspaces.tally.full() > 0 {
            return Some(Reason::L0);
        }
        (self.fast().free_bytes() < self.needed_for(bytes)).then_some(Reason::FastTier)
    }

    /// Whether a batch of `bytes` is a memtable by itself.
    fn is_large(&self, bytes: u64) -> bool {
        bytes > self.sizes.memtable_size
    }

    fn frozen_bytes(&self) -> u64 {
        if self.keyspaces.tally.frozen() == 0 {
            return 0;
        }
        let trees = self.all_trees();
        let frozen = trees.iter().flat_map(|tree| tree.pin().immutables.clone());
        frozen.map(|memtable| memtable.bytes()).sum()
    }

    /// What must be free for a write of `bytes`: a memtable's worth more, for the other writers and
    /// for what goes around each record.
    pub(crate) fn needed_for(&self, bytes: u64) -> u64 {
        self.sizes.memtable_size.saturating_add(bytes)
    }

    /// Sets the writers' speed from how far behind the background work is.
    pub(crate) fn update_pressure(&self) {
        let pressures = [
            (self.l0_pressure(), Reason::L0),
            (self.debt_pressure(), Reason::Debt),
            (self.placement.pressure(self), Reason::HotSet),
            (self.fast_tier_pressure(), Reason::FastTier),
        ];
        let highest = pressures.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some(highest) = highest {
            *self.stall.steady.lock() = highest;
        }
        self.update_memtable_pressure();
    }

    /// As [`Engine::update_pressure`] after a write, which changes no table.
    pub(crate) fn update_memtable_pressure(&self) {
        let (steady, reason) = *self.stall.steady.lock();
        let memtables = self.memtable_pressure();
        if memtables > steady {
            self.stall.set(memtables, Reason::Memtables);
        } else {
            self.stall.set(steady, reason);
        }
    }

    /// The last memtable in the budget fills while the others still wait for their flush.
    fn memtable_pressure(&self) -> f64 {
        if self.keyspaces.tally.frozen() < self.max_immutables() {
            return 0.0;
        }
        let active = self.commit.active_bytes.load(Ordering::Relaxed);
        ramp(active as f64, 0.0, 1.25 * self.sizes.memtable_size as f64)
    }

    fn l0_pressure(&self) -> f64 {
        let trees = self.keyspaces.trees.load();
        let tables = trees
            .values()
            .map(|t| t.peek().version.levels[0].tables.len())
            .max();
        let (start, end) = (self.options.l0_slowdown as f64, self.options.l0_stop as f64);
        ramp(tables.unwrap_or(0) as f64, start, end)
    }

    /// Starts when a quarter of all data waits to be moved, and at least as much as 32 memtables
    /// hold: half a gigabyte, if they have their default size.
    fn debt_pressure(&self) -> f64 {
        let debt = self.compaction_debt();
        let total: u64 = self.tiers.iter().map(|tier| tier.file_bytes()).sum();
        let start = (total / 4).max(32 * self.sizes.memtable_size) as f64;
        ramp(debt as f64, start, 4.0 * start)
    }

    fn fast_tier_pressure(&self) -> f64 {
        let tier = self.fast();
        if tier.is_unlimited() {
            return 0.0;
        }
        let stop = self.sizes.memtable_size as f64;
        // It begins only within what compactions leave free.
        let start = (self.compaction_margin() as f64).max(1.5 * stop);
        ramp(-(tier.free_bytes() as f64), -start, -stop)
    }

    /// Bytes that compaction must still move to bring every level to its target. What goes down for
    /// the sake of a target in dollars is none of them: writers do not wait for it.
    pub(crate) fn compaction_debt(&self) -> u64 {
        let rooms = self.fast_rooms_of(self.fast().capacity());
        let debt = |tree: &Arc<Tree>| {
            let superversion = tree.pin();
            let targets = tree.targets_in(&rooms, self, &superversion.version);
            targets.debt(&superversion.version, self.sizes.l0_trigger)
        };
        self.all_trees().iter().map(debt).sum()
    }
}

#[cfg(test)]
mod tests;
