//! One script: operations drawn from a seed, applied to the store and to the model. The draws
//! depend only on the seed and the model, so every option set gets the same script.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use crate::random_options::set_some_target;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::executor::Stepped;
use thermocline::storage::Medium;
use thermocline::{
    Batch, Bytes, Db, Durability, Error, Expect, Keyspace, ManualClock, Options, Snapshot,
};

use super::coverage::look_at;
use super::model::{Bounds, Map, Walk, compare, judge, records};
use crate::stores::memory;
use crate::verdict::{Promise, Tally, Violation, each_with_its_answer};

type Checked<T = ()> = Result<T, Violation>;

/// Keyspaces of every script; the first is the default one.
const KEYSPACES: usize = 2;
const NAMES: [&str; KEYSPACES] = ["default", "second"];

/// What runs the background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Threads,
    Stepped,
}

/// A script before it runs.
pub(super) struct Script {
    pub(super) options: Options,
    pub(super) driver: Driver,
    pub(super) seed: u64,
    pub(super) keys: u32,
    pub(super) steps: usize,
}

impl Script {
    /// Runs it all; counts what it reached.
    pub(super) fn run(&self, tally: &mut Tally) -> Checked {
        let medium = memory();
        let db = open(&self.options, &medium, self.driver, self.seed)?;
        db.create_keyspace("second")?;
        let mut run = Run {
            rng: SmallRng::seed_from_u64(self.seed),
            db,
            maps: Default::default(),
            snapshots: Vec::new(),
            checkpoints: 0,
            script: self,
            medium,
            tally,
        };
        for step in 0..self.steps {
            let at =
                |v: Violation| Violation::new(v.promise, format!("step {step}: {}", v.message));
            run.one().map_err(at)?;
        }
        run.finish()
    }
}

fn open(
    options: &Options,
    medium: &Arc<dyn Medium>,
    driver: Driver,
    seed: u64,
) -> thermocline::Result<Db> {
    let mut builder = Db::builder(options.clone());
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(medium));
    }
    if driver == Driver::Stepped {
        builder = builder
            .executor(Arc::new(Stepped::new(seed)))
            .clock(Arc::new(ManualClock::default()));
    }
    let db = builder.open()?;
    set_some_target(&db, &mut SmallRng::seed_from_u64(seed));
    Ok(db)
}

fn numbered(n: u32) -> Bytes {
    let tail = "x".repeat(n as usize % 5);
    Bytes::from(format!("{:03}/{:02}{tail}", n / 10, n % 10))
}

/// A script under way.
struct Run<'a> {
    script: &'a Script,
    rng: SmallRng,
    medium: Arc<dyn Medium>,
    db: Db,
    maps: [Map; KEYSPACES],
    snapshots: Vec<(Snapshot, [Map; KEYSPACES])>,
    checkpoints: u32,
    tally: &'a mut Tally,
}

impl Run<'_> {
    fn keyspace(&self, which: usize) -> Checked<Keyspace> {
        Ok(self.db.keyspace(NAMES[which])?)
    }

    fn which(&mut self) -> usize {
        usize::from(self.rng.random_bool(0.3))
    }

    /// Skewed towards small numbers, of varying length, with shared prefixes.
    fn key(&mut self) -> Bytes {
        let keys = self.script.keys;
        let n = match self.rng.random_bool(0.3) {
            true => self.rng.random_range(0..keys.div_ceil(20)),
            false => self.rng.random_range(0..keys),
        };
        numbered(n)
    }

    fn value(&mut self) -> Bytes {
        let len = match self.rng.random_range(0..10) {
            0 => 0,
            1..=7 => self.rng.random_range(1..500),
            _ => self.rng.random_range(500..6000),
        };
        let mut value = vec![0; len];
        self.rng.fill(&mut value[len / 3..]);
        Bytes::from(value)
    }

    fn durability(&mut self) -> Durability {
        [Durability::None, Durability::Buffered, Durability::Sync][self.rng.random_range(0..3)]
    }

    fn one(&mut self) -> Checked {
        match self.rng.random_range(0..100) {
            0..=19 => self.put(),
            20..=26 => self.delete(),
            27..=38 => self.batch(),
            39..=44 => self.conditional_batch(),
            45..=54 => self.get(4),
            55..=56 => self.get(200),
            57..=62 => self.multi_get(),
            63..=78 => self.range(),
            79..=82 => {
                self.take_snapshot();
                Ok(())
            }
            83..=88 => self.read_snapshot(),
            89 => {
                self.snapshots.pop();
                Ok(())
            }
            90 => self.fill(),
            91 => self.fill_in_order(),
            92 => self.ingest(),
            93 => Ok(self.db.flush()?),
            94 => self.compact_range(),
            95..=96 => Ok(self.db.wait_idle()?),
            97..=98 => self.reopen(),
            _ => self.checkpoint(),
        }
    }

    fn put(&mut self) -> Checked {
        let (which, key, value) = (self.which(), self.key(), self.value());
        let durability = self.durability();
        self.keyspace(which)?.put_with(&key, &value, durability)?;
        self.maps[which].insert(key, value);
        Ok(())
    }

    fn delete(&mut self) -> Checked {
        let (which, key) = (self.which(), self.key());
        self.keyspace(which)?.delete(&key)?;
        self.maps[which].remove(&key);
        Ok(())
    }

    /// Adds random writes to a batch. Applies them to the model too when `apply` is set.
    fn fill_batch(&mut self, batch: &mut Batch, writes: usize, apply: bool) -> Checked {
        let keyspaces = [self.keyspace(0)?, self.keyspace(1)?];
        for _ in 0..writes {
            let (which, key, value) = (self.which(), self.key(), self.value());
            if self.rng.random_bool(0.2) {
                batch.delete_in(&keyspaces[which], &key);
                if apply {
                    self.maps[which].remove(&key);
                }
            } else {
                batch.put_in(&keyspaces[which], &key, &value);
                if apply {
                    self.maps[which].insert(key, value);
                }
            }
        }
        Ok(())
    }

    fn batch(&mut self) -> Checked {
        let mut batch = Batch::new();
        let writes = self.rng.random_range(0..12);
        self.fill_batch(&mut batch, writes, true)?;
        let durability = self.durability();
        self.db.write_with(batch, durability)?;
        Ok(())
    }

    /// Writes enough to freeze memtables.
    fn fill(&mut self) -> Checked {
        for _ in 0..self.script.keys.div_ceil(60) + 4 {
            let mut batch = Batch::new();
            self.fill_batch(&mut batch, 16, true)?;
            self.db.write(batch)?;
        }
        Ok(())
    }

    /// Writes neighbouring keys in order. Their tables meet no others and may simply move down.
    fn fill_in_order(&mut self) -> Checked {
        let first = self.rng.random_range(0..self.script.keys);
        for n in first..(first + 200).min(self.script.keys) {
            let (key, value) = (numbered(n), self.value());
            self.db.put(&key, &value)?;
            self.maps[0].insert(key, value);
        }
        Ok(())
    }

    /// Ingests keys in order, most of them with gaps in which other keys lie.
    fn ingest(&mut self) -> Checked {
        let which = self.which();
        let first = self.rng.random_range(0..self.script.keys);
        let step = self.rng.random_range(1..4);
        let mut records = Map::new();
        for n in (first..(first + 200).min(self.script.keys)).step_by(step) {
            records.insert(numbered(n), self.value());
        }
        let ingested = self.keyspace(which)?.ingest(&records)?;
        if ingested.records != records.len() as u64 {
            return Err(format!("{} were ingested: {ingested:?}", records.len()).into());
        }
        self.maps[which].extend(records);
        self.tally.add("ingestions", 1);
        Ok(())
    }

    fn conditional_batch(&mut self) -> Checked {
        let mut batch = Batch::new();
        let mut unmet = None;
        for index in 0..self.rng.random_range(1..4) {
            let (which, key) = (self.which(), self.key());
            let present = self.maps[which].get(&key).cloned();
            let (expect, holds) = match (self.rng.random_range(0..4), present) {
                (0, present) => (Expect::Absent, present.is_none()),
                (1, present) => (Expect::Present, present.is_some()),
                (2, Some(value)) => (Expect::Equals(value), true),
                (_, present) => {
                    let value = self.value();
                    let holds = present.as_ref() == Some(&value);
                    (Expect::Equals(value), holds)
                }
            };
            batch.require(&self.keyspace(which)?, &key, expect);
            if !holds && unmet.is_none() {
                unmet = Some(index);
            }
        }
        self.fill_batch(&mut batch, 3, unmet.is_none())?;
        match (self.db.write(batch), unmet) {
            (Ok(_), None) => Ok(()),
            (Err(Error::ConditionFailed { index }), Some(first)) if index == first => {
                self.tally.add("failed conditions", 1);
                Ok(())
            }
            (result, unmet) => {
                let message = format!("{result:?}, where condition {unmet:?} does not hold");
                Err(Violation::new(Promise::Right, message))
            }
        }
    }

    fn get(&mut self, times: usize) -> Checked {
        for _ in 0..times {
            let (which, key) = (self.which(), self.key());
            let found = self.keyspace(which)?.get(&key)?;
            judge("get", &key, found.as_deref(), &self.maps[which])?;
        }
        Ok(())
    }

    fn multi_get(&mut self) -> Checked {
        let which = self.which();
        let keys: Vec<Bytes> = (0..self.rng.random_range(0..20))
            .map(|_| self.key())
            .collect();
        let found = self.keyspace(which)?.multi_get(&keys)?;
        for (key, found) in each_with_its_answer(&keys, found)? {
            judge("multi_get", key, found.as_deref(), &self.maps[which])?;
        }
        Ok(())
    }

    fn bound(&mut self) -> Bound<Bytes> {
        match self.rng.random_range(0..5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }

    /// Bounds, not always in order.
    fn bounds(&mut self) -> Bounds {
        (self.bound(), self.bound())
    }

    fn limit(&mut self) -> usize {
        match self.rng.random_bool(0.1) {
            true => usize::MAX,
            false => self.rng.random_range(1..80),
        }
    }

    fn range(&mut self) -> Checked {
        let which = self.which();
        let (walk, limit) = (Walk::random(&mut self.rng), self.limit());
        let (range, wanted) = if self.rng.random_bool(0.3) {
            let key = self.key();
            let prefix = key.slice(..self.rng.random_range(0..=key.len()));
            let range = self.keyspace(which)?.prefix(&prefix);
            let map = self.maps[which].iter();
            let wanted: Vec<_> = map
                .filter(|(key, _)| key.starts_with(&prefix))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            (range, wanted)
        } else {
            let bounds = self.bounds();
            let range = self.keyspace(which)?.range(bounds.clone());
            (range, records(&self.maps[which], &bounds))
        };
        compare(range, &wanted, walk, limit, &mut self.rng)
    }

    fn take_snapshot(&mut self) {
        if self.snapshots.len() < 4 {
            let snapshot = self.db.snapshot();
            self.snapshots.push((snapshot, self.maps.clone()));
        }
    }

    fn read_snapshot(&mut self) -> Checked {
        if self.snapshots.is_empty() {
            return Ok(());
        }
        let chosen = self.rng.random_range(0..self.snapshots.len());
        let (snapshot, maps) = self.snapshots.swap_remove(chosen);
        let which = self.which();
        let keyspace = self.keyspace(which)?;
        let keys: Vec<Bytes> = (0..10).map(|_| self.key()).collect();
        let found = snapshot.multi_get_in(&keyspace, &keys)?;
        for (key, found) in each_with_its_answer(&keys, found)? {
            judge(
                "multi_get of a snapshot",
                key,
                found.as_deref(),
                &maps[which],
            )?;
            let found = snapshot.get_in(&keyspace, key)?;
            judge("get of a snapshot", key, found.as_deref(), &maps[which])?;
        }
        let bounds = self.bounds();
        let range = snapshot.range_in(&keyspace, bounds.clone());
        let (walk, limit) = (Walk::random(&mut self.rng), self.limit());
        let wanted = records(&maps[which], &bounds);
        compare(range, &wanted, walk, limit, &mut self.rng)?;
        self.snapshots.push((snapshot, maps));
        Ok(())
    }

    fn compact_range(&mut self) -> Checked {
        let (which, bounds) = (self.which(), self.bounds());
        Ok(self.keyspace(which)?.compact_range(bounds)?)
    }

    fn close(&mut self) -> Checked {
        // Snapshots belong to the handle that closes.
        self.snapshots.clear();
        look_at(&self.db, self.tally);
        Ok(self.db.close()?)
    }

    fn reopen(&mut self) -> Checked {
        self.close()?;
        let seed = self.rng.random();
        let Script {
            options, driver, ..
        } = self.script;
        self.db = open(options, &self.medium, *driver, seed)?;
        self.tally.add("reopenings", 1);
        Ok(())
    }

    fn checkpoint(&mut self) -> Checked {
        self.checkpoints += 1;
        let mut options = self.script.options.clone();
        for (index, tier) in options.tiers.iter_mut().enumerate() {
            let name = format!("checkpoint{}-{index}", self.checkpoints);
            tier.path = tier.path.with_file_name(name);
        }
        let paths: Vec<PathBuf> = options.tiers.iter().map(|t| t.path.clone()).collect();
        self.db.checkpoint(&paths)?;
        let copy = open(&options, &self.medium, self.script.driver, 0)?;
        self.compare_whole(&copy)?;
        copy.put("only in the copy", "1")?;
        copy.close()?;
        self.tally.add("checkpoints", 1);
        Ok(())
    }

    fn compare_whole(&mut self, db: &Db) -> Checked {
        for (name, map) in NAMES.into_iter().zip(&self.maps) {
            let wanted = records(map, &(Bound::Unbounded, Bound::Unbounded));
            let range = db.keyspace(name)?.iter();
            compare(range, &wanted, Walk::Forward, usize::MAX, &mut self.rng)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Checked {
        self.db.wait_idle()?;
        let db = self.db.clone();
        self.compare_whole(&db)?;
        let report = db.verify(&mut |_| {})?;
        if !report.problems.is_empty() {
            return Err(Violation::disorder(format!(
                "verify: {:?}",
                report.problems
            )));
        }
        self.close()
    }
}
