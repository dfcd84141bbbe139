//! A copy of RALT, for a checkpoint of the store.

use super::shared::Shared;
use super::state::State;
use crate::error::Result;
use crate::points::point;
use crate::storage::LogStore;
use crate::sync::atomic::Ordering;

impl Shared {
    /// Copies what is known by now into the empty directory of `target`, tables by links where the
    /// medium can; whether there was anything that may be relied on.
    ///
    /// # Errors
    /// I/O errors; what `target` holds is then of no use.
    pub(super) fn copy_to(&self, target: &dyn LogStore) -> Result<bool> {
        // Held to the end: no table of the version goes away meanwhile.
        let mut worker = self.worker.lock();
        let Some(files) = &self.files else {
            return Ok(false);
        };
        if self.stopped.load(Ordering::Relaxed) {
            return Ok(false);
        }
        self.flush_all(files, &mut worker)?;
        if self.version.load().has_full_level0() {
            // Where checkpoints empty the buffers before they are full, no flush makes it due.
            self.pending.store(true, Ordering::Release);
        }
        let version = self.version.load_full();
        for table in version.tables() {
            let name = table.meta.file_name();
            files.tier.tables.link(&name, target.path())?;
        }
        // The tables' names are durable before the state that names them (I4).
        target.sync_dir()?;
        point!(files.points, "checkpoint.hotness_linked")?;
        let (clock, next_id) = (self.clock(), files.next_id());
        let state = State::of(&version, clock, next_id, &self.options);
        state.save(files, target, &self.model)?;
        Ok(true)
    }
}
