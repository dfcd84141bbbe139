//! Merging of levels, slice by slice of the key range, so that each step is bounded in time and in
//! the space that it needs beside its input (§3.2). Leveling and evictions are the same walk.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::cursor::Merged;
use super::files::{Space, Writer};
use super::histogram::Bin;
use super::levels::Placed;
use super::limits::{EvictionRule, Limits};
use super::reuse::Census;
use super::sizes::Sizes;
use super::version::{Change, Tracked, Version};
use super::worker::Context;
use crate::error::Result;
use crate::ids::FileId;
use crate::sync::Arc;

/// Bytes read from a run in one I/O.
const READAHEAD: usize = 256 << 10;

/// What there was when a walk began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Began {
    /// Tables of level 0 from this number on came later, and are newer than its output.
    pub(super) below: FileId,
    /// The counters' epoch.
    pub(super) epoch: u64,
    /// How often a keyspace had been dropped.
    pub(super) drops: u64,
}

/// A walk over the key range that merges the levels `from..=through` into the level `to`. That is
/// below level 0, except for [`Pass::within_level0`].
///
/// Tables that a slice covers in part stay, trimmed, until the walk comes to their end. A walk that
/// a restart cut short is simply not continued: every version on the way is whole.
#[derive(Debug)]
pub(super) struct Pass {
    from: usize,
    through: usize,
    to: usize,
    pub(super) began: Began,
    /// Whether it takes every table that there was: its output is then one run.
    pub(super) is_full: bool,
    /// The eviction that it carries out. The number beside it is for the records that are not worth
    /// the fast tier: their physical size divided by their HotRAP size, before the eviction.
    pub(super) eviction: Option<(EvictionRule, f64)>,
    /// The limits of before the eviction, until its first slice is in force.
    pub(super) before: Option<Limits>,
    /// HotRAP size of what lies above the lowest run, and of the part of it that was merged away.
    above: u64,
    merged_away: u64,
    /// Whether it was due early, for what it shows.
    pub(super) is_early: bool,
    /// What it has shown so far, if it tells of the lowest run.
    pub(super) census: Option<Census>,
    /// Bytes of input of one step; less after one found no space.
    step: u64,
    /// Where the tables of sorted levels end that there were at the beginning, but for the last,
    /// and how long they are: slices end there.
    ends: Vec<(Bytes, u64)>,
    /// The last key of the slice before.
    done: Option<Bytes>,
}

impl Pass {
    /// From level `from` into the next.
    pub(super) fn leveling(version: &Version, sizes: &Sizes, from: usize, began: Began) -> Self {
        let is_full = from == 0 && version.bottom() <= 1;
        let levels = (from, from + 1, from + 1);
        Self::new(version, sizes, levels, began, is_full)
    }

    /// From level 0 into the next, early, for what it shows: with a fourth of what waits there
    /// otherwise.
    pub(super) fn early(version: &Version, sizes: &Sizes, began: Began) -> Self {
        Self {
            is_early: true,
            ..Self::leveling(version, sizes, 0, began)
        }
    }

    /// Level 0 into a run of its own. That costs no more than what lies there, however much lies
    /// below. Not while accesses are flushed: the run would lie on top of what came meanwhile.
    pub(super) fn within_level0(version: &Version, sizes: &Sizes, began: Began) -> Self {
        Self::new(version, sizes, (0, 0, 0), began, false)
    }

    /// All tables into one run.
    pub(super) fn full(version: &Version, sizes: &Sizes, began: Began) -> Self {
        let bytes = version.physical();
        let fits = |level: &usize| sizes.level_target(*level) >= bytes;
        let to = (1..64).find(fits).unwrap_or(64);
        Self::new(
            version,
            sizes,
            (0, version.bottom().max(to), to),
            began,
            true,
        )
    }

    /// As [`Pass::full`], and evicts.
    pub(super) fn evicting(
        version: &Version,
        sizes: &Sizes,
        began: Began,
        rule: EvictionRule,
    ) -> Self {
        // The ratio of the records that the limit leaves room for beside those that are worth it.
        // The latter may be far larger, and so have a far smaller ratio.
        let others = version.bins().filter(|bin| !rule.is_worth(bin));
        let (physical, hot_rap) = match sizes_of(others) {
            (_, 0) => sizes_of(version.bins()),
            others => others,
        };
        let ratio = physical as f64 / hot_rap.max(1) as f64;
        Self {
            eviction: Some((rule, ratio)),
            before: Some(version.limits),
            ..Self::full(version, sizes, began)
        }
    }

    fn new(
        version: &Version,
        sizes: &Sizes,
        (from, through, to): (usize, usize, usize),
        began: Began,
        is_full: bool,
    ) -> Self {
        let lowest = version.lowest_level();
        // A merge tells something if it takes all of the lowest run, and something above it. Tables
        // of level 0 are not one run of all that is known.
        let is_telling = from < lowest && through >= version.bottom();
        Self {
            from,
            through,
            to,
            began,
            is_full,
            eviction: None,
            before: None,
            above: version.sums().1.hot_rap,
            merged_away: 0,
            is_early: false,
            census: is_telling.then(|| Census::new(lowest, began.epoch)),
            step: sizes.step,
            ends: ends_of(version, from.max(1)..=through),
            done: None,
        }
    }

    /// Takes less in a step from now on; `false` when it cannot be less.
    pub(super) fn shrink_step(&mut self, sizes: &Sizes) -> bool {
        let less = self.step > sizes.table / 2;
        self.step /= 2;
        less
    }

    /// The tables of level 0 that it takes.
    fn over_all<'a>(&self, version: &'a Version) -> impl Iterator<Item = &'a Arc<Tracked>> {
        let level: &[Placed] = match self.from {
            0 => version.level(0),
            _ => &[],
        };
        let below = self.began.below;
        let taken = level.iter().filter(move |table| table.meta.id < below);
        taken.map(|table| &**table)
    }

    /// The tables, with their levels, of which there are records in the slice up to `end`: the last
    /// one if there is no `end`. What ends in a slice before is output of it.
    fn inputs(&self, version: &Version, end: Option<&Bytes>) -> Vec<(usize, Arc<Tracked>)> {
        let begins = |table: &Tracked| end.is_none_or(|end| table.meta.range.first <= *end);
        let over_all = self.over_all(version).filter(|table| begins(table));
        let mut inputs: Vec<_> = over_all.map(|table| (0, Arc::clone(table))).collect();
        for number in self.from.max(1)..=self.through.min(version.bottom()) {
            let Some(level) = version.levels.get(number) else {
                continue;
            };
            let behind = |done: &Bytes| level.first_ending_behind(done);
            let from = self.done.as_ref().map_or(0, behind);
            let tables = level.tables[from..]
                .iter()
                .take_while(|table| begins(table));
            inputs.extend(tables.map(|table| (number, Arc::clone(table))));
        }
        inputs
    }

    /// Merges the next slice and has `install` put the outcome in force. Returns whether it was the
    /// last.
    ///
    /// # Errors
    /// One that [may pass](crate::Error::may_pass): nothing was changed, and it may be tried again.
    /// Damage; I/O errors.
    pub(super) fn step(
        &mut self,
        context: &Context<'_>,
        install: impl FnOnce(Version, Change) -> Result<()>,
    ) -> Result<bool> {
        let Context {
            files,
            model,
            sizes,
            version,
            keyspaces,
            outlook,
        } = *context;
        let end = self.slice_end(version)?;
        let inputs = self.inputs(version, end.as_ref());
        // A slice takes a part of each table of level 0, since each is over the whole range. Asking
        // for the space of whole tables would be refused the more often, the more of them wait.
        let part = |(_, table): &(usize, Arc<Tracked>)| {
            let block = sizes.block as u64;
            table.bytes_through(end.as_ref()).map(|bytes| bytes + block)
        };
        let space = Space {
            table: sizes.table,
            expected: output_of(version, inputs.iter().map(part).sum::<Result<u64>>()?),
        };
        let (limits, epoch) = (version.limits, self.began.epoch);
        let mut writer = Writer::new(files, *model, limits, outlook, epoch, self.to, space)?;
        let keyspaces = Arc::clone(keyspaces);
        let mut merged = Merged::new(inputs.clone(), keyspaces, *model, READAHEAD, &[])?;
        merged.census = self.census.map(|census| census.anew());
        while let Some((key, record)) = merged.next(end.as_deref())? {
            let evicted = self.eviction.is_some_and(|(rule, _)| {
                rule.evicts(model.stable_before(&record), model.rank(&record, key))
            });
            if !evicted {
                writer.add(key, &record)?;
            }
        }
        let (away, census) = (merged.merged_away, merged.census);
        drop(merged);
        let mut change = consumed(inputs, end.as_ref())?;
        change.added = writer.finish()?;
        let mut next = version.clone();
        next.apply(&change);
        if end.is_none() {
            self.conclude(&mut next, sizes, away);
        }
        match install(next, change) {
            // Before the new state was in force, nothing named the new tables.
            Err(error) if error.may_pass() => return Err(error),
            Err(error) => {
                writer.keep();
                return Err(error);
            }
            Ok(()) => writer.keep(),
        }
        self.before = None;
        self.merged_away += away;
        if let Some((all, slice)) = self.census.as_mut().zip(census) {
            all.add(&slice);
        }
        self.done = end;
        Ok(self.done.is_none())
    }

    /// Where the next slice ends; `None` when it is the last. Slices end with tables of sorted
    /// levels; those of level 0, each over the whole range, are few.
    fn slice_end(&self, version: &Version) -> Result<Option<Bytes>> {
        let done = |(end, _): &(Bytes, u64)| self.done.as_ref().is_some_and(|done| end <= done);
        let from = self.ends.partition_point(done);
        let mut bytes = 0;
        for (end, len) in &self.ends[from..] {
            bytes += len;
            let over_all = self.over_all(version);
            let parts = over_all.map(|table| table.bytes_through(Some(end)));
            if bytes + parts.sum::<Result<u64>>()? >= self.step {
                return Ok(Some(end.clone()));
            }
        }
        Ok(None)
    }

    /// What the whole walk has shown.
    fn conclude(&self, version: &mut Version, sizes: &Sizes, away: u64) {
        if self.is_full && self.above > 0 {
            let share = (self.merged_away + away) as f64 / self.above as f64;
            version.duplicates = share.min(1.0);
        }
        if let Some((rule, ratio)) = self.eviction {
            version.limits = rule.limits_after(version, ratio, sizes);
        }
    }
}

/// Where the tables of `levels` end, but for the last, and how long they are.
fn ends_of(version: &Version, levels: RangeInclusive<usize>) -> Vec<(Bytes, u64)> {
    let tables = levels
        .take_while(|level| *level <= version.bottom())
        .flat_map(|level| version.level(level));
    let ends = tables.map(|table| (table.meta.range.last.clone(), table.meta.len));
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    ends.pop();
    ends
}

/// The most bytes that `bytes` of input come to. One more read makes more records hot than when the
/// input was written, so that some are marked that were not (I8). A record has 19 bytes at least,
/// and a mark less than three. While all records are hot, none is marked.
fn output_of(version: &Version, bytes: u64) -> u64 {
    match version.is_young() {
        true => bytes,
        false => bytes + bytes / 6,
    }
}

/// Physical and HotRAP size of `bins`.
fn sizes_of<'a>(bins: impl Iterator<Item = &'a Bin>) -> (u64, u64) {
    bins.fold((0, 0), |(physical, hot_rap), bin| {
        (physical + bin.physical, hot_rap + bin.hot_rap)
    })
}

/// What becomes of `inputs` when their records up to `end`, or all, are in another table.
fn consumed(inputs: Vec<(usize, Arc<Tracked>)>, end: Option<&Bytes>) -> Result<Change> {
    let mut change = Change::default();
    for (_, table) in inputs {
        match end {
            Some(end) if table.meta.range.last > *end => {
                change.trimmed.push(Arc::new(table.trimmed(end.clone())?));
            }
            _ => change.removed.push(table),
        }
    }
    Ok(change)
}
