//! The background work: flushes, merges, evictions, and what becomes of their failures.

use std::collections::BTreeSet;

use super::files::Files;
use super::limits::{Cut, EvictionRule, Limits};
use super::outlook::Outlook;
use super::pass::{Began, Pass};
use super::reuse::Reuse;
use super::scoring::Model;
use super::shared::Shared;
use super::sizes::{FIRST_TABLES, LEVEL0_TABLES, Sizes};
use super::state_log::StateLog;
use super::version::Version;
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::points::point;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

/// What a step of work has at hand.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) files: &'a Files,
    pub(super) model: &'a Model,
    pub(super) sizes: &'a Sizes,
    pub(super) version: &'a Version,
    /// The keyspaces that there are.
    pub(super) keyspaces: &'a Arc<BTreeSet<KeyspaceId>>,
    pub(super) outlook: Outlook,
}

/// What only the thread that works needs.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) pass: Option<Pass>,
    /// The state on disk.
    pub(super) log: StateLog,
    pub(super) flushes: u64,
    /// Slices of merges that come before the next flush.
    pub(super) slices_owed: usize,
    /// Since the limits were kept last, a full merge has shown that duplicates are not what exceeds
    /// them.
    pub(super) merged: bool,
    /// [`Shared::drops`] when the last merge of all tables began.
    pub(super) drops: u64,
    /// That merge has left out what was dropped before it, and the limits are exceeded all the
    /// same: the eviction does not wait for another merge, whatever was dropped meanwhile.
    pub(super) cleaned: bool,
    /// The last eviction.
    pub(super) evicted: Option<Evicted>,
    /// How densely records are read again. Not kept over a restart: it is soon known anew.
    pub(super) reuse: Reuse,
    /// Closing has begun: from then on only closing itself writes.
    pub(super) closed: bool,
}

/// What an eviction went by. Until there is more, or a limit is lower, another would find nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evicted {
    flushes: u64,
    hot_set: u64,
    physical: u64,
}

impl Worker {
    /// With the state `log` on disk.
    pub(super) fn new(log: StateLog) -> Self {
        Self {
            log,
            ..Self::default()
        }
    }
}

/// A walk over the tables that is due.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Due {
    First,
    Leveling(usize),
    Merge,
    Eviction,
}

impl Shared {
    /// Does one bounded step. Returns whether more is due.
    pub(super) fn work(&self) -> bool {
        let mut worker = self.worker.lock();
        // Whatever others find due from here on stays due.
        let _: bool = self.pending.swap(false, Ordering::Acquire);
        let more = match &self.files {
            Some(files) if !self.stopped.load(Ordering::Relaxed) => {
                let done = self.step(files, &mut worker);
                self.settle(files, &mut worker, done)
            }
            _ => {
                self.drop_accesses(&self.buffers.take_full());
                false
            }
        };
        if more {
            self.pending.store(true, Ordering::Relaxed);
        }
        self.sweep();
        self.pending.load(Ordering::Relaxed)
    }

    fn step(&self, files: &Files, worker: &mut Worker) -> Result<()> {
        if self.damaged.load(Ordering::Relaxed) {
            self.clear(files, worker)?;
            // Not before: if beginning anew finds no space, it is still to be done.
            self.damaged.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let is_far_over = self.is_far_over();
        // Given up if no slice is merged now: a slice that finds no space keeps no flush waiting.
        let owed = std::mem::take(&mut worker.slices_owed);
        let mut flushed = Ok(());
        if owed == 0 && self.buffers.is_flush_due() {
            let chunks = self.buffers.take_full();
            if is_far_over {
                // What there is must become less before there is more of it.
                self.drop_accesses(&chunks);
            } else {
                flushed = self.flush(files, worker, chunks);
                // If there is no space for the flush, a merge may make some, and needs less.
                if !flushed.as_ref().is_err_and(Error::may_pass) {
                    worker.slices_owed = self.slices_owed(worker);
                    return flushed;
                }
            }
        }
        if worker.pass.is_none() {
            worker.pass = self.begin_pass(files, worker);
        }
        let Some(mut pass) = worker.pass.take() else {
            return match is_far_over {
                true => self.clear(files, worker),
                false => flushed,
            };
        };
        point!(files.points, "ralt.step")?;
        let merged = self.advance(files, worker, &mut pass);
        if merged.is_ok() {
            worker.slices_owed = owed.saturating_sub(1);
        }
        match merged {
            Ok(false) => worker.pass = Some(pass),
            Ok(true) => {
                self.end_pass(worker, &pass);
                let _: Result<()> = match pass.eviction {
                    Some(_) => point!(files.points, "ralt.evicted"),
                    None => point!(files.points, "ralt.merged"),
                };
            }
            Err(error) if error.may_pass() && pass.shrink_step(&self.sizes) => {
                worker.pass = Some(pass);
            }
            // Without space RALT cannot shrink, and until it does, writers may find none: better
            // that nothing is hot (I7, I8).
            Err(error) if error.may_pass() && is_far_over => {
                return self.clear(files, worker);
            }
            // A walk that finds no space at all begins anew when there may be some.
            Err(error) => {
                // There was no eviction then: a young RALT stays young.
                if let Some(limits) = pass.before {
                    let mut as_before = Version::clone(&self.version.load());
                    as_before.limits = limits;
                    self.put_in_force(as_before);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Merges the next slice of `pass`. Returns whether it was the last.
    pub(super) fn advance(
        &self,
        files: &Files,
        worker: &mut Worker,
        pass: &mut Pass,
    ) -> Result<bool> {
        let (version, keyspaces) = (self.version.load_full(), self.keyspaces.load_full());
        let context = Context {
            files,
            model: &self.model,
            sizes: &self.sizes,
            version: &version,
            keyspaces: &keyspaces,
            outlook: self.outlook(&worker.reuse),
        };
        pass.step(&context, |next, change| {
            self.install(files, worker, next, change)
        })
    }

    /// Deals with a step's outcome. Returns whether more is due.
    pub(super) fn settle(&self, files: &Files, worker: &mut Worker, done: Result<()>) -> bool {
        // RALT's own tier has no copies: those in the way are of the tier whose device it shares.
        files.fast.note_want_of_room(&done);
        let done = match done {
            Err(error) if error.is_corruption() => {
                self.note_trouble(&error);
                self.clear(files, worker)
            }
            other => other,
        };
        match done {
            Ok(()) => {
                self.damaged.load(Ordering::Relaxed)
                    || self.buffers.is_flush_due()
                    || worker.pass.is_some()
                    || self.due(worker, &self.version.load()).is_some()
            }
            // Passing: the next full buffer, or more room, tries again.
            Err(error) if error.may_pass() => false,
            Err(error) => {
                self.stop(&error);
                false
            }
        }
    }

    /// How many slices of merges come between a flush and the next: one if any is due, and one more
    /// for each table too many in level 0. So merges keep up however fast accesses come. Flushes
    /// become fewer and larger, and accesses that no buffer holds meanwhile are dropped.
    fn slices_owed(&self, worker: &Worker) -> usize {
        let version = self.version.load();
        let too_many = version.level(0).len().saturating_sub(LEVEL0_TABLES);
        match worker.pass.is_some() || self.due(worker, &version).is_some() {
            true => 1 + too_many,
            false => 0,
        }
    }

    fn begin_pass(&self, files: &Files, worker: &mut Worker) -> Option<Pass> {
        let version = self.version.load_full();
        let due = self.due(worker, &version);
        if !self.is_over(&version) {
            worker.merged = false;
            worker.cleaned = false;
        }
        let began = self.began(files);
        Some(match due? {
            Due::First => Pass::early(&version, &self.sizes, began),
            Due::Leveling(from) => Pass::leveling(&version, &self.sizes, from, began),
            Due::Merge => Pass::full(&version, &self.sizes, began),
            Due::Eviction => {
                let mut rule = EvictionRule {
                    share: self.options.eviction,
                    auto_tuning: self.options.switches().auto_tuning,
                    epoch: began.epoch,
                    reuse: worker.reuse,
                    limits: (version.limits.hot_set, version.limits.physical),
                    room: self.room.load(Ordering::Relaxed),
                    cut: Cut::NONE,
                };
                let hot = rule.decide(&version, &self.sizes);
                let mut next = Version::clone(&version);
                next.limits = Limits {
                    hot,
                    evicted: rule.cut.boundary(version.bins()),
                    generation: version.limits.generation + 1,
                    ..version.limits
                };
                // These limits are in force for new tables before the old ones are rewritten, and
                // on disk with them.
                self.put_in_force(next);
                Pass::evicting(&version, &self.sizes, began, rule)
            }
        })
    }

    /// What there is for a walk that begins.
    pub(super) fn began(&self, files: &Files) -> Began {
        Began {
            below: files.next_id(),
            epoch: self.model.epoch(self.now().tick),
            drops: self.drops.load(Ordering::Acquire),
        }
    }

    /// Has the next steps merge all tables into one run.
    #[cfg(test)]
    pub(super) fn begin_full_merge(&self, files: &Files, worker: &mut Worker) {
        let pass = Pass::full(&self.version.load(), &self.sizes, self.began(files));
        worker.pass = Some(pass);
    }

    fn end_pass(&self, worker: &mut Worker, pass: &Pass) {
        if let Some(census) = &pass.census {
            let data = self.data.load(Ordering::Relaxed);
            // So few records do not tell which classes are worth their place.
            let mut early = Reuse::default();
            let reuse = match pass.is_early {
                true => &mut early,
                false => &mut worker.reuse,
            };
            reuse.take(census, data);
            self.flat.store(reuse.is_flat(), Ordering::Relaxed);
            self.learning.store(reuse.is_learning(), Ordering::Relaxed);
        }
        if pass.is_full {
            let was_dirty = worker.drops != pass.began.drops;
            let is_over = self.is_over(&self.version.load());
            worker.cleaned = was_dirty && is_over && pass.eviction.is_none();
            worker.drops = pass.began.drops;
        }
        if let Some((rule, _)) = &pass.eviction {
            self.evictions.fetch_add(1, Ordering::Relaxed);
            let version = self.version.load();
            // The limits that it went by: those that follow from what it left may be lower.
            worker.evicted = Some(Evicted {
                flushes: worker.flushes,
                hot_set: self.hot_set_limit(&version),
                physical: rule.limits.1,
            });
            worker.merged = false;
        } else if pass.is_full {
            worker.merged = true;
        }
    }

    pub(super) fn is_over(&self, version: &Version) -> bool {
        version.hot_set() > self.hot_set_limit(version)
            || version.physical() > version.limits.physical
    }

    /// Whether access records take twice what they may, or most of the tier. Then more come than
    /// are merged, or merging finds no space.
    fn is_far_over(&self) -> bool {
        let version = self.version.load();
        let twice = version.limits.physical.saturating_mul(2);
        version.physical() > twice.min(self.sizes.physical_most)
    }

    fn due(&self, worker: &Worker, version: &Version) -> Option<Due> {
        let hot_limit = self.hot_set_limit(version);
        let tried = |evicted: Evicted| {
            evicted.flushes == worker.flushes
                && hot_limit >= evicted.hot_set
                && version.limits.physical >= evicted.physical
        };
        if self.is_over(version) && !worker.evicted.is_some_and(tried) {
            // Records of one key in several tables count several times. A plain merge comes first
            // if they may be what exceeds the limit, or if records of dropped keyspaces may be: an
            // eviction would keep those, and let others go. There is one such merge for each
            // eviction. Else it would always be due again where keyspaces come and go all the time.
            let is_clean = worker.cleaned || worker.drops == self.drops.load(Ordering::Relaxed);
            let (lowest, above) = version.sums();
            let certain = lowest.hot > hot_limit || lowest.physical > version.limits.physical;
            let few = above.hot <= lowest.hot / 10 && above.physical <= lowest.physical / 10;
            let is_merged = certain || few || worker.merged || version.is_one_run();
            return Some(match is_clean && is_merged {
                true => Due::Eviction,
                false => Due::Merge,
            });
        }
        let levels = 1..=version.bottom();
        let below: u64 = levels.clone().map(|level| version.level_bytes(level)).sum();
        let is_first = version.is_young() && below < self.sizes.unmerged;
        let waiting = version.level(0).len();
        if is_first && waiting >= FIRST_TABLES {
            return Some(Due::First);
        }
        if version.has_full_level0() {
            return Some(Due::Leveling(0));
        }
        let full = |level: &usize| version.level_bytes(*level) > self.sizes.level_target(*level);
        let mut levels = levels;
        levels.find(full).map(Due::Leveling)
    }

    /// Ends all writing: it is not known what the disk holds (I9). What RALT knows stays in use.
    pub(super) fn stop(&self, error: &Error) {
        self.note_trouble(error);
        self.stopped.store(true, Ordering::Relaxed);
        self.drop_accesses(&self.buffers.take_all());
    }

    /// Removes the files of tables that nobody uses any more. One that cannot be removed is tried
    /// again with the next.
    pub(super) fn sweep(&self) {
        let Some(files) = &self.files else { return };
        self.retired.lock().retain(|tracked| {
            let in_use = Arc::strong_count(tracked) > 1 || Arc::strong_count(&tracked.table) > 1;
            if in_use {
                return true;
            }
            let _: Result<()> = point!(files.points, "ralt.before_remove");
            !files.remove(&tracked.meta)
        });
    }
}
