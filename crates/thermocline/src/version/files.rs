//! When table files go away: after the edit that drops them is durable and the last reader
//! that could use them is gone (I4).

use std::collections::BTreeMap;
use std::time::Duration;

use super::edit::{FileId, table_file_name};
use crate::clock::Clock;
use crate::error::Result;
use crate::executor::{Executor, Lane, Step};
use crate::metrics::{Activity, Counted, CpuTimes};
use crate::points::{Points, point};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;

/// Tables that no version names any more, and the removal of those nobody holds.
#[derive(Debug)]
pub(crate) struct Graveyard {
    executor: Arc<dyn Executor>,
    clock: Arc<dyn Clock>,
    cpu: Arc<CpuTimes>,
    points: Points,
    dead: Mutex<BTreeMap<FileId, Dead>>,
}

#[derive(Debug)]
struct Dead {
    tier: Arc<Tier>,
    bytes: u64,
    since: Duration,
    /// Nobody reads it any more: its removal may be tried.
    released: bool,
}

impl Graveyard {
    pub(crate) fn new(
        executor: Arc<dyn Executor>,
        clock: Arc<dyn Clock>,
        cpu: Arc<CpuTimes>,
        points: Points,
    ) -> Self {
        Self {
            executor,
            clock,
            cpu,
            points,
            dead: Mutex::default(),
        }
    }

    fn pin(&self, file: &FileGuard) {
        let dead = Dead {
            tier: Arc::clone(&file.tier),
            bytes: file.bytes,
            since: self.clock.now(),
            released: false,
        };
        self.dead.lock().insert(file.id, dead);
    }

    fn release(self: &Arc<Self>, id: FileId) {
        if let Some(dead) = self.dead.lock().get_mut(&id) {
            dead.released = true;
        }
        let graveyard = Arc::clone(self);
        let sweep = move || {
            graveyard.sweep();
            Step::Done
        };
        // A compaction made the files obsolete.
        let sweep = Counted::new(sweep, Activity::Compaction, Arc::clone(&self.cpu));
        self.executor.spawn(Lane::Flush, Box::new(sweep));
    }

    /// Tables that no version names and whose files are still there.
    pub(crate) fn dead(&self) -> Vec<FileId> {
        self.dead.lock().keys().copied().collect()
    }

    /// Removes every file that nobody holds. One that cannot be removed stays, counts as
    /// used, and is tried again with the next.
    pub(crate) fn sweep(&self) {
        let mut dead = self.dead.lock();
        dead.retain(|&id, file| {
            if !file.released {
                return true;
            }
            let removed = point!(self.points, "files.before_remove")
                .and_then(|()| file.tier.tables.remove(&table_file_name(id)));
            if removed.is_err() {
                return true;
            }
            file.tier.remove_file_bytes(file.bytes);
            let _: Result<()> = point!(self.points, "files.removed");
            false
        });
    }

    /// Bytes of obsolete files on tier `tier`, and how long the oldest of them is held.
    pub(crate) fn pinned(&self, tier: u8) -> (u64, Option<Duration>) {
        let dead = self.dead.lock();
        let on_tier = || dead.values().filter(|file| file.tier.index == tier);
        let oldest = on_tier().map(|file| file.since).min();
        let age = oldest.map(|since| self.clock.now().saturating_sub(since));
        (on_tier().map(|file| file.bytes).sum(), age)
    }
}

/// Keeps a table's file in place while a version names the table or a reader uses it.
#[derive(Debug)]
pub(crate) struct FileGuard {
    id: FileId,
    tier: Arc<Tier>,
    bytes: u64,
    obsolete: AtomicBool,
    graveyard: Arc<Graveyard>,
}

impl FileGuard {
    pub(crate) fn new(id: FileId, tier: Arc<Tier>, bytes: u64, graveyard: Arc<Graveyard>) -> Self {
        Self {
            id,
            tier,
            bytes,
            obsolete: AtomicBool::new(false),
            graveyard,
        }
    }

    /// Says that the edit which drops the table is durable (I4).
    pub(crate) fn mark_obsolete(&self) {
        self.graveyard.pin(self);
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            self.graveyard.release(self.id);
        }
    }
}
