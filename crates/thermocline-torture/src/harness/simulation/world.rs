//! The store, what it lies on, and what it should hold.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::executor::Stepped;
use thermocline::metrics::TierMetrics;
use thermocline::storage::{CrashStyle, Fault, Faulty};
use thermocline::{Compression, Db, Error, FilterPolicy, Keyspace, ManualClock, Options};

use super::trace::Trace;
use super::traced::Traced;
use crate::life::history::{After, Contents, History, contents, difference};
use crate::life::{SIDE, Stop, tiny_options};
use crate::random_options::{random_placement, set_prices, set_some_target};
use crate::verdict::{Promise, Tally, Violation};
use crate::work_done::count_work;

/// Keyspaces of every store.
pub(super) const KEYSPACES: [&str; 2] = ["default", SIDE];

/// How the store comes to its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Close,
    /// The process ends without closing the store.
    Exit,
    Power(CrashStyle),
}

pub(super) struct World {
    pub(super) disk: Faulty,
    pub(super) clock: Arc<ManualClock>,
    pub(super) stepped: Arc<Stepped>,
    pub(super) db: Db,
    pub(super) history: History,
    /// What a reader sees now.
    pub(super) visible: Arc<Contents>,
    pub(super) trace: Trace,
    pub(super) tally: Tally,
    /// Writing has ended until the store is opened again (I9).
    pub(super) poisoned: bool,
    /// How many faults had hit when the opening of this store began.
    hit_before: u64,
    /// What was planned since then, and what was still pending at that time.
    planned: Vec<Fault>,
    /// What is still to come, or goes on.
    pending: Option<Fault>,
    /// What ended the store the last time, until it is open again.
    ended: After,
    /// Set if a loss of power is planned and nothing else: how many faults had hit before.
    power_fails: Option<u64>,
}

impl World {
    /// A new store.
    pub(super) fn new(seed: u64, choices: u64) -> Result<Self, Violation> {
        let mut rng = rand::SeedableRng::seed_from_u64(choices);
        let (disk, trace) = (Faulty::new(seed), Trace::default());
        let (clock, stepped) = (Arc::default(), Arc::new(Stepped::new(seed)));
        let db = open(&draw(&mut rng), &disk, &trace, &clock, &stepped)?;
        db.create_keyspace(SIDE)?;
        Ok(Self {
            disk,
            clock,
            stepped,
            db,
            history: History::default(),
            visible: Arc::default(),
            trace,
            tally: Tally::default(),
            poisoned: false,
            hit_before: 0,
            planned: Vec::new(),
            pending: None,
            ended: After::Exit,
            power_fails: None,
        })
    }

    pub(super) fn keyspace(&self, which: usize) -> Result<Keyspace, Stop> {
        Ok(self.db.keyspace(KEYSPACES[which])?)
    }

    /// Accepts an error for which there is a reason: a fault, or room that readers hold.
    pub(super) fn excuse(&mut self, stop: Stop) -> Result<(), Violation> {
        let error = stop.error()?;
        if let Error::Poisoned { .. } = error {
            self.poisoned = true;
        }
        let is_without_fault = self.disk.triggered() == self.hit_before;
        let reason = match error {
            Error::NoSpace { .. } if is_without_fault && self.readers_hold_room() => {
                "errors for room that readers hold"
            }
            _ if is_without_fault => {
                return Err(Violation::disorder(format!("without a fault: {error}")));
            }
            // A wait ends in this if nothing else can end it.
            Error::Closed => return Err(Violation::new(Promise::Alive, error.to_string())),
            _ if !self.has_planned(&error) => {
                let planned = &self.planned;
                let message = format!("with {planned:?} planned: {error}");
                return Err(Violation::disorder(message));
            }
            _ => "errors for which a fault is the reason",
        };
        self.tally.add(reason, 1);
        Ok(())
    }

    /// Whether `error` may come from something that was planned since the store was opened.
    fn has_planned(&self, error: &Error) -> bool {
        let any = |faults: &[Fault]| faults.iter().any(|fault| self.planned.contains(fault));
        match error {
            Error::NoSpace { .. } => any(&[Fault::NoSpace]) || self.readers_hold_room(),
            // Either a sync failed, or it is undecided which of two manifests is in force.
            Error::Poisoned { .. } => !self.planned.is_empty(),
            Error::Io { .. } => any(&[Fault::Io, Fault::ShortWrite, Fault::PowerLoss]),
            Error::Corruption { .. } => any(&[Fault::ShortRead]),
            _ => false,
        }
    }

    /// Whether half of the fast tier is taken by removed files that an iterator or a snapshot's
    /// reader still has open. A client that writes does not wait for its own readers to let go of
    /// them.
    fn readers_hold_room(&self) -> bool {
        let metrics = self.db.metrics();
        let held = |tier: &TierMetrics| tier.pinned_obsolete_bytes >= tier.capacity / 2;
        metrics.tiers.first().is_some_and(held)
    }

    /// Makes a call fail that is still to come. This replaces any earlier plan.
    pub(super) fn plan(&mut self, fault: Fault, call: u64, from_then_on: bool) {
        self.heal();
        self.planned.push(fault);
        self.pending = Some(fault);
        self.power_fails = (fault == Fault::PowerLoss).then(|| self.disk.triggered());
        match from_then_on {
            true => self.disk.fail_from(call, fault),
            false => self.disk.fail_nth(call, fault),
        }
    }

    /// Takes back what is planned.
    pub(super) fn heal(&mut self) {
        if !self.power_is_gone() {
            self.disk.heal();
            self.power_fails = None;
            self.pending = None;
        }
    }

    /// Whether a planned loss of power has come.
    pub(super) fn power_is_gone(&self) -> bool {
        self.power_fails
            .is_some_and(|before| self.disk.triggered() > before)
    }

    pub(super) fn advance(&mut self, time: Duration) {
        self.clock.advance(time);
    }

    /// Ends the store, and opens it again with other settings. What comes back is a prefix of what
    /// it was told (I5). Nobody may hold a handle of it.
    pub(super) fn reopen(&mut self, how: End, rng: &mut SmallRng) -> Result<(), Violation> {
        self.look();
        self.end(how)?;
        for attempt in 0.. {
            // Some openings fail. In the end one has no reason to.
            let faults = attempt < 3 && rng.random_bool(0.25);
            self.planned = self.pending.into_iter().collect();
            if faults {
                let fault = [
                    Fault::Io,
                    Fault::NoSpace,
                    Fault::SyncFails,
                    Fault::PowerLoss,
                ];
                let fault = fault[rng.random_range(0..fault.len())];
                self.plan(fault, rng.random_range(1..60), false);
            }
            match self.try_to_open(rng) {
                Ok(()) => break,
                Err(stop) => {
                    self.excuse(stop)?;
                    self.tally.add("openings that failed", 1);
                }
            }
            match self.power_is_gone() {
                true => self.cut_power(random_style(rng)),
                false => self.heal(),
            }
        }
        self.poisoned = false;
        Ok(())
    }

    fn end(&mut self, how: End) -> Result<(), Violation> {
        match how {
            End::Close if !self.power_is_gone() => {
                let closed = self.db.close();
                self.trace.outcome("close", &closed);
                match closed {
                    Ok(()) => {
                        self.history.all_synced();
                        self.tally.add("clean closes", 1);
                    }
                    Err(error) => self.excuse(error.into())?,
                }
                if self.power_is_gone() {
                    self.cut_power(CrashStyle::Random);
                }
            }
            // What a failed sync has lost is lost with the system's cache, which this takes away.
            End::Exit if self.disk.triggered() == 0 => {
                self.disk = self.disk.crash(CrashStyle::KeepAll);
                self.hit_before = 0;
                self.tally.add("ends without closing", 1);
            }
            End::Power(style) => self.cut_power(style),
            End::Close | End::Exit => self.cut_power(CrashStyle::KeepAll),
        }
        Ok(())
    }

    fn cut_power(&mut self, style: CrashStyle) {
        self.disk = self.disk.crash(style);
        self.power_fails = None;
        self.hit_before = 0;
        self.ended = After::PowerLoss;
        self.tally.add("losses of power", 1);
    }

    fn try_to_open(&mut self, rng: &mut SmallRng) -> Result<(), Stop> {
        self.hit_before = self.disk.triggered();
        self.stepped = Arc::new(Stepped::new(rng.random()));
        let options = draw(rng);
        let db = open(
            &options,
            &self.disk,
            &self.trace,
            &self.clock,
            &self.stepped,
        )?;
        let found = contents(&db)?;
        self.history.recovered(&found, self.ended)?;
        self.visible = Arc::new(found);
        self.ended = After::Exit;
        self.db = db;
        self.tally.add("openings", 1);
        Ok(())
    }

    /// Compares all that the store holds with what it should hold.
    pub(super) fn compare(&self, db: &Db) -> Result<(), Stop> {
        let found = contents(db)?;
        let keys = found.keys().chain(self.visible.keys());
        for at in keys {
            let value = found.get(at).map(Vec::as_slice);
            if let Some(problem) = difference(at, self.visible.get(at), value) {
                return Err(problem.into());
            }
        }
        Ok(())
    }

    /// Counts what the store has done since it was opened.
    pub(super) fn look(&mut self) {
        count_work(&self.db.metrics(), &mut self.tally);
        self.tally
            .add("faults that hit", self.disk.triggered() - self.hit_before);
    }
}

/// Settings of the smallest store that there may be, different at each opening.
fn draw(rng: &mut SmallRng) -> Options {
    let mut options = tiny_options();
    for tier in &mut options.tiers {
        tier.compression = [Compression::None, Compression::Lz4][rng.random_range(0..2)];
        tier.filter = [FilterPolicy::None, FilterPolicy::Fuse8][rng.random_range(0..2)];
    }
    options.l0_trigger = rng.random_range(1..=4);
    options.level_ratio = rng.random_range(2..=8);
    options.compaction_threads = rng.random_range(1..=3);
    options.block_cache = [None, Some(0), Some(32 << 10)][rng.random_range(0..3)];
    if options.block_cache.is_none() {
        // More than ever comes in. Otherwise it would depend on other threads what is evicted, and
        // when memory is free again.
        options.record_cache = Some(1 << 20);
    }
    options.log_retention = [0, 16 << 10][rng.random_range(0..2)];
    options.seed = Some(rng.random());
    options.placement = random_placement(rng);
    set_prices(&mut options);
    options
}

pub(super) fn random_style(rng: &mut SmallRng) -> CrashStyle {
    match rng.random_range(0..4) {
        0 => CrashStyle::LoseAll,
        1 => CrashStyle::KeepAll,
        _ => CrashStyle::Random,
    }
}

/// Opens the store of `options` on `disk`.
pub(super) fn open(
    options: &Options,
    disk: &Faulty,
    trace: &Trace,
    clock: &Arc<ManualClock>,
    stepped: &Arc<Stepped>,
) -> thermocline::Result<Db> {
    let medium = Traced {
        disk: disk.clone(),
        trace: trace.clone(),
    };
    let mut builder = Db::builder(options.clone())
        .clock(clock.clone())
        .executor(stepped.clone());
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::new(medium.clone()));
    }
    let db = builder.open();
    if let Ok(db) = &db {
        let mut rng = SmallRng::seed_from_u64(options.seed.unwrap_or(0));
        set_some_target(db, &mut rng);
    }
    trace.outcome(
        "open",
        &db.as_ref().map(|db| db.recovery()).map_err(Error::clone),
    );
    db
}
