//! Threads that read while others write, under placement by hotness at tiny sizes: every answer is
//! a version that was there at some moment of the read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::{Batch, Db, Options, Placement, Snapshot, TierOptions};

use thermocline_torture::random_options::random_hotrap;
use thermocline_torture::stores::{memory, open_on};

/// Several times what the fast tier holds.
const KEYS: usize = 3000;
const WRITERS: usize = 2;
const READERS: usize = 3;

/// Writes of each writer; as many times as the environment says for a long run.
const WRITES: u64 = 4000;

/// What is known of a key: the version whose write was begun last, and the one acknowledged last.
#[derive(Debug, Default)]
struct Known {
    begun: AtomicU64,
    acknowledged: AtomicU64,
}

/// Every ninth version of a key is a delete; version 0 is none.
fn is_gone(version: u64) -> bool {
    version.is_multiple_of(9)
}

fn key(number: usize) -> String {
    format!("key{number:06}")
}

fn value(number: usize, version: u64) -> Vec<u8> {
    let mut value = format!("{number}/{version}/").into_bytes();
    value.resize(value.len() + 150 + number * 37 % 700, b'.');
    value
}

/// The version that a value is of; the value must be whole, and of this key.
fn version_of(number: usize, found: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(found);
    let version = text.split('/').nth(1).and_then(|v| v.parse().ok());
    let version = version.unwrap_or_else(|| panic!("{}: a torn value", key(number)));
    assert!(
        found == value(number, version),
        "{}: not its value",
        key(number)
    );
    version
}

struct Trial {
    db: Db,
    known: Vec<Known>,
    done: AtomicBool,
    name: String,
}

impl Trial {
    /// What a read may find that began when `least` was acknowledged, once it has ended.
    fn check(&self, number: usize, least: u64, found: Option<&[u8]>) {
        let most = self.known[number].begun.load(Ordering::SeqCst);
        let is_right = match found {
            Some(found) => (least..=most).contains(&version_of(number, found)),
            None => (least..=most).any(is_gone),
        };
        let found = found.map(|found| version_of(number, found));
        let name = &self.name;
        assert!(
            is_right,
            "{name}: {} is {found:?}, not of {least} to {most}",
            key(number)
        );
    }

    fn acknowledged(&self, number: usize) -> u64 {
        self.known[number].acknowledged.load(Ordering::SeqCst)
    }

    /// Skewed: a twentieth of the keys gets most of the reads and many of the writes.
    fn choose(rng: &mut SmallRng) -> usize {
        match rng.random_bool(0.8) {
            true => rng.random_range(0..KEYS / 20) * 20,
            false => rng.random_range(0..KEYS),
        }
    }

    /// Keys are the writers' in turn: each has one writer.
    fn write(&self, writer: usize, rng: &mut SmallRng) {
        let mut batch = Batch::new();
        let mut written = Vec::new();
        for _ in 0..rng.random_range(1..4) {
            let number = Self::choose(rng) / WRITERS * WRITERS + writer;
            if number >= KEYS || written.iter().any(|(n, _)| *n == number) {
                continue;
            }
            let version = self.known[number].begun.fetch_add(1, Ordering::SeqCst) + 1;
            match is_gone(version) {
                true => batch.delete(key(number)),
                false => batch.put(key(number), value(number, version)),
            }
            written.push((number, version));
        }
        self.db.write(batch).unwrap();
        for (number, version) in written {
            let acknowledged = &self.known[number].acknowledged;
            acknowledged.store(version, Ordering::SeqCst);
        }
    }

    fn read(&self, rng: &mut SmallRng) {
        match rng.random_range(0..40) {
            0 => self.read_snapshot(rng),
            1 => self.scan(rng),
            2..=4 => {
                let numbers: Vec<_> = (0..12).map(|_| Self::choose(rng)).collect();
                let least: Vec<_> = numbers.iter().map(|n| self.acknowledged(*n)).collect();
                let keys: Vec<_> = numbers.iter().map(|n| key(*n)).collect();
                let found = self.db.multi_get(&keys).unwrap();
                for ((number, least), found) in numbers.iter().zip(least).zip(found) {
                    self.check(*number, least, found.as_deref());
                }
            }
            _ => {
                let number = Self::choose(rng);
                let least = self.acknowledged(number);
                let found = self.db.get(key(number)).unwrap();
                self.check(number, least, found.as_deref());
            }
        }
    }

    /// A snapshot says the same each time, however it is asked.
    fn read_snapshot(&self, rng: &mut SmallRng) {
        let snapshot: Snapshot = self.db.snapshot();
        let numbers: Vec<_> = (0..6).map(|_| Self::choose(rng)).collect();
        let get = |number: &usize| snapshot.get(key(*number)).unwrap().map(|v| v.into_bytes());
        let first: Vec<_> = numbers.iter().map(get).collect();
        (0..30).for_each(|_| self.read_only(rng));
        let again: Vec<_> = numbers.iter().map(get).collect();
        assert!(first == again, "{}: a snapshot has changed", self.name);
        let keys: Vec<_> = numbers.iter().map(|n| key(*n)).collect();
        let many = snapshot.multi_get_in(&self.db, &keys).unwrap();
        let many: Vec<_> = many
            .into_iter()
            .map(|v| v.map(|v| v.into_bytes()))
            .collect();
        assert!(
            first == many,
            "{}: a snapshot differs by multi_get",
            self.name
        );
    }

    fn read_only(&self, rng: &mut SmallRng) {
        let number = Self::choose(rng);
        let least = self.acknowledged(number);
        let found = self.db.get(key(number)).unwrap();
        self.check(number, least, found.as_deref());
    }

    /// Neighbouring keys, in order, each once.
    fn scan(&self, rng: &mut SmallRng) {
        let first = rng.random_range(0..KEYS - 40);
        let numbers = first..first + 40;
        let least: Vec<_> = numbers.clone().map(|n| self.acknowledged(n)).collect();
        let range = self.db.range(key(first)..key(first + 40));
        let mut found: Vec<_> = match rng.random() {
            true => range.map(Result::unwrap).collect(),
            false => {
                let mut found: Vec<_> = range.rev().map(Result::unwrap).collect();
                found.reverse();
                found
            }
        };
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{}", self.name);
        for (number, least) in numbers.zip(least) {
            let here = found.first().is_some_and(|(k, _)| *k == key(number));
            let record = here.then(|| found.remove(0).1);
            self.check(number, least, record.as_deref());
        }
        assert!(found.is_empty(), "{}: keys that nobody wrote", self.name);
    }
}

fn options(seed: u64) -> Options {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast")
            .capacity(768 << 10)
            .block_size(1024),
        TierOptions::slow("/slow").block_size(2048),
    ]);
    options.memory = 2 << 20;
    options.memtable_size = Some(16 << 10);
    options.table_size = Some(16 << 10);
    options.l0_trigger = rng.random_range(1..=4);
    options.level_ratio = rng.random_range(2..=8);
    options.block_cache = rng.random_bool(0.5).then_some(0);
    options.seed = Some(seed);
    options.placement = Placement::HotRap(random_hotrap(&mut rng));
    options
}

fn run(seed: u64) -> [u64; 3] {
    let db = open_on(&options(seed), &memory()).unwrap();
    let trial = Arc::new(Trial {
        db,
        known: (0..KEYS).map(|_| Known::default()).collect(),
        done: AtomicBool::new(false),
        name: format!("seed {seed}"),
    });
    let rounds = std::env::var("THERMOCLINE_ROUNDS").map_or(1, |n| n.parse().unwrap());
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let trial = &trial;
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed * 100 + 50 + reader as u64);
                while !trial.done.load(Ordering::Relaxed) {
                    trial.read(&mut rng);
                }
            });
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let trial = &trial;
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed * 100 + writer as u64);
                    (0..WRITES * rounds).for_each(|_| trial.write(writer, &mut rng));
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        trial.done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    trial.db.wait_idle().unwrap();
    for number in 0..KEYS {
        let found = trial.db.get(key(number)).unwrap();
        let version = trial.acknowledged(number);
        let wanted = (!is_gone(version)).then(|| value(number, version));
        assert!(
            found.as_deref() == wanted.as_deref(),
            "{}, in the end",
            key(number)
        );
    }
    let hotrap = trial.db.metrics().hotrap.unwrap();
    trial.db.close().unwrap();
    [
        hotrap.promoted_flush_bytes,
        hotrap.promoted_compaction_bytes,
        hotrap.retained_bytes,
    ]
}

/// `THERMOCLINE_ROUNDS` makes it as many times longer.
#[test]
fn threads_never_read_a_stale_or_missing_record() {
    let mut ways = [0; 3];
    for seed in 0..5 {
        for (way, bytes) in ways.iter_mut().zip(run(seed)) {
            *way += bytes;
        }
    }
    assert!(ways.iter().all(|bytes| *bytes > 0), "{ways:?}");
}
