//! A compaction as it runs: merge the inputs, write the outputs, install them in one edit.

use super::below::Below;
use super::bypass::Bypass;
use super::cut::Cutter;
use super::filter::VersionFilter;
use super::fresh::Held;
use super::heirs::{Densities, Heirs};
use super::pass::{Pass, Watch};
use super::plan::{Cause, Plan};
use super::readahead::readahead;
use super::sink::{Origin, Sink};
use super::spread::Places;
use super::table_size::TableSizes;
use super::upper::Upper;
use crate::engine::{Engine, Tree, Work};
use crate::error::{Error, Result};
use crate::executor::{Job, Step};
use crate::ids::FileId;
use crate::metrics::CompactionMetrics;
use crate::placement::{
    Brought, Installed, Joining, Moved, NoChoice, Output, Router, Source, Stayers, router_of,
};
use crate::points::point;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::{Heat, ScanOptions, TableHeat, TableMeta};
use crate::tier::Reservation;
use crate::version::LevelIter;
use crate::version::edit::VersionEdit;

/// About how many tables of the next level a table of a fast level meets at most. While a job is
/// near, room for what it writes is reserved on the fast tier, and hot records cannot have it.
pub(crate) const MOST_MET: u64 = 2;

/// A running compaction. A step merges about one output table.
pub(crate) struct CompactionJob {
    engine: Arc<Engine>,
    tree: Arc<Tree>,
    plan: Plan,
    number: u64,
    /// The room for each output of the plan, until the pass begins.
    places: Vec<Places>,
    /// What was reserved, from the end of the pass on.
    space: Vec<Reservation>,
    /// How long the tables of each output get, in bytes.
    table_sizes: Vec<u64>,
    pass: Option<Pass>,
    /// Bytes of records that stay on the fast tier because they are hot, and that come up to it.
    moved: (u64, u64),
    brought: Brought,
    notes: Notes,
}

/// What a compaction knows of the records that it merges, and notes of them.
struct Notes {
    engine: Arc<Engine>,
    to: usize,
    below: Below,
    bypass: Option<Bypass>,
    /// What could not pass level f by, if the job tells anything about that.
    held: Option<Held>,
    /// What a bypass would have left.
    stayers: Option<Stayers>,
    /// Tables written so far; emptied when an edit begins to name them.
    written: Vec<TableMeta>,
    heirs: Heirs,
    /// How hot each of them is.
    heats: Vec<Heat>,
    metrics: CompactionMetrics,
}

impl Watch for Notes {
    fn is_bottom(&self, key: &[u8]) -> bool {
        let is_bypassed = |bypass: &Bypass| bypass.may_hold(key);
        !self.below.may_hold(self.to, key) && !self.bypass.as_ref().is_some_and(is_bypassed)
    }

    fn meet(&mut self, key: &[u8], is_first: bool, source: Source, size: u64) {
        if let (Some(held), None) = (&mut self.held, &self.bypass) {
            let stays = self.stayers.as_mut();
            let is_hot = || stays.is_some_and(|stays| stays(key));
            held.meet(is_first, source, size, is_hot);
        }
    }

    fn send(&mut self, key: &[u8], source: Source, size: u64, output: usize) {
        self.heirs.add(key, size, output);
        if let (Some(held), Some(_)) = (&mut self.held, &self.bypass) {
            held.send(source, size, output);
        }
    }

    fn written(&mut self, table: TableMeta, output: usize) -> Result<()> {
        self.metrics.write_bytes[usize::from(table.tier)] += table.len;
        self.heats.push(self.heirs.take(output));
        self.written.push(table);
        point!(self.engine.points, "compaction.table_written")
    }
}

impl CompactionJob {
    pub(crate) fn new(
        engine: Arc<Engine>,
        tree: Arc<Tree>,
        mut plan: Plan,
        number: u64,
        places: Vec<Places>,
    ) -> Self {
        // The version is let go before the work starts: it holds the files that other jobs replace
        // meanwhile.
        let version = std::mem::take(&mut plan.version);
        let below = plan.range().map(|range| Below::new(&version, &range));
        let comes = plan.upper.bytes();
        let sizes = TableSizes::new(
            &engine.options,
            &engine.sizes,
            engine.fast().capacity(),
            tree.last_fast_level,
        );
        let densities = Densities::new(&plan, engine.placement.unknown_density());
        let densities = Arc::new(densities);
        let table_size_of = |output: &Output| {
            let level = usize::from(output.level);
            sizes.of(level, version.levels[level].bytes + comes)
        };
        let f = usize::from(tree.last_fast_level);
        // A table that is written anew where it lies tells nothing.
        let tells = plan.from > 0 && plan.from + 1 == f && plan.to >= f;
        Self {
            table_sizes: plan.outputs.iter().map(table_size_of).collect(),
            notes: Notes {
                engine: Arc::clone(&engine),
                to: plan.to,
                below: below.unwrap_or_default(),
                bypass: plan.bypass.clone(),
                held: tells.then(Held::default),
                stayers: None,
                written: Vec::new(),
                heirs: Heirs::new(densities, plan.outputs.len()),
                heats: Vec::new(),
                metrics: metrics_of(&plan, engine.tiers.len()),
            },
            engine,
            tree,
            plan,
            number,
            places,
            space: Vec::new(),
            pass: None,
            moved: (0, 0),
            brought: Brought::default(),
        }
    }

    /// Does a part of the work; `true` when all of it is done.
    fn advance(&mut self) -> Result<bool> {
        self.engine.check_writable()?;
        if self.plan.is_move {
            // The records go down as they are: what lies beside the levels of their keys may be
            // older.
            self.claim();
            self.install_move()?;
            return Ok(true);
        }
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => {
                point!(self.engine.points, "compaction.start")?;
                self.begin_pass()?
            }
        };
        if pass.advance(&self.engine, &self.tree, &mut self.notes)? {
            self.pass = Some(pass);
            return Ok(false);
        }
        self.moved = pass.moved();
        self.brought = pass.brought();
        self.space = pass.into_space();
        self.install_outputs()?;
        Ok(true)
    }

    fn begin_pass(&mut self) -> Result<Pass> {
        // I6: claimed before anything is read.
        let joining = self.claim();
        point!(self.engine.points, "compaction.claimed")?;

        let plan = &self.plan;
        if let (Some(_), None, Some(range)) = (&self.notes.held, &plan.bypass, plan.range()) {
            self.notes.stayers = self.engine.placement.stayers(&self.tree, &range);
        }
        let uppers = plan.upper.runs(plan.from);
        let how = ScanOptions {
            purpose: plan.purpose(),
            readahead: readahead(uppers + 1),
            fill_cache: false,
            to_end: true,
        };
        let mut children = plan.upper.cursors(plan.from, how);
        children.push(Box::new(LevelIter::new(Arc::new(plan.lower.clone()), how)));
        if joining.is_some() {
            point!(self.engine.points, "crossing.claimed")?;
        }
        let router = self.router(joining.as_ref());
        if let Some(joining) = joining {
            children.push(Box::new(joining));
        }
        let snapshots = &self.engine.snapshots;
        let filter = VersionFilter::new(snapshots.boundaries(|| self.engine.visible()));
        let sinks = self.sinks();
        Pass::new(children, uppers, filter, router, sinks)
    }

    /// Does what a crossing has to do before it reads (I6). Returns the records that join the
    /// merge.
    fn claim(&self) -> Option<Joining> {
        let (engine, plan) = (&self.engine, &self.plan);
        let claim = || {
            engine
                .placement
                .claim(engine, &self.tree, plan, self.number)
        };
        plan.is_crossing.then(claim).flatten()
    }

    fn router(&self, joining: Option<&Joining>) -> Box<dyn Router> {
        if !self.plan.is_crossing {
            return Box::new(NoChoice);
        }
        let choice = self
            .engine
            .placement
            .choice(&self.tree, &self.plan, joining);
        router_of(&self.plan, choice)
    }

    fn sinks(&mut self) -> Vec<Sink> {
        let epoch = self.plan.inputs().map(|table| table.meta.epoch).max();
        let origin = Origin {
            purpose: self.plan.purpose(),
            epoch: epoch.unwrap_or(0),
            replaces: self.plan.inputs().map(|table| table.meta.id).collect(),
        };
        let places = std::mem::take(&mut self.places);
        let outputs = self.plan.outputs.iter().zip(&self.table_sizes).zip(places);
        let sinks = outputs.map(|((output, size), places)| {
            let cutter = self.cutter(*output, *size);
            Sink::new(output.level, origin.clone(), places, *size, cutter)
        });
        sinks.collect()
    }

    fn cutter(&self, output: Output, size: u64) -> Cutter {
        // A table that changes its tier stays one.
        if self.plan.cause == Cause::SmallTables || self.plan.is_migration() {
            // They become one table: otherwise there would be no fewer of them.
            return Cutter::never();
        }
        let home = self
            .engine
            .placement
            .last_fast_home(self.tree.last_fast_level);
        let is_above_lf = output.level < home;
        // On the fast tier, the room for the output of a job is scarce.
        let most_met = if is_above_lf && self.engine.tiers.len() > 1 {
            MOST_MET * size
        } else {
            u64::MAX
        };
        Cutter::new(&self.notes.below, usize::from(output.level), size, most_met)
    }

    /// What is to be installed, for the tree.
    fn installed(&self) -> Installed<'_> {
        if self.plan.is_crossing {
            Installed::Crossing(self.number, &self.brought)
        } else {
            Installed::Compaction
        }
    }

    fn install_outputs(&mut self) -> Result<()> {
        let written = self.install()?;
        let (retained, brought) = self.moved;
        // Counted before compression, as what was retained is.
        let input = self.plan.upper.raw_bytes();
        let f = usize::from(self.tree.last_fast_level);
        let mut moved = Moved {
            retained,
            brought,
            bypassed: 0,
        };
        if let Some(held) = &self.notes.held {
            self.tree.averages.note_fresh(held.bytes(), input);
            if self.plan.bypass.is_some() {
                moved.bypassed = input.saturating_sub(held.bytes());
            }
        }
        self.engine.placement.moved(&self.engine, moved);
        self.engine.placement.written(&self.plan, &written);
        if self.plan.is_crossing {
            if self.plan.from == f {
                self.tree.averages.note_crossing(retained, input);
            }
            let _: Result<()> = point!(self.engine.points, "crossing.installed");
        }
        for table in self.plan.inputs() {
            table.file.mark_obsolete();
        }
        Ok(())
    }

    /// The edit and the new version, under the manifest's lock (I4). Returns the tables that are
    /// new in it.
    fn install(&mut self) -> Result<Vec<TableMeta>> {
        let engine = Arc::clone(&self.engine);
        let added = self.notes.written.clone();
        let removed = self.plan.inputs().map(|t| (self.tree.id, t.meta.id));
        let edit = VersionEdit {
            removed: removed.collect(),
            added: added.clone(),
            learned: vec![(self.tree.id, self.tree.averages.learned())],
            next_file: Some(engine.files.next.load(Ordering::Relaxed)),
            ..VersionEdit::default()
        };
        let (now, migrates) = (engine.clock.now(), self.plan.is_migration());
        let heats = self.notes.heats.iter().map(|heat| match migrates {
            true => TableHeat::migrated(*heat, now),
            false => TableHeat::new(*heat),
        });
        let opened = added.into_iter().zip(heats);
        let opened = opened.map(|(meta, heat)| engine.open_table(meta, heat));
        let opened = opened.collect::<Result<Vec<_>>>()?;
        if self.plan.is_crossing {
            point!(engine.points, "crossing.before_edit")?;
        }
        point!(engine.points, "compaction.before_edit")?;
        let mut manifest = engine.files.manifest.lock();
        engine.check_not_dropped(&self.tree)?;
        // From here on these tables are not the job's to remove: whatever comes next, even a panic,
        // the manifest may name them (I4).
        let written = std::mem::take(&mut self.notes.written);
        manifest.append(&edit).inspect_err(|error| {
            if !matches!(error, Error::Poisoned { .. }) {
                self.notes.written = written;
            }
        })?;
        let mut state = self.tree.state.lock();
        let taken = self
            .tree
            .install(&engine, &mut state, &edit, opened, self.installed());
        drop((state, manifest));
        engine.placement.taken(&engine, &self.tree, &taken);
        Ok(edit.added)
    }

    /// The same file at its new level.
    fn install_move(&self) -> Result<()> {
        let engine = &self.engine;
        let output = self.plan.outputs[0];
        let mut moved = Vec::new();
        for table in self.plan.upper.tables() {
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
        let taken = self
            .tree
            .install(engine, &mut state, &edit, moved, self.installed());
        drop((state, manifest));
        engine.placement.taken(engine, &self.tree, &taken);
        Ok(())
    }

    /// Tells the store what the outcome means for it. The job ends in any case.
    fn report(&self, outcome: Result<bool>) {
        match outcome {
            Ok(_) => {
                self.engine.background.clear(Work::Compaction);
                self.engine.stats.count_compaction(&self.notes.metrics);
                let point = point!(self.engine.points, "compaction.installed");
                let rolled = point.and_then(|()| self.engine.roll_manifest());
                if let Err(error) = rolled {
                    self.engine.background.note(Work::Compaction, &error);
                }
            }
            Err(error) => {
                self.engine.background.note(Work::Compaction, &error);
                self.engine.discard_outputs(&self.notes.written, &error);
            }
        }
    }
}

/// What is counted for a job of `plan` before it has done anything, in a store of `tiers` tiers.
fn metrics_of(plan: &Plan, tiers: usize) -> CompactionMetrics {
    let mut read_bytes = vec![0; tiers];
    for table in plan.inputs().filter(|_| !plan.is_move) {
        read_bytes[usize::from(table.meta.tier)] += table.meta.len;
    }
    CompactionMetrics {
        from: plan.from as u8,
        to: plan.to as u8,
        jobs: 1,
        moves: u64::from(plan.is_move),
        for_hidden: u64::from(plan.cause == Cause::Hidden),
        for_small_tables: u64::from(plan.cause == Cause::SmallTables),
        read_bytes,
        write_bytes: vec![0; tiers],
        seconds: 0.0,
    }
}

impl Job for CompactionJob {
    fn step(&mut self) -> Step {
        let started = self.engine.clock.now();
        let outcome = self.advance();
        let took = self.engine.clock.now().saturating_sub(started);
        self.notes.metrics.seconds += took.as_secs_f64();
        if matches!(outcome, Ok(false)) {
            return Step::Again;
        }
        // A keyspace dropped meanwhile is no failure: others may wait for this job's place.
        let failed = matches!(&outcome, Err(e) if !matches!(e, Error::UnknownKeyspace { .. }));
        self.report(outcome);
        if failed {
            let _: Result<()> = point!(self.engine.points, "compaction.failed");
        }
        self.notes.written.clear();
        self.end();
        self.engine.update_pressure();
        self.engine.placement.after_change(&self.engine);
        // After a failure the next change or a stopped writer tries again: no spinning. A writer
        // that has come meanwhile, and has forgotten the failure, found the job's inputs taken.
        if !failed || self.engine.background.failure(Work::Compaction).is_none() {
            self.engine.schedule();
            self.engine.placement.room_was_made(&self.engine);
        } else {
            // Whoever waited for this job to make room has to find out that it made none.
            if self.engine.background.failure(Work::Flush).is_none() {
                self.engine.schedule_flushes();
            }
            self.engine.placement.room_was_not_made(&self.engine);
        }
        self.engine.executor.notify();
        Step::Done
    }
}

impl CompactionJob {
    /// Gives back what the job held. Done once: the number is then 0.
    fn end(&mut self) {
        if self.number > 0 {
            self.pass = None;
            // What it has reserved is free for the next job.
            self.places.clear();
            self.space.clear();
            self.tree.end_compaction(self.number, &self.plan);
            self.number = 0;
            // Let go of the inputs before the job stops counting as running: who waits for it
            // finds their files gone, and room for the next.
            let inputs: Vec<FileId> = self.plan.inputs().map(|table| table.meta.id).collect();
            self.plan.upper = Upper::Tables(Vec::new());
            self.plan.lower.clear();
            self.engine.graveyard.remove_all(inputs);
            self.engine.background.compactions.end();
        }
    }
}

impl Drop for CompactionJob {
    fn drop(&mut self) {
        // A job dropped by a shutdown leaves no output behind.
        self.engine
            .discard_outputs(&self.notes.written, &Error::Closed);
        self.end();
    }
}
