//! The child's side. A store is opened, checked, written and read by several clients, maintained,
//! and closed, until the process is killed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use thermocline::{Db, Durability, Keyspace, Points};

use super::expected::{Expected, INGESTED, SCRATCH, ingested};
use super::journal::{Event, Journal};
use super::options::{self, Directories};
use crate::child::{Line, say};
use crate::client::{Client, KEYS, KEYSPACES, Model, find_all, keyspaces};
use crate::harness::exhaustion::limits;
use crate::random_options::set_some_target;
use crate::verdict::{Promise, Violation, each_with_its_answer};

/// What a child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// What the store, its clients and its tiers are derived from.
    pub(in crate::harness) seed: u64,
    /// Which of the store's processes this is.
    pub(in crate::harness) cycle: u64,
    /// Where store, checkpoint and journal lie.
    pub(in crate::harness) directories: Directories,
    /// The point to die at, and which arrival there ends the process.
    pub(in crate::harness) point: Option<(String, u64)>,
    /// Bytes of memory that are left to the process once it is at work, if they are limited.
    pub(in crate::harness) memory: Option<u64>,
}

/// Writes and reads of each client between two openings.
const STEPS: usize = 160;

/// Keys that are read again and again.
const HOT: u32 = 40;

/// Counts the points that are reached, and kills the process at one.
fn watch(point: Option<(String, u64)>) -> (Points, Arc<Mutex<BTreeMap<&'static str, u64>>>) {
    let reached = Arc::new(Mutex::new(BTreeMap::new()));
    let counted = Arc::clone(&reached);
    let watched = Points::watched(move |name| {
        let mut counted = counted.lock().unwrap_or_else(|e| e.into_inner());
        let times = counted.entry(name).or_insert(0);
        *times += 1;
        let is_here = |(point, nth): &(String, u64)| point == name && nth == times;
        if point.as_ref().is_some_and(is_here) {
            tell(&counted);
            say(&Line::Killing(name.to_owned()));
            // The signal arrives before the call returns.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    });
    (watched, reached)
}

fn tell(reached: &BTreeMap<&'static str, u64>) {
    for (name, times) in reached {
        say(&Line::Reached((*name).to_owned(), *times));
    }
}

/// Lives.
///
/// # Errors
/// The first promise that was broken.
pub(crate) fn live(task: &Task) -> Result<(), Violation> {
    let (points, reached) = watch(task.point.clone());
    let lived = Life::new(task, points)?.run();
    tell(&reached.lock().unwrap_or_else(|e| e.into_inner()));
    lived
}

/// What no scan meets must be whole as well: every table is what its edit says (I4).
fn check_tables(db: &Db) -> Result<(), Violation> {
    let report = db.verify(&mut |_| {});
    let report = report.map_err(|error| format!("verify: {error}"))?;
    match report.problems.first() {
        Some(problem) => Err(format!("verify: {problem}").into()),
        None => Ok(()),
    }
}

/// A life and what it depends on.
struct Life<'a> {
    task: &'a Task,
    points: Points,
    journal: Journal,
    clients: Vec<Client>,
}

impl<'a> Life<'a> {
    fn new(task: &'a Task, points: Points) -> Result<Self, Violation> {
        let journal = Journal::open(&task.directories.journal());
        Ok(Self {
            task,
            points,
            journal: journal.map_err(|error| format!("the journal: {error}"))?,
            clients: (0..options::clients(task.seed))
                .map(|index| Client {
                    seed: task.seed,
                    index,
                    keys: KEYS,
                })
                .collect(),
        })
    }

    fn events(&self) -> Result<Vec<Event>, Violation> {
        Ok(Journal::read(&self.task.directories.journal())?)
    }

    fn expected(&self) -> Result<Expected, Violation> {
        let events = self.events()?;
        Ok(Expected::after(self.task.seed, self.clients.len(), &events))
    }

    /// Opens the store twice in one process, so that what closing left is opened too. With little
    /// memory it opens the store once: a program that cannot start its own threads proves nothing.
    fn run(&self) -> Result<(), Violation> {
        self.check_copy()?;
        let halves = if self.task.memory.is_some() { 1 } else { 2 };
        for half in 0..halves {
            let db = self.open(2 * self.task.cycle + half)?;
            let models = self.check_recovered(&db)?;
            self.work(&db, models)?;
            self.count(&db);
            self.journal.note(Event::KeepBegan)?;
            match db.close() {
                Ok(()) => self.journal.note(Event::Kept)?,
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(format!("close: {error}").into()),
            }
        }
        Ok(())
    }

    fn open(&self, opening: u64) -> Result<Db, Violation> {
        let options = options::drawn(self.task.seed, opening, &self.task.directories);
        let shown = format!("{options:?}");
        let opened = Db::builder(options).points(self.points.clone()).open();
        let db = opened.map_err(|error| format!("open with {shown}: {error}"))?;
        set_some_target(&db, &mut self.rng(opening));
        Ok(db)
    }

    /// Checks what the store holds, and notes that as what is there from now on.
    fn check_recovered(&self, db: &Db) -> Result<Vec<(u64, Model)>, Violation> {
        let expected = self.expected()?;
        // Scores of other settings are of no use. Anything else that is wrong with them is a
        // violation.
        let trouble = db.recovery().hotness.as_ref();
        if let Some(trouble) = trouble.filter(|said| !said.contains("of other settings")) {
            return Err(format!("hotness: {trouble}").into());
        }
        if self.task.cycle.is_multiple_of(3) && self.task.memory.is_none() {
            check_tables(db)?;
        }
        expected.check_keyspaces(db)?;
        let held = expected.recovered(&find_all(db)?)?;
        for (client, (number, _)) in self.clients.iter().zip(&held) {
            let (client, number) = (client.index, *number);
            self.journal.note(Event::Found { client, number })?;
        }
        self.journal.note(Event::Opened)?;
        say(&Line::Counted("openings checked".to_owned(), 1));
        let models = self.clients.iter().zip(held);
        Ok(models
            .map(|(client, (_, model))| (expected.next(client.index), model))
            .collect())
    }

    /// Runs all clients and the maintenance at the same time.
    fn work(&self, db: &Db, models: Vec<(u64, Model)>) -> Result<(), Violation> {
        let keyspaces = keyspaces(db).map_err(|error| format!("keyspaces: {error}"))?;
        self.journal.note(Event::KeyspacesMade)?;
        let at_work = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let clients = self
                .clients
                .iter()
                .zip(models)
                .map(|(client, (next, model))| {
                    let (keyspaces, journal) = (&keyspaces, &self.journal);
                    let rng = self.rng(u64::from(client.index) + 1);
                    scope.spawn(move || {
                        let mut at = At {
                            client: *client,
                            db,
                            keyspaces,
                            journal,
                            model,
                            next,
                            rng,
                        };
                        (0..STEPS).try_for_each(|_| at.step())
                    })
                });
            let clients: Vec<_> = clients.collect();
            let maintained = scope.spawn(|| self.maintain(db, &at_work));
            let mut ended = Ok(());
            for client in clients {
                ended = ended.and(join(client));
            }
            at_work.store(false, Ordering::Relaxed);
            ended.and(join(maintained))
        })
    }

    fn rng(&self, of: u64) -> SmallRng {
        let seed = self.task.seed.wrapping_mul(1_000_003);
        SmallRng::seed_from_u64(seed ^ (self.task.cycle << 8) ^ of)
    }

    /// Flushes, compacts, syncs, makes and drops a keyspace, makes a checkpoint.
    fn maintain(&self, db: &Db, at_work: &AtomicBool) -> Result<(), Violation> {
        // By now all threads have their stacks.
        if let Some(bytes) = self.task.memory {
            limits::leave_memory(bytes)?;
        }
        let mut rng = self.rng(0);
        let mut scratch = Expected::next_scratch(&self.events()?);
        self.drop_scratch(db, scratch - 1)?;
        self.make_scratch(db, scratch)?;
        self.checkpoint(db)?;
        self.drop_scratch(db, scratch)?;
        while at_work.load(Ordering::Relaxed) {
            let done = match rng.random_range(0..6) {
                0 => self.keeps(|| db.flush())?,
                1 => self.keeps(|| db.sync())?,
                2 | 3 => {
                    let name = KEYSPACES[rng.random_range(0..KEYSPACES.len())];
                    let keyspace = db.keyspace(name).map_err(|error| error.to_string())?;
                    self.keeps(|| keyspace.compact_range::<&[u8]>(..))?
                }
                4 => {
                    scratch += 1;
                    self.make_scratch(db, scratch)?;
                    self.drop_scratch(db, scratch)?;
                    Ok(())
                }
                _ => db.wait_idle(),
            };
            match done {
                Err(error) if !error.may_pass() => {
                    return Err(format!("maintenance: {error}").into());
                }
                _ => {}
            }
        }
        self.make_scratch(db, scratch + 1)
    }

    /// A call that keeps what was acknowledged before it, if it succeeds.
    fn keeps(
        &self,
        call: impl FnOnce() -> thermocline::Result<()>,
    ) -> Result<thermocline::Result<()>, Violation> {
        self.journal.note(Event::KeepBegan)?;
        let done = call();
        if done.is_ok() {
            self.journal.note(Event::Kept)?;
        }
        Ok(done)
    }

    fn make_scratch(&self, db: &Db, number: u64) -> Result<(), Violation> {
        self.journal.note(Event::ScratchBegan { number })?;
        let made = db.create_keyspace(SCRATCH);
        let scratch = made.map_err(|error| format!("create a keyspace: {error}"))?;
        if scratch.iter().next().is_some() {
            let message = "a new keyspace holds something";
            return Err(Violation::new(Promise::Gone, message));
        }
        self.journal.note(Event::ScratchMade { number })?;
        for key in 0..5 {
            match scratch.put(format!("{key}"), number.to_string()) {
                Err(error) if !error.may_pass() => {
                    return Err(format!("put into a new keyspace: {error}").into());
                }
                _ => {}
            }
        }
        let records = (0..INGESTED).map(|n| (ingested(n), number.to_string()));
        match scratch.ingest(records) {
            Err(error) if !error.may_pass() => {
                Err(format!("ingest into a new keyspace: {error}").into())
            }
            _ => Ok(()),
        }
    }

    fn drop_scratch(&self, db: &Db, number: u64) -> Result<(), Violation> {
        if db.keyspace(SCRATCH).is_err() {
            return Ok(());
        }
        self.journal.note(Event::ScratchGoes { number })?;
        let dropped = db.drop_keyspace(SCRATCH);
        dropped.map_err(|error| format!("drop a keyspace: {error}"))?;
        Ok(self.journal.note(Event::ScratchGone { number })?)
    }

    /// Makes a checkpoint and opens it.
    fn checkpoint(&self, db: &Db) -> Result<(), Violation> {
        let paths = self.task.directories.copy(db.options().tiers.len());
        // A kill may have interrupted the removal of an earlier one.
        remove(&paths)?;
        self.journal.note(Event::CopyBegan)?;
        match db.checkpoint(&paths) {
            Ok(()) => self.journal.note(Event::Copied)?,
            Err(error) if error.may_pass() => {}
            Err(error) => return Err(format!("checkpoint: {error}").into()),
        }
        self.check_copy()
    }

    /// Checks the checkpoint that is there, perhaps from before a kill, and removes it.
    fn check_copy(&self) -> Result<(), Violation> {
        let expected = self.expected()?;
        if expected.has_copy() {
            let mut options = options::drawn(self.task.seed, 0, &self.task.directories);
            let paths = self.task.directories.copy(options.tiers.len());
            for (tier, path) in options.tiers.iter_mut().zip(&paths) {
                tier.path.clone_from(path);
            }
            options.create_if_missing = false;
            let copy = Db::open(options);
            let found = match &copy {
                // This proves nothing: the next process looks again.
                Err(error) if self.task.memory.is_some() && error.may_pass() => return Ok(()),
                Ok(copy) => Ok(find_all(copy)?),
                Err(error) => Err(error.to_string()),
            };
            expected.copied(found.as_ref().map_err(String::as_str))?;
            say(&Line::Counted("checkpoints checked".to_owned(), 1));
            drop(copy);
            self.journal.note(Event::CopyGone)?;
            remove(&paths)?;
        }
        Ok(())
    }

    fn count(&self, db: &Db) {
        let metrics = db.metrics();
        let crossed = |c: &&thermocline::metrics::CompactionMetrics| {
            c.write_bytes.len() > 1 && c.write_bytes.last().is_some_and(|bytes| *bytes > 0)
        };
        let crossings = metrics.compactions.iter().filter(crossed);
        let crossings = crossings.map(|c| c.jobs).sum();
        for (what, count) in [
            ("flushes", metrics.flushes),
            ("compactions onto the last tier", crossings),
        ] {
            say(&Line::Counted(what.to_owned(), count));
        }
    }
}

fn remove(paths: &[PathBuf]) -> Result<(), Violation> {
    for path in paths {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("remove the checkpoint: {error}").into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a thread returned. If it panicked, the process ends, which the parent sees.
fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A client at work.
struct At<'a> {
    client: Client,
    db: &'a Db,
    keyspaces: &'a [Keyspace],
    journal: &'a Journal,
    model: Model,
    next: u64,
    rng: SmallRng,
}

impl At<'_> {
    fn step(&mut self) -> Result<(), Violation> {
        match self.rng.random_range(0..20) {
            0..12 => self.write(),
            12..17 => (0..20).try_for_each(|_| self.get()),
            17 => self.scan(),
            18 => self.multi_get(),
            _ => self.snapshot(),
        }
    }

    fn write(&mut self) -> Result<(), Violation> {
        let (client, number) = (self.client.index, self.next);
        self.next += 1;
        let durability = match self.rng.random_range(0..10) {
            0..4 => Durability::None,
            4..9 => Durability::Buffered,
            _ => Durability::Sync,
        };
        let batch = self.client.batch(number, self.keyspaces);
        self.journal.note(Event::Began {
            client,
            durability,
            number,
        })?;
        match self.db.write_with(batch, durability) {
            Ok(seq) => {
                self.model.apply(self.client, number);
                Ok(self.journal.note(Event::Acknowledged {
                    client,
                    number,
                    seq,
                })?)
            }
            Err(error) if error.may_pass() => {
                say(&Line::Counted("refusals".to_owned(), 1));
                Ok(self.journal.note(Event::Refused { client, number })?)
            }
            Err(error) => Err(format!("write: {error}").into()),
        }
    }

    /// Mostly one of a few keys, so that these become hot.
    fn place(&mut self) -> (u8, u32) {
        let keys = if self.rng.random_bool(0.8) { HOT } else { KEYS };
        let keyspace = self.rng.random_range(0..KEYSPACES.len() as u8);
        (keyspace, self.rng.random_range(0..keys))
    }

    fn get(&mut self) -> Result<(), Violation> {
        let place = self.place();
        let found = self.keyspaces[usize::from(place.0)].get(self.client.key(place));
        let found = found.map_err(|error| format!("get: {error}"))?;
        self.model.check(self.client, place, found.as_deref())
    }

    fn multi_get(&mut self) -> Result<(), Violation> {
        let places: Vec<_> = (0..30).map(|_| self.place()).collect();
        for (index, keyspace) in (0u8..).zip(self.keyspaces) {
            let places = places.iter().filter(|place| place.0 == index);
            let places: Vec<_> = places.copied().collect();
            let keys: Vec<String> = places.iter().map(|place| self.client.key(*place)).collect();
            let found = keyspace.multi_get(&keys);
            let found = found.map_err(|error| format!("multi_get: {error}"))?;
            for (place, found) in each_with_its_answer(&places, found)? {
                self.model.check(self.client, *place, found.as_deref())?;
            }
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), Violation> {
        let index = self.place().0;
        let range = self.keyspaces[usize::from(index)].prefix(self.client.prefix());
        self.model.check_range(self.client, index, range)
    }

    /// A snapshot stays as it was while its client writes.
    fn snapshot(&mut self) -> Result<(), Violation> {
        let (snapshot, model) = (self.db.snapshot(), self.model.clone());
        for _ in 0..5 {
            self.write()?;
        }
        let index = self.place().0;
        let keyspace = &self.keyspaces[usize::from(index)];
        let prefix = self.client.prefix();
        let end = format!("c{}.", self.client.index);
        let range = snapshot.range_in::<String>(keyspace, prefix..end);
        model.check_range(self.client, index, range)
    }
}
