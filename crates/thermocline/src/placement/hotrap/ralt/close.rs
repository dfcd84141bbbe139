//! Closing RALT.

use super::files::Files;
use super::pass::Pass;
use super::shared::Shared;
use super::worker::Worker;
use crate::error::Result;
use crate::sync::atomic::Ordering;

impl Shared {
    /// Flushes everything, leaves no more tables in level 0 than are merged at once, and writes the
    /// state anew: a whole one, in which damage shows wherever it is.
    pub(super) fn close(&self) {
        let mut worker = self.worker.lock();
        // Set whatever comes of closing: when the lock is free again, the directory may be another
        // process's.
        worker.closed = true;
        let Some(files) = &self.files else { return };
        if self.stopped.load(Ordering::Relaxed) {
            self.drop_accesses(&self.buffers.take_all());
            self.leave_retired();
            return;
        }
        let flushed = self.flush_all(files, &mut worker);
        if flushed.is_ok() && self.version.load().has_full_level0() {
            let merged = self.merge_level0(files, &mut worker);
            let _: bool = self.settle(files, &mut worker, merged);
        }
        if !self.stopped.load(Ordering::Relaxed)
            && worker.log.len() > 0
            && let Err(error) = self.save(files, &mut worker, &self.version.load(), None)
            && !error.may_pass()
        {
            self.stop(&error);
        }
        self.sweep();
        self.leave_retired();
    }

    /// Leaves files of merged tables to the next opening, for which they are orphans. Nobody else
    /// may remove them from now on: a checkpoint that still copies them outlives the store's locks,
    /// and would remove what is another process's by then.
    fn leave_retired(&self) {
        self.retired.lock().clear();
    }

    /// Makes one run of level 0. Sessions too short for the background work leave a table each, and
    /// none of them would merge any. The run does not go into the level below: all of that would be
    /// written for it, while whoever closes the store waits.
    fn merge_level0(&self, files: &Files, worker: &mut Worker) -> Result<()> {
        let version = self.version.load_full();
        let mut pass = Pass::within_level0(&version, &self.sizes, self.began(files));
        drop(version);
        while !self.advance(files, worker, &mut pass)? {}
        Ok(())
    }
}
