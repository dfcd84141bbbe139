//! Syncing and removing segments while another thread appends.

use super::log::Shared;
use super::reader::{LogReader, Stretch};
use super::segment::{ClosedSegment, Segment, beyond, segment_file_name, unsynced};
use crate::error::Result;
use crate::ids::FileId;
use crate::key::SeqNo;
use crate::points::point;
use crate::sync::Arc;

impl Shared {
    /// Makes every record up to `seq` durable. Appends wait only for the hand-over of the
    /// buffer, not for the sync.
    pub(super) fn sync_through(&self, seq: SeqNo) -> Result<()> {
        let _turn = self.turn.lock();
        self.check()?;
        let (targets, entries) = {
            let mut state = self.state.lock();
            if seq > state.current.extent.last_seq {
                self.flush(&mut state)?;
            }
            let wanted = |s: &&Segment| s.extent.base_seq < seq;
            let current = std::iter::once(&state.current);
            let newest_first = current.chain(state.closed.iter().rev());
            let target = |s: &Segment| (s.extent, s.file.clone());
            let targets = unsynced(newest_first).filter(wanted).map(target);
            let mut targets: Vec<_> = targets.collect();
            // Oldest first: if this stops half way, what is durable is a prefix (I5).
            targets.reverse();
            let entries_missing = state.entries_durable < state.entry_changes;
            (targets, entries_missing.then_some(state.entry_changes))
        };
        if targets.is_empty() {
            return Ok(());
        }
        point!(self.points, "wal.before_sync").map_err(|error| self.poison(&error))?;
        for file in targets.iter().filter_map(|(_, file)| file.as_ref()) {
            file.sync().map_err(|error| self.poison(&error))?;
        }
        if let Some(changes) = entries {
            // A synced file whose name is lost is lost.
            self.sync_entries(changes)?;
        }
        let mut state = self.state.lock();
        for (synced, _) in &targets {
            let state = &mut *state;
            let is_it = |segment: &Segment| segment.extent.number == synced.number;
            if is_it(&state.current) {
                state.current.durable_len = synced.len;
            } else if let Some(segment) = state.closed.iter_mut().rev().find(|s| is_it(s)) {
                segment.durable_len = synced.len;
                segment.let_go();
            }
        }
        drop(state);
        point!(self.points, "wal.after_sync").map_err(|error| self.poison(&error))
    }

    /// Makes the first `changes` changes of the directory durable.
    fn sync_entries(&self, changes: u64) -> Result<()> {
        let synced = self.tier.sync_names(|| self.store.sync_dir());
        synced.map_err(|error| self.poison(&error))?;
        let mut state = self.state.lock();
        state.entries_durable = state.entries_durable.max(changes);
        Ok(())
    }

    pub(super) fn remove_obsolete(&self, flushed_through: SeqNo) -> Result<u64> {
        let turn = self.turn.lock();
        if turn.has_ended {
            return Ok(0);
        }
        self.check()?;
        let mut removed = 0;
        // Nobody else removes segments meanwhile, because that takes the turn.
        for victim in self.beyond_retention(flushed_through) {
            let unsynced_removal = {
                let state = self.state.lock();
                let unsynced = state.removal > state.entries_durable;
                unsynced.then_some(state.entry_changes)
            };
            // Removals must become durable in order: a hole in the chain would be read as damage.
            if let Some(changes) = unsynced_removal {
                self.sync_entries(changes)?;
            }
            point!(self.points, "wal.before_remove")?;
            self.store.remove(&segment_file_name(victim.number))?;
            self.tier.remove_file_bytes(victim.len);
            let mut state = self.state.lock();
            state.closed.pop_front();
            state.entry_changes += 1;
            state.removal = state.entry_changes;
            removed += victim.len;
            drop(state);
            point!(self.points, "wal.removed")?;
        }
        Ok(removed)
    }

    /// The segments without a record above `flushed_through` that the retention does not keep,
    /// oldest first.
    fn beyond_retention(&self, flushed_through: SeqNo) -> Vec<ClosedSegment> {
        let state = self.state.lock();
        let is_obsolete = |segment: &&Segment| segment.extent.last_seq <= flushed_through;
        let obsolete = state.closed.iter().take_while(is_obsolete).count();
        let newest_first = state.closed.range(..obsolete).rev();
        let mut victims: Vec<_> = beyond(newest_first, self.retention).collect();
        victims.reverse();
        victims
    }
}

/// Syncs, removes and reads the log from any thread, without holding up appends.
#[derive(Debug, Clone)]
pub(crate) struct WalSync {
    shared: Arc<Shared>,
}

impl WalSync {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Makes every record up to `seq` durable, whichever segment it is in; a flush calls it
    /// before its edit (I5). Records still in the process buffer are handed over first.
    ///
    /// # Errors
    /// I/O errors of the hand-over, after which it may be called again;
    /// [`crate::Error::Poisoned`] when a sync fails (I9).
    pub(crate) fn sync_through(&self, seq: SeqNo) -> Result<()> {
        self.shared.sync_through(seq)
    }

    /// Whether a sync of the log waits for a device.
    pub(crate) fn waits_for_a_device(&self) -> bool {
        self.shared.store.waits_for_a_device()
    }

    /// Number of the oldest segment that is not obsolete.
    pub(crate) fn first_segment(&self) -> FileId {
        let state = self.shared.state.lock();
        let first = state.closed.front().unwrap_or(&state.current);
        first.extent.number
    }

    /// The sequence number through which everything must be in tables, so that the closed segments
    /// after it take no more than `bytes`; short segments count for more than their length. `None`
    /// if all closed segments take no more.
    pub(crate) fn surplus_through(&self, bytes: u64) -> Option<SeqNo> {
        let state = self.shared.state.lock();
        let newest_first = state.closed.iter().rev();
        let newest_beyond = beyond(newest_first, bytes).next();
        newest_beyond.map(|segment| segment.last_seq)
    }

    /// Whether a closed segment is not durable yet.
    #[cfg(test)]
    pub(crate) fn unsynced_closed(&self) -> bool {
        !self.shared.state.lock().older_durable()
    }

    /// Removes closed segments without a record above `flushed_through`, oldest first (I5), as long
    /// as more such segments are left than the retention's bytes; short segments count for more
    /// than their length. Returns the bytes freed.
    ///
    /// # Errors
    /// I/O errors of the log store; what was not removed stays for the next call.
    pub(crate) fn remove_obsolete(&self, flushed_through: SeqNo) -> Result<u64> {
        self.shared.remove_obsolete(flushed_through)
    }

    /// From now on, no segment is removed. A call that the closing of the store has overtaken may
    /// still be about to remove one, and would do so without the store's locks. What is left is
    /// removed after the next opening.
    pub(crate) fn end_removal(&self) {
        self.shared.turn.lock().has_ended = true;
    }

    /// The commit groups from sequence `seq` on, as far as they have been handed over by now.
    ///
    /// # Errors
    /// [`crate::Error::LogGone`] when the log starts after `seq`.
    pub(crate) fn read_since(&self, seq: SeqNo) -> Result<LogReader> {
        let state = self.shared.state.lock();
        let segments = state.closed.iter().chain([&state.current]);
        let stretch = |s: &Segment| Stretch {
            segment: s.extent,
            start: s.start_of(seq),
        };
        let stretches = segments.map(stretch).collect();
        drop(state);
        LogReader::new(Arc::clone(&self.shared.tier), stretches, seq)
    }
}
