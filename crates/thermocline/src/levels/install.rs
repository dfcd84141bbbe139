//! How what a compaction has come to becomes the present version.

use super::compaction::Compaction;
use super::notes::Done;
use super::plan::Plan;
use crate::error::{Error, Result};
use crate::placement::{Brought, Installed, Moved};
use crate::points::point;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::{TableHeat, TableMeta};
use crate::version::edit::VersionEdit;

impl Compaction {
    /// Installs the outputs of `plan` in place of its inputs.
    ///
    /// # Errors
    /// Those of opening the tables and of the manifest; the keyspace was dropped.
    pub(super) fn install_outputs(&self, plan: &Plan, done: &mut Done) -> Result<()> {
        let written = self.install(plan, done)?;
        let (retained, brought) = done.moved;
        // Counted before compression, as what was retained is.
        let input = plan.raw_bytes();
        let f = usize::from(self.tree.last_fast_level);
        let mut moved = Moved {
            retained,
            brought,
            bypassed: 0,
        };
        if self.tells(plan) {
            self.tree.averages.note_fresh(done.held, input);
            if plan.bypass.is_some() {
                moved.bypassed = input.saturating_sub(done.held);
            }
        }
        self.engine.placement.moved(&self.engine, moved);
        self.engine.placement.written(plan, &written);
        if plan.is_crossing {
            if plan.from == f {
                self.tree.averages.note_crossing(retained, input);
            }
            let _: Result<()> = point!(self.engine.points, "crossing.installed");
        }
        for table in plan.inputs() {
            table.file.mark_obsolete();
        }
        Ok(())
    }

    /// Whether a job of `plan` tells how much could pass level f by. A table that is written anew
    /// where it lies tells nothing.
    pub(super) fn tells(&self, plan: &Plan) -> bool {
        let f = usize::from(self.tree.last_fast_level);
        plan.from > 0 && plan.from + 1 == f && plan.to >= f
    }

    /// The edit and the new version, under the manifest's lock (I4). Returns the tables that are
    /// new in it.
    fn install(&self, plan: &Plan, done: &mut Done) -> Result<Vec<TableMeta>> {
        let engine = &self.engine;
        let added = done.written.clone();
        let removed = plan.inputs().map(|t| (self.tree.id, t.meta.id));
        let edit = VersionEdit {
            removed: removed.collect(),
            added: added.clone(),
            learned: vec![(self.tree.id, self.tree.averages.learned())],
            next_file: Some(engine.files.next.load(Ordering::Relaxed)),
            ..VersionEdit::default()
        };
        let (now, migrates) = (engine.clock.now(), plan.is_migration());
        let heats = done.heats.iter().map(|heat| match migrates {
            true => TableHeat::migrated(*heat, now),
            false => TableHeat::new(*heat),
        });
        let opened = added.into_iter().zip(heats);
        let opened = opened.map(|(meta, heat)| engine.open_table(meta, heat));
        let opened = opened.collect::<Result<Vec<_>>>()?;
        if plan.is_crossing {
            point!(engine.points, "crossing.before_edit")?;
        }
        point!(engine.points, "compaction.before_edit")?;
        let mut manifest = engine.files.manifest.lock();
        engine.check_not_dropped(&self.tree)?;
        // From here on these tables are not the job's to remove: whatever comes next, even a panic,
        // the manifest may name them (I4).
        let written = std::mem::take(&mut done.written);
        manifest.append(&edit).inspect_err(|error| {
            if !matches!(error, Error::Poisoned { .. }) {
                done.written = written;
            }
        })?;
        let mut state = self.tree.state.lock();
        let installed = self.installed(plan, &done.brought);
        let taken = self
            .tree
            .install(engine, &mut state, &edit, opened, installed);
        drop((state, manifest));
        engine.placement.taken(engine, &self.tree, &taken);
        Ok(edit.added)
    }

    /// Gives the tables of `plan` their new level, as they are.
    ///
    /// # Errors
    /// Those of the manifest; the keyspace was dropped.
    pub(super) fn install_move(&self, plan: &Plan) -> Result<()> {
        let engine = &self.engine;
        let output = plan.outputs[0];
        let mut moved = Vec::new();
        for table in plan.upper.tables() {
            let mut handle = (**table).clone();
            handle.meta.level = output.level;
            moved.push(Arc::new(handle));
        }
        let edit = VersionEdit {
            removed: moved.iter().map(|t| (self.tree.id, t.meta.id)).collect(),
            added: moved.iter().map(|t| t.meta.clone()).collect(),
            ..VersionEdit::default()
        };
        point!(engine.points, "move.before_edit")?;
        let mut manifest = engine.files.manifest.lock();
        engine.check_not_dropped(&self.tree)?;
        manifest.append(&edit)?;
        let mut state = self.tree.state.lock();
        let nothing = Brought::default();
        let installed = self.installed(plan, &nothing);
        let taken = self
            .tree
            .install(engine, &mut state, &edit, moved, installed);
        drop((state, manifest));
        engine.placement.taken(engine, &self.tree, &taken);
        Ok(())
    }

    /// What is to be installed, for the tree.
    fn installed<'a>(&self, plan: &Plan, brought: &'a Brought) -> Installed<'a> {
        if plan.is_crossing {
            Installed::Crossing(self.number, brought)
        } else {
            Installed::Compaction
        }
    }
}
