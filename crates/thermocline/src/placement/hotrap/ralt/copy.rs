//! A copy of RALT, for a checkpoint of the store.

use super::files::Files;
use super::shared::Shared;
use super::state::State;
use super::state_log::StateLog;
use super::version::Version;
use crate::error::Result;
use crate::points::point;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

impl Shared {
    /// Copies what is known by now into the empty directory of `target`, tables by links where the
    /// medium can. Returns whether there was anything that may be relied on. No work waits for the
    /// copy: to another file system it takes the longer, the more bytes there are.
    ///
    /// # Errors
    /// I/O errors; what `target` holds is then of no use.
    pub(super) fn copy_to(&self, target: &dyn LogStore) -> Result<bool> {
        let Some(files) = &self.files else {
            return Ok(false);
        };
        let Some((version, state)) = self.pin(files)? else {
            return Ok(false);
        };
        let copied = self.copy(files, &version, state, target);
        drop(version);
        // Files of tables that were merged away meanwhile.
        self.sweep();
        copied.map(|()| true)
    }

    /// What is known by now, all of it in tables, and the state that names them. Their files stay
    /// while the version is held. None if nothing may be relied on, or if RALT is closed: reads
    /// that closing has overtaken log accesses all the same, and these are not to be flushed.
    fn pin(&self, files: &Files) -> Result<Option<(Arc<Version>, State)>> {
        let mut worker = self.worker.lock();
        if worker.closed || self.stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.flush_all(files, &mut worker)?;
        let version = self.version.load_full();
        if version.has_full_level0() {
            // If checkpoints empty the buffers before they are full, no flush makes the merge due.
            self.pending.store(true, Ordering::Release);
        }
        let state = State::of(&version, self.clock(), files.next_id(), &self.options);
        Ok(Some((version, state)))
    }

    fn copy(
        &self,
        files: &Files,
        version: &Version,
        state: State,
        target: &dyn LogStore,
    ) -> Result<()> {
        point!(files.points, "checkpoint.hotness_pinned")?;
        for table in version.tables() {
            let name = table.meta.file_name();
            files.tier.tables.link(&name, target.path())?;
        }
        // The tables' names are durable before the state that names them (I4).
        target.sync_dir()?;
        point!(files.points, "checkpoint.hotness_linked")?;
        StateLog::write(files, target, &self.model, state)?;
        Ok(())
    }
}
