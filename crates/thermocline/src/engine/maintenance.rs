//! What users ask of a store beside reading and writing: flush, compact, verify.

use std::ops::Bound;

use bytes::Bytes;

use super::{Engine, Seen, Tree, Work};
use crate::error::{Error, Result};
use crate::key::{KeyRange, MAX_KEY_LEN, SeqNo};
use crate::levels::{Manual, Meant, Picker};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::version::MAX_LEVELS;

impl Engine {
    /// Freezes and flushes everything written so far. Returns the sequence number through which
    /// everything is in tables.
    pub(crate) fn flush_all(&self) -> Result<SeqNo> {
        let through = self.freeze_all()?;
        self.flush_frozen(through)?;
        Ok(through)
    }

    /// Flushes the frozen memtables that hold records up to `through`.
    pub(crate) fn flush_frozen(&self, through: SeqNo) -> Result<()> {
        self.background.clear_all();
        self.schedule();
        self.wait_flushed(through)
    }

    /// Flushes the frozen memtables of `tree`.
    pub(crate) fn flush_frozen_of(&self, tree: &Arc<Tree>) -> Result<()> {
        self.background.clear_all();
        self.schedule();
        let failure = || self.background.failure(Work::Flush);
        self.wait_for(&mut || tree.peek().immutables.is_empty(), &failure)
    }

    fn wait_flushed(&self, through: SeqNo) -> Result<()> {
        let behind = |tree: &Arc<Tree>| {
            let immutables = &tree.peek().immutables;
            immutables
                .iter()
                .any(|memtable| memtable.first_seq() <= through)
        };
        let failure = || self.background.failure(Work::Flush);
        self.wait_for(&mut || !self.all_trees().iter().any(behind), &failure)
    }

    /// Waits until `done`, or until something has `failed`.
    fn wait_for(
        &self,
        done: &mut dyn FnMut() -> bool,
        failed: &dyn Fn() -> Option<Error>,
    ) -> Result<()> {
        let mut failure = None;
        let ended = self.executor.wait_until(&mut || {
            if done() {
                return true;
            }
            failure = failed().or_else(|| self.check_open().err());
            failure.is_some()
        });
        match failure {
            Some(error) => Err(error),
            None if ended => Ok(()),
            None => Err(Error::Closed),
        }
    }

    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.check_open()?;
        self.background.clear_all();
        // What is hidden is looked for once more, whatever the last look has found.
        self.all_trees()
            .iter()
            .for_each(|tree| *tree.looked.lock() = None);
        self.schedule();
        let mut is_idle = || {
            self.is_idle() || {
                // Room may have come back without any job, for example from a reader.
                if !self.is_compacting() {
                    self.schedule_compactions();
                }
                self.is_idle()
            }
        };
        self.wait_for(&mut is_idle, &|| self.background.error())?;
        self.sweep();
        Ok(())
    }

    pub(crate) fn sync_log(&self) -> Result<()> {
        self.check_writable()?;
        let synced = self.commit.log.lock().wal.sync_all();
        if let Err(error) = &synced {
            self.background.note_poison(error);
        }
        synced
    }

    /// Brings everything in the range that was written before the call down to level f, and what is
    /// on the slow tier down to the last level. Takes deletes and newer records of level f to what
    /// they hide. Drops at these ends what nobody sees any more. Then merges small tables.
    pub(crate) fn compact_range(
        &self,
        tree: &Arc<Tree>,
        bounds: (Bound<Bytes>, Bound<Bytes>),
    ) -> Result<()> {
        self.flush_all()?;
        let range = inclusive(bounds);
        let (last, last_fast) = {
            // Let go before the work starts: a version that is held meanwhile holds the files that
            // the work replaces.
            let version = &tree.pin().version;
            // If there is only L0, it is brought down too: its tables overlap.
            let last = version.last_level().unwrap_or(0).max(1);
            (last, tree.targets(self, version).last_fast())
        };
        let meant = || Meant {
            range: range.clone(),
            before: self.files.next.load(Ordering::Relaxed),
        };
        let is_end = |level: usize| level == last_fast || level >= last;
        for level in (0..last).filter(|level| *level != last_fast) {
            self.compact_level(tree, level, meant(), |picker, meant| {
                let mut picked = picker.pick_range(level, meant);
                if let Manual::Start(plan) = &mut picked {
                    // On the way down a table may move: it is written anew at the end, or merged
                    // before.
                    plan.is_move &= !is_end(plan.to);
                }
                picked
            })?;
            if level + 1 == last_fast {
                self.open_samples(tree, &meant());
                self.compact_level(tree, last_fast, meant(), |picker, meant| {
                    picker.pick_hiding(meant)
                })?;
            }
        }
        // When the deletes came to lie there, snapshots may still have needed them.
        for level in (0..=last).filter(|level| is_end(*level)) {
            self.compact_level(tree, level, meant(), |picker, meant| {
                picker.pick_rewrite(level, meant)
            })?;
        }
        for level in 1..MAX_LEVELS {
            self.compact_level(tree, level, meant(), |picker, meant| {
                picker.pick_small_of(level, meant)
            })?;
        }
        Ok(())
    }

    /// Opens the tables whose samples tell what is superseded. If one cannot be read, that is an
    /// error of whoever needs its records.
    fn open_samples(&self, tree: &Tree, meant: &Meant) {
        let tables = {
            let state = tree.state.lock();
            tree.with_picker(self, &state, true, |picker| picker.to_sample(meant))
        };
        for table in tables {
            let _ = table.table();
        }
    }

    /// Runs the jobs that `pick` finds for what is `meant` of `level`, in one sweep over its keys.
    fn compact_level(
        &self,
        tree: &Arc<Tree>,
        level: usize,
        mut meant: Meant,
        pick: impl Fn(&Picker<'_>, &Meant) -> Manual,
    ) -> Result<()> {
        loop {
            self.check_writable()?;
            let seen = self.background.compactions.look();
            let picked = {
                let state = tree.state.lock();
                tree.with_picker(self, &state, true, |picker| pick(picker, &meant))
            };
            match picked {
                Manual::Done => return Ok(()),
                Manual::Start(plan) => {
                    let inputs: Vec<_> = plan.inputs().map(|table| table.meta.id).collect();
                    let passed = plan
                        .upper
                        .tables()
                        .iter()
                        .map(|table| &table.meta.range.last);
                    let passed = passed.max().cloned();
                    let is_in_place = plan.is_in_place();
                    self.background.clear(Work::Compaction);
                    match self.start_manual(tree, *plan) {
                        // The table would only get shorter: without room for that it stays as it
                        // is.
                        Err(error) if is_in_place && error.is_no_space() => {
                            if let Some(passed) = &passed {
                                meant.pass(passed);
                            }
                            continue;
                        }
                        started => started?,
                    }
                    self.wait_compaction_ends(seen)?;
                    // A job that has failed would be picked again, without end.
                    let version = &tree.pin().version;
                    let is_undone = version
                        .tables()
                        .any(|table| inputs.contains(&table.meta.id));
                    let failure = self.background.failure(Work::Compaction);
                    if let Some(failure) = failure.filter(|_| is_undone) {
                        return Err(failure);
                    }
                    // Tables of L0 overlap: there is no order in which they could be passed.
                    if let Some(passed) = passed.filter(|_| !is_undone && level > 0) {
                        meant.pass(&passed);
                    }
                }
                Manual::Wait => self.wait_compaction_ends(seen)?,
            }
        }
    }

    /// Waits until one of the compactions that were `seen` may have ended. It does not wait for all
    /// of them: under writes there is always one.
    fn wait_compaction_ends(&self, seen: Seen) -> Result<()> {
        // While older records are being installed into L0, the tables above them stay in place for
        // a moment.
        let is_installing = |tree: &Arc<Tree>| tree.state.lock().l0_places.is_installing();
        let mut ended = || {
            seen.may_have_ended_by(self.background.compactions.look())
                && !self.all_trees().iter().any(is_installing)
        };
        self.wait_for(&mut ended, &|| self.background.failure(Work::Compaction))
    }
}

/// The smallest inclusive range that covers `bounds`.
fn inclusive((lower, upper): (Bound<Bytes>, Bound<Bytes>)) -> KeyRange {
    let first = match lower {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => Bytes::new(),
    };
    let last = match upper {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => Bytes::from(vec![0xff; MAX_KEY_LEN + 1]),
    };
    KeyRange { first, last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Stepped;
    use crate::options::{Options, TierOptions};
    use crate::points::Points;
    use crate::storage::Memory;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::testing::scene::{F, KEYS, SLOW, Scene};
    use crate::{Db, Keyspace};

    /// A store with two tables over the same key in L0.
    fn with_two_tables(points: &Points) -> Db {
        let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
        options.l0_trigger = 8;
        let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
        let builder = builder.executor(Arc::new(Stepped::new(1)));
        let db = builder.points(points.clone()).open().unwrap();
        for value in ["old", "new"] {
            db.put("key", value).unwrap();
            db.flush().unwrap();
        }
        db
    }

    /// How many tables are in L0, and in all levels below.
    fn tables(db: &Db) -> (usize, usize) {
        let version = &db.tree().pin().version;
        let below = version.levels[1..].iter().map(|level| level.tables.len());
        (version.levels[0].tables.len(), below.sum())
    }

    /// Regression: `compact_range` waited until no compaction ran in any keyspace. While others
    /// were written to there was always one, and the call never returned.
    #[test]
    fn compacting_a_range_does_not_wait_for_other_compactions() {
        let db = with_two_tables(&Points::default());
        db.engine().background.compactions.begin();
        db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(tables(&db), (0, 1));
        db.engine().background.compactions.end();
    }

    /// Regression: `compact_range` also brought down what was written meanwhile, and during that
    /// more was written, without end.
    #[test]
    fn compacting_a_range_ends_while_it_is_written_to() {
        let points = Points::default();
        let db = with_two_tables(&points);
        let (rounds, writer) = (AtomicUsize::new(0), db.clone());
        points.set("compaction.before_edit", move || {
            // More than there are levels.
            assert!(rounds.fetch_add(1, Ordering::Relaxed) < 20, "without end");
            writer.put("key", "newer")?;
            writer.flush()
        });
        db.compact_range::<&[u8]>(..).unwrap();
        points.clear("compaction.before_edit");
        assert_eq!(tables(&db), (1, 1));
    }

    /// Regression: promoted records are old. L0 was brought down again for each table of records
    /// that were promoted meanwhile, for as long as a hot set was being learnt.
    #[test]
    fn compacting_a_range_leaves_alone_what_is_promoted_meanwhile() {
        let scene = Scene::with_old(&KEYS);
        scene.heat(&KEYS);
        for version in ["old", "new"] {
            scene.put("other", version);
            scene.db.flush().unwrap();
        }
        let hook = scene.at("compaction.before_edit", |scene| {
            scene.read_into_cache(&KEYS);
            scene.promote()
        });
        scene.db.compact_range::<&str>(..).unwrap();
        assert!(hook.has_run());
        let levels = &scene.tree().pin().version.levels;
        assert_eq!(levels[0].tables.len(), 1, "the promoted ones");
        assert_eq!(levels[F].tables.len(), 1, "the other");
    }

    /// Regression: records that cross meanwhile are old, too. While records of the fast tier went
    /// down, a level of the slow tier was never empty. It could become empty only once later writes
    /// had replaced each of those records.
    #[test]
    fn compacting_a_range_passes_each_key_of_a_level_once() {
        const LOW: usize = SLOW - 1;
        let scene = Scene::with_old(&KEYS);
        // All places are taken: none begins by itself.
        let engine = scene.engine();
        let threads = engine.options.compaction_threads;
        (0..threads).for_each(|_| engine.background.compactions.begin());
        for keys in [&["a"][..], &KEYS] {
            scene.put_all(keys, "new");
            scene.to_last_fast();
        }
        let keys = KeyRange {
            first: Bytes::from_static(b"k"),
            last: Bytes::from_static(b"l"),
        };
        let plan = scene.pick(F, &keys, true).unwrap();
        scene.cross_as(plan, LOW);
        let of_low = |scene: &Scene| scene.tree().pin().version.levels[LOW].tables.to_vec();
        assert_eq!(of_low(&scene).len(), 1);
        // Past the keys that the first job of the level brings down.
        let hook = scene.at("compaction.before_edit", |scene| {
            scene.cross_to(LOW);
            Ok(())
        });
        scene.db.compact_range::<&str>(..).unwrap();
        assert!(hook.has_run());
        let left = of_low(&scene);
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0].meta.range.first, "a");
        (0..threads).for_each(|_| engine.background.compactions.end());
    }

    /// A store of one tier in which no compaction is due by itself while L0 has fewer than
    /// `l0_trigger` tables.
    fn of_one_tier(l0_trigger: usize) -> Db {
        let mut options = Options::one_tier("/fast");
        options.l0_trigger = l0_trigger;
        let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
        builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
    }

    /// Records in tables, and how many of them are deletes.
    fn records(db: &Db) -> (u64, u64) {
        let metrics = Keyspace::metrics(db);
        (metrics.records, metrics.deletes)
    }

    /// A table that met nothing moved down as it was, even for `compact_range`. So what nobody saw
    /// any more came to the last level, where a second call did nothing about it.
    #[test]
    fn compacting_a_range_drops_what_nobody_sees_of_tables_that_meet_nothing() {
        let db = of_one_tier(8);
        db.put("key", "value").unwrap();
        db.delete("key").unwrap();
        db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(records(&db), (0, 0));
        db.put("key", "old").unwrap();
        let snapshot = db.snapshot();
        db.put("key", "new").unwrap();
        db.flush().unwrap();
        drop(snapshot);
        db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(records(&db), (1, 0));
    }

    /// Deletes that a snapshot needed when they came to the last level stayed there, whatever was
    /// called, until their keys were written again.
    #[test]
    fn compacting_a_range_drops_deletes_of_the_last_level_that_a_snapshot_held() {
        let db = of_one_tier(8);
        db.put("key", "value").unwrap();
        let snapshot = db.snapshot();
        db.delete("key").unwrap();
        db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(records(&db), (2, 1), "the snapshot needs both");
        let seen = snapshot.get("key").unwrap();
        assert_eq!(seen.as_deref(), Some(&b"value"[..]));
        drop(snapshot);
        db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(records(&db), (0, 0));
    }

    /// While a snapshot was open, tables were written anew for the sake of deletes that it needed,
    /// and kept all of them. That happened at each hop on their way down, and in the last level by
    /// each call.
    #[test]
    fn tables_whose_deletes_a_snapshot_needs_are_not_written_anew() {
        let db = of_one_tier(1);
        let snapshot = db.snapshot();
        for key in ["a", "b", "c"] {
            db.put(key, "value").unwrap();
            db.delete(key).unwrap();
            db.flush().unwrap();
        }
        db.wait_idle().unwrap();
        // Jobs, moves, and bytes written.
        let work = || {
            let metrics = db.metrics();
            let mut work = (0, 0, 0);
            for level in &metrics.compactions {
                let written: u64 = level.write_bytes.iter().sum();
                work = (work.0 + level.jobs, work.1 + level.moves, work.2 + written);
            }
            work
        };
        let before = work();
        assert!(before.0 > 0, "L0 is compacted");
        assert_eq!((before.1, before.2), (before.0, 0));
        // The tables are small, and are merged once.
        db.compact_range::<&[u8]>(..).unwrap();
        let before = work();
        for _ in 0..2 {
            db.compact_range::<&[u8]>(..).unwrap();
            assert_eq!((work(), records(&db)), (before, (3, 3)));
        }
        drop(snapshot);
        db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(records(&db), (0, 0));
    }

    /// A delete stayed on level f while what it hid lay on the slow tier, until other keys pushed
    /// it down.
    #[test]
    fn compacting_a_range_takes_deletes_to_what_they_hide_on_the_slow_tier() {
        let scene = Scene::with_old(&KEYS);
        scene.delete("k05");
        let hook = scene.at("crossing.before_edit", |scene| {
            let levels = scene.levels_of("k05");
            assert_eq!(
                levels,
                [(F as u8, "gone".into()), (SLOW as u8, "old".into())]
            );
            Ok(())
        });
        scene.db.compact_range::<&str>(..).unwrap();
        assert!(hook.has_run());
        assert_eq!(scene.levels_of("k05"), []);
        assert_eq!(scene.get("k05"), None);
        assert_eq!(scene.levels_of("k06"), [(SLOW as u8, "old".into())]);
    }
}
