//! Compactions of large values: there is memory for one of them at a time (I8).

use super::{Engine, Tree};
use crate::levels::{Plan, TableSizes};
use crate::sync::Arc;

/// A value of the input, the block that it is copied into, and that block compressed.
const COPIES: u64 = 3;

impl Engine {
    /// Takes those out of `candidates` that have to wait for the compactions that run now. The most
    /// urgent candidate comes first. Returns whether all of them have to wait: they do if the most
    /// urgent one does, which would wait for ever if others began before it.
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

    /// Whether `plan` takes more memory than each of two jobs at once may take. Only the last value
    /// of a table makes it longer than tables of its level are to be.
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
