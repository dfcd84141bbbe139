//! One script: operations drawn from a seed, done to the store and to the model.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::executor::Stepped;
use thermocline::storage::Medium;
use thermocline::{
    Batch, Bytes, Db, Durability, Error, Expect, Keyspace, ManualClock, Options, Snapshot,
};

use crate::model::{Bounds, Map, Walk, compare, records};
use thermocline_torture::stores::memory;

/// Keyspaces of every script; the first is the default one.
const KEYSPACES: usize = 2;

/// What runs the background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    Threads,
    Stepped,
}

/// What scripts reached: a script that stays in the memtable proves little.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    /// Compactions that wrote below f.
    pub(crate) crossings: u64,
    pub(crate) moves: u64,
    pub(crate) rewrites: u64,
    /// Jobs into levels between L0 and the last one.
    pub(crate) middle_levels: u64,
    /// Bytes seen on the last tier.
    pub(crate) last_tier_bytes: u64,
    pub(crate) conditions_failed: u64,
    pub(crate) reopened: u64,
    pub(crate) checkpoints: u64,
    /// Bytes that came up from the slow tier, by flush and by compaction.
    pub(crate) promoted: [u64; 2],
    /// Bytes that stayed on the fast tier for being hot.
    pub(crate) retained: u64,
    /// Blocks read from a flash cache.
    pub(crate) flash_reads: u64,
}

impl Coverage {
    pub(crate) fn add(&mut self, other: &Coverage) {
        self.crossings += other.crossings;
        self.moves += other.moves;
        self.rewrites += other.rewrites;
        self.middle_levels += other.middle_levels;
        self.last_tier_bytes += other.last_tier_bytes;
        self.conditions_failed += other.conditions_failed;
        self.reopened += other.reopened;
        self.checkpoints += other.checkpoints;
        self.promoted[0] += other.promoted[0];
        self.promoted[1] += other.promoted[1];
        self.retained += other.retained;
        self.flash_reads += other.flash_reads;
    }

    pub(crate) fn check(&self, name: &str, tiers: usize) {
        let ways = [
            ("rewrites", self.rewrites),
            ("bytes on the last tier", self.last_tier_bytes),
            ("failed conditions", self.conditions_failed),
            ("reopenings", self.reopened),
            ("checkpoints", self.checkpoints),
        ];
        for (way, count) in ways {
            assert!(count > 0, "{name}: no {way}: {self:?}");
        }
        assert!(tiers == 1 || self.crossings > 0, "{name}: {self:?}");
    }

    fn look_at(&mut self, db: &Db) {
        let metrics = db.metrics();
        for io in &metrics.tiers[0].io {
            if io.purpose == thermocline::Purpose::FlashCache {
                self.flash_reads += io.read_ops;
            }
        }
        for job in &metrics.compactions {
            self.moves += job.moves;
            self.rewrites += job.jobs - job.moves;
            if job.to > 0 && usize::from(job.to) + 1 < metrics.levels.len() {
                self.middle_levels += job.jobs;
            }
            let slow: u64 = job.write_bytes[1..].iter().sum();
            let from_fast = job.read_bytes[0] > 0;
            self.crossings += u64::from(from_fast && slow > 0);
        }
        self.last_tier_bytes += metrics.tiers.last().unwrap().table_bytes;
        if let Some(hotrap) = metrics.hotrap {
            self.promoted[0] += hotrap.promoted_flush_bytes;
            self.promoted[1] += hotrap.promoted_compaction_bytes;
            self.retained += hotrap.retained_bytes;
        }
    }
}

/// A script before it runs.
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) options: Options,
    pub(crate) driver: Driver,
    pub(crate) seed: u64,
    pub(crate) keys: u32,
    pub(crate) steps: usize,
}

impl Script {
    pub(crate) fn run(self) -> Coverage {
        let medium = memory();
        let db = open(&self.options, &medium, self.driver, self.seed);
        db.create_keyspace("second").unwrap();
        let mut run = Run {
            rng: SmallRng::seed_from_u64(self.seed),
            db: Some(db),
            maps: Default::default(),
            snapshots: Vec::new(),
            coverage: Coverage::default(),
            step: 0,
            checkpoints: 0,
            script: self,
            medium,
        };
        for step in 0..run.script.steps {
            run.step = step;
            run.one();
        }
        run.finish()
    }
}

fn open(options: &Options, medium: &Arc<dyn Medium>, driver: Driver, seed: u64) -> Db {
    let mut builder = Db::builder(options.clone());
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(medium));
    }
    if driver == Driver::Stepped {
        builder = builder
            .executor(Arc::new(Stepped::new(seed)))
            .clock(Arc::new(ManualClock::default()));
    }
    builder.open().unwrap()
}

/// A script under way.
struct Run {
    script: Script,
    rng: SmallRng,
    medium: Arc<dyn Medium>,
    /// None only while the store is reopened.
    db: Option<Db>,
    maps: [Map; KEYSPACES],
    snapshots: Vec<(Snapshot, [Map; KEYSPACES])>,
    coverage: Coverage,
    step: usize,
    checkpoints: u32,
}

impl Run {
    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn at(&self) -> String {
        format!("{}, step {}", self.script.name, self.step)
    }

    fn keyspace(&self, which: usize) -> Keyspace {
        let name = ["default", "second"][which];
        self.db().keyspace(name).unwrap()
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
        self.numbered(n)
    }

    fn numbered(&self, n: u32) -> Bytes {
        let tail = "x".repeat(n as usize % 5);
        Bytes::from(format!("{:03}/{:02}{tail}", n / 10, n % 10))
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

    fn one(&mut self) {
        match self.rng.random_range(0..100) {
            0..=19 => self.put(),
            20..=26 => self.delete(),
            27..=38 => self.batch(),
            39..=44 => self.conditional_batch(),
            45..=54 => self.get(4),
            55..=56 => self.get(200),
            57..=62 => self.multi_get(),
            63..=78 => self.range(),
            79..=82 => self.take_snapshot(),
            83..=88 => self.read_snapshot(),
            89 => drop(self.snapshots.pop()),
            90 => self.fill(),
            91 => self.fill_in_order(),
            92..=93 => self.db().flush().unwrap(),
            94 => self.compact_range(),
            95..=96 => self.db().wait_idle().unwrap(),
            97..=98 => self.reopen(),
            _ => self.checkpoint(),
        }
    }

    fn put(&mut self) {
        let (which, key, value) = (self.which(), self.key(), self.value());
        let durability = self.durability();
        let keyspace = self.keyspace(which);
        keyspace.put_with(&key, &value, durability).unwrap();
        self.maps[which].insert(key, value);
    }

    fn delete(&mut self) {
        let (which, key) = (self.which(), self.key());
        self.keyspace(which).delete(&key).unwrap();
        self.maps[which].remove(&key);
    }

    /// Random writes of a batch, done to the model when `apply` is set.
    fn fill_batch(&mut self, batch: &mut Batch, writes: usize, apply: bool) {
        let keyspaces = [self.keyspace(0), self.keyspace(1)];
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
    }

    fn batch(&mut self) {
        let mut batch = Batch::new();
        let writes = self.rng.random_range(0..12);
        self.fill_batch(&mut batch, writes, true);
        let durability = self.durability();
        self.db().write_with(batch, durability).unwrap();
    }

    /// Enough to freeze memtables.
    fn fill(&mut self) {
        for _ in 0..self.script.keys.div_ceil(60) + 4 {
            let mut batch = Batch::new();
            self.fill_batch(&mut batch, 16, true);
            self.db().write(batch).unwrap();
        }
    }

    /// Neighbouring keys in order: tables that meet no others, which may simply move down.
    fn fill_in_order(&mut self) {
        let first = self.rng.random_range(0..self.script.keys);
        for n in first..(first + 200).min(self.script.keys) {
            let (key, value) = (self.numbered(n), self.value());
            self.db().put(&key, &value).unwrap();
            self.maps[0].insert(key, value);
        }
    }

    fn conditional_batch(&mut self) {
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
            batch.require(&self.keyspace(which), &key, expect);
            if !holds && unmet.is_none() {
                unmet = Some(index);
            }
        }
        self.fill_batch(&mut batch, 3, unmet.is_none());
        let at = self.at();
        match (self.db().write(batch), unmet) {
            (Ok(_), None) => {}
            (Err(Error::ConditionFailed { index }), Some(first)) => {
                assert_eq!(index, first, "{at}");
                self.coverage.conditions_failed += 1;
            }
            (result, unmet) => panic!("{at}: {result:?} where {unmet:?} does not hold"),
        }
    }

    fn get(&mut self, times: usize) {
        for _ in 0..times {
            let (which, key) = (self.which(), self.key());
            let found = self.keyspace(which).get(&key).unwrap();
            let found = found.map(|value| value.into_bytes());
            let at = self.at();
            assert_eq!(found.as_ref(), self.maps[which].get(&key), "{at}, {key:?}");
        }
    }

    fn multi_get(&mut self) {
        let which = self.which();
        let keys: Vec<Bytes> = (0..self.rng.random_range(0..20))
            .map(|_| self.key())
            .collect();
        let found = self.keyspace(which).multi_get(&keys).unwrap();
        self.compare_many(&keys, found, &self.maps[which]);
    }

    fn compare_many(&self, keys: &[Bytes], found: Vec<Option<thermocline::Value>>, map: &Map) {
        let found: Vec<_> = found
            .into_iter()
            .map(|v| v.map(|v| v.into_bytes()))
            .collect();
        let wanted: Vec<_> = keys.iter().map(|key| map.get(key).cloned()).collect();
        assert_eq!(found, wanted, "{}, {keys:?}", self.at());
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

    fn range(&mut self) {
        let which = self.which();
        let (walk, limit, at) = (Walk::random(&mut self.rng), self.limit(), self.at());
        if self.rng.random_bool(0.3) {
            let key = self.key();
            let prefix = key.slice(..self.rng.random_range(0..=key.len()));
            let range = self.keyspace(which).prefix(&prefix);
            let map = self.maps[which].iter();
            let wanted: Vec<_> = map
                .filter(|(key, _)| key.starts_with(&prefix))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            compare(range, &wanted, walk, limit, &mut self.rng, &at);
        } else {
            let bounds = self.bounds();
            let range = self.keyspace(which).range(bounds.clone());
            let wanted = records(&self.maps[which], &bounds);
            compare(range, &wanted, walk, limit, &mut self.rng, &at);
        }
    }

    fn take_snapshot(&mut self) {
        if self.snapshots.len() < 4 {
            let snapshot = self.db().snapshot();
            self.snapshots.push((snapshot, self.maps.clone()));
        }
    }

    fn read_snapshot(&mut self) {
        if self.snapshots.is_empty() {
            return;
        }
        let chosen = self.rng.random_range(0..self.snapshots.len());
        let (snapshot, maps) = self.snapshots.swap_remove(chosen);
        let which = self.which();
        let keyspace = self.keyspace(which);
        let keys: Vec<Bytes> = (0..10).map(|_| self.key()).collect();
        let found = snapshot.multi_get_in(&keyspace, &keys).unwrap();
        self.compare_many(&keys, found, &maps[which]);
        let found: Vec<_> = keys
            .iter()
            .map(|key| snapshot.get_in(&keyspace, key).unwrap())
            .collect();
        self.compare_many(&keys, found, &maps[which]);
        let bounds = self.bounds();
        let range = snapshot.range_in(&keyspace, bounds.clone());
        let (walk, limit, at) = (Walk::random(&mut self.rng), self.limit(), self.at());
        let wanted = records(&maps[which], &bounds);
        compare(range, &wanted, walk, limit, &mut self.rng, &at);
        self.snapshots.push((snapshot, maps));
    }

    fn compact_range(&mut self) {
        let (which, bounds) = (self.which(), self.bounds());
        let compacted = self.keyspace(which).compact_range(bounds);
        compacted.unwrap_or_else(|error| panic!("{}: {error}", self.at()));
    }

    fn close(&mut self) {
        // Snapshots belong to the handle that closes.
        self.snapshots.clear();
        let db = self.db.take().unwrap();
        self.coverage.look_at(&db);
        db.close().unwrap();
    }

    fn reopen(&mut self) {
        self.close();
        let seed = self.rng.random();
        let db = open(&self.script.options, &self.medium, self.script.driver, seed);
        self.db = Some(db);
        self.coverage.reopened += 1;
    }

    fn checkpoint(&mut self) {
        self.checkpoints += 1;
        let mut options = self.script.options.clone();
        for (index, tier) in options.tiers.iter_mut().enumerate() {
            let name = format!("checkpoint{}-{index}", self.checkpoints);
            tier.path = tier.path.with_file_name(name);
        }
        let paths: Vec<PathBuf> = options.tiers.iter().map(|t| t.path.clone()).collect();
        self.db().checkpoint(&paths).unwrap();
        let copy = open(&options, &self.medium, self.script.driver, 0);
        let whole = self.whole(&copy);
        assert!(whole == self.maps, "{}: the checkpoint differs", self.at());
        copy.put("only in the copy", "1").unwrap();
        drop(copy);
        self.coverage.checkpoints += 1;
    }

    fn whole(&self, db: &Db) -> [Map; KEYSPACES] {
        ["default", "second"].map(|name| {
            let records = db.keyspace(name).unwrap().iter();
            let owned = |r: thermocline::Result<(Bytes, thermocline::Value)>| {
                let (key, value) = r.unwrap();
                (key, value.into_bytes())
            };
            records.map(owned).collect()
        })
    }

    fn finish(mut self) -> Coverage {
        self.db().wait_idle().unwrap();
        assert!(
            self.whole(self.db()) == self.maps,
            "{}: at the end",
            self.at()
        );
        let report = self.db().verify(&mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{}: {report:?}", self.at());
        self.close();
        self.coverage
    }
}
