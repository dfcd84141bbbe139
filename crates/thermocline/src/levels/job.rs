//! A thread's work on a compaction: it merges one part after the other.

use super::compaction::{After, Compaction, Ended};
use super::notes::{Done, Notes};
use super::pass::Pass;
use super::plan::Plan;
use super::spread::Places;
use crate::engine::{Engine, Tree, Work};
use crate::error::{Error, Result};
use crate::executor::{Job, Step};
use crate::ids::FileId;
use crate::points::point;
use crate::sync::Arc;

/// A thread's work on a compaction. A step merges about one output table.
pub(crate) struct CompactionJob {
    compaction: Arc<Compaction>,
    at: Option<At>,
    /// What all parts have come to, while this thread ends the compaction.
    end: Option<(Arc<Plan>, Done)>,
    /// Dropped last: who waits for the compaction finds free what it held.
    thread: Option<Thread>,
}

/// The part that a thread is at.
struct At {
    plan: Arc<Plan>,
    /// None for a table that moves as it is.
    pass: Option<Pass>,
    notes: Notes,
}

/// A thread that counts as a running compaction.
struct Thread(Arc<Engine>);

impl Drop for Thread {
    fn drop(&mut self) {
        self.0.background.compactions.end();
    }
}

impl CompactionJob {
    /// The first thread's work on `plan`. Its caller has counted it as a running compaction.
    pub(crate) fn new(
        engine: Arc<Engine>,
        tree: Arc<Tree>,
        plan: Plan,
        number: u64,
        places: Vec<Places>,
    ) -> Self {
        let thread = Thread(Arc::clone(&engine));
        let compaction = Compaction::new(engine, tree, plan, number, places);
        compaction.come();
        Self::of(Arc::new(compaction), thread)
    }

    fn of(compaction: Arc<Compaction>, thread: Thread) -> Self {
        Self {
            compaction,
            at: None,
            end: None,
            thread: Some(thread),
        }
    }

    /// What it works on.
    pub(crate) fn compaction(&self) -> &Arc<Compaction> {
        &self.compaction
    }

    /// The work of another thread on `compaction`, if there is a part for it.
    pub(crate) fn helping(compaction: Arc<Compaction>) -> Option<Self> {
        compaction.come().then(|| {
            let engine = Arc::clone(&compaction.engine);
            engine.background.compactions.begin();
            Self::of(compaction, Thread(engine))
        })
    }

    /// Begins a part if there is none; `false` when all are taken.
    fn begin(&mut self) -> Result<bool> {
        if self.at.is_some() {
            return Ok(true);
        }
        let Some(taken) = self.compaction.take() else {
            return Ok(false);
        };
        let plan = Arc::clone(&taken.plan);
        let at = self.at.insert(At {
            pass: None,
            notes: self.compaction.notes(&plan),
            plan,
        });
        if at.plan.is_move {
            return Ok(true);
        }
        if taken.is_first {
            point!(self.compaction.engine.points, "compaction.start")?;
        }
        at.pass = Some(self.compaction.begin_pass(taken)?);
        Ok(true)
    }

    /// Does a piece of a part; `false` when the part is done, or there is none.
    fn advance(&mut self) -> Result<bool> {
        let engine = Arc::clone(&self.compaction.engine);
        engine.check_writable()?;
        self.compaction.check()?;
        if !self.begin()? {
            return Ok(false);
        }
        match &mut self.at {
            Some(At {
                pass: Some(pass),
                notes,
                ..
            }) => pass.advance(&engine, &self.compaction.tree, notes),
            _ => Ok(false),
        }
    }

    /// Ends the part, and all of the compaction if it was the last one.
    fn end_part(&mut self, outcome: Result<()>) -> After {
        let Some(At { plan, pass, notes }) = self.at.take() else {
            return self.compaction.end_part(outcome, None);
        };
        let mut done = notes.done;
        if let Some(mut pass) = pass {
            done.held = notes.held.map_or(0, |held| held.bytes());
            done.moved = pass.moved();
            done.brought = pass.brought();
            done.space = pass.into_space();
        }
        drop(plan);
        self.compaction.end_part(outcome, Some(done))
    }

    /// Installs what all parts have come to.
    fn install(&mut self) -> Result<()> {
        let Some((plan, done)) = &mut self.end else {
            return Ok(());
        };
        if plan.is_move {
            // The records go down as they are: what lies beside the levels of their keys may be
            // older.
            self.compaction.claim(plan);
            return self.compaction.install_move(plan);
        }
        self.compaction.install_outputs(plan, done)
    }
}

impl CompactionJob {
    /// Ends the compaction: installs it unless it has failed, and tells the store what that means
    /// for it.
    fn finish(&mut self, ended: Ended) {
        let engine = Arc::clone(&self.compaction.engine);
        let started = engine.clock.now();
        self.end = Some((ended.plan, ended.done));
        let outcome = ended.outcome.and_then(|()| self.install());
        let took = engine.clock.now().saturating_sub(started);
        if let Some((_, done)) = &mut self.end {
            done.metrics.seconds += took.as_secs_f64();
        }
        // A keyspace dropped meanwhile is no failure: others may wait for this job's place.
        let failed = matches!(&outcome, Err(e) if !matches!(e, Error::UnknownKeyspace { .. }));
        self.report(outcome);
        if failed {
            let _: Result<()> = point!(engine.points, "compaction.failed");
        }
        self.release();
        engine.update_pressure();
        engine.placement.after_change(&engine);
        // After a failure the next change or a stopped writer tries again: no spinning. A writer
        // that has come meanwhile, and has forgotten the failure, found the job's inputs taken.
        if !failed || engine.background.failure(Work::Compaction).is_none() {
            engine.schedule();
            engine.placement.room_was_made(&engine);
        } else {
            // Whoever waited for this job to make room has to find out that it made none.
            if engine.background.failure(Work::Flush).is_none() {
                engine.schedule_flushes();
            }
            engine.placement.room_was_not_made(&engine);
        }
        engine.executor.notify();
    }

    /// Tells the store what the outcome means for it. The job ends in any case.
    fn report(&mut self, outcome: Result<()>) {
        let engine = &self.compaction.engine;
        let Some((_, done)) = &mut self.end else {
            return;
        };
        match outcome {
            Ok(()) => {
                engine.background.clear(Work::Compaction);
                engine.stats.count_compaction(&done.metrics);
                let point = point!(engine.points, "compaction.installed");
                let rolled = point.and_then(|()| engine.roll_manifest());
                if let Err(error) = rolled {
                    engine.background.note(Work::Compaction, &error);
                }
            }
            Err(error) => {
                engine.background.note(Work::Compaction, &error);
                engine.discard_outputs(&done.written, &error);
            }
        }
        done.written.clear();
    }

    /// Gives back what the compaction held, and what this thread counted for.
    fn release(&mut self) {
        let Some((plan, done)) = self.end.take() else {
            return;
        };
        let Compaction { engine, tree, .. } = &*self.compaction;
        // What it has reserved is free for the next job.
        drop(done);
        tree.end_compaction(self.compaction.number, &plan);
        // Let go of the inputs before the job stops counting as running: who waits for it finds
        // their files gone, and room for the next.
        let inputs: Vec<FileId> = plan.inputs().map(|table| table.meta.id).collect();
        drop(plan);
        engine.graveyard.remove_all(inputs);
        self.thread = None;
    }
}

impl Job for CompactionJob {
    fn step(&mut self) -> Step {
        let engine = Arc::clone(&self.compaction.engine);
        let started = engine.clock.now();
        let outcome = self.advance();
        let took = engine.clock.now().saturating_sub(started);
        if let Some(at) = &mut self.at {
            at.notes.done.metrics.seconds += took.as_secs_f64();
        }
        if matches!(outcome, Ok(true)) {
            return Step::Again;
        }
        match self.end_part(outcome.map(|_| ())) {
            After::Another => return Step::Again,
            After::End(ended) => self.finish(*ended),
            After::Nothing => {
                self.thread = None;
                engine.schedule();
                engine.executor.notify();
            }
        }
        Step::Done
    }
}

impl Drop for CompactionJob {
    fn drop(&mut self) {
        // A job dropped by a shutdown leaves no output behind.
        if self.at.is_some()
            && let After::End(ended) = self.end_part(Err(Error::Closed))
        {
            self.end = Some((ended.plan, ended.done));
        }
        if let Some((_, done)) = &self.end {
            let written = &done.written;
            self.compaction
                .engine
                .discard_outputs(written, &Error::Closed);
        }
        self.release();
        self.compaction.go();
    }
}

#[cfg(test)]
mod tests;
