//! The removal of tables that no version names any more and nobody holds.

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

/// Who is told that files are gone that no job's end tells of.
pub(crate) trait AfterRemoval: Send + Sync {
    /// There is room that there was not before.
    fn after_removal(&self);
}

/// Tables that no version names any more, and the removal of those nobody holds.
///
/// To remove a large file takes a file system its time, and there may be thousands. So nobody who
/// only asks what there is waits for that, and in the background each is a step of its own: flushes
/// have the same lane.
#[derive(Debug)]
pub(crate) struct Graveyard {
    /// Who is told that there is room again.
    told: Weak<dyn AfterRemoval>,
    executor: Arc<dyn Executor>,
    clock: Arc<dyn Clock>,
    cpu: Arc<CpuTimes>,
    points: Points,
    graves: Mutex<Graves>,
    /// Held while a file is removed. Comes before `graves`.
    removing: Mutex<Removing>,
}

/// Whether files may be removed.
#[derive(Debug, Default)]
struct Removing {
    /// Whether the store is closed: its directories may be another's.
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Graves {
    dead: BTreeMap<FileId, Dead>,
    /// Those of them that nobody reads any more: their removal may be tried.
    released: BTreeSet<FileId>,
    /// Whether a job is queued that removes them.
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

    /// Takes in a table that no version names from now on.
    pub(super) fn pin(&self, id: FileId, tier: &Arc<Tier>, bytes: u64) {
        let dead = Dead {
            tier: Arc::clone(tier),
            bytes,
            since: self.clock.now(),
        };
        self.graves.lock().dead.insert(id, dead);
    }

    /// Has a table removed whose last reader is gone.
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
        // A compaction made the files obsolete.
        let removal = Counted::new(removal, Activity::Compaction, Arc::clone(&self.cpu));
        self.executor.spawn(Lane::Flush, Box::new(removal));
    }

    /// Tables that no version names and whose files are still there.
    pub(crate) fn dead(&self) -> Vec<FileId> {
        self.graves.lock().dead.keys().copied().collect()
    }

    /// Removes every file that nobody holds; how many are gone. One that cannot be removed stays,
    /// counts as used, and is tried again with the next.
    pub(crate) fn sweep(&self) -> usize {
        let released: Vec<FileId> = self.graves.lock().released.iter().copied().collect();
        self.remove_all(released)
    }

    /// Has no file removed from now on: whoever still is about to, in the middle of a call that
    /// closing the store has overtaken, would do so without its locks. What is left goes with the
    /// next opening.
    pub(crate) fn close(&self) {
        self.removing.lock().has_ended = true;
    }

    /// As [`Graveyard::sweep`], of these files.
    pub(crate) fn remove_all(&self, ids: impl IntoIterator<Item = FileId>) -> usize {
        ids.into_iter().filter(|id| self.remove(*id)).count()
    }

    /// Removes a file if nobody holds it; whether it is gone by that.
    fn remove(&self, id: FileId) -> bool {
        // Who comes second finds that it is gone, and not that it is about to be.
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
        // Both at once: who adds up what the tier holds and what of it is about to go finds it in
        // both or in none.
        let mut graves = self.graves.lock();
        graves.dead.remove(&id);
        graves.released.remove(&id);
        tier.remove_file_bytes(bytes);
        drop(graves);
        let _: Result<()> = point!(self.points, "files.removed");
        true
    }

    /// Bytes of obsolete files on tier `tier` that readers have held for long, and are not about to
    /// let go.
    pub(crate) fn long_held(&self, tier: u8) -> u64 {
        let now = self.clock.now();
        let graves = self.graves.lock();
        let held = graves.dead.iter().filter(|(id, file)| {
            let age = now.saturating_sub(file.since);
            file.tier.index == tier && age >= LONG_HELD && !graves.released.contains(*id)
        });
        held.map(|(_, file)| file.bytes).sum()
    }

    /// Bytes of obsolete files on tier `tier`, and how long the oldest of them is held.
    pub(crate) fn pinned(&self, tier: u8) -> (u64, Option<Duration>) {
        let graves = self.graves.lock();
        let on_tier = || graves.dead.values().filter(|file| file.tier.index == tier);
        let oldest = on_tier().map(|file| file.since).min();
        let age = oldest.map(|since| self.clock.now().saturating_sub(since));
        (on_tier().map(|file| file.bytes).sum(), age)
    }
}

/// Removes what was released, a file a step.
#[derive(Debug)]
struct Removal {
    graveyard: Arc<Graveyard>,
    /// What could not be removed is left to the next.
    refused: BTreeSet<FileId>,
    /// Whether there is room that there was not before.
    has_removed: bool,
}

impl Job for Removal {
    fn step(&mut self) -> Step {
        let mut graves = self.graveyard.graves.lock();
        let mut left = graves.released.difference(&self.refused);
        let Some(&id) = left.next() else {
            // Under the lock: what is released from now on is another job's.
            graves.queued = false;
            drop(graves);
            // What a job has replaced is gone when the job ends, and it sees to what follows. This
            // was held by readers, or was a keyspace's that was dropped.
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

    /// A scene with a reader that holds several tables which no version names any more.
    fn held_tables(scene: &Scene) -> (Arc<Superversion>, usize) {
        // Twice the same keys: what does not overlap is moved, and no file goes.
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

    /// All files that nobody held any more went in one step, in the lane of the flushes: after a
    /// keyspace of many tables was dropped writers waited for all of them.
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

    /// What a tier's obsolete files take is asked for by writers that hold the log, at each freeze:
    /// they stood still until the file system had removed what it was removing.
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
