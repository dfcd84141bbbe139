//! Where what goes past level f lands: in a run, or in a merge with all runs that it meets.
//!
//! Under a load, what comes down is a small part of what it meets on the first slow level in use.
//! Merged at once, each byte that comes down writes all of that anew. So it is laid down as it is,
//! on a level between that has nothing of its keys: a *run*. Once the runs are full, jobs merge all
//! of them with what is below. That is the lazy levelling of Dostoevsky (Dayan and Idreos, 2018),
//! key range by key range.
//!
//! Where levels are in shape, a crossing meets a few times its bytes, and is merged at once: to lie
//! in a run first would be written once more, and a look more for each scan.
//!
//! Where a run has room below it, its tables sink there by an edit. Where none has, what comes down
//! joins the highest one. So crossings are quick, and what the slow disk has to do for them is done
//! apart: once the runs hold a quarter of what is below, or when it comes to that.

use std::ops::Range;

use super::Picker;
use crate::key::KeyRange;
use crate::levels::plan::{Between, Plan, union};
use crate::sync::Arc;
use crate::version::TableHandle;

/// What is below the runs may be so many times what they hold. Then they are merged with it, where
/// that writes least: a byte that comes down has about so many others written anew.
const BELOW_RUNS: u64 = 4;

/// Where all runs are taken, what comes down joins the highest one if that holds at most so many
/// times its bytes there...
const MOST_IN_TOP: u64 = 2;

/// ...or if the merge of all of them would write at least so many times as much.
const MERGE_TIMES: u64 = 8;

/// How what comes down past level f gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It is merged with what it meets.
    Merged,
    /// It is laid down in a run if to merge it would write more than so many times what it brings.
    Lazy(u64),
}

impl Manner {
    /// Of a crossing of one table.
    pub(super) const CROSSING: Self = Self::Lazy(16);
}

/// Where the tables of a job go, and what they are merged with.
pub(super) struct Landing {
    pub(super) to: usize,
    pub(super) between: Vec<Between>,
    pub(super) lower: Vec<Arc<TableHandle>>,
}

impl Picker<'_> {
    /// Where tables `upper` of `from` go; none from the last level. Those of the level above f that
    /// pass f by count as of f.
    ///
    /// They pass no table that is older (I1): of the runs, those that meet them are taken along,
    /// and on each further level those that meet any of these.
    pub(super) fn landing(
        &self,
        from: usize,
        upper: &[Arc<TableHandle>],
        manner: Manner,
    ) -> Option<Landing> {
        let mut range = union(upper.iter())?;
        let runs = self.targets.runs();
        if from + 1 < runs.start || from + 1 >= runs.end {
            let to = self.targets.next(from, self.version, &range)?;
            return Some(Landing {
                to,
                between: Vec::new(),
                lower: self.met(to, &range),
            });
        }
        let free = (from + 1..runs.end).take_while(|level| self.met(*level, &range).is_empty());
        let run = free.last();
        let between = self.taken_along(from + 1..runs.end, false, &mut range);
        let lower = self.met(runs.end, &range);
        let bytes = |tables: &[Arc<TableHandle>]| tables.iter().map(|t| t.meta.len).sum::<u64>();
        let comes = bytes(upper) + between.iter().map(|b| bytes(&b.tables)).sum::<u64>();
        let merged = Landing {
            to: runs.end,
            between,
            lower,
        };
        let is_dear = |times: u64| bytes(&merged.lower) > times.saturating_mul(comes);
        if !matches!(manner, Manner::Lazy(times) if is_dear(times)) {
            return Some(merged);
        }
        let top = self.met(from + 1, &union(upper.iter())?);
        let merged_bytes = comes + bytes(&merged.lower);
        let joins = |top: u64| top <= (MOST_IN_TOP * bytes(upper)).max(merged_bytes / MERGE_TIMES);
        let (to, lower) = match run {
            Some(free) => (free, Vec::new()),
            None if from + 1 == runs.start && joins(bytes(&top)) => (runs.start, top),
            None => return Some(merged),
        };
        Some(Landing {
            to,
            between: Vec::new(),
            lower,
        })
    }

    /// The tables that what comes down within `range` takes along on its way through `levels`,
    /// which are those down to f or are not. The range becomes that of all of it.
    pub(super) fn taken_along(
        &self,
        levels: Range<usize>,
        is_fast: bool,
        range: &mut KeyRange,
    ) -> Vec<Between> {
        let mut between = Vec::new();
        for level in levels {
            let tables = self.met(level, range);
            tables
                .iter()
                .for_each(|table| range.include(&table.meta.range));
            if !tables.is_empty() {
                between.push(Between {
                    level,
                    is_fast,
                    tables,
                });
            }
        }
        between
    }

    /// How much the runs hold, set against what they are to hold.
    pub(super) fn fullness_of_runs(&self) -> f64 {
        let runs = self.targets.runs();
        let below = self.version.levels[runs.end].bytes;
        let held: u64 = self.version.levels[runs].iter().map(|run| run.bytes).sum();
        held.saturating_mul(BELOW_RUNS) as f64 / below.max(1) as f64
    }

    /// The move of a table of the highest run to one below that has room for it.
    pub(super) fn pick_sinking_run(&self) -> Option<Plan> {
        let top = self.targets.runs().start;
        let mut tables = self.version.levels[top].tables.iter();
        tables.find_map(|table| {
            let range = &table.meta.range;
            let has_room = self.version.levels[top + 1].overlapping(range).is_empty();
            if top + 1 >= self.targets.runs().end || !has_room || self.running.has_input(table) {
                return None;
            }
            let plan = self.plan_as(top, vec![Arc::clone(table)], Manner::Lazy(1))?;
            self.admit(plan).filter(|plan| plan.is_move)
        })
    }

    /// Once the runs are full, the merge of all of them with what is below, where that writes least
    /// for what it brings down.
    pub(super) fn pick_run(&self) -> Option<Plan> {
        if self.fullness_of_runs() < 1.0 {
            return None;
        }
        let runs = self.targets.runs();
        let met = |level: usize, range: &KeyRange| {
            let tables = self.version.levels[level].overlapping(range).iter();
            tables.map(|table| table.meta.len).sum::<u64>()
        };
        let free = |table: &&Arc<TableHandle>| !self.running.has_input(table);
        let of = |level: usize| self.version.levels[level].tables.iter().filter(free);
        let mut candidates: Vec<(f64, usize, &Arc<TableHandle>)> = runs
            .clone()
            .flat_map(|level| of(level).map(move |table| (level, table)))
            .map(|(level, table)| {
                let range = &table.meta.range;
                let brings: u64 = (level..runs.end).map(|level| met(level, range)).sum();
                let cost = met(runs.end, range) as f64 / brings.max(1) as f64;
                (cost, level, table)
            })
            .collect();
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
        candidates
            .into_iter()
            .find_map(|(_, level, table)| self.admit(self.plan(level, vec![Arc::clone(table)])?))
    }

    /// The merge of the run that scans look into often.
    pub(super) fn pick_looked(&self) -> Option<Plan> {
        let mut runs = self.targets.runs();
        runs.find_map(|level| {
            let mut tables = self.version.levels[level].tables.iter();
            let table = tables.find(|table| table.meta.id == self.often_looked)?;
            self.admit(self.plan(level, vec![Arc::clone(table)])?)
        })
    }

    fn met(&self, level: usize, range: &KeyRange) -> Vec<Arc<TableHandle>> {
        self.version.levels[level].overlapping(range).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::FileId;
    use crate::levels::picker::tests::{Drawn, F, MIB, PLANNED, SLOW, with_picker};

    /// The levels between f and the slow level in use.
    const RUNS: [usize; 3] = [F + 1, F + 2, F + 3];

    /// The next crossing of level f among `tables`.
    fn crossing(tables: &[Drawn], manner: Manner) -> Plan {
        with_picker(tables.to_vec(), PLANNED, |picker| {
            assert_eq!(picker.targets.runs(), F + 1..SLOW);
            let upper = picker.version.levels[F].tables.to_vec();
            picker.plan_as(F, upper, manner).unwrap()
        })
    }

    fn lazy(tables: &[Drawn]) -> Plan {
        crossing(tables, Manner::Lazy(1))
    }

    /// The tables that `plan` takes along, by their levels and first keys.
    fn taken(plan: &Plan) -> Vec<(usize, Vec<&[u8]>)> {
        let between = plan.between.iter().map(|between| {
            let keys = between
                .tables
                .iter()
                .map(|table| &table.meta.range.first[..]);
            (between.level, keys.collect())
        });
        between.collect()
    }

    #[test]
    fn what_comes_down_lies_in_the_lowest_run_above_what_it_meets() {
        let below = [(F, "c..m", MIB, 0), (SLOW, "a..z", 8 * MIB, 1)];
        for (run, expected) in [(None, F + 3), (Some(F + 3), F + 2), (Some(F + 2), F + 1)] {
            let run = run.map(|level| (level, "m..z", MIB, 1));
            let plan = lazy(&[&below[..], run.as_slice()].concat());
            assert_eq!(
                (plan.from, plan.to, plan.inputs().count()),
                (F, expected, 1)
            );
            assert!(plan.is_crossing && !plan.is_move);
        }
        // One that has other keys is in nobody's way.
        let beside = (F + 1, "n..z", MIB, 1);
        assert_eq!(lazy(&[below[0], below[1], beside]).to, F + 3);
    }

    #[test]
    fn where_the_runs_are_full_all_of_them_are_merged_with_what_is_below() {
        let mut tables = vec![(F, "c..m", MIB, 0), (SLOW, "a..z", 13 * MIB, 1)];
        tables.extend(RUNS.map(|level| (level, "d", MOST_IN_TOP * MIB + MIB, 1)));
        let plan = lazy(&tables);
        assert_eq!((plan.to, plan.lower.len()), (SLOW, 1));
        assert_eq!(taken(&plan), RUNS.map(|level| (level, vec![&b"d"[..]])));
        let outputs: Vec<u8> = plan.outputs.iter().map(|output| output.level).collect();
        assert_eq!(outputs, [SLOW as u8]);
    }

    #[test]
    fn what_comes_down_joins_the_highest_run_while_that_holds_little() {
        let mut tables = vec![(F, "c..m", MIB, 0), (SLOW, "a..z", 20 * MIB, 1)];
        tables.extend(RUNS.map(|level| (level, "d", MOST_IN_TOP * MIB, 1)));
        tables.push((F + 1, "n", MIB, 1));
        let plan = lazy(&tables);
        assert_eq!((plan.to, plan.between.len()), (F + 1, 0));
        assert_eq!(plan.lower.len(), 1);
        assert_eq!(plan.lower[0].meta.range.first, "d");
        // Or little of what would be merged.
        let merged = |below: u64| {
            let mut tables = vec![(F, "d", MIB, 0), (SLOW, "a..z", below, 1)];
            tables.extend(RUNS.map(|level| (level, "d", 4 * MIB, 1)));
            lazy(&tables).to == SLOW
        };
        let others = (1 + 3 * 4) * MIB;
        assert!(merged(MERGE_TIMES * 4 * MIB - others - MERGE_TIMES));
        assert!(!merged(MERGE_TIMES * 4 * MIB - others));
    }

    /// A table of a run lies above those that it meets on the next: it must not pass them (I1).
    #[test]
    fn what_is_taken_along_takes_along_what_it_meets() {
        let tables = [
            (F, "c..d", MIB, 0),
            (F + 1, "d..f", MIB, 1),
            (F + 1, "g", MIB, 1),
            (F + 2, "f..k", MIB, 1),
            (F + 2, "m", MIB, 1),
            (F + 3, "a..b", MIB, 1),
            (F + 3, "k..l", MIB, 1),
            (SLOW, "b", MIB, 1),
            (SLOW, "l..n", MIB, 1),
        ];
        let plan = lazy(&tables);
        let expected: [(usize, Vec<&[u8]>); 3] = [
            (F + 1, vec![b"d"]),
            (F + 2, vec![b"f"]),
            (F + 3, vec![b"k"]),
        ];
        assert_eq!(taken(&plan), expected);
        assert_eq!(plan.lower[0].meta.range.first, "l");
        assert_eq!(plan.lower.len(), 1);
        // Nobody may bring to a level what passes it.
        let locked = |level: usize| {
            let locks = plan.locks();
            let (_, range) = locks.into_iter().find(|(l, _)| *l == level).unwrap();
            (range.first.clone(), range.last.clone())
        };
        for (level, last) in [(F + 1, "d"), (F + 2, "f"), (F + 3, "k"), (SLOW, "n")] {
            assert_eq!(locked(level), ("c".into(), last.into()), "L{level}");
        }
    }

    /// To lie in a run costs a look more for each read, and saves nothing.
    #[test]
    fn what_meets_little_is_merged_at_once() {
        let to = |below: u64| lazy(&[(F, "a", MIB, 0), (SLOW, "a", below, 1)]).to;
        assert_eq!(to(MIB), SLOW);
        assert_eq!(to(MIB + 1), F + 3);
        assert_eq!(lazy(&[(F, "a", MIB, 0), (SLOW, "b", 9 * MIB, 1)]).to, SLOW);
        // With what waits in runs already.
        let waits = (F + 3, "a", MIB, 1);
        let to = |below: u64| lazy(&[(F, "a", MIB, 0), waits, (SLOW, "a", below, 1)]).to;
        assert_eq!(to(2 * MIB), SLOW);
        assert_eq!(to(2 * MIB + 1), F + 2);
    }

    #[test]
    fn a_crossing_is_merged_unless_that_is_dear() {
        let to = |below: u64| {
            let tables = [(F, "a", MIB, 0), (SLOW, "a", below, 1)];
            with_picker(tables.to_vec(), PLANNED, |picker| {
                let mut plans = vec![picker.pick_level(F).unwrap()];
                plans.push(picker.pick_crossing(|_| true).unwrap().1);
                plans.iter().map(|plan| plan.to).collect::<Vec<_>>()
            })
        };
        assert_eq!(to(16 * MIB), [SLOW; 2]);
        assert_eq!(to(16 * MIB + 1), [SLOW - 1; 2]);
    }

    /// Else deletes would lie in runs, and what they hide would stay.
    #[test]
    fn a_compaction_for_what_is_hidden_is_a_merge() {
        let tables = [(F, "a", MIB, 0), (SLOW, "a", 8 * MIB, 1)];
        let plan = crossing(&tables, Manner::Merged);
        assert_eq!((plan.to, plan.lower.len()), (SLOW, 1));
    }

    /// What is due where tables of these bytes lie in runs above 20 MiB: from which level and to
    /// which, how many tables it merges, and whether it needs no more than an edit.
    fn due(runs: &[(usize, u64)]) -> Vec<(usize, usize, usize, bool)> {
        let mut tables = vec![(SLOW, "a..z", 20 * MIB, 1)];
        tables.extend(runs.iter().map(|(level, bytes)| (*level, "d", *bytes, 1)));
        with_picker(tables, PLANNED, |picker| {
            assert_eq!(picker.targets.debt(picker.version, 4), 0);
            let due = picker.due();
            due.map(|(_, plan)| (plan.from, plan.to, plan.inputs().count(), plan.is_move))
                .collect()
        })
    }

    #[test]
    fn runs_wait_until_they_hold_a_quarter_of_what_is_below() {
        assert_eq!(due(&[]), []);
        let of = |last: u64| {
            let mut runs = RUNS.map(|level| (level, MIB));
            runs[2].1 = last;
            due(&runs)
        };
        assert_eq!(of(3 * MIB - 1), []);
        assert_eq!(of(3 * MIB), [(F + 1, SLOW, 4, false)]);
    }

    #[test]
    fn a_run_sinks_to_where_there_is_room() {
        assert_eq!(due(&[(F + 1, MIB)]), [(F + 1, F + 3, 1, true)]);
        let two = [(F + 1, MIB), (F + 3, MIB)];
        assert_eq!(due(&two), [(F + 1, F + 2, 1, true)]);
    }

    #[test]
    fn the_runs_are_merged_first_where_that_brings_most_for_what_it_writes() {
        let tables = vec![
            (F + 2, "a", MIB, 1),
            (F + 3, "a", MIB, 1),
            (F + 3, "k", 3 * MIB, 1),
            (F + 3, "z", MIB, 1),
            (SLOW, "a", 5 * MIB, 1),
            (SLOW, "k", 8 * MIB, 1),
            (SLOW, "z", 3 * MIB - 1, 1),
        ];
        with_picker(tables, PLANNED, |picker| {
            let plan = picker.pick_run().unwrap();
            assert_eq!((plan.from, plan.inputs().count()), (F + 2, 3));
            assert_eq!(plan.lower[0].meta.range.first, "a");
        });
    }

    #[test]
    fn what_scans_look_into_is_merged() {
        let mut tables = vec![(SLOW, "a..z", 20 * MIB, 1)];
        tables.extend(RUNS[1..].iter().map(|level| (*level, "d", MIB, 1)));
        with_picker(tables, PLANNED, |picker| {
            let looked = |number| {
                let picker = Picker {
                    often_looked: number,
                    ..*picker
                };
                let plans = picker.tidying();
                plans
                    .map(|(_, plan)| (plan.from, plan.to, plan.inputs().count()))
                    .collect::<Vec<_>>()
            };
            let number = |level: usize| picker.version.levels[level].tables[0].meta.id;
            assert_eq!(looked(number(F + 2)), [(F + 2, SLOW, 3)]);
            assert_eq!(looked(number(F + 3)), [(F + 3, SLOW, 2)]);
            assert_eq!(looked(FileId::MAX), [], "gone by now");
        });
    }
}
