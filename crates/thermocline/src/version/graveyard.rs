//! The removal of tables that no version names any more and that nobody holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;
use std::time::Duration;

use super::past::LONG_HELD;
use crate::clock::Clock;
use crate::error::Result;
use crate::executor::{Executor, Job, Lane, Step};
use crate::ids::{FileId, table_file_name};
use crate::metrics::{Activity, Counted, CpuTimes};
use crate::points::{Points, point};
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;

/// Is told when files have been removed and no job ends that would deal with it.
pub(crate) trait AfterRemoval: Send + Sync {
    /// There is free space that was not free before.
    fn after_removal(&self);
}

/// Tables that no version names any more. Those that nobody holds are removed.
///
/// Removing a large file takes a file system some time, and there may be thousands of files. So
/// callers that only ask what is there do not wait for a removal. In the background, each removal
/// is a step of its own, because flushes use the same lane.
#[derive(Debug)]
pub(crate) struct Graveyard {
    /// Is told that there is free space again.
    told: Weak<dyn AfterRemoval>,
    executor: Arc<dyn Executor>,
    clock: Arc<dyn Clock>,
    cpu: Arc<CpuTimes>,
    points: Points,
    graves: Mutex<Graves>,
    /// Held while a file is removed. Taken before `graves`.
    removing: Mutex<Removing>,
}

/// Whether files may be removed.
#[derive(Debug, Default)]
struct Removing {
    /// Whether the store is closed. If so, its directories may belong to another store.
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Graves {
    dead: BTreeMap<FileId, Dead>,
    /// The dead tables that nobody reads any more: their removal may be tried.
    released: BTreeSet<FileId>,
    /// Whether a job that removes them is queued.
    queued: bool,
}

#[derive(Debug)]
struct Dead {
    tier: Arc<Tier>,
    bytes: u64,
    since: Duration,
}

impl Graveyard {
    pub(crate) fn new(
        told: Weak<dyn AfterRemoval>,
        executor: Arc<dyn Executor>,
        clock: Arc<dyn Clock>,
        cpu: Arc<CpuTimes>,
        points: Points,
    ) -> Self {
        Self {
            told,
            executor,
            clock,
            cpu,
            points,
            graves: Mutex::default(),
            removing: Mutex::default(),
        }
    }

    /// Adds a table that no version names from now on.
    pub(super) fn pin(&self, id: FileId, tier: &Arc<Tier>, bytes: u64) {
        let dead = Dead {
            tier: Arc::clone(tier),
            bytes,
            since: self.clock.now(),
        };
        self.graves.lock().dead.insert(id, dead);
    }

    /// Queues the removal of a table whose last reader is gone.
    pub(super) fn release(self: &Arc<Self>, id: FileId) {
        let mut graves = self.graves.lock();
        graves.released.insert(id);
        if std::mem::replace(&mut graves.queued, true) {
            return;
        }
        drop(graves);
        let removal = Removal {
            graveyard: Arc::clone(self),
            refused: BTreeSet::new(),
            has_removed: false,
        };
        // A compaction made the files obsolete. Nobody waits for this lane: writers wait for
        // flushes, and a removal may take a disk as long as a flush does.
        let removal = Counted::new(removal, Activity::Compaction, Arc::clone(&self.cpu));
        self.executor.spawn(Lane::Hotness, Box::new(removal));
    }

    /// Tables that no version names and whose files still exist.
    pub(crate) fn dead(&self) -> Vec<FileId> {
        self.graves.lock().dead.keys().copied().collect()
    }

    /// Removes every file that nobody holds; returns how many were removed. A file that cannot be
    /// removed stays, counts as used, and is tried again next time.
    pub(crate) fn sweep(&self) -> usize {
        let released: Vec<FileId> = self.graves.lock().released.iter().copied().collect();
        self.remove_all(released)
    }

    /// From now on, no file is removed. A call that the closing of the store has overtaken may
    /// still be about to remove one, and would do so without the store's locks. The next opening
    /// removes what is left.
    pub(crate) fn close(&self) {
        self.removing.lock().has_ended = true;
    }

    /// As [`Graveyard::sweep`], for these files.
    pub(crate) fn remove_all(&self, ids: impl IntoIterator<Item = FileId>) -> usize {
        ids.into_iter().filter(|id| self.remove(*id)).count()
    }

    /// Removes a file if nobody holds it; returns whether this call removed it.
    fn remove(&self, id: FileId) -> bool {
        // A second caller waits here until the file is gone, so it does not take a removal under
        // way for one that is done.
        let removing = self.removing.lock();
        if removing.has_ended {
            return false;
        }
        let graves = self.graves.lock();
        let Some(file) = graves.dead.get(&id) else {
            return false;
        };
        if !graves.released.contains(&id) {
            return false;
        }
        let (tier, bytes) = (Arc::clone(&file.tier), file.bytes);
        drop(graves);
        let removed = point!(self.points, "files.before_remove")
            .and_then(|()| tier.tables.remove(&table_file_name(id)));
        if removed.is_err() {
            return false;
        }
        // Both change under one lock. So whoever adds up what the tier holds and what of that will
        // be removed finds the file in both numbers or in neither.
        let mut graves = self.graves.lock();
        graves.dead.remove(&id);
        graves.released.remove(&id);
        tier.remove_file_bytes(bytes);
        drop(graves);
        let _: Result<()> = point!(self.points, "files.removed");
        true
    }

    /// Bytes of obsolete files on tier `tier` that readers have held for long and still hold.
    pub(crate) fn long_held(&self, tier: u8) -> u64 {
        let now = self.clock.now();
        let graves = self.graves.lock();
        let held = graves.dead.iter().filter(|(id, file)| {
            let age = now.saturating_sub(file.since);
            file.tier.index == tier && age >= LONG_HELD && !graves.released.contains(*id)
        });
        held.map(|(_, file)| file.bytes).sum()
    }

    /// Bytes of obsolete files on tier `tier`, and for how long the oldest of them has been
    /// obsolete.
    pub(crate) fn pinned(&self, tier: u8) -> (u64, Option<Duration>) {
        let graves = self.graves.lock();
        let on_tier = || graves.dead.values().filter(|file| file.tier.index == tier);
        let oldest = on_tier().map(|file| file.since).min();
        let age = oldest.map(|since| self.clock.now().saturating_sub(since));
        (on_tier().map(|file| file.bytes).sum(), age)
    }
}

/// Removes the released files, one per step.
#[derive(Debug)]
struct Removal {
    graveyard: Arc<Graveyard>,
    /// Files that could not be removed; they are left to the next job.
    refused: BTreeSet<FileId>,
    /// Whether there is free space that was not free before.
    has_removed: bool,
}

impl Job for Removal {
    fn step(&mut self) -> Step {
        let mut graves = self.graveyard.graves.lock();
        let mut left = graves.released.difference(&self.refused);
        let Some(&id) = left.next() else {
            // Under the lock, so that tables released from now on belong to another job.
            graves.queued = false;
            drop(graves);
            // A job deals with the consequences when it ends, and the tables that it replaced are
            // gone by then. The tables removed here were held by readers, or belonged to a keyspace
            // that was dropped.
            let told = self.graveyard.told.upgrade();
            if let Some(told) = told.filter(|_| self.has_removed) {
                told.after_removal();
            }
            return Step::Done;
        };
        drop(graves);
        if self.graveyard.remove(id) {
            self.has_removed = true;
        } else {
            self.refused.insert(id);
        }
        Step::Again
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::read::Superversion;
    use crate::testing::scene::{F, Scene};

    /// A scene, and a reader that holds several tables that no version names any more.
    fn held_tables(scene: &Scene) -> (Arc<Superversion>, usize) {
        // The same keys twice: tables that do not overlap would be moved, and no file would become
        // obsolete.
        scene.fill_l0(300);
        scene.fill_l0(300);
        let held = scene.tree().pin();
        scene.to_last_fast();
        assert!(scene.tree().peek().version.levels[F].tables.len() > 2);
        scene.drain();
        let dead = scene.engine().graveyard.dead().len();
        assert!(dead > 2, "{dead} tables are held");
        (held, dead)
    }

    /// All files that nobody held any more were removed in one step, in the lane of the flushes.
    /// After a keyspace with many tables was dropped, writers waited for all of these removals.
    #[test]
    fn files_are_removed_one_by_one() {
        let scene = Scene::new();
        let (held, dead) = held_tables(&scene);
        let left = || scene.engine().graveyard.dead().len();
        drop(held);
        assert_eq!(left(), dead, "it is background work");
        let mut before = dead;
        while scene.stepped.step() {
            assert!(left() + 1 >= before, "{before} files, then {}", left());
            before = left();
        }
        assert_eq!(before, 0);
    }

    /// At each freeze, writers that hold the log ask how much a tier's obsolete files take. They
    /// stood still until the file system had finished the removal under way.
    #[test]
    fn nobody_waits_for_a_removal_to_learn_what_is_there() {
        let scene = Scene::new();
        let (held, _) = held_tables(&scene);
        let hook = scene.at("files.before_remove", |scene| {
            let engine = scene.engine();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || sender.send(engine.graveyard.pinned(0).0));
            let bytes = receiver.recv_timeout(Duration::from_secs(20));
            assert!(bytes.is_ok_and(|bytes| bytes > 0), "{bytes:?}");
            Ok(())
        });
        drop(held);
        scene.drain();
        drop(hook);
    }
}
