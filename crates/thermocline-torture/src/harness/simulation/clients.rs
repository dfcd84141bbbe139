//! The clients. Each takes one turn at a time, and some have something in hand between two turns.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::SmallRng;
use thermocline::executor::Stepped;
use thermocline::{Durability, Error, Expect, Range, Snapshot, Value};

use super::world::{KEYSPACES, World, open};
use crate::life::history::{Contents, Write, apply, batch_of, difference, ingest};
use crate::life::{Stop, tiny_options};
use crate::verdict::{Promise, Violation, each_with_its_answer};

/// Keys of each keyspace.
const KEYS: usize = 260;

/// Keys that are read often at any one time.
const HOT: usize = 12;

type Turn<T = ()> = Result<T, Stop>;
type Record = (Vec<u8>, Vec<u8>);

/// A scan under way, and the records that it must still find.
struct Scan {
    range: Range,
    left: VecDeque<Record>,
}

/// A snapshot, and what it must show.
struct Held {
    snapshot: Snapshot,
    contents: Arc<Contents>,
}

/// A key with the value that a client has read and means to replace.
struct Seen {
    which: usize,
    key: String,
    value: Option<Vec<u8>>,
}

/// All clients, by what they have in hand.
#[derive(Default)]
pub(super) struct Clients {
    scans: [Option<Scan>; 2],
    snapshots: [Option<Held>; 2],
    swaps: [Option<Seen>; 2],
    /// Where the hot keys begin.
    hot: usize,
    written: usize,
    copies: usize,
}

fn numbered(number: usize) -> String {
    format!("key{:04}", number % KEYS)
}

fn at(which: usize, key: &str) -> (String, Vec<u8>) {
    (KEYSPACES[which].to_owned(), key.as_bytes().to_vec())
}

fn bytes_of(value: &Option<Value>) -> Vec<u8> {
    value.as_deref().map(<[u8]>::to_vec).unwrap_or_default()
}

impl Clients {
    /// Takes everything out of the clients' hands, because the store is about to end.
    pub(super) fn leave(&mut self) {
        self.scans = Default::default();
        self.snapshots = Default::default();
        self.swaps = Default::default();
    }

    /// One turn of one client.
    pub(super) fn turn(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        match rng.random_range(0..1000) {
            0..340 => self.write(world, rng),
            340..385 => self.fill(world, rng),
            385..400 => self.ingest(world, rng),
            400..680 => self.read(world, rng),
            680..740 => self.multi_get(world, rng),
            740..820 => self.scan(world, rng),
            820..890 => self.look_back(world, rng),
            890..970 => self.swap(world, rng),
            970..995 => keep(world, rng),
            995..997 => self.copy(world),
            _ => {
                self.hot = rng.random_range(0..KEYS);
                Ok(())
            }
        }
    }

    fn value(&mut self, rng: &mut SmallRng) -> String {
        self.written += 1;
        format!(
            "{}:{}",
            self.written,
            "x".repeat(rng.random_range(300..1200))
        )
    }

    fn key(&self, rng: &mut SmallRng) -> (usize, String) {
        let number = match rng.random_bool(0.6) {
            true => self.hot + rng.random_range(0..HOT),
            false => rng.random_range(0..KEYS),
        };
        (rng.random_range(0..2), numbered(number))
    }

    /// A put or a delete of any key, or a batch over both keyspaces.
    fn write(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        let records = [1, 1, 1, 2, 4][rng.random_range(0..5)];
        let mut write = Write::new();
        for _ in 0..records {
            let keyspace = KEYSPACES[rng.random_range(0..2)];
            let key = numbered(rng.random_range(0..KEYS));
            let value = rng.random_bool(0.85).then(|| self.value(rng));
            write.push((keyspace, key, value));
        }
        let durability = [Durability::None, Durability::Buffered, Durability::Sync];
        let durability = durability[rng.random_range(0..3)];
        submit(world, write, None, durability).map(|_| ())
    }

    /// Writes neighbouring keys in one batch, which fills tables.
    pub(super) fn fill(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        let (which, first) = (rng.random_range(0..2), rng.random_range(0..KEYS));
        let numbers = first..first + rng.random_range(8..32);
        let put = |number| (KEYSPACES[which], numbered(number), Some(self.value(rng)));
        let write = numbers.map(put).collect();
        submit(world, write, None, Durability::Buffered)
    }

    /// Ingests neighbouring keys, of which it leaves some out.
    fn ingest(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        let (which, first) = (rng.random_range(0..2), rng.random_range(0..KEYS));
        let last = (first + rng.random_range(1..64)).min(KEYS);
        let numbers: Vec<_> = (first..last).filter(|_| rng.random_bool(0.8)).collect();
        let put = |number| (KEYSPACES[which], numbered(number), Some(self.value(rng)));
        let write: Write = numbers.into_iter().map(put).collect();
        if write.is_empty() {
            // Of nothing nothing is made durable either.
            return Ok(());
        }
        let done = ingest(&world.db, &write);
        world.trace.outcome("ingest", &done);
        world.history.note(write.clone(), Durability::Sync, &done)?;
        done?;
        apply(&write, Arc::make_mut(&mut world.visible));
        world.tally.add("ingestions", 1);
        Ok(())
    }

    fn read(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        for _ in 0..rng.random_range(1..8) {
            let (which, key) = self.key(rng);
            get(world, which, &key)?;
        }
        Ok(())
    }

    fn multi_get(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        let which = rng.random_range(0..2);
        let keys: Vec<String> = (0..rng.random_range(1..16))
            .map(|_| self.key(rng).1)
            .collect();
        let found = world.keyspace(which)?.multi_get(&keys);
        let all = |found: &Vec<_>| found.iter().flat_map(bytes_of).collect();
        world.trace.answer("multi_get", &found, all);
        for (key, found) in each_with_its_answer(&keys, found?)? {
            let at = at(which, key);
            if let Some(problem) = difference(&at, world.visible.get(&at), found.as_deref()) {
                return Err(problem.into());
            }
        }
        Ok(())
    }

    /// Begins a scan, or advances it by some records, from either end.
    fn scan(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        let client = rng.random_range(0..self.scans.len());
        let mut scan = match self.scans[client].take() {
            Some(scan) => scan,
            None => {
                let which = rng.random_range(0..2);
                let first = numbered(rng.random_range(0..KEYS));
                let range = world.keyspace(which)?.range(first.as_str()..);
                let left = world.visible.range(at(which, &first)..);
                let left = left.take_while(|((name, _), _)| name == KEYSPACES[which]);
                let left = left.map(|((_, key), value)| (key.clone(), value.clone()));
                let left = left.collect();
                Scan { range, left }
            }
        };
        for _ in 0..rng.random_range(1..20) {
            let forward = rng.random_bool(0.8);
            let (found, wanted) = match forward {
                true => (scan.range.next(), scan.left.pop_front()),
                false => (scan.range.next_back(), scan.left.pop_back()),
            };
            let found = found.transpose();
            world.trace.answer("scan", &found, |record| {
                record
                    .as_ref()
                    .map(|(_, value)| value.to_vec())
                    .unwrap_or_default()
            });
            let found = found?;
            let found = found.as_ref().map(|(key, value)| (&key[..], &value[..]));
            let wanted = wanted.as_ref().map(|(key, value)| (&key[..], &value[..]));
            if let Some(promise) = Promise::judge_next(found, wanted, forward) {
                let key = |(key, _)| String::from_utf8_lossy(key);
                let (found, wanted) = (found.map(key), wanted.map(key));
                let message = format!("a scan comes to {found:?} instead of {wanted:?}");
                return Err(Violation::new(promise, message).into());
            }
            if found.is_none() {
                return Ok(());
            }
            world.tally.add("records from scans", 1);
        }
        self.scans[client] = Some(scan);
        Ok(())
    }

    /// Takes a snapshot, or reads one that was taken, or lets it go.
    fn look_back(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        let client = rng.random_range(0..self.snapshots.len());
        let Some(held) = self.snapshots[client].take() else {
            let snapshot = world.db.snapshot();
            let contents = Arc::clone(&world.visible);
            self.snapshots[client] = Some(Held { snapshot, contents });
            return Ok(());
        };
        for _ in 0..rng.random_range(1..6) {
            let (which, key) = self.key(rng);
            let found = held.snapshot.get_in(&world.keyspace(which)?, &key);
            world.trace.answer("get of a snapshot", &found, bytes_of);
            let at = at(which, &key);
            if let Some(problem) = difference(&at, held.contents.get(&at), found?.as_deref()) {
                let message = format!("a snapshot: {}", problem.message);
                return Err(Violation::new(problem.promise, message).into());
            }
            world.tally.add("reads of snapshots", 1);
        }
        if rng.random_bool(0.7) {
            self.snapshots[client] = Some(held);
        }
        Ok(())
    }

    /// Reads a value in one turn. In another, replaces it if nobody else has replaced it meanwhile.
    fn swap(&mut self, world: &mut World, rng: &mut SmallRng) -> Turn {
        let client = rng.random_range(0..self.swaps.len());
        let Some(seen) = self.swaps[client].take() else {
            let (which, key) = (rng.random_range(0..2), numbered(rng.random_range(0..HOT)));
            let value = get(world, which, &key)?;
            self.swaps[client] = Some(Seen { which, key, value });
            return Ok(());
        };
        let write = vec![(
            KEYSPACES[seen.which],
            seen.key.clone(),
            Some(self.value(rng)),
        )];
        submit(world, write, Some(seen), Durability::Buffered)
    }

    /// Makes a checkpoint. It opens as a store that holds what this one holds now.
    fn copy(&mut self, world: &mut World) -> Turn {
        if self.copies == 2 {
            return Ok(());
        }
        self.copies += 1;
        let mut options = tiny_options();
        for (tier, index) in options.tiers.iter_mut().zip(0..) {
            tier.path = PathBuf::from(format!("/copy-{}-{index}", self.copies));
        }
        let paths: Vec<PathBuf> = options.tiers.iter().map(|t| t.path.clone()).collect();
        let copied = world.db.checkpoint(&paths);
        world.trace.outcome("checkpoint", &copied);
        copied?;
        world.history.all_synced();
        let stepped = Arc::new(Stepped::new(1));
        let copy = open(&options, &world.disk, &world.trace, &world.clock, &stepped)?;
        world.compare(&copy)?;
        copy.delete("none of the keys")?;
        copy.close()?;
        world.tally.add("checkpoints", 1);
        Ok(())
    }
}

/// Reads one record and compares it.
fn get(world: &mut World, which: usize, key: &str) -> Turn<Option<Vec<u8>>> {
    let found = world.keyspace(which)?.get(key);
    world.trace.answer("get", &found, bytes_of);
    let (at, found) = (at(which, key), found?);
    match difference(&at, world.visible.get(&at), found.as_deref()) {
        Some(problem) => Err(problem.into()),
        None => Ok(found.map(|value| value.to_vec())),
    }
}

/// Writes. If something was seen, does so on condition that it is still there.
fn submit(world: &mut World, write: Write, seen: Option<Seen>, durability: Durability) -> Turn {
    let mut batch = batch_of(&world.db, &write)?;
    let mut holds = true;
    let is_conditional = seen.is_some();
    if let Some(Seen { which, key, value }) = seen {
        holds = world.visible.get(&at(which, &key)) == value.as_ref();
        let expect = value.map_or(Expect::Absent, |value| Expect::Equals(value.into()));
        batch.require(&world.keyspace(which)?, key, expect);
    }
    let done = world.db.write_with(batch, durability);
    world.trace.outcome("write", &done);
    if is_conditional && (done.is_ok() || matches!(done, Err(Error::ConditionFailed { .. }))) {
        if done.is_ok() != holds {
            let message = format!("{done:?}, where it is {holds} that the condition holds");
            return Err(Violation::new(Promise::Right, message).into());
        }
        let outcome = ["conditions not met", "conditions met"][usize::from(holds)];
        world.tally.add(outcome, 1);
    }
    world.history.note(write.clone(), durability, &done)?;
    match done {
        Ok(_) => {
            apply(&write, Arc::make_mut(&mut world.visible));
            Ok(())
        }
        Err(Error::ConditionFailed { .. }) => Ok(()),
        Err(error) => {
            if world.poisoned && matches!(error, Error::Poisoned { .. }) {
                world.tally.add("writes refused after a failed sync", 1);
            }
            Err(error.into())
        }
    }
}

/// Does what an operator does.
fn keep(world: &mut World, rng: &mut SmallRng) -> Turn {
    let (what, done) = match rng.random_range(0..10) {
        0..3 => ("flush", world.db.flush()),
        3..5 => ("sync", world.db.sync()),
        5..7 => {
            let keyspace = world.keyspace(rng.random_range(0..2))?;
            let first = numbered(rng.random_range(0..KEYS));
            let done = keyspace.compact_range(first.as_str()..);
            world.trace.outcome("compact_range", &done);
            return Ok(done?);
        }
        _ => {
            let done = world.db.wait_idle();
            world.trace.outcome("wait_idle", &done);
            return Ok(done?);
        }
    };
    world.trace.outcome(what, &done);
    done?;
    world.history.all_synced();
    Ok(())
}
