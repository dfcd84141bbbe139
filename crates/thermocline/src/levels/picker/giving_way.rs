//! Which table gives way when the fast tier is full, and which comes back when it is not.

use super::Picker;
use crate::levels::plan::{Cause, Plan};
use crate::sync::Arc;
use crate::version::{MAX_LEVELS, TableHandle};

impl Picker<'_> {
    /// The move of a table that `may` go from the last fast level to a slower tier, however full
    /// the level is, with how urgent it is. For a level over its target that is how full the level
    /// is. For others, where records live by hotness, it is how cold the table is.
    pub(crate) fn pick_crossing(&self, may: impl Fn(&TableHandle) -> bool) -> Option<(f64, Plan)> {
        let f = self.targets.last_fast();
        // What was spilled into the level lies on the slower tier: moving it makes no room.
        let (worth, plan) = self.pick_of(f, |table| self.is_on_fast(table) && may(table))?;
        let fullness = self.score(f);
        let urgency = if fullness > 1.0 || self.hotness.is_none() {
            fullness
        } else {
            worth
        };
        (plan.is_crossing && plan.outputs[0].tier > 0).then_some((urgency, plan))
    }

    /// As [`Picker::pick_descent`], if nothing above level f is due, and what lies there takes more
    /// of the fast tier than this keyspace's part.
    pub(crate) fn pick_excess(&self, may: impl Fn(&TableHandle) -> bool) -> Option<(f64, Plan)> {
        let above_f = 0..self.targets.last_fast();
        let is_due = above_f.clone().any(|level| self.score(level) >= 1.0);
        let fast = usize::from(self.tiers[0]);
        let levels = self.version.levels[above_f].iter();
        let bytes: u64 = levels.map(|level| level.bytes_on[fast]).sum();
        (!is_due && bytes > self.part_above_f)
            .then(|| self.pick_descent(may))
            .flatten()
    }

    /// The way one level down for a table above level f, by an edit alone if it can be. The table
    /// and what it meets `may` go. It is the oldest table of the deepest level that has any on the
    /// fast tier, so that it meets nothing there. The older it is, the more urgent is its going:
    /// what nobody writes to goes first, and goes all the way.
    pub(crate) fn pick_descent(&self, may: impl Fn(&TableHandle) -> bool) -> Option<(f64, Plan)> {
        if self.tiers[0] == self.tiers[1] {
            return None;
        }
        (0..self.targets.last_fast()).rev().find_map(|level| {
            let here = &self.version.levels[level];
            if here.bytes_on[usize::from(self.tiers[0])] == 0 {
                return None;
            }
            let mut tables: Vec<&Arc<TableHandle>> = match level {
                // Whatever its tier: it has to go before the newer ones (I2).
                0 => self.l0().last().into_iter().collect(),
                _ => here.tables.iter().filter(|t| self.is_on_fast(t)).collect(),
            };
            tables.retain(|table| !self.running.has_input(table));
            tables.sort_by_key(|table| table.meta.id);
            tables.into_iter().find_map(|table| {
                let plan = self.plan(level, vec![Arc::clone(table)])?;
                let plan = plan.as_move().unwrap_or(plan);
                if !plan.inputs().all(|table| may(table)) {
                    return None;
                }
                Some((-(table.meta.id as f64), self.admit(plan)?))
            })
        })
    }

    /// Brings a table of a level below f that lies on the fast tier to the slow one. There are some
    /// after a store of one tier was given another. The last levels, which hold most, go first.
    pub(super) fn pick_outgrown(&self) -> Option<Plan> {
        let [fast, slow] = self.tiers;
        let below_f = (self.targets.last_fast() + 1..MAX_LEVELS).rev();
        below_f.filter(|_| fast != slow).find_map(|level| {
            let here = &self.version.levels[level];
            if here.bytes_on[usize::from(fast)] == 0 {
                return None;
            }
            let mut tables = here.tables.iter().filter(|table| self.is_on_fast(table));
            tables.find_map(|table| {
                self.admit(self.in_place(level, vec![Arc::clone(table)], Cause::Level))
            })
        })
    }

    /// Brings a table to the tier of its level that lies on the slower one, because there was no
    /// room when it was written. Until its keys are written again, nothing else would.
    pub(crate) fn pick_rise(&self) -> Option<Plan> {
        self.pick_spilled(|level, table| match level {
            // A table of L0 has one epoch (I2): there is no way but down.
            0 => self.pick_l0(usize::MAX),
            _ => Some(self.rewrite(level, table)),
        })
    }

    /// Brings such a table a level down on the tier where it lies: once it is below level f, what
    /// is hot of it is promoted.
    pub(crate) fn pick_sinking(&self) -> Option<Plan> {
        self.pick_spilled(|level, table| {
            let mut plan = self.plan(level, vec![Arc::clone(table)])?;
            if plan.lower.is_empty() && !plan.is_crossing {
                plan.outputs[0].tier = table.meta.tier;
                plan.is_move = true;
            }
            Some(plan)
        })
    }

    /// The first plan of `plan` that can start, for a table of the levels down to f that does not
    /// lie on the tier of its level. Of L0 only the oldest table comes into question (I2).
    fn pick_spilled(
        &self,
        plan: impl Fn(usize, &Arc<TableHandle>) -> Option<Plan>,
    ) -> Option<Plan> {
        (0..=self.targets.last_fast()).find_map(|level| {
            let here = &self.version.levels[level];
            let belongs = self.output(level).tier;
            if here.bytes == here.bytes_on[usize::from(belongs)] {
                return None;
            }
            let tables = match level {
                0 => &self.l0()[self.l0().len().saturating_sub(1)..],
                _ => &here.tables[..],
            };
            let mut spilled = tables
                .iter()
                .filter(|table| table.meta.tier != belongs && !self.running.has_input(table));
            spilled.find_map(|table| self.admit(plan(level, table)?))
        })
    }

    fn is_on_fast(&self, table: &TableHandle) -> bool {
        table.meta.tier == self.tiers[0]
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::levels::picker::tests::by_hotness::{Hot, HotKeys};
    use crate::levels::picker::tests::{
        ABOVE, Drawn, F, MIB, PART_ABOVE_F, PLANNED, SLOW, with_picker,
    };

    /// To make room on the fast tier, a table of level f was sent down that had been spilled to the
    /// slow tier, and took no room on the fast one.
    #[test]
    fn a_crossing_that_makes_room_is_of_a_table_on_the_fast_tier() {
        let crossing = |tier_of_cheap: u8| {
            let cheap = (F, "cheap", MIB, tier_of_cheap);
            let tables = [cheap, (F, "met", MIB, 0), (SLOW, "met", 3 * MIB, 1)];
            with_picker(tables.to_vec(), PLANNED, |picker| {
                let (_, plan) = picker.pick_crossing(|_| true).unwrap();
                plan.upper.tables()[0].meta.range.first.clone()
            })
        };
        assert_eq!(crossing(0), "cheap");
        assert_eq!(crossing(1), "met");
    }

    /// How urgent it is that one of `tables` of level f goes, of which `hot` is hot.
    fn urgency(tables: &[Drawn], hot: HotKeys<'_>) -> f64 {
        with_picker(tables.to_vec(), PLANNED, |picker| {
            let hot = Hot(hot);
            let picker = Picker {
                hotness: Some(&hot),
                ..*picker
            };
            let (urgency, _) = picker.pick_crossing(|_| true).unwrap();
            urgency
        })
    }

    /// Among keyspaces that had no more than their parts the fullest gave way first. Even if all of
    /// it was hot, it gave way before one that held next to nothing.
    #[test]
    fn of_levels_within_their_targets_the_coldest_table_gives_way() {
        let tables = [(F, "a", 4 * MIB, 0)];
        assert_eq!(urgency(&tables, &[]), 1.0);
        assert_eq!(urgency(&tables, &[("a", 3 * MIB)]), 0.25);
        let too_much = [(F, "a", 2 * PLANNED, 0)];
        assert_eq!(urgency(&too_much, &[("a", 2 * PLANNED)]), 2.0);
    }

    /// Whether those of `tables` that lie above level f exceed the keyspace's part.
    fn is_excess(tables: &[Drawn]) -> bool {
        with_picker(tables.to_vec(), PLANNED, |picker| {
            picker.pick_excess(|_| true).is_some()
        })
    }

    #[test]
    fn what_exceeds_the_part_above_level_f_gives_way() {
        assert!(!is_excess(&[(ABOVE, "a", PART_ABOVE_F, 0)]));
        assert!(is_excess(&[(ABOVE, "a", PART_ABOVE_F + 1, 0)]));
        let half = PART_ABOVE_F / 2 + 1;
        assert!(is_excess(&[(0, "a", half, 0), (ABOVE, "a", half, 0)]));
        assert!(!is_excess(&[(0, "a", half, 0), (ABOVE, "a", half, 1)]));
        assert!(!is_excess(&[(ABOVE, "a", PLANNED, 0)]), "it is due anyway");
    }

    /// The first key of what goes down a level to make room, and whether an edit is enough.
    fn descent(tables: &[Drawn]) -> Option<(Bytes, bool)> {
        with_picker(tables.to_vec(), PLANNED, |picker| {
            let (_, plan) = picker.pick_descent(|_| true)?;
            Some((
                plan.upper.tables()[0].meta.range.first.clone(),
                plan.is_move,
            ))
        })
    }

    #[test]
    fn the_oldest_of_the_deepest_level_goes_down_to_make_room() {
        let l0 = (0, "l0", MIB, 0);
        let of_above = [(ABOVE, "z", MIB, 0), (ABOVE, "a", MIB, 0)];
        let moves = |key: &'static str| Some((Bytes::from_static(key.as_bytes()), true));
        assert_eq!(descent(&[&[l0], &of_above[..]].concat()), moves("z"));
        assert_eq!(descent(&[l0, (ABOVE, "a", MIB, 1)]), moves("l0"));
        assert_eq!(descent(&[(F, "a", MIB, 0), (SLOW, "b", MIB, 1)]), None);
        let merges = descent(&[(ABOVE, "met", MIB, 0), (F, "met", MIB, 1)]);
        assert!(merges.is_some_and(|(_, is_move)| !is_move));
    }

    /// A table that readers hold gives no room. It would be written to the slow tier together with
    /// what comes down onto it.
    #[test]
    fn nothing_goes_down_onto_what_may_not_go() {
        let tables = vec![(ABOVE, "met", MIB, 0), (F, "met", MIB, 0)];
        with_picker(tables, PLANNED, |picker| {
            let on_f = |table: &TableHandle| usize::from(table.meta.level) == F;
            assert!(picker.pick_descent(|_| true).is_some());
            assert!(picker.pick_descent(|table| !on_f(table)).is_none());
        });
    }

    /// The first of what `pick` finds among `tables`: from which level and to which, on which tier,
    /// and whether by an edit alone.
    fn way(
        tables: &[Drawn],
        pick: impl FnOnce(&Picker<'_>) -> Option<Plan>,
    ) -> Option<(usize, usize, u8, bool)> {
        with_picker(tables.to_vec(), PLANNED, |picker| {
            let plan = pick(picker)?;
            Some((plan.from, plan.to, plan.outputs[0].tier, plan.is_move))
        })
    }

    const AT_HOME: [Drawn; 3] = [(0, "a", MIB, 0), (F, "a", MIB, 0), (SLOW, "a", MIB, 1)];

    #[test]
    fn what_was_spilled_is_written_anew_on_the_tier_of_its_level() {
        let rise = |table: Drawn| way(&[table, AT_HOME[1], AT_HOME[2]], |p| p.pick_rise());
        assert_eq!(way(&AT_HOME, |p| p.pick_rise()), None);
        assert_eq!(rise((F, "b", MIB, 1)), Some((F, F, 0, false)));
        assert_eq!(rise((ABOVE, "b", MIB, 1)), Some((ABOVE, ABOVE, 0, false)));
        assert_eq!(rise((0, "b", MIB, 1)), Some((0, ABOVE, 0, false)));
    }

    #[test]
    fn what_was_spilled_goes_down_where_it_lies_as_far_as_it_meets_nothing() {
        let sinking = |table: Drawn| way(&[table, AT_HOME[1], AT_HOME[2]], |p| p.pick_sinking());
        assert_eq!(way(&AT_HOME, |p| p.pick_sinking()), None);
        assert_eq!(sinking((0, "b", MIB, 1)), Some((0, ABOVE, 1, true)));
        assert_eq!(sinking((ABOVE, "b", MIB, 1)), Some((ABOVE, F, 1, true)));
        assert_eq!(sinking((ABOVE, "a", MIB, 1)), Some((ABOVE, F, 0, false)));
        assert_eq!(sinking((F, "b", MIB, 1)), Some((F, SLOW, 1, true)));
    }
}
