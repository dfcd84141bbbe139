//! Threads read while others write, under placement by hotness at tiny sizes. Every answer is a
//! version that was there at some moment of the read. The seed fixes what each thread does, not how
//! they meet.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::{Batch, Db, Snapshot};

use super::Harness;
use crate::cases::{self, Plan};
use crate::random_options::crowded_options;
use crate::stores::{memory, open_on};
use crate::verdict::{Promise, Tally, Verdict, Violation, each_with_its_answer};
use crate::work_done::count_work;

pub(crate) const HARNESS: Harness = Harness {
    name: "threads",
    about: "threads that read while others write see no stale record",
    small: 5,
    long: 1_000,
    run,
};

/// A run that has not reached these is a failure.
const REACHED: &[&str] = &[
    "bytes promoted by flush",
    "bytes promoted by compaction",
    "bytes retained",
];

type Checked<T = ()> = Result<T, Violation>;

/// Several times as many as the fast tier holds.
const KEYS: usize = 3000;
const WRITERS: usize = 2;
const READERS: usize = 3;

/// Writes of each writer.
const WRITES: u64 = 4000;

/// What is known of a key: the version whose write was begun last, and the version that was
/// acknowledged last.
#[derive(Debug, Default)]
struct Known {
    begun: AtomicU64,
    acknowledged: AtomicU64,
}

/// Every ninth version of a key is a delete. Version 0 stands for no version.
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

/// The version that a value is of. The value must be whole, and of this key.
fn version_of(number: usize, found: &[u8]) -> Checked<u64> {
    let text = String::from_utf8_lossy(found);
    let version = text.split('/').nth(1).and_then(|v| v.parse().ok());
    match version {
        Some(version) if found == value(number, version) => Ok(version),
        _ => {
            let message = format!("{} has a value that nobody wrote", key(number));
            Err(Violation::new(Promise::Right, message))
        }
    }
}

struct Trial {
    db: Db,
    known: Vec<Known>,
    done: AtomicBool,
}

impl Trial {
    /// Checks what a read found. It began when `least` was acknowledged, and has ended.
    fn check(&self, number: usize, least: u64, found: Option<&[u8]>) -> Checked {
        let most = self.known[number].begun.load(Ordering::SeqCst);
        let version = found.map(|found| version_of(number, found)).transpose()?;
        let is_right = match version {
            Some(version) => (least..=most).contains(&version),
            None => (least..=most).any(is_gone),
        };
        if is_right {
            return Ok(());
        }
        let promise = match version {
            None => Promise::Kept,
            Some(_) if (least..=most).all(is_gone) => Promise::Gone,
            Some(_) => Promise::Right,
        };
        let message = format!(
            "{} is of version {version:?}, not of {least} to {most}",
            key(number)
        );
        Err(Violation::new(promise, message))
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

    /// Keys are assigned to the writers in turn, so each key has one writer.
    fn write(&self, writer: usize, rng: &mut SmallRng) -> Checked {
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
        self.db.write(batch)?;
        for (number, version) in written {
            let acknowledged = &self.known[number].acknowledged;
            acknowledged.store(version, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Ingests neighbouring keys of a writer, but for those whose next version is a delete.
    fn ingest(&self, writer: usize, rng: &mut SmallRng) -> Checked {
        let first = rng.random_range(0..KEYS / WRITERS) * WRITERS + writer;
        let numbers = (first..KEYS).step_by(WRITERS);
        let mut written = Vec::new();
        for number in numbers.take(rng.random_range(1..60)) {
            let begun = &self.known[number].begun;
            if !is_gone(begun.load(Ordering::SeqCst) + 1) {
                written.push((number, begun.fetch_add(1, Ordering::SeqCst) + 1));
            }
        }
        let record = |(number, version): &(usize, u64)| (key(*number), value(*number, *version));
        self.db.ingest(written.iter().map(record))?;
        for (number, version) in written {
            let acknowledged = &self.known[number].acknowledged;
            acknowledged.store(version, Ordering::SeqCst);
        }
        Ok(())
    }

    fn read(&self, rng: &mut SmallRng) -> Checked {
        match rng.random_range(0..40) {
            0 => self.read_snapshot(rng),
            1 => self.scan(rng),
            2..=4 => {
                let numbers: Vec<_> = (0..12).map(|_| Self::choose(rng)).collect();
                let least: Vec<_> = numbers.iter().map(|n| self.acknowledged(*n)).collect();
                let keys: Vec<_> = numbers.iter().map(|n| key(*n)).collect();
                let found = self.db.multi_get(&keys)?;
                let mut all = each_with_its_answer(&numbers, found)?.zip(least);
                all.try_for_each(|((number, found), least)| {
                    self.check(*number, least, found.as_deref())
                })
            }
            _ => self.get(rng),
        }
    }

    fn get(&self, rng: &mut SmallRng) -> Checked {
        let number = Self::choose(rng);
        let least = self.acknowledged(number);
        let found = self.db.get(key(number))?;
        self.check(number, least, found.as_deref())
    }

    /// A snapshot says the same each time, however it is asked, and what it says was so at its
    /// time.
    fn read_snapshot(&self, rng: &mut SmallRng) -> Checked {
        let numbers: Vec<_> = (0..6).map(|_| Self::choose(rng)).collect();
        let least: Vec<_> = numbers.iter().map(|n| self.acknowledged(*n)).collect();
        let snapshot: Snapshot = self.db.snapshot();
        let keys: Vec<_> = numbers.iter().map(|n| key(*n)).collect();
        let get = |key: &String| Ok(snapshot.get(key)?.map(|v| v.into_bytes()));
        let first = keys.iter().map(get).collect::<Checked<Vec<_>>>()?;
        for ((number, least), found) in numbers.iter().zip(least).zip(&first) {
            self.check(*number, least, found.as_deref())?;
        }
        (0..30).try_for_each(|_| self.get(rng))?;
        let again = keys.iter().map(get).collect::<Checked<Vec<_>>>()?;
        let many = snapshot.multi_get_in(&self.db, &keys)?.into_iter();
        let many: Vec<_> = many.map(|v| v.map(|v| v.into_bytes())).collect();
        for (what, found) in [("by get", again), ("by multi_get", many)] {
            if found != first {
                let message = format!("a snapshot has changed, {what}: {keys:?}");
                return Err(Violation::new(Promise::Right, message));
            }
        }
        Ok(())
    }

    /// Neighbouring keys, in order, each once.
    fn scan(&self, rng: &mut SmallRng) -> Checked {
        let first = rng.random_range(0..KEYS - 40);
        let numbers = first..first + 40;
        let least: Vec<_> = numbers.clone().map(|n| self.acknowledged(n)).collect();
        let range = self.db.range(key(first)..key(first + 40));
        let forward = rng.random();
        let mut found = match forward {
            true => range.collect::<thermocline::Result<Vec<_>>>()?,
            false => range.rev().collect::<thermocline::Result<Vec<_>>>()?,
        };
        if !forward {
            found.reverse();
        }
        if !found.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Violation::new(Promise::Right, "a scan out of order"));
        }
        let mut found = found.into_iter().peekable();
        for (number, least) in numbers.zip(least) {
            let record = found.next_if(|(k, _)| *k == key(number));
            self.check(number, least, record.as_ref().map(|(_, value)| &value[..]))?;
        }
        match found.next() {
            None => Ok(()),
            Some((key, _)) => {
                let message = format!("a scan found {key:?}, which nobody wrote");
                Err(Violation::new(Promise::Right, message))
            }
        }
    }

    /// Runs writers and readers side by side, until the writers are done or somebody saw something
    /// wrong.
    fn race(&self, seed: u64) -> Checked {
        let rng = |number| SmallRng::seed_from_u64(seed.wrapping_mul(100).wrapping_add(number));
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS)
                .map(|reader| {
                    let mut rng = rng(50 + reader as u64);
                    scope.spawn(move || {
                        while !self.done.load(Ordering::Relaxed) {
                            self.read(&mut rng)?;
                        }
                        Ok(())
                    })
                })
                .collect();
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let mut rng = rng(writer as u64);
                    scope.spawn(move || {
                        (0..WRITES).try_for_each(|_| match rng.random_range(0..200) {
                            0 => self.ingest(writer, &mut rng),
                            _ => self.write(writer, &mut rng),
                        })
                    })
                })
                .collect();
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            self.done.store(true, Ordering::Relaxed);
            let readers = readers.into_iter().map(|reader| reader.join());
            let panicked = |_| Violation::new(Promise::Alive, "a thread panicked");
            let mut ended = ended.into_iter().chain(readers);
            ended.try_for_each(|ended| ended.map_err(panicked).flatten())
        })
    }
}

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case).having_reached(HARNESS.small, REACHED)
}

fn case(seed: u64, tally: &mut Tally) -> Checked {
    let options = crowded_options(seed, 768 << 10);
    for without in crate::random_options::techniques_off(&options) {
        tally.add(without, 1);
    }
    let trial = Trial {
        db: open_on(&options, &memory())?,
        known: (0..KEYS).map(|_| Known::default()).collect(),
        done: AtomicBool::new(false),
    };
    trial.race(seed)?;
    trial.db.wait_idle()?;
    for number in 0..KEYS {
        let found = trial.db.get(key(number))?;
        trial.check(number, trial.acknowledged(number), found.as_deref())?;
    }
    count_work(&trial.db.metrics(), tally);
    Ok(trial.db.close()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_never_read_a_stale_or_missing_record() {
        let verdict = run(&Plan::new(1, HARNESS.small));
        assert!(verdict.is_clean(), "{verdict}");
        // The seeds draw which techniques are off. Each must be off at least once; in other stores
        // it is on.
        for technique in [
            "retention",
            "the hotness check",
            "promotion by compaction",
            "promotion by flush",
            "bypasses",
            "copies",
            "auto-tuning",
        ] {
            let off = verdict.tally.get(&format!("stores without {technique}"));
            assert!((1..HARNESS.small).contains(&off), "{technique}: {verdict}");
        }
    }
}
