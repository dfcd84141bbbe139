//! The job that copies.

use super::Copier;
use super::candidates::{Candidate, most_worth};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::executor::{Job, Step};
use crate::metrics::Purpose;
use crate::points::point;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::tier::CopyWriter;

/// Bytes copied in a step.
const PART: u64 = 1 << 20;

/// A table, or a tail, on its way.
struct Copied {
    candidate: Candidate,
    writer: CopyWriter,
    /// How much of it is copied.
    done: u64,
}

/// Copies until there is no room, or nothing that is worth it.
pub(super) struct CopyJob {
    engine: Arc<Engine>,
    copier: Arc<Copier>,
    current: Option<Copied>,
}

impl CopyJob {
    pub(super) fn new(engine: Arc<Engine>, copier: Arc<Copier>) -> Self {
        Self {
            engine,
            copier,
            current: None,
        }
    }

    /// Copies a part, or begins with the next table. Returns whether there is more to do.
    fn copy(&mut self) -> Result<bool> {
        self.engine.check_writable()?;
        let Some(mut copied) = self.current.take() else {
            return self.begin();
        };
        let candidate = &copied.candidate;
        let len = PART.min(candidate.len() - copied.done);
        let at = candidate.start + copied.done;
        let part = candidate.table.read_raw(Purpose::Copy, at, len as usize);
        // Else this table would stay the one that is most worth a copy, and no other would get one.
        let part = part.inspect_err(|_| candidate.slot().close())?;
        if !copied.writer.append(&part)? {
            return Ok(false);
        }
        copied.done += len;
        if copied.done < candidate.len() {
            self.current = Some(copied);
        } else {
            point!(self.engine.points, "copying.written")?;
            copied.writer.finish(candidate.slot(), candidate.start)?;
        }
        Ok(true)
    }

    fn begin(&mut self) -> Result<bool> {
        let engine = &self.engine;
        let Some(candidate) = most_worth(engine, self.copier.wholes) else {
            return Ok(false);
        };
        let writer = engine
            .fast()
            .begin_copy(engine.new_file(), candidate.len())?;
        self.current = writer.map(|writer| Copied {
            candidate,
            writer,
            done: 0,
        });
        Ok(self.current.is_some())
    }
}

impl Job for CopyJob {
    fn step(&mut self) -> Step {
        match self.copy() {
            Ok(true) => return Step::Again,
            Ok(false) => {}
            // Copies are advice (I7): if one fails, the next reads cost what they would have cost
            // without it.
            Err(Error::Closed) => {}
            Err(_) => self.engine.fast().refuse_copies(),
        }
        Step::Done
    }
}

impl Drop for CopyJob {
    fn drop(&mut self) {
        self.current = None;
        self.copier.runs.store(false, Ordering::Release);
        self.engine.executor.notify();
    }
}
