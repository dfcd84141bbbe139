//! Compactions of large values, of which memory for one at a time is enough (I8).

use super::{Engine, Tree};
use crate::levels::{Plan, TableSizes};
use crate::sync::Arc;

/// A value of the input, the block that it is copied into, and that block compressed.
const COPIES: u64 = 3;

impl Engine {
    /// Takes out of `candidates`, the most urgent first, those that have to wait for the
    /// compactions which run now. Whether all have to: as the most urgent does, which would wait
    /// for ever if others began before it.
    pub(crate) fn leave_to_run_alone(&self, candidates: &mut Vec<(Arc<Tree>, Plan)>) -> bool {
        if !self.is_compacting() {
            return false;
        }
        if candidates
            .first()
            .is_some_and(|(tree, plan)| self.runs_alone(tree, plan))
        {
            return true;
        }
        candidates.retain(|(tree, plan)| !self.runs_alone(tree, plan));
        false
    }

    /// Whether `plan` takes more memory than two jobs at once may. A table is longer than tables of
    /// its level are to be by the last of its values.
    fn runs_alone(&self, tree: &Tree, plan: &Plan) -> bool {
        let sizes = TableSizes::new(
            &self.options,
            &self.sizes,
            self.fast().capacity(),
            tree.last_fast_level,
        );
        let beyond = plan.inputs().map(|table| {
            let level = usize::from(table.meta.level);
            let full = sizes.of(level, plan.version.levels[level].bytes);
            table.meta.len.saturating_sub(2 * full)
        });
        let value = beyond.max().unwrap_or_default();
        !plan.is_move && COPIES * value > self.sizes.buffers(self.options.memory) / 2
    }
}
