//! A compaction as it runs: merge the inputs, write the outputs, install them in one edit.

use super::below::Below;
use super::bypass::Bypass;
use super::cut::Cutter;
use super::filter::VersionFilter;
use super::fresh::Held;
use super::plan::{Cause, Plan};
use super::readahead::readahead;
use super::table_size::TableSizes;
use crate::db::{Engine, Installed, Tree, Work};
use crate::error::{Error, Result};
use crate::executor::{Job, Step};
use crate::ids::FileId;
use crate::iter::InternalIterator;
use crate::merge::MergingIter;
use crate::metrics::CompactionMetrics;
use crate::placement::{Brought, ByLevel, Output, Router, Source, UP};
use crate::points::point;
use crate::promotion::RecordsIter;
use crate::purpose::Purpose;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::TableMeta;
use crate::table::{ScanOptions, TableBuilder, TableIdentity};
use crate::tier::Reservation;
use crate::version::LevelIter;
use crate::version::edit::VersionEdit;

/// Tables of the next level that a table of a fast level meets about at most. Room for what a job writes is set
/// aside on the fast tier while one is near, and kept from hot records for as long.
pub(crate) const MOST_MET: u64 = 2;

/// Records merged between looks at whether the store is closing.
const CHECK_EVERY: usize = 1024;

/// A running compaction. A step merges about one output table.
pub(crate) struct CompactionJob {
    engine: Arc<Engine>,
    tree: Arc<Tree>,
    plan: Plan,
    below: Below,
    number: u64,
    /// For each output of the plan.
    space: Vec<Reservation>,
    /// How long its tables get, in bytes.
    table_sizes: Vec<u64>,
    merge: Option<Merge>,
    /// Bytes of records that stay on the fast tier because they are hot, and that come up to it.
    moved: (u64, u64),
    /// Where it tells of what might have passed level f by.
    held: Option<Held>,
    brought: Brought,
    /// Tables written so far; emptied when an edit begins to name them.
    written: Vec<TableMeta>,
    metrics: CompactionMetrics,
}

/// The merge while it is under way.
struct Merge {
    input: MergingIter,
    /// How many of its children, the first ones, are of the level that the compaction is of.
    uppers: usize,
    filter: VersionFilter,
    router: Box<dyn Router>,
    /// The table being written for each output of the plan.
    builders: Vec<Option<TableBuilder>>,
    /// Where the table of each output ends.
    cutters: Vec<Cutter>,
    /// The user key of the record before: tables are cut between keys only (I11).
    last_key: Vec<u8>,
}

/// The table that should end before `key`, if one should.
fn take_full(
    builders: &mut [Option<TableBuilder>],
    cutters: &mut [Cutter],
    key: &[u8],
) -> Option<TableBuilder> {
    let mut full = None;
    for (builder, cutter) in builders.iter_mut().zip(cutters) {
        let len = builder.as_ref().map_or(0, TableBuilder::estimated_len);
        if cutter.ends_before(key, len) && full.is_none() {
            full = builder.take();
        }
    }
    full
}

impl CompactionJob {
    pub(crate) fn new(
        engine: Arc<Engine>,
        tree: Arc<Tree>,
        mut plan: Plan,
        number: u64,
        space: Vec<Reservation>,
    ) -> Self {
        // Let go before the work starts: it holds the files that other jobs replace meanwhile.
        let version = std::mem::take(&mut plan.version);
        let below = plan.range().map(|range| Below::new(&version, &range));
        let tiers = engine.tiers.len();
        let mut read_bytes = vec![0; tiers];
        for table in plan.inputs().filter(|_| !plan.is_move) {
            read_bytes[usize::from(table.meta.tier)] += table.meta.len;
        }
        let metrics = CompactionMetrics {
            from: plan.from as u8,
            to: plan.to as u8,
            jobs: 1,
            moves: u64::from(plan.is_move),
            for_hidden: u64::from(plan.cause == Cause::Hidden),
            for_small_tables: u64::from(plan.cause == Cause::SmallTables),
            read_bytes,
            write_bytes: vec![0; tiers],
            seconds: 0.0,
        };
        let comes: u64 = plan.upper.iter().map(|table| table.meta.len).sum();
        let sizes = TableSizes::new(
            &engine.options,
            &engine.sizes,
            engine.fast().capacity(),
            tree.last_fast_level,
        );
        let table_size_of = |output: &Output| {
            let level = usize::from(output.level);
            sizes.of(level, version.levels[level].bytes + comes)
        };
        let table_sizes = plan.outputs.iter().map(table_size_of).collect();
        let f = usize::from(tree.last_fast_level);
        // A table that is written anew where it lies tells nothing.
        let tells = plan.from > 0 && plan.from + 1 == f && plan.to >= f;
        Self {
            held: tells.then(Held::default),
            engine,
            tree,
            plan,
            below: below.unwrap_or_default(),
            number,
            space,
            table_sizes,
            merge: None,
            moved: (0, 0),
            brought: Brought::default(),
            written: Vec::new(),
            metrics,
        }
    }

    /// Does a part of the work; `true` when all of it is done.
    fn advance(&mut self) -> Result<bool> {
        self.engine.check_writable()?;
        if self.plan.is_move {
            // The records are on their way down as they are: whatever the promotion cache has of
            // their keys may be older.
            self.claim();
            self.install_move()?;
            return Ok(true);
        }
        let merge = match self.merge.take() {
            Some(merge) => merge,
            None => {
                point!(self.engine.points, "compaction.start")?;
                self.start_merge()?
            }
        };
        let more = self.merge_one_table(merge)?;
        if more {
            return Ok(false);
        }
        self.install_outputs()?;
        Ok(true)
    }

    fn start_merge(&self) -> Result<Merge> {
        // I6: claimed before anything is read.
        let promoted = self.claim();
        point!(self.engine.points, "compaction.claimed")?;

        let upper = &self.plan.upper;
        let mut runs: Vec<_> = match self.plan.from {
            0 => upper.iter().map(|table| vec![Arc::clone(table)]).collect(),
            _ => vec![upper.clone()],
        };
        let uppers = runs.len();
        runs.push(self.plan.lower.clone());
        let how = ScanOptions {
            purpose: Purpose::Compaction,
            readahead: readahead(runs.len()),
            fill_cache: false,
            to_end: true,
        };
        let mut children: Vec<Box<dyn InternalIterator>> = Vec::new();
        for tables in runs {
            children.push(Box::new(LevelIter::new(Arc::new(tables), how)));
        }
        let mut router: Box<dyn Router> = Box::new(ByLevel);
        if let Some(promoted) = promoted {
            point!(self.engine.points, "crossing.claimed")?;
            let hot = self
                .engine
                .crossing_router(&self.tree, &self.plan, &promoted);
            router = hot.unwrap_or(router);
            children.push(Box::new(promoted));
        }
        let mut input = MergingIter::new(children);
        input.seek_to_first()?;
        let snapshots = &self.engine.snapshots;
        Ok(Merge {
            input,
            filter: VersionFilter::new(snapshots.boundaries(|| self.engine.visible())),
            uppers,
            router,
            builders: self.plan.outputs.iter().map(|_| None).collect(),
            cutters: self.cutters(),
            last_key: Vec::new(),
        })
    }

    /// What a crossing does before it reads (I6); the hot records of its keys come back.
    fn claim(&self) -> Option<RecordsIter> {
        let is_crossing = self.plan.is_crossing && self.engine.ralt.is_some();
        is_crossing.then(|| {
            self.engine
                .claim_crossing(&self.tree, &self.plan, self.number)
        })
    }

    /// What is to be installed, for the tree.
    fn installed(&self) -> Installed<'_> {
        if self.plan.is_crossing {
            Installed::Crossing(self.number, &self.brought)
        } else {
            Installed::Compaction
        }
    }

    /// Merges until an output table is full; `false` when the input is used up.
    fn merge_one_table(&mut self, mut merge: Merge) -> Result<bool> {
        let mut since_check = 0;
        while merge.input.valid() {
            since_check += 1;
            if since_check == CHECK_EVERY {
                since_check = 0;
                self.engine.check_writable()?;
            }
            let key = merge.input.key();
            let new_key = merge.last_key != key.user_key;
            if new_key
                && let Some(full) = take_full(&mut merge.builders, &mut merge.cutters, key.user_key)
            {
                self.finish_table(full)?;
                self.merge = Some(merge);
                return Ok(true);
            }
            if new_key {
                merge.last_key.clear();
                merge.last_key.extend_from_slice(key.user_key);
            }
            let source = if merge.input.source() < merge.uppers {
                Source::Upper
            } else {
                Source::Lower
            };
            let len = merge.input.value_len();
            let size = (key.user_key.len() + len) as u64;
            if let (Some(held), None) = (&mut self.held, &self.plan.bypass) {
                let is_hot = || self.tree.would_stay(&self.engine, key.user_key);
                held.meet(new_key, source, size, is_hot);
            }
            let is_bottom = || {
                let is_bypassed = |bypass: &Bypass| bypass.may_hold(key.user_key);
                !self.below.may_hold(self.plan.to, key.user_key)
                    && !self.plan.bypass.as_ref().is_some_and(is_bypassed)
            };
            if merge.filter.keep(key, is_bottom) {
                let room = self.room_up(&merge.builders);
                let output = merge.router.route(key, len, source, room);
                if let (Some(held), Some(_)) = (&mut self.held, &self.plan.bypass) {
                    held.send(source, size, output);
                }
                let builder = match &mut merge.builders[output] {
                    Some(builder) => builder,
                    none => none.insert(self.new_builder(output)?),
                };
                merge.input.load()?;
                builder.add(merge.input.key(), merge.input.value())?;
            }
            merge.input.next()?;
        }
        for builder in merge.builders.into_iter().flatten() {
            self.finish_table(builder)?;
        }
        self.moved = merge.router.moved();
        self.brought = merge.router.brought();
        Ok(false)
    }

    /// What a crossing may still write to the fast tier (I8). Something is left for the ends of its tables.
    fn room_up(&self, builders: &[Option<TableBuilder>]) -> u64 {
        let left = self.space.get(UP).map_or(0, Reservation::left);
        let begun = builders.get(UP).and_then(Option::as_ref);
        (left - left / 32).saturating_sub(begun.map_or(0, TableBuilder::estimated_len))
    }

    fn cutters(&self) -> Vec<Cutter> {
        let outputs = self.plan.outputs.iter().zip(&self.table_sizes);
        outputs.map(|(to, size)| self.cutter(*to, *size)).collect()
    }

    fn cutter(&self, output: Output, size: u64) -> Cutter {
        if self.plan.cause == Cause::SmallTables {
            // They make one table, or there would be no fewer.
            return Cutter::never();
        }
        let is_above_lf = output.level < self.tree.last_fast_level;
        // On the fast tier the room for the output of a job is what is scarce.
        let most_met = if is_above_lf && self.engine.tiers.len() > 1 {
            MOST_MET * size
        } else {
            u64::MAX
        };
        Cutter::new(&self.below, usize::from(output.level), size, most_met)
    }

    fn new_builder(&self, output: usize) -> Result<TableBuilder> {
        let reserved = self.space.get(output).map_or(0, Reservation::left);
        // A disk with room for what was reserved must not refuse a small job a whole table's.
        let expected = self.table_sizes[output].min(reserved);
        let output = self.plan.outputs[output];
        let tier = &self.engine.tiers[usize::from(output.tier)];
        let epoch = self.plan.inputs().map(|table| table.meta.epoch).max();
        let identity = TableIdentity {
            database: self.engine.database,
            keyspace: self.tree.id,
            id: self.engine.new_file(),
            level: output.level,
            tier: output.tier,
            epoch: epoch.unwrap_or(0),
            replaces: self.plan.inputs().map(|table| table.meta.id).collect(),
            gone: self.engine.graveyard.dead(),
            keyspace_name: self.tree.name.clone(),
        };
        TableBuilder::new(tier, identity, expected, Purpose::Compaction)
    }

    fn finish_table(&mut self, builder: TableBuilder) -> Result<()> {
        let meta = builder.finish()?;
        let output = |output: &Output| (output.level, output.tier) == (meta.level, meta.tier);
        let output = self.plan.outputs.iter().position(output);
        if let Some(space) = output.and_then(|output| self.space.get_mut(output)) {
            space.use_for_file(meta.len);
        }
        self.metrics.write_bytes[usize::from(meta.tier)] += meta.len;
        self.written.push(meta);
        point!(self.engine.points, "compaction.table_written")
    }

    fn install_outputs(&mut self) -> Result<()> {
        self.install()?;
        let (retained, brought) = self.moved;
        let promotions = &self.engine.promotions;
        promotions.retained.fetch_add(retained, Ordering::Relaxed);
        promotions
            .by_compaction
            .fetch_add(brought, Ordering::Relaxed);
        // Before compression, as what was retained is counted.
        let upper = self.plan.upper.iter().map(|table| table.raw_bytes());
        let input = upper.fold(0, u64::saturating_add);
        let f = usize::from(self.tree.last_fast_level);
        if let Some(held) = &self.held {
            self.tree.averages.note_fresh(held.bytes(), input);
            if self.plan.bypass.is_some() {
                let bypassed = input.saturating_sub(held.bytes());
                promotions.bypassed.fetch_add(bypassed, Ordering::Relaxed);
            }
        }
        if self.plan.is_crossing {
            if self.plan.from == f {
                self.tree.averages.note_crossing(retained, input);
            }
            let _: Result<()> = point!(self.engine.points, "crossing.installed");
            if brought > 0 {
                let _: Result<()> = point!(self.engine.points, "promotion.by_compaction");
            }
        }
        for table in self.plan.inputs() {
            table.file.mark_obsolete();
        }
        Ok(())
    }

    /// The edit and the new version, under the manifest's lock (I4).
    fn install(&mut self) -> Result<()> {
        let engine = Arc::clone(&self.engine);
        let added = self.written.clone();
        let removed = self.plan.inputs().map(|t| (self.tree.id, t.meta.id));
        let edit = VersionEdit {
            removed: removed.collect(),
            added: added.clone(),
            learned: vec![(self.tree.id, self.tree.averages.learned())],
            next_file: Some(engine.next_file.load(Ordering::Relaxed)),
            ..VersionEdit::default()
        };
        let opened = added.into_iter().map(|meta| engine.open_table(meta));
        let opened = opened.collect::<Result<Vec<_>>>()?;
        if self.plan.is_crossing {
            point!(engine.points, "crossing.before_edit")?;
        }
        point!(engine.points, "compaction.before_edit")?;
        let mut manifest = engine.manifest.lock();
        engine.check_not_dropped(&self.tree)?;
        // Not this job's to remove from here on: whatever comes next, a panic too, the manifest may name them (I4).
        let written = std::mem::take(&mut self.written);
        manifest.append(&edit).inspect_err(|error| {
            if !matches!(error, Error::Poisoned { .. }) {
                self.written = written;
            }
        })?;
        let mut state = self.tree.state.lock();
        let taken = self
            .tree
            .install(&engine, &mut state, &edit, opened, self.installed());
        drop((state, manifest));
        engine.count_reads_of(&self.tree, &taken);
        Ok(())
    }

    /// The same file at its new level.
    fn install_move(&self) -> Result<()> {
        let engine = &self.engine;
        let output = self.plan.outputs[0];
        let mut moved = Vec::new();
        for table in &self.plan.upper {
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
        let mut manifest = engine.manifest.lock();
        engine.check_not_dropped(&self.tree)?;
        manifest.append(&edit)?;
        let mut state = self.tree.state.lock();
        let taken = self
            .tree
            .install(engine, &mut state, &edit, moved, self.installed());
        drop((state, manifest));
        engine.count_reads_of(&self.tree, &taken);
        Ok(())
    }

    /// What the outcome means for the store; the job ends in any case.
    fn report(&self, outcome: Result<bool>) {
        match outcome {
            Ok(_) => {
                self.engine.background.clear(Work::Compaction);
                self.engine.stats.count_compaction(&self.metrics);
                let point = point!(self.engine.points, "compaction.installed");
                let rolled = point.and_then(|()| self.engine.roll_manifest());
                if let Err(error) = rolled {
                    self.engine.background.note(Work::Compaction, &error);
                }
            }
            Err(error) => {
                self.engine.background.note(Work::Compaction, &error);
                self.engine.discard_outputs(&self.written, &error);
            }
        }
    }
}

impl Job for CompactionJob {
    fn step(&mut self) -> Step {
        let started = self.engine.clock.now();
        let outcome = self.advance();
        let took = self.engine.clock.now().saturating_sub(started);
        self.metrics.seconds += took.as_secs_f64();
        if matches!(outcome, Ok(false)) {
            return Step::Again;
        }
        // A keyspace dropped meanwhile is no failure: others may wait for this job's place.
        let failed = matches!(&outcome, Err(e) if !matches!(e, Error::UnknownKeyspace { .. }));
        self.report(outcome);
        if failed {
            let _: Result<()> = point!(self.engine.points, "compaction.failed");
        }
        self.written.clear();
        self.end();
        self.engine.update_pressure();
        self.engine.update_hot_room();
        // After a failure the next change or a stopped writer tries again: no spinning. One that has
        // come since, and forgotten the failure, has found the job's inputs taken.
        if !failed || self.engine.background.failure(Work::Compaction).is_none() {
            self.engine.schedule();
            self.engine.schedule_promotions();
        } else {
            // Who has waited for this job to make room has to find out that it made none.
            if self.engine.background.failure(Work::Flush).is_none() {
                self.engine.schedule_flushes();
            }
            self.engine.give_up_promotions();
        }
        self.engine.executor.notify();
        Step::Done
    }
}

impl CompactionJob {
    /// Gives back what the job held. Done once: the number is then 0.
    fn end(&mut self) {
        if self.number > 0 {
            self.merge = None;
            // What it has reserved is free for the next job.
            self.space.clear();
            self.tree.end_compaction(self.number, &self.plan);
            self.number = 0;
            // Let go of the inputs before the job stops counting as running: who waits for it
            // finds their files gone, and room for the next.
            let inputs: Vec<FileId> = self.plan.inputs().map(|table| table.meta.id).collect();
            self.plan.upper.clear();
            self.plan.lower.clear();
            self.engine.graveyard.remove_all(inputs);
            self.engine.background.compactions.end();
        }
    }
}

impl Drop for CompactionJob {
    fn drop(&mut self) {
        // A job dropped by a shutdown leaves no output behind.
        self.engine.discard_outputs(&self.written, &Error::Closed);
        self.end();
    }
}
