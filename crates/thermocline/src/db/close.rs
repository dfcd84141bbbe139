//! Closing a store.

use super::Engine;
use crate::error::Result;
use crate::metrics::Activity;
use crate::points::point;
use crate::sync::atomic::Ordering;
use crate::version::edit::VersionEdit;

impl Engine {
    /// Flushes, stops background work, and lets go of the tiers.
    pub(crate) fn close(&self) -> Result<()> {
        // One at a time: whoever comes second finds the store closed, and not only about to be.
        let _closing = self.closing.lock();
        if self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let flushed = self.flush_all();
        let flushed = flushed.and_then(|_| point!(self.points, "close.flushed"));
        let flushed = {
            // No writer gets between the log's end and the flag: its write would be acknowledged
            // and, when it asked for no durability, lost.
            let mut log = self.commit.log.lock();
            // Even when the flush failed, for want of space on a tier perhaps: the log may still
            // keep what was only in the process buffer.
            // An edit that changes no table: behind it, damage of the last one that does is no torn end.
            let ended = log.wal.close();
            let trees = self.all_trees();
            let closed = VersionEdit {
                learned: trees.iter().map(|t| (t.id, t.averages.learned())).collect(),
                ..VersionEdit::default()
            };
            let ended = ended.and_then(|()| point!(self.points, "close.log_ended"));
            // The manifest's last edit: no keyspace is created behind it.
            let mut manifest = self.manifest.lock();
            let ended = ended.and_then(|()| manifest.append(&closed));
            self.closed.store(true, Ordering::Release);
            flushed.and(ended)
        };
        self.executor.notify();
        self.executor.shutdown();
        let _: Result<()> = point!(self.points, "close.work_ended");
        // While the tiers are locked: the next that opens them may have copies of its own.
        self.fast().remove_all_copies();
        if let Some(ralt) = &self.ralt {
            self.log_waiting_accesses();
            self.cpu.measured(Activity::Ralt, || ralt.close());
        }
        let _: Result<()> = point!(self.points, "close.hotness_kept");
        self.graveyard.sweep();
        self.locks.lock().clear();
        flushed
    }
}
