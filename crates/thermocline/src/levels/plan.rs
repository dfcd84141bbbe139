//! What a compaction takes, where it writes, and what it keeps others from touching.

use super::bypass::Bypass;
use super::upper::Upper;
use crate::ids::FileId;
use crate::key::KeyRange;
use crate::metrics::Purpose;
use crate::placement::Output;
use crate::sync::Arc;
use crate::version::{TableHandle, Version};

/// Key ranges of levels that a running job writes to, or that nobody may write to meanwhile (I11).
pub(crate) type Locks = Vec<(usize, KeyRange)>;

/// A compaction as picked: fixed from then on.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) from: usize,
    /// The level below, or `from` itself if tables are written anew where they lie.
    pub(crate) to: usize,
    /// What comes from `from`.
    pub(crate) upper: Upper,
    /// Tables of the levels that it passes and takes along, level by level, the highest first.
    pub(crate) between: Vec<Between>,
    /// Tables of `to` that meet what comes there.
    pub(crate) lower: Vec<Arc<TableHandle>>,
    /// Where records may go, the level `to` first; the job's router chooses among these.
    pub(crate) outputs: Vec<Output>,
    /// Whether it goes from f or a level above it to a level below f.
    pub(crate) is_crossing: bool,
    /// The part of level f that it passes by, if it comes from the level above and does so.
    pub(crate) bypass: Option<Bypass>,
    /// The version it was picked from, until the job begins: this has to be the present one still.
    pub(crate) version: Arc<Version>,
    /// Give the table its new level without rewriting it.
    pub(crate) is_move: bool,
    pub(crate) cause: Cause,
}

/// The tables that a compaction takes along from a level that it passes, in key order.
#[derive(Debug, Clone)]
pub(crate) struct Between {
    pub(crate) level: usize,
    /// Whether the level is one of those down to f.
    pub(crate) is_fast: bool,
    pub(crate) tables: Vec<Arc<TableHandle>>,
}

/// What a compaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A level holds more than its target or lies on another tier than it should, or somebody
    /// asked for it.
    Level,
    /// Deletes and newer records come to what they hide, or deletes go.
    Hidden,
    /// Small tables of one level become one.
    SmallTables,
    /// A table is worth another tier than the one it lies on.
    Migration,
}

impl Plan {
    /// This plan, for another reason.
    pub(crate) fn because(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// Whether it writes tables anew on the level where they lie.
    pub(crate) fn is_in_place(&self) -> bool {
        self.from == self.to
    }

    /// Whether it writes a table anew on another tier.
    pub(crate) fn is_migration(&self) -> bool {
        self.cause == Cause::Migration
    }

    fn migrating_bytes(&self) -> u64 {
        if self.is_migration() {
            self.upper.bytes()
        } else {
            0
        }
    }

    /// What its reads and writes are counted for.
    pub(crate) fn purpose(&self) -> Purpose {
        match self.is_migration() {
            true => Purpose::Migration,
            false => Purpose::Compaction,
        }
    }

    /// Whether it can wait for room: it brings no level nearer to its target or its tier, or L0
    /// can go down level by level.
    pub(crate) fn can_wait(&self) -> bool {
        self.is_in_place() && self.cause != Cause::Level || self.is_descent()
    }

    /// All inputs.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        let between = self.between.iter().flat_map(|between| &between.tables);
        self.upper.tables().iter().chain(between).chain(&self.lower)
    }

    /// What it takes along from levels down to f.
    pub(crate) fn fast_between(&self) -> impl Iterator<Item = &Between> {
        self.between.iter().filter(|between| between.is_fast)
    }

    /// The tables that a crossing brings down, those that others decide nothing more about: of
    /// `from`, and of the fast levels that it passes.
    pub(crate) fn comes_down(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        let between = self.fast_between().flat_map(|between| &between.tables);
        self.upper.tables().iter().chain(between)
    }

    /// Whether it takes all of L0 past level f, with all that lies between.
    pub(crate) fn is_descent(&self) -> bool {
        self.from == 0 && self.is_crossing && !self.is_move
    }

    /// The range of user keys of all inputs.
    pub(crate) fn range(&self) -> Option<KeyRange> {
        union(self.inputs())
    }

    /// The range of user keys of what comes down. On the level that it comes from, and of a
    /// crossing on level f, it may write to no more than this (I11).
    pub(crate) fn hull(&self) -> Option<KeyRange> {
        union(self.comes_down())
    }

    /// Bytes of keys and values of what comes down. Counts of a damaged or crafted table may come
    /// to anything.
    pub(crate) fn raw_bytes(&self) -> u64 {
        let bytes = self.comes_down().map(|table| table.raw_bytes());
        bytes.fold(0, u64::saturating_add)
    }

    /// The part of the plan that needs no room: its last table, of L0 the oldest (I2), goes down by
    /// an edit alone. None if that table meets another input or changes its tier. None either for a
    /// plan that passes level f by, or that writes tables anew where they lie.
    pub(crate) fn as_move(&self) -> Option<Plan> {
        let table = self.upper.tables().last()?;
        let mut others = self.inputs().filter(|other| !Arc::ptr_eq(other, table));
        let is_met = others.any(|other| other.meta.range.meets(&table.meta.range));
        let stays_on_tier = self.outputs.first()?.tier == table.meta.tier;
        let goes_down = self.to != self.from && self.bypass.is_none();
        (goes_down && stays_on_tier && !is_met).then(|| Plan {
            upper: Upper::Tables(vec![Arc::clone(table)]),
            between: Vec::new(),
            lower: Vec::new(),
            is_move: true,
            ..self.clone()
        })
    }

    /// The highest epoch of its inputs of L0, if it is a compaction of L0 (I2).
    pub(crate) fn newest_of_l0(&self) -> Option<u64> {
        let epochs = self.upper.tables().iter().map(|table| table.meta.epoch);
        epochs.max().filter(|_| self.from == 0)
    }

    /// What the job keeps others from writing to meanwhile (I11): its outputs, and on each level
    /// between `from` and `to` the range of what comes from above that level.
    ///
    /// Only keys of that range pass the level, downwards or up to `from`. When the job is picked,
    /// none of them lies there, or the job takes it along, or a bypass knows which do. None may
    /// come there until the job is installed, or what has passed would lie below what is older
    /// (I1). Locks exclude each other both ways, so the job does not begin either beside one that
    /// is about to bring such a key, of which the version says nothing yet. A job that takes keys
    /// from such a level to `to` is kept out by the lock on `to`. A level that is empty and out of
    /// use counts too: a job that was picked when it was in use may be writing to it.
    pub(crate) fn locks(&self) -> Locks {
        let hull = self.hull();
        let lock = |output: &Output| {
            let level = usize::from(output.level);
            let range = if level == self.from {
                hull.clone()
            } else {
                self.range()
            };
            range.map(|range| (level, range))
        };
        let outputs = self.outputs.iter().filter_map(lock);
        let passed = self.from + 1..self.to;
        let passed = passed.filter_map(|level| Some((level, self.range_above(level)?)));
        outputs.chain(passed).collect()
    }

    /// The range of user keys of its inputs that come from above `level`.
    fn range_above(&self, level: usize) -> Option<KeyRange> {
        let between = self.between.iter().filter(|between| between.level < level);
        let between = between.flat_map(|between| &between.tables);
        union(self.upper.tables().iter().chain(between))
    }
}

/// The smallest range that holds all of `tables`.
pub(crate) fn union<'a>(
    mut tables: impl Iterator<Item = &'a Arc<TableHandle>>,
) -> Option<KeyRange> {
    let mut range = tables.next()?.meta.range.clone();
    for table in tables {
        range.include(&table.meta.range);
    }
    Some(range)
}

/// The jobs that run in a keyspace: their inputs and their locks.
#[derive(Debug, Default)]
pub(crate) struct Running {
    inputs: Vec<FileId>,
    locks: Vec<(u64, Locks)>,
    /// Bytes of the tables on their way to another tier.
    migrating: u64,
    next: u64,
}

impl Running {
    /// Tells what runs now from what ran at any other time.
    pub(crate) fn moment(&self) -> (u64, usize) {
        (self.next, self.locks.len())
    }

    /// Bytes of the tables on their way to another tier.
    pub(crate) fn migrating_bytes(&self) -> u64 {
        self.migrating
    }

    pub(crate) fn has_input(&self, table: &TableHandle) -> bool {
        self.inputs.contains(&table.meta.id)
    }

    /// Whether `plan` may start beside what runs: no shared input, no meeting locks (I11).
    pub(crate) fn admits(&self, plan: &Plan) -> bool {
        let meets = |(level, range): &(usize, KeyRange)| {
            let others = self.locks.iter().flat_map(|(_, locks)| locks);
            others
                .into_iter()
                .any(|(l, r)| l == level && r.meets(range))
        };
        !plan.inputs().any(|table| self.has_input(table)) && !plan.locks().iter().any(meets)
    }

    /// Enters `plan`. Returns the number with which to end it.
    pub(crate) fn start(&mut self, plan: &Plan) -> u64 {
        self.next += 1;
        self.migrating += plan.migrating_bytes();
        self.inputs.extend(plan.inputs().map(|table| table.meta.id));
        self.locks.push((self.next, plan.locks()));
        self.next
    }

    /// Lets others have what job `number` of `plan` held.
    pub(crate) fn end(&mut self, number: u64, plan: &Plan) {
        self.migrating -= plan.migrating_bytes();
        self.locks.retain(|(n, _)| *n != number);
        self.inputs
            .retain(|id| !plan.inputs().any(|table| table.meta.id == *id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::storage::Memory;
    use crate::{Db, TierOptions};

    /// A version with two L0 tables over the same keys and one behind them.
    fn version() -> (Db, Arc<Version>) {
        let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
        options.l0_trigger = 20;
        let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        for keys in [["a", "m"], ["c", "p"], ["r", "z"]] {
            for key in keys {
                db.put(key, "v").unwrap();
            }
            db.flush().unwrap();
        }
        let version = Arc::clone(&db.tree().pin().version);
        (db, version)
    }

    fn plan(version: &Arc<Version>, table: usize, to: usize) -> Plan {
        Plan {
            from: 0,
            to,
            upper: Upper::Tables(vec![Arc::clone(&version.levels[0].tables[table])]),
            between: Vec::new(),
            lower: Vec::new(),
            outputs: vec![Output {
                level: to as u8,
                tier: 0,
            }],
            is_crossing: false,
            bypass: None,
            version: Arc::clone(version),
            is_move: false,
            cause: Cause::Level,
        }
    }

    #[test]
    fn jobs_whose_hulls_meet_on_a_level_exclude_each_other() {
        let (_db, version) = version();
        // Newest first: 0 is r..z, 1 is c..p, 2 is a..m.
        let mut running = Running::default();
        let first = plan(&version, 2, 1);
        let number = running.start(&first);
        assert!(
            !running.admits(&plan(&version, 1, 1)),
            "their hulls share c to m"
        );
        assert!(
            running.admits(&plan(&version, 0, 1)),
            "r to z meets nothing"
        );
        let elsewhere = Plan {
            from: 1,
            ..plan(&version, 1, 2)
        };
        assert!(running.admits(&elsewhere), "another level");
        assert!(!running.admits(&plan(&version, 2, 3)), "an input in use");
        running.end(number, &first);
        assert!(running.locks.is_empty() && running.inputs.is_empty());
        assert!(running.admits(&plan(&version, 1, 1)) && running.admits(&first));
    }

    /// What came to lie there meanwhile would be older than what has passed, and would lie above it
    /// (I1). It makes no difference which job came first.
    #[test]
    fn nobody_writes_to_a_level_within_the_hull_of_a_job_that_passes_it() {
        let (_db, version) = version();
        // a to m past L1 and L2, into what is there of r to z.
        let passes = Plan {
            lower: vec![Arc::clone(&version.levels[0].tables[0])],
            ..plan(&version, 2, 3)
        };
        let into = |table, to| Plan {
            from: to - 1,
            ..plan(&version, table, to)
        };
        let admits = |first: &Plan, second: &Plan| {
            let mut running = Running::default();
            running.start(first);
            running.admits(second)
        };
        for level in 1..=2 {
            let meets = into(1, level);
            assert!(!admits(&passes, &meets), "c to m on L{level}");
            assert!(!admits(&meets, &passes), "c to m on L{level}");
        }
        assert!(!admits(&passes, &into(1, 3)), "c to m where it goes");
        assert!(admits(&passes, &into(1, 4)), "below it");
    }

    /// Nothing of what the job joins passes these levels, so others need not wait for it.
    #[test]
    fn a_job_locks_no_more_of_a_level_that_it_passes_than_what_it_brings() {
        let (_db, version) = version();
        let passes = Plan {
            lower: vec![Arc::clone(&version.levels[0].tables[0])],
            ..plan(&version, 2, 3)
        };
        let behind = KeyRange {
            first: bytes::Bytes::from_static(b"n"),
            last: bytes::Bytes::from_static(b"z"),
        };
        for (level, range) in passes.locks() {
            assert_eq!(range.meets(&behind), level == 3, "L{level}");
        }
    }
}
