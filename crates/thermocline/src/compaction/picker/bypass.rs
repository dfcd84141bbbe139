//! Which tables of the level above f had better pass level f by.

use super::Picker;
use crate::compaction::bypass::{Bypass, Met};
use crate::compaction::plan::{Plan, union};
use crate::sync::Arc;
use crate::version::TableHandle;

impl Picker<'_> {
    /// Of the tables of `level`, which is the one above f, some that had better pass level f by.
    pub(super) fn pick_bypass(&self, level: usize) -> Option<Plan> {
        let worth = self.bypass?;
        let f = self.targets.last_fast();
        let bytes = |tables: &[Arc<TableHandle>]| tables.iter().map(|t| t.meta.len).sum::<u64>();
        let here = |level: usize| self.version.levels[level].bytes;
        let planned = self.targets.planned_last();
        let room = planned.min(self.targets.bytes[f]);
        // Among hundreds of tables: only what is chosen is planned.
        let runs = self.runs(level).into_iter();
        let mut candidates: Vec<(f64, &[Arc<TableHandle>])> = runs
            .filter_map(|run| {
                let hull = union(run.iter())?;
                let to = self.targets.next(f, self.version, &hull)?;
                let met = Met {
                    input: bytes(run),
                    on_f: bytes(self.version.levels[f].overlapping(&hull)),
                    below: self.met_on_way(to, &hull),
                    all_of_f: here(f).max(planned),
                    all_below: self.way(to).map(here).sum(),
                    // Its room comes and goes with what waits above.
                    is_full: here(f) > room / 4 * 3,
                };
                let cost = met.below as f64 / met.input.max(1) as f64;
                worth.pays(met).then_some((cost, run))
            })
            .collect();
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
        candidates
            .into_iter()
            .find_map(|(_, run)| self.admit(self.plan_bypass(level, run)?))
    }

    /// What of `level` may pass together: each table alone, and with as many behind it as make up one table. Jobs from above leave small
    /// ones, and what several meet below is written once for all of them. The hull of a run holds no other table
    /// of the level, or what came up to it would overlap that (I11): its tables are neighbours, and none between is an input of a job
    /// that runs.
    fn runs(&self, level: usize) -> Vec<&[Arc<TableHandle>]> {
        let mut runs = Vec::new();
        let tables = &self.version.levels[level].tables[..];
        for free in tables.split(|table| self.running.has_input(table)) {
            let (mut end, mut len) = (0, 0);
            for (begin, table) in free.iter().enumerate() {
                while let Some(next) = free.get(end)
                    && (end == begin || len + next.meta.len <= self.table_size)
                {
                    len += next.meta.len;
                    end += 1;
                }
                runs.push(&free[begin..=begin]);
                if end > begin + 1 {
                    runs.push(&free[begin..end]);
                }
                len -= table.meta.len;
            }
        }
        runs
    }

    /// The way of `run`, which are neighbours on `from`, the level above f, past level f. Keys between its tables lie nowhere on `from`,
    /// and go the way of all others: up to there only if level f has nothing of them.
    pub(crate) fn plan_bypass(&self, from: usize, run: &[Arc<TableHandle>]) -> Option<Plan> {
        let f = self.targets.last_fast();
        let hull = union(run.iter())?;
        // Past no table below f that it meets (I1).
        let to = self.targets.next(f, self.version, &hull)?;
        let met = |level: usize| self.version.levels[level].overlapping(&hull).to_vec();
        Some(Plan {
            from,
            to,
            upper: run.to_vec(),
            lower: met(to),
            bypass: Some(Bypass { tables: met(f) }),
            outputs: vec![self.output(to), self.output(from)],
            is_crossing: true,
            version: Arc::clone(self.version),
            is_move: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ABOVE, Drawn, F, MIB, PLANNED, SLOW, UNUSED, with_picker};
    use super::*;
    use crate::compaction::plan::Running;

    /// A level f that is full beside all else, and on the slow level a table that all of a to f meet. By the ordinary way a byte
    /// is written 4 times, past level f 1 and what is met: it pays up to 1.8 times what passes.
    const AROUND: [Drawn; 3] = [
        (F, "z", PLANNED, 0),
        (SLOW, "a-f", MIB, 1),
        (SLOW, "y", 13 * MIB, 1),
    ];

    /// The keys of the tables that pass level f by, of `above`, each with its key and its bytes. Of those that are `running` each is the input of
    /// a job.
    fn passing(above: &[(&'static str, u64)], running: &[&str]) -> Option<String> {
        let above = above.iter().map(|(key, len)| (ABOVE, *key, *len, 0));
        let tables = above.chain(AROUND).collect();
        let keys = |plan: &Plan| {
            let keys = plan.upper.iter().map(|table| &table.meta.range.first[..]);
            String::from_utf8(keys.collect::<Vec<_>>().concat()).unwrap()
        };
        with_picker(tables, PLANNED, |picker| {
            let mut jobs = Running::default();
            let tables = picker.version.levels[ABOVE].tables.iter();
            let is_running = |table: &&Arc<TableHandle>| {
                let first = &table.meta.range.first[..];
                running.iter().any(|key| key.as_bytes() == first)
            };
            for table in tables.filter(is_running) {
                let alone = picker.plan_bypass(ABOVE, std::slice::from_ref(table));
                // Nothing but their inputs is in the way of others.
                jobs.start(&Plan {
                    to: ABOVE,
                    lower: Vec::new(),
                    outputs: Vec::new(),
                    ..alone.unwrap()
                });
            }
            let picker = Picker {
                running: &jobs,
                ..*picker
            };
            picker.pick_bypass(ABOVE).map(|plan| keys(&plan))
        })
    }

    /// Each small table was written with all that it met below, and the next one with the same again.
    #[test]
    fn neighbours_that_are_small_pass_level_f_together() {
        let quarter = MIB / 4;
        let above = [("a", quarter), ("c", quarter), ("e", quarter)];
        assert_eq!(passing(&above, &[]).as_deref(), Some("ace"));
        // 1 + 2 past level f, which does not pay.
        assert_eq!(passing(&above[..2], &[]), None);
    }

    #[test]
    fn what_passes_level_f_together_is_no_more_than_a_table() {
        let half = MIB / 2;
        let above = [("a", half), ("c", half), ("e", half)];
        assert_eq!(passing(&above, &[]).as_deref(), Some("ac"));
        let above = [("a", half), ("c", half + 1), ("e", half - 1)];
        assert_eq!(passing(&above, &[]).as_deref(), Some("ce"));
        let longer = [("a", half), ("c", 2 * MIB), ("e", half)];
        assert_eq!(passing(&longer, &[]).as_deref(), Some("c"));
    }

    /// What came up to the level within the hull would overlap the table between (I11).
    #[test]
    fn no_run_leaps_over_an_input_of_a_job_that_runs() {
        let eighth = MIB / 8;
        let above = [
            ("a", eighth),
            ("b", eighth),
            ("c", 3 * eighth),
            ("d", 3 * eighth),
            ("e", eighth),
        ];
        assert_eq!(passing(&above, &[]).as_deref(), Some("abcd"));
        assert_eq!(passing(&above, &["b", "e"]).as_deref(), Some("cd"));
        assert_eq!(passing(&above, &["b", "d"]), None);
    }

    /// What lies below between two neighbours would be written for nothing.
    #[test]
    fn a_table_passes_alone_where_much_lies_below_between_it_and_the_next() {
        let tables = [
            (ABOVE, "a", MIB / 4, 0),
            (ABOVE, "c", MIB / 4, 0),
            (F, "z", PLANNED, 0),
            (SLOW, "a", MIB / 4, 1),
            (SLOW, "b", 13 * MIB, 1),
            (SLOW, "c", MIB / 2, 1),
        ];
        let plan = with_picker(tables.to_vec(), PLANNED, |picker| picker.pick_bypass(ABOVE));
        let plan = plan.unwrap();
        assert_eq!(plan.upper.len(), 1);
        assert_eq!(plan.upper[0].meta.range.first, "a");
    }

    /// Through a level out of use a byte goes down into all that the next one holds.
    #[test]
    fn a_bypass_by_a_level_out_of_use_costs_what_it_meets_in_the_end() {
        let by_unused = |on_unused: &'static str, met: u64| {
            let tables = [
                (ABOVE, "met", MIB, 0),
                (F, "met", PLANNED, 0),
                (UNUSED, on_unused, MIB / 64, 1),
                (SLOW, "met", met, 1),
            ];
            with_picker(tables.to_vec(), PLANNED, |picker| {
                picker.pick_bypass(ABOVE).is_some()
            })
        };
        // By the ordinary way 1 + 7 and 1 + 4 / 7 or 1 + 14 / 7, of which seven tenths are saved.
        for on_unused in ["met", "beside"] {
            assert!(by_unused(on_unused, 4 * MIB), "1 + 4 past level f");
            assert!(!by_unused(on_unused, 14 * MIB), "1 + 14 past level f");
        }
    }

    /// Whether of a table of 1 MiB above f the picker sends what can be past f, which is all of it but for three tenths. Level f
    /// has room for `room` bytes now and holds `on_f`, all in one table that the job meets; the level below meets it
    /// with 3 MiB, and has `below` beside.
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

    /// Level f is filled first, to three quarters of what it is to hold or of the room that it has, whichever is less.
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

    /// A backlog takes level f's room. Measured by the little that it holds then, all would go past it, and it would stay
    /// as small.
    #[test]
    fn a_level_f_without_room_counts_as_what_it_is_to_hold() {
        let little = 2 * MIB;
        // Past level f 1 + 3; by the ordinary way 1 + 2 and 1 + 4 / 7, of which seven tenths are saved, and if level f counted as
        // it is, 1 + 2 and 1 + 4 / 2.
        assert!(!bypasses(little, little, MIB));
        // 1 + 2 and 1 + 24 / 7.
        assert!(bypasses(little, little, 21 * MIB));
    }
}
