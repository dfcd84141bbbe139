//! When L0 goes past level f with all that lies between.
//!
//! Under a stream of writes, L0 and what its compactions write take most of a small fast tier, and
//! level f has what is left. Then it holds no more than L0 brings, and a byte that comes down level
//! by level is written for each level with several others, for nothing. One job takes all of it to
//! the slow tier instead: each byte is written once. What is hot stays on level f.

use super::Picker;
use super::runs::{Landing, Manner};
use crate::levels::plan::{Cause, Plan, union};
use crate::levels::upper::Upper;
use crate::sync::Arc;
use crate::version::TableHandle;

/// What lies below is not written anew for less than one in so many bytes of it.
const MOST_MET: u64 = 4;

impl Picker<'_> {
    /// The job that takes all of L0 past level f, if no more lies between than comes from L0, and
    /// what lies below is not written anew for little.
    pub(super) fn pick_past_all(&self) -> Option<Plan> {
        if self.targets.runs().is_empty() {
            return None;
        }
        let plan = self.plan_past_all()?;
        let of = |tables: &mut dyn Iterator<Item = &Arc<TableHandle>>| {
            tables.map(|table| table.meta.len).sum::<u64>()
        };
        let l0 = plan.upper.bytes();
        let passed = of(&mut plan.comes_down()) - l0;
        let below = of(&mut plan.lower.iter());
        let comes = of(&mut plan.inputs()) - below;
        let is_worth_it = passed <= l0 && below <= comes.saturating_mul(MOST_MET);
        self.admit(plan).filter(|_| is_worth_it)
    }

    /// The plan that takes all of L0 past level f.
    pub(crate) fn plan_past_all(&self) -> Option<Plan> {
        let f = self.targets.last_fast();
        let l0 = self.l0();
        if l0.iter().any(|table| self.running.has_input(table)) {
            return None;
        }
        let mut range = union(l0.iter())?;
        let mut between = self.taken_along(1..f + 1, true, &mut range);
        let taken = between.iter().flat_map(|between| &between.tables);
        let comes: Vec<_> = l0.iter().chain(taken).cloned().collect();
        let landing = self.landing(f, &comes, Manner::Lazy(1))?;
        let Landing {
            to,
            between: runs,
            lower,
        } = landing;
        between.extend(runs);
        let mut outputs = vec![self.output(to)];
        if self.hotness.is_some() {
            outputs.push(self.output(f));
        }
        Some(Plan {
            from: 0,
            to,
            upper: Upper::Tables(l0.to_vec()),
            between,
            lower,
            outputs,
            is_crossing: true,
            bypass: None,
            version: Arc::clone(self.version),
            is_move: false,
            cause: Cause::Level,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::picker::tests::{ABOVE, Drawn, F, MIB, SLOW, with_picker};

    /// Two tables of L0 of 2 MiB each, and `others`.
    fn pick(others: &[Drawn]) -> Option<Plan> {
        let l0 = [(0, "a..m", 2 * MIB, 0), (0, "c..z", 2 * MIB, 0)];
        let tables = [&l0[..], others].concat();
        with_picker(tables, 3 * MIB, |picker| picker.pick_past_all())
    }

    #[test]
    fn l0_goes_past_level_f_with_all_that_it_meets_on_the_way() {
        let plan = pick(&[
            (ABOVE, "b", MIB, 0),
            (ABOVE, "z..zz", MIB, 0),
            (F, "d", MIB, 0),
            (F, "zz", MIB, 0),
            (F, "zzz", MIB, 0),
            (SLOW, "a..z", 9 * MIB, 1),
        ]);
        let plan = plan.unwrap();
        assert!(plan.is_descent() && plan.is_crossing);
        assert_eq!((plan.from, plan.to, plan.lower.len()), (0, SLOW - 1, 0));
        let taken = plan.between.iter().map(|between| {
            let keys = between.tables.iter().map(|t| &t.meta.range.first[..]);
            (between.level, between.is_fast, keys.collect())
        });
        let expected: [(usize, bool, Vec<&[u8]>); 2] = [
            (ABOVE, true, vec![b"b", b"z"]),
            (F, true, vec![b"d", b"zz"]),
        ];
        assert_eq!(taken.collect::<Vec<_>>(), expected);
        let hull = plan.hull().unwrap();
        assert_eq!((&hull.first[..], &hull.last[..]), (&b"a"[..], &b"zz"[..]));
    }

    #[test]
    fn l0_takes_along_no_more_than_it_brings() {
        let goes = |on_f: u64| pick(&[(F, "d", on_f, 0), (SLOW, "d", MIB, 1)]).is_some();
        assert!(goes(4 * MIB) && !goes(4 * MIB + 1));
    }

    /// The fast tier holds it better, as long as there is room.
    #[test]
    fn l0_goes_past_level_f_only_if_nothing_else_can() {
        let l0 = (0, "a..z", 4 * MIB, 0);
        let tables = vec![l0, (F, "d", 4 * MIB, 0), (SLOW, "d", MIB, 1)];
        with_picker(tables, 5 * MIB, |picker| {
            let picker = Picker {
                l0_trigger: 1,
                ..*picker
            };
            let due: Vec<_> = picker.due().map(|(_, plan)| plan.to).collect();
            assert_eq!(due, [ABOVE, ABOVE, SLOW]);
        });
    }

    #[test]
    fn what_is_below_is_not_written_anew_for_little() {
        let goes = |runs: u64, below: u64| {
            let tables = [
                (F, "d", MIB, 0),
                (F + 1, "d", runs, 1),
                (SLOW, "d", below, 1),
            ];
            pick(&tables).map(|plan| plan.to)
        };
        let most = |runs: u64| MOST_MET * (4 * MIB + MIB + runs);
        let runs = 11 * MIB;
        assert_eq!(goes(runs, most(runs)), Some(SLOW));
        assert_eq!(goes(runs, most(runs) + 1), None);
        // Nothing is written anew where there is room for another run.
        let below = (SLOW, "d", 70 * MIB, 1);
        let plan = pick(&[(F, "d", 3 * MIB, 0), (F + 2, "d", MIB, 1), below]);
        assert_eq!(plan.map(|plan| plan.to), Some(F + 1));
    }
}
