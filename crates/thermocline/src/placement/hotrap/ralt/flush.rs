//! Flush: accesses that were logged become a table.

use super::buffer::{Chunk, Logged};
use super::files::{Files, Space, Writer};
use super::limits::Limits;
use super::record::{Record, is_of};
use super::reuse::Reuse;
use super::shared::Shared;
use super::state::{Edit, State};
use super::state_log::StateLog;
use super::version::{Change, Version};
use super::worker::Worker;
use crate::error::Result;
use crate::points::point;
use crate::sync::atomic::Ordering;
use crate::table::LongKeys;

impl Shared {
    /// Writes accesses into a table of level 0.
    pub(super) fn flush(
        &self,
        files: &Files,
        worker: &mut Worker,
        chunks: Vec<Chunk>,
    ) -> Result<()> {
        let flushed = self.write_accesses(files, worker, &chunks);
        match &flushed {
            Ok(()) => worker.flushes += 1,
            Err(error) if error.may_pass() => self.buffers.put_back(chunks),
            Err(_) => self.drop_accesses(&chunks),
        }
        flushed
    }

    pub(super) fn write_accesses(
        &self,
        files: &Files,
        worker: &mut Worker,
        chunks: &[Chunk],
    ) -> Result<()> {
        point!(files.points, "ralt.flush")?;
        let mut accesses: Vec<Logged<'_>> =
            Vec::with_capacity(chunks.iter().map(Chunk::count).sum());
        accesses.extend(chunks.iter().flat_map(Chunk::logged));
        if accesses.is_empty() {
            return Ok(());
        }
        if worker.log.len() == 0 {
            // Tables without a state that could name them would look like damage.
            self.save(files, worker, &self.version.load(), None)?;
        }
        let (version, keyspaces) = (self.version.load_full(), self.keyspaces.load_full());
        let lens = || accesses.iter().map(|access| access.key.len());
        let keys: u64 = lens().map(|len| len as u64 + 32).sum();
        let keys = keys + LongKeys::of(lens()).beside_records();
        let space = Space {
            table: u64::MAX,
            expected: keys + (4 << 10),
        };
        let epoch = self.model.epoch(self.now().tick);
        let (limits, outlook) = (version.limits, self.outlook(&worker.reuse));
        let mut writer = Writer::new(files, self.model, limits, outlook, epoch, 0, space)?;
        // Sort only once there is space: a flush that is refused is tried often.
        accesses.sort_by(|a, b| a.key.cmp(b.key));
        for same in accesses.chunk_by(|a, b| a.key == b.key) {
            let record = same.iter().map(|access| self.record(access, &version));
            let record = record.reduce(|older, newer| self.model.merge(older, newer));
            if let Some((record, access)) = record.zip(same.first())
                && is_of(&keyspaces, access.key)
            {
                writer.add(access.key, &record)?;
            }
        }
        let change = Change {
            added: writer.finish()?,
            ..Change::default()
        };
        let mut next = Version::clone(&version);
        next.apply(&change);
        point!(files.points, "ralt.flush_written")?;
        let installed = self.install(files, worker, next, change);
        match &installed {
            Err(error) if error.may_pass() => drop(writer),
            _ => writer.keep(),
        }
        installed
    }

    pub(super) fn record(&self, access: &Logged<'_>, version: &Version) -> Record {
        let moment = self.moment(access.at, version.limits.generation);
        self.model.first(moment, access.value_len, access.times)
    }

    /// Puts a version in force, on disk first (I4), and lets go of the tables that it lacks.
    pub(super) fn install(
        &self,
        files: &Files,
        worker: &mut Worker,
        next: Version,
        change: Change,
    ) -> Result<()> {
        self.save(files, worker, &next, Some(&change))?;
        self.put_in_force(next);
        self.retired.lock().extend(change.removed);
        Ok(())
    }

    /// Makes the state on disk that of `version`: by `change`, or anew.
    pub(super) fn save(
        &self,
        files: &Files,
        worker: &mut Worker,
        version: &Version,
        change: Option<&Change>,
    ) -> Result<()> {
        let (clock, next_id, before) = (self.clock(), files.next_id(), worker.log.len());
        let takes_edits = worker.log.takes_edits(self.sizes.few_edits);
        match change.filter(|_| takes_edits) {
            Some(change) => {
                let edit = Edit::of(version, change, clock, next_id, &self.options);
                worker.log.append(files, &self.model, &edit)?;
            }
            None => {
                let state = State::of(version, clock, next_id, &self.options);
                worker.log = StateLog::write(files, &*files.log, &self.model, state)?;
            }
        }
        let len = worker.log.len();
        files.fast.add_file_bytes(len);
        files.fast.remove_file_bytes(before);
        self.state_len.store(len, Ordering::Release);
        Ok(())
    }

    /// Begins anew without a record.
    pub(super) fn clear(&self, files: &Files, worker: &mut Worker) -> Result<()> {
        worker.pass = None;
        worker.evicted = None;
        worker.cleaned = false;
        worker.drops = self.drops.load(Ordering::Relaxed);
        worker.reuse = Reuse::default();
        self.learning.store(false, Ordering::Relaxed);
        self.flat.store(false, Ordering::Relaxed);
        let version = self.version.load_full();
        let empty = Version {
            limits: Limits::initial(&self.sizes),
            ..Version::default()
        };
        self.save(files, worker, &empty, None)?;
        self.put_in_force(empty);
        self.retired.lock().extend(version.tables().cloned());
        Ok(())
    }

    /// Counts accesses that will not be logged.
    pub(super) fn drop_accesses(&self, chunks: &[Chunk]) {
        let times = chunks.iter().map(Chunk::times).sum();
        self.buffers.count_dropped(times);
    }

    /// Flushes everything, as far as there is space for it. After any failure but want of space the
    /// state of before stays in force, and nothing more is written (I9).
    pub(super) fn flush_all(&self, files: &Files, worker: &mut Worker) -> Result<()> {
        match self.flush(files, worker, self.buffers.take_all()) {
            Err(error) if !error.may_pass() => {
                self.stop(&error);
                Err(error)
            }
            _ => Ok(()),
        }
    }
}
