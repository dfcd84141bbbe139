//! Which tables of the level above f had better pass level f by.

use super::Picker;
use super::runs::{Landing, Manner};
use crate::levels::bypass::{Bypass, Met};
use crate::levels::plan::{Cause, Plan};
use crate::levels::upper::Upper;
use crate::sync::Arc;
use crate::version::TableHandle;

impl Picker<'_> {
    /// The way past level f for a table of `level`, the one above f, if one had better go there.
    pub(super) fn pick_bypass(&self, level: usize) -> Option<Plan> {
        let worth = self.bypass?;
        let f = self.targets.last_fast();
        let bytes = |tables: &[Arc<TableHandle>]| tables.iter().map(|t| t.meta.len).sum::<u64>();
        let here = |level: usize| self.version.levels[level].bytes;
        let planned = self.targets.planned_last();
        let room = planned.min(self.targets.bytes[f]);
        // There may be hundreds of tables: only those that are chosen are planned.
        let mut candidates: Vec<(f64, &Arc<TableHandle>)> = self.version.levels[level]
            .tables
            .iter()
            .filter(|table| !self.running.has_input(table))
            .filter_map(|table| {
                let range = &table.meta.range;
                let to = self.targets.next(f, self.version, range)?;
                let met = Met {
                    input: table.meta.len,
                    on_f: bytes(self.version.levels[f].overlapping(range)),
                    below: self.met_on_way(to, range),
                    all_of_f: here(f).max(planned),
                    all_below: self.way(to).map(here).sum(),
                    // The room of level f comes and goes with what waits above.
                    is_full: here(f) > room / 4 * 3,
                };
                let cost = met.below as f64 / met.input.max(1) as f64;
                worth.pays(met).then_some((cost, table))
            })
            .collect();
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
        candidates
            .into_iter()
            .find_map(|(_, table)| self.admit(self.plan_bypass(level, table)?))
    }

    /// The plan that takes `table` from `from`, the level above f, past level f.
    pub(crate) fn plan_bypass(&self, from: usize, table: &Arc<TableHandle>) -> Option<Plan> {
        let f = self.targets.last_fast();
        let upper = vec![Arc::clone(table)];
        let Landing { to, between, lower } = self.landing(f, &upper, Manner::CROSSING)?;
        let on_f = self.version.levels[f].overlapping(&table.meta.range);
        Some(Plan {
            from,
            to,
            upper: Upper::Tables(upper),
            between,
            lower,
            bypass: Some(Bypass {
                tables: on_f.to_vec(),
            }),
            outputs: vec![self.output(to), self.output(from)],
            is_crossing: true,
            version: Arc::clone(self.version),
            is_move: false,
            cause: Cause::Level,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::levels::picker::tests::{ABOVE, F, MIB, PLANNED, SLOW, UNUSED, with_picker};

    /// A byte that goes down through a level out of use comes into all that the next level holds.
    #[test]
    fn a_bypass_by_a_level_out_of_use_costs_what_it_meets_in_the_end() {
        let by_unused = |on_unused: &'static str, met: u64| {
            let tables = [
                (ABOVE, "met", MIB, 0),
                (F, "met", 2 * MIB, 0),
                (F, "other", PLANNED - 2 * MIB, 0),
                (UNUSED, on_unused, MIB / 64, 1),
                (SLOW, "met", met, 1),
            ];
            with_picker(tables.to_vec(), PLANNED, |picker| {
                picker.pick_bypass(ABOVE).is_some()
            })
        };
        // By the ordinary way 1 + 2 and 1 + 1 / 7 or 1 + 4 / 7, of which seven tenths are saved.
        for on_unused in ["met", "beside"] {
            assert!(by_unused(on_unused, MIB), "1 + 1 past level f");
            assert!(!by_unused(on_unused, 4 * MIB), "1 + 4 past level f");
        }
    }

    /// Whether the picker sends what it can of a table of 1 MiB above f past f, which is all of it
    /// but three tenths. Level f has room for `room` bytes now and holds `on_f`, all in one table
    /// that the job meets. On the level below the job meets 3 MiB, and `below` bytes lie beside
    /// them.
    fn bypasses(room: u64, on_f: u64, below: u64) -> bool {
        let tables = [
            (ABOVE, "met", MIB, 0),
            (F, "met", on_f, 0),
            (SLOW, "met", 3 * MIB, 1),
            (SLOW, "other", below, 1),
        ];
        with_picker(tables.to_vec(), room, |picker| {
            picker.pick_bypass(ABOVE).is_some()
        })
    }

    /// Level f is filled first, to three quarters of what it is to hold or of the room that it has,
    /// whichever is less.
    #[test]
    fn nothing_passes_a_level_f_with_room() {
        let full = |room: u64| room / 4 * 3;
        // By the ordinary way 1 + 5 + 1 + 4 / 7 at least, past level f 1 + 3.
        for room in [PLANNED, 2 * PLANNED] {
            assert!(bypasses(room, full(PLANNED) + 1, MIB));
            assert!(!bypasses(room, full(PLANNED), MIB));
        }
        let little = 4 * MIB;
        assert!(bypasses(little, full(little) + 1, 8 * MIB));
        assert!(!bypasses(little, full(little), 8 * MIB));
    }

    /// A backlog takes level f's room. Measured by the little that level f holds then, all would go
    /// past it, and it would stay that small.
    #[test]
    fn a_level_f_without_room_counts_as_what_it_is_to_hold() {
        let little = 2 * MIB;
        // Past level f 1 + 3; by the ordinary way 1 + 2 and 1 + 4 / 7, of which seven tenths are
        // saved, and if level f counted as it is, 1 + 2 and 1 + 4 / 2.
        assert!(!bypasses(little, little, MIB));
        // 1 + 2 and 1 + 24 / 7.
        assert!(bypasses(little, little, 21 * MIB));
    }
}
