//! Which compaction to run next.

mod deletes;
mod giving_way;
mod looked;
mod migration;
mod past_all;
mod past_f;
mod runs;
mod small;
mod superseded;

use std::ops::RangeInclusive;

use bytes::{BufMut, BytesMut};

use super::bypass::BypassWorth;
use super::plan::{Cause, Plan, Running};
use super::table_size::TableSizes;
use super::targets::LevelTargets;
use super::upper::Upper;
use crate::ids::FileId;
use crate::key::{KeyRange, SeqNo};
use crate::placement::Output;
use crate::read::Passed;
use crate::sync::Arc;
use crate::version::{MAX_LEVELS, TableHandle, Version};
pub(crate) use looked::Looked;
use runs::{Landing, Manner};

/// How urgent it is to merge small tables. For comparison, a level at its target has 1.
const TIDYING: f64 = 0.25;

/// Chooses compactions for one keyspace at one moment.
pub(crate) struct Picker<'a> {
    pub(crate) version: &'a Arc<Version>,
    pub(crate) targets: &'a LevelTargets,
    pub(crate) running: &'a Running,
    pub(crate) l0_trigger: usize,
    /// The tiers of the levels at home on the fast tier, and of those below.
    pub(crate) tiers: [u8; 2],
    /// The last level that is at home on the fast tier.
    pub(crate) last_fast_home: usize,
    /// L0 tables of this epoch and above are left alone: older records are about to come in
    /// below them (I2).
    pub(crate) l0_limit: u64,
    /// The sequence number of the oldest snapshot or iterator: deletes above it are needed. If
    /// there is none, the highest number.
    pub(crate) oldest_reader: SeqNo,
    /// Which part of a table is hot, when records live by hotness.
    pub(crate) hotness: Option<&'a dyn Hotness>,
    /// What passing level f by is worth, when it may be done.
    pub(crate) bypass: Option<BypassWorth>,
    /// How much of the fast tier all levels above f are to take in the long run, in bytes.
    pub(crate) part_above_f: u64,
    /// How long full tables are.
    pub(crate) table_sizes: TableSizes,
    /// Where an iterator passed many deletes.
    pub(crate) passed: Option<&'a Passed>,
    /// The number of the table below f that scans look into often; 0 for none.
    pub(crate) often_looked: FileId,
}

/// What the picker asks about hotness.
pub(crate) trait Hotness {
    /// About how many bytes of the table's records are hot.
    fn hot_bytes(&self, table: &TableHandle) -> u64;
}

impl Picker<'_> {
    /// Compactions that bring records to where they belong, with how urgent each is, the most
    /// urgent first, one for each level. For L0 there is also a smaller one, for when the large one
    /// has no room, and for when none has any, one that takes all of L0 past level f. For the level
    /// above f there is first one that passes level f by, if that pays.
    pub(crate) fn due(&self) -> impl Iterator<Item = (f64, Plan)> {
        let mut scores: Vec<(f64, usize)> = (0..MAX_LEVELS - 1)
            .map(|level| (self.score(level), level))
            .filter(|(score, _)| *score >= 1.0)
            .collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        let of_levels = scores.into_iter().flat_map(|(score, level)| {
            let plans = match level {
                0 => vec![
                    self.pick_l0(usize::MAX),
                    self.pick_l0(self.l0_trigger),
                    self.pick_past_all(),
                ],
                _ if level + 1 == self.targets.last_fast() => {
                    vec![self.pick_bypass(level), self.pick_level(level)]
                }
                _ if level == self.targets.runs().start => {
                    vec![self.pick_sinking_run(), self.pick_run()]
                }
                _ => vec![self.pick_level(level)],
            };
            plans.into_iter().flatten().map(move |plan| (score, plan))
        });
        let outgrown = self.pick_outgrown().map(|plan| (1.0, plan));
        of_levels.chain(outgrown)
    }

    /// Compactions that give back what deletes and newer records hide, merge runs that scans look
    /// into, or merge small tables. To find one takes a look at every table, so this is asked only
    /// when nothing else can start.
    pub(crate) fn tidying(&self) -> impl Iterator<Item = (f64, Plan)> {
        let picks = [Self::pick_for_hidden, Self::pick_looked, Self::pick_small].into_iter();
        let picks = picks.zip([TIDYING * 3.0, TIDYING * 2.0, TIDYING]);
        picks.filter_map(|(pick, score)| Some((score, pick(self)?)))
    }

    /// How far a level is over its target; from 1 on it is compacted.
    fn score(&self, level: usize) -> f64 {
        let here = &self.version.levels[level];
        if level == 0 {
            return self.l0().len() as f64 / self.l0_trigger as f64;
        }
        let runs = self.targets.runs();
        if runs.contains(&level) {
            // The highest one stands for all, and is to have room for what comes down next.
            let sinks = f64::from(u8::from(!here.tables.is_empty()));
            let is_highest = level == runs.start;
            return if is_highest {
                self.fullness_of_runs().max(sinks)
            } else {
                0.0
            };
        }
        match self.targets.bytes[level] {
            0 if here.bytes > 0 => 1.01,
            0 => 0.0,
            target => here.bytes as f64 / target as f64,
        }
    }

    /// The tables of L0 that may be compacted, newest first.
    fn l0(&self) -> &[Arc<TableHandle>] {
        let tables = &self.version.levels[0].tables;
        let newer = tables.partition_point(|table| table.meta.epoch >= self.l0_limit);
        &tables[newer..]
    }

    /// A contiguous oldest run of L0 (I2) of at most `most` tables, or only its oldest table if
    /// that meets nothing and can simply move.
    fn pick_l0(&self, most: usize) -> Option<Plan> {
        let tables = self.l0();
        // While an L0 job runs, its inputs are the oldest run; the rest must wait for it.
        if tables.iter().any(|table| self.running.has_input(table)) {
            return None;
        }
        let (oldest, newer) = tables.split_last()?;
        if !newer.iter().any(|t| t.meta.range.meets(&oldest.meta.range)) {
            let alone = self.plan(0, vec![Arc::clone(oldest)])?;
            if alone.is_move {
                return self.admit(alone);
            }
        }
        let run = &tables[tables.len().saturating_sub(most)..];
        let plan = self.plan(0, run.to_vec())?;
        self.admit(plan)
    }

    /// The table whose move down brings most for its cost: (FileSize − HotSize) / (FileSize +
    /// OverlappingBytes), as HotRAP's §3.5 has it; where all is hot, the oldest table.
    fn pick_level(&self, level: usize) -> Option<Plan> {
        let (_, plan) = self.pick_of(level, |_| true)?;
        Some(plan)
    }

    /// As [`Picker::pick_level`], among the tables that `may` go. Also returns what the move brings
    /// for its cost, 0 to 1.
    fn pick_of(&self, level: usize, may: impl Fn(&TableHandle) -> bool) -> Option<(f64, Plan)> {
        let is_crossing = level == self.targets.last_fast();
        // There may be thousands of tables: only those that are chosen are planned.
        let mut candidates: Vec<(f64, &Arc<TableHandle>)> = self.version.levels[level]
            .tables
            .iter()
            .filter(|table| may(table) && !self.running.has_input(table))
            .filter_map(|table| {
                let size = table.meta.len as f64;
                let to = self.targets.next(level, self.version, &table.meta.range)?;
                let overlap = self.met_on_way(to, &table.meta.range);
                let stays = match self.hotness {
                    Some(hotness) if is_crossing => hotness.hot_bytes(table) as f64,
                    _ => 0.0,
                };
                Some(((size - stays).max(0.0) / (size + overlap as f64), table))
            })
            .collect();
        let age = |table: &Arc<TableHandle>| table.meta.id;
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| age(a.1).cmp(&age(b.1))));
        candidates.into_iter().find_map(|(worth, table)| {
            let plan = self.plan_as(level, vec![Arc::clone(table)], Manner::CROSSING)?;
            Some((worth, self.admit(plan)?))
        })
    }

    /// The levels that records which come to `to` go through: `to`, and if that is out of use, also
    /// those below it down to the first that is in use. Measured by what a level out of use holds
    /// itself, coming to it would cost next to nothing, and whatever meets its tables would go
    /// there first.
    fn way(&self, to: usize) -> RangeInclusive<usize> {
        to..=self.targets.in_use(to)
    }

    /// Bytes of the tables that records within `range` meet from `to` on until they are on a level
    /// in use.
    fn met_on_way(&self, to: usize, range: &KeyRange) -> u64 {
        let levels = &self.version.levels[self.way(to)];
        let met = levels.iter().flat_map(|level| level.overlapping(range));
        met.map(|table| table.meta.len).sum()
    }

    /// The next compaction that brings a table of `from` that is `meant` a level down: of L0 all of
    /// it, of other levels the first such table in key order.
    pub(crate) fn pick_range(&self, from: usize, meant: &Meant) -> Manual {
        let here = &self.version.levels[from].tables;
        let mut tables = here.iter().filter(|table| meant.holds(from, table));
        self.manual(tables.next().map(|first| match from {
            0 => self.pick_l0(usize::MAX),
            _ => self.plan(from, vec![Arc::clone(first)]),
        }))
    }

    /// The next rewrite in place of a table of `level` that is `meant`, and whose deletes or older
    /// versions go by that.
    pub(crate) fn pick_rewrite(&self, level: usize, meant: &Meant) -> Manual {
        let here = &self.version.levels[level].tables;
        let is_due = |table: &TableHandle| {
            let goes = self.drops(table, level) || self.keeps_much(table, deletes::DUE_BY_HAND);
            meant.holds(level, table) && goes
        };
        let table = here.iter().find(|table| is_due(table));
        self.manual(table.map(|table| Some(self.rewrite(level, table))))
    }

    /// The outcome of looking for a table that is meant, and of planning its way.
    fn manual(&self, found: Option<Option<Plan>>) -> Manual {
        let Some(plan) = found else {
            return Manual::Done;
        };
        let plan = plan.and_then(|plan| self.admit(plan));
        plan.map_or(Manual::Wait, |plan| Manual::Start(Box::new(plan)))
    }

    /// Writes `table` of `level` anew, on the tier where it belongs.
    fn rewrite(&self, level: usize, table: &Arc<TableHandle>) -> Plan {
        self.in_place(level, vec![Arc::clone(table)], Cause::Hidden)
    }

    /// Writes neighbours on `level` anew, on the tier where they belong.
    fn in_place(&self, level: usize, tables: Vec<Arc<TableHandle>>, cause: Cause) -> Plan {
        Plan {
            from: level,
            to: level,
            upper: Upper::Tables(tables),
            between: Vec::new(),
            lower: Vec::new(),
            outputs: vec![self.output(level)],
            // Nothing comes to a level below f from elsewhere.
            is_crossing: false,
            bypass: None,
            version: Arc::clone(self.version),
            is_move: false,
            cause,
        }
    }

    /// How long a full table of `level` is, in bytes.
    fn table_size(&self, level: usize) -> u64 {
        self.table_sizes.of(level, self.version.levels[level].bytes)
    }

    /// Whether `table`, written anew at `level`, would be rid of its deletes, except for those that
    /// snapshots need. It would if nothing lies below that the deletes hide. If all of the table is
    /// newer than the oldest snapshot, snapshots need all of its deletes.
    fn drops(&self, table: &TableHandle, level: usize) -> bool {
        let mut below = self.version.levels.iter().skip(level + 1);
        let range = &table.meta.range;
        table.meta.deletes > 0
            && table.meta.min_seq <= self.oldest_reader
            && below.all(|level| level.overlapping(range).is_empty())
    }

    fn admit(&self, plan: Plan) -> Option<Plan> {
        self.running.admits(&plan).then_some(plan)
    }

    fn plan(&self, from: usize, upper: Vec<Arc<TableHandle>>) -> Option<Plan> {
        self.plan_as(from, upper, Manner::Merged)
    }

    fn plan_as(&self, from: usize, upper: Vec<Arc<TableHandle>>, manner: Manner) -> Option<Plan> {
        let Landing { to, between, lower } = self.landing(from, &upper, manner)?;
        let last_fast = self.targets.last_fast();
        let is_alone = between.is_empty() && lower.is_empty() && upper.len() == 1;
        let mut outputs = vec![self.output(to)];
        // Where tiers are not those of levels, a table stays on its own. So it does between slow
        // tiers.
        let is_slow = from > self.last_fast_home && upper[0].meta.tier > self.tiers[0];
        if is_alone && (self.last_fast_home < last_fast || is_slow) {
            outputs[0].tier = upper[0].meta.tier;
        }
        // A move drops nothing: deletes that hide nothing any more would come to the last level,
        // and stay.
        let is_move =
            is_alone && upper[0].meta.tier == outputs[0].tier && !self.drops(&upper[0], to);
        let is_crossing = from == last_fast;
        // Hot records stay where they are, or come up.
        if is_crossing && self.hotness.is_some() {
            outputs.push(self.output(from));
        }
        Some(Plan {
            from,
            to,
            upper: Upper::Tables(upper),
            between,
            lower,
            outputs,
            is_crossing,
            bypass: None,
            version: Arc::clone(self.version),
            is_move,
            cause: Cause::Level,
        })
    }

    /// Output in tables of `level`, on the tier where they belong.
    fn output(&self, level: usize) -> Output {
        let is_fast = level <= self.last_fast_home;
        Output {
            level: level as u8,
            tier: self.tiers[usize::from(!is_fast)],
        }
    }
}

/// What a compaction by hand is to bring down from a level.
#[derive(Debug)]
pub(crate) struct Meant {
    pub(crate) range: KeyRange,
    /// Tables of L0 from this number on are not meant: tables may be written or promoted meanwhile
    /// without end.
    pub(crate) before: FileId,
}

impl Meant {
    /// Leaves out the keys up to `last`. What comes to lie there from now on has moved there
    /// meanwhile, and more may come.
    pub(crate) fn pass(&mut self, last: &[u8]) {
        let mut first = BytesMut::with_capacity(last.len() + 1);
        first.extend_from_slice(last);
        first.put_u8(0);
        self.range.first = first.freeze();
    }

    fn holds(&self, level: usize, table: &TableHandle) -> bool {
        let meta = &table.meta;
        self.range.first <= self.range.last
            && meta.range.meets(&self.range)
            && (level > 0 || meta.id < self.before)
    }

    /// All that lies in `range`.
    #[cfg(test)]
    pub(crate) fn all_of(range: &KeyRange) -> Self {
        Self {
            range: range.clone(),
            before: FileId::MAX,
        }
    }
}

/// What [`Picker::pick_range`] or [`Picker::pick_rewrite`] found.
pub(crate) enum Manual {
    /// Nothing of the range is left in the level.
    Done,
    /// What is left is held by running jobs.
    Wait,
    /// Run this.
    Start(Box<Plan>),
}

#[cfg(test)]
mod tests {
    pub(super) mod by_hotness;

    use bytes::Bytes;

    use super::*;
    use crate::levels::targets::FastRoom;
    use crate::storage::Memory;
    use crate::version::MAX_LEVELS;
    use crate::{Db, Keyspace, Options};

    pub(super) const F: usize = 2;
    pub(super) const ABOVE: usize = F - 1;
    pub(super) const SLOW: usize = MAX_LEVELS - 1;
    pub(super) const MIB: u64 = 1 << 20;

    /// A level below f that is out of use: little lies on the slow tier.
    pub(super) const UNUSED: usize = SLOW - 1;

    /// What the levels above f are to hold, in bytes.
    pub(super) const PART_ABOVE_F: u64 = MIB / 4;

    /// What level f is to hold, in bytes.
    pub(super) const PLANNED: u64 = 7 * MIB;

    /// A table of one key, or of two as in `a..m`: its level, keys, bytes and tier. The
    /// first of several is the oldest.
    pub(super) type Drawn = (usize, &'static str, u64, u8);

    /// What `choose` finds among `tables` when level f has room for `room` bytes now.
    pub(super) fn with_picker<T>(
        tables: Vec<Drawn>,
        room: u64,
        choose: impl FnOnce(&Picker<'_>) -> T,
    ) -> T {
        let medium = Arc::new(Memory::new());
        let builder = Db::builder(Options::two_tiers("/fast", 16 * MIB, "/slow"));
        let builder = builder.medium(0, medium.clone()).medium(1, medium);
        let db = builder.open().unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        let sample = db.tree().pin().version.levels[0].tables[0].clone();
        let table = |(id, (level, key, len, tier)): (usize, Drawn)| {
            let mut table = (*sample).clone();
            let (first, last) = key.split_once("..").unwrap_or((key, key));
            let [first, last] = [first, last].map(|key| Bytes::from_static(key.as_bytes()));
            (table.meta.level, table.meta.len, table.meta.tier) = (level as u8, len, tier);
            table.meta.id = id as FileId;
            (table.meta.range.first, table.meta.range.last) = (first, last);
            Arc::new(table)
        };
        let tables = tables.into_iter().enumerate().map(table).collect();
        let version = Arc::new(Version::default().with(&[], tables));
        let room = FastRoom {
            planned: PLANNED / 7 * 8,
            last: room,
            cold: 1.0,
        };
        let engine = db.engine();
        let targets = LevelTargets::new(&engine.options, &engine.sizes, &version, F as u8, room);
        assert_eq!(targets.planned_last(), PLANNED);
        choose(&Picker {
            version: &version,
            targets: &targets,
            running: &Running::default(),
            l0_trigger: engine.sizes.l0_trigger,
            tiers: engine.level_tiers(),
            last_fast_home: F,
            l0_limit: u64::MAX,
            oldest_reader: SeqNo::MAX,
            hotness: None,
            bypass: Some(BypassWorth {
                fresh: 0.7,
                cold: 1.0,
            }),
            part_above_f: PART_ABOVE_F,
            table_sizes: TableSizes::new(
                &engine.options,
                &engine.sizes,
                engine.fast().capacity(),
                F as u8,
            ),
            passed: None,
            often_looked: 0,
        })
    }

    /// As long as there were any tables on a level out of use, they drew all that came down.
    #[test]
    fn a_job_takes_along_what_it_meets_between_and_nothing_else() {
        let taken = |unused: &'static str| {
            let tables = [
                (ABOVE, "met", MIB, 0),
                (F, "met", MIB, 0),
                (UNUSED, unused, MIB, 1),
                (SLOW, "met", MIB, 1),
            ];
            with_picker(tables.to_vec(), PLANNED, |picker| {
                let crossing = picker.pick_level(F).unwrap();
                let above = &picker.version.levels[ABOVE].tables;
                let bypass = picker.plan_bypass(ABOVE, &above[0]).unwrap();
                assert_eq!(crossing.lower[0].meta.range.first, "met");
                assert_eq!(bypass.lower[0].meta.range.first, "met");
                assert_eq!([crossing.to, bypass.to], [SLOW; 2]);
                [crossing, bypass].map(|plan| {
                    let between = plan.between.iter();
                    between
                        .map(|b| (b.level, b.tables.len()))
                        .collect::<Vec<_>>()
                })
            })
        };
        assert_eq!(taken("met"), [vec![(UNUSED, 1)], vec![(UNUSED, 1)]]);
        assert!(taken("beside").iter().all(Vec::is_empty));
    }

    /// Measured by what a level out of use holds, a table that meets its tables seems to go down
    /// for nothing. Such tables went there before all others.
    #[test]
    fn what_comes_to_a_level_out_of_use_costs_what_it_meets_in_the_end() {
        let tables = [
            (F, "cheap", MIB, 0),
            (F, "dear", MIB, 0),
            (UNUSED, "dear", MIB / 64, 1),
            (SLOW, "cheap", 3 * MIB, 1),
            (SLOW, "dear", 4 * MIB, 1),
        ];
        let first = with_picker(tables.to_vec(), PLANNED, |picker| {
            let plan = picker.pick_level(F).unwrap();
            plan.upper.tables()[0].meta.range.first.clone()
        });
        assert_eq!(first, "cheap");
    }

    /// Else a table of a tier between would be written anew for each level that it goes down.
    #[test]
    fn a_table_that_goes_down_alone_below_f_keeps_its_slow_tier() {
        let plan = |tier: u8| {
            let tables = vec![(UNUSED, "alone", MIB, tier)];
            with_picker(tables, PLANNED, |picker| {
                let tables = picker.version.levels[UNUSED].tables.clone();
                let plan = picker.plan(UNUSED, tables.to_vec()).unwrap();
                (plan.is_move, plan.outputs[0].tier)
            })
        };
        assert_eq!(plan(2), (true, 2));
        assert_eq!(plan(1), (true, 1));
        assert_eq!(plan(0), (false, 1));
    }

    /// A table that met nothing moved down as it was, whatever it held. Where keys rose, and each
    /// was written and deleted within one memtable, the deletes came to the last level that way,
    /// and stayed there for good.
    #[test]
    fn deletes_that_hide_nothing_are_not_moved_to_the_last_level() {
        let mut options = Options::one_tier("/fast");
        options.l0_trigger = 1;
        let db = Db::builder(options).medium(0, Arc::new(Memory::new()));
        let db = db.open().unwrap();
        for key in ["a", "b", "c"] {
            db.put(key, "value").unwrap();
            db.delete(key).unwrap();
            db.flush().unwrap();
        }
        db.wait_idle().unwrap();
        let metrics = Keyspace::metrics(&db);
        assert_eq!((metrics.records, metrics.deletes), (0, 0));
    }
}
