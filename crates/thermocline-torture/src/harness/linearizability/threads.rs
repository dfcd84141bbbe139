//! Threads that use the same objects, and what each saw.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::{Batch, Db, Error, Expect};

use super::history::{Call, Content, History, Operation};
use super::objects::{Keyspaces, Object, Way};
use crate::verdict::{Promise, Tally, Violation};

const THREADS: usize = 8;

/// Several times as many as the fast tier holds.
const OBJECTS: usize = 1_200;

/// Operations of each thread.
const OPERATIONS: usize = 2_000;

/// Objects that all threads use at a time, and for how many operations.
const WINDOW: usize = 3;
const TURN: u64 = 150;

type Checked<T = ()> = Result<T, Violation>;

/// What the threads share.
pub(super) struct Race<'a> {
    db: &'a Db,
    keyspaces: Keyspaces,
    objects: Vec<Object>,
    /// Stamps invocations and responses. No two stamps are equal, and a later one is higher.
    time: AtomicU64,
    /// Gives every write a number of its own.
    writes: AtomicU64,
    seed: u64,
    /// A thread saw something wrong: the others stop.
    over: AtomicBool,
}

/// What one thread did: calls with the number of their object.
type Log = Vec<(usize, Call)>;

impl<'a> Race<'a> {
    pub(super) fn new(db: &'a Db, seed: u64) -> Checked<Self> {
        Ok(Self {
            db,
            keyspaces: [db.keyspace("default")?, db.create_keyspace("second")?],
            objects: (0..OBJECTS).map(Object::new).collect(),
            time: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            seed,
            over: AtomicBool::new(false),
        })
    }

    /// Fills the store, lets the threads loose, and reads everything in the end. Returns the
    /// history of each object.
    pub(super) fn run(&self, tally: &mut Tally) -> Checked<Vec<History>> {
        let mut first = Thread::new(self, THREADS);
        (0..OBJECTS).try_for_each(|object| first.write(object))?;
        let ended: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|number| scope.spawn(move || Thread::new(self, number).run()))
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut logs = Vec::new();
        for ended in ended {
            let panicked = |_| Violation::new(Promise::Alive, "a thread panicked");
            let thread = ended.map_err(panicked).flatten()?;
            tally.merge(&thread.tally);
            logs.push(thread.log);
        }
        self.db.wait_idle()?;
        (0..OBJECTS).try_for_each(|object| first.read(object))?;
        logs.push(first.log);
        let history = |object: &Object| History {
            name: object.name(),
            calls: Vec::new(),
        };
        let mut histories: Vec<History> = self.objects.iter().map(history).collect();
        for (object, call) in logs.into_iter().flatten() {
            histories[object].calls.push(call);
        }
        Ok(histories)
    }
}

/// The outcome `done` of `what`, which has no reason to fail.
fn named<T>(what: &str, done: thermocline::Result<T>) -> Checked<T> {
    done.map_err(|error| Violation::disorder(format!("{what}: {error}")))
}

struct Thread<'a> {
    race: &'a Race<'a>,
    number: usize,
    rng: SmallRng,
    log: Log,
    tally: Tally,
    /// The object that it saw last, and what it saw: its next condition expects this.
    seen: (usize, Content),
}

impl<'a> Thread<'a> {
    fn new(race: &'a Race<'a>, number: usize) -> Self {
        let seed = race.seed.wrapping_mul(100).wrapping_add(number as u64);
        Self {
            race,
            number,
            rng: SmallRng::seed_from_u64(seed),
            log: Log::new(),
            tally: Tally::default(),
            seen: (0, None),
        }
    }

    fn run(mut self) -> Checked<Self> {
        for _ in 0..OPERATIONS {
            if self.race.over.load(Ordering::Relaxed) {
                break;
            }
            if let Err(violation) = self.one() {
                self.race.over.store(true, Ordering::Relaxed);
                return Err(violation);
            }
        }
        Ok(self)
    }

    fn one(&mut self) -> Checked {
        let object = self.choose();
        match self.rng.random_range(0..1000) {
            0..550 => self.read(object),
            550..800 => self.write(object),
            800..995 => self.compare_and_write(object),
            995..998 => named("flush", self.race.db.flush()),
            _ => named("compact_range", self.race.db.compact_range::<&[u8]>(..)),
        }
    }

    /// Half of the time one of the few that all threads use now; otherwise a hot one, or any.
    fn choose(&mut self) -> usize {
        let turn = (self.race.time.load(Ordering::Relaxed) / TURN) as usize;
        match self.rng.random_range(0..10) {
            0..5 => (turn * 7 + self.rng.random_range(0..WINDOW)) % OBJECTS,
            5..8 => self.rng.random_range(0..OBJECTS / 20) * 20,
            _ => self.rng.random_range(0..OBJECTS),
        }
    }

    fn now(&self) -> u64 {
        self.race.time.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&mut self, object: usize, invoked: u64, operation: Operation) {
        let call = Call {
            thread: self.number,
            invoked,
            returned: self.now(),
            operation,
        };
        self.log.push((object, call));
    }

    fn read(&mut self, object: usize) -> Checked {
        let race = self.race;
        let way = match self.rng.random_range(0..10) {
            0..5 => Way::OneKey(self.rng.random_range(0..3)),
            5..7 => Way::MultiGet,
            7..9 => Way::Snapshot,
            _ => Way::Range,
        };
        let invoked = self.now();
        let found = race.objects[object].read(race.db, &race.keyspaces, way)?;
        self.note(object, invoked, Operation::Read(found));
        if race.objects[object].width() > 1 && !matches!(way, Way::OneKey(_)) {
            self.tally.add("reads of several keys", 1);
        }
        self.seen = (object, found);
        Ok(())
    }

    fn next_write(&self) -> u64 {
        self.race.writes.fetch_add(1, Ordering::Relaxed)
    }

    fn write(&mut self, object: usize) -> Checked {
        let race = self.race;
        let is_put = self.rng.random_bool(0.8);
        let content = is_put.then(|| self.next_write());
        let mut batch = Batch::new();
        race.objects[object].write(&mut batch, &race.keyspaces, content);
        if batch.len() > 1 {
            self.tally.add("batches of several keys", 1);
        }
        let invoked = self.now();
        named("write", race.db.write(batch))?;
        self.note(object, invoked, Operation::Write(content));
        self.seen = (object, content);
        Ok(())
    }

    /// Expects what it saw last of the object, which others may have changed since, or else
    /// anything.
    fn compare_and_write(&mut self, object: usize) -> Checked {
        let race = self.race;
        let (seen, expected) = self.seen;
        let object = if self.rng.random_bool(0.7) {
            seen
        } else {
            object
        };
        let new = self.next_write();
        let mut batch = Batch::new();
        let (which, key) = race.objects[object].condition(self.rng.random_range(0..3));
        let expect = match expected {
            Some(number) => Expect::Equals(race.objects[object].value(number).into()),
            None => Expect::Absent,
        };
        batch.require(&race.keyspaces[which], key, expect);
        race.objects[object].write(&mut batch, &race.keyspaces, Some(new));
        let invoked = self.now();
        let met = match race.db.write(batch) {
            Ok(_) => true,
            Err(Error::ConditionFailed { index: 0 }) => false,
            Err(error) => return Err(error.into()),
        };
        let operation = Operation::CompareAndWrite { expected, new, met };
        self.note(object, invoked, operation);
        let outcome = ["conditions not met", "conditions met"][usize::from(met)];
        self.tally.add(outcome, 1);
        if met {
            self.seen = (object, Some(new));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_options::crowded_options;
    use crate::stores::{memory, open_on};

    /// Proves that a real history convicts. One answer in it, read after all threads had ended, is
    /// replaced by an older one.
    #[test]
    fn one_stale_answer_in_a_real_history_is_caught() {
        let db = open_on(&crowded_options(1, 512 << 10), &memory()).unwrap();
        let mut tally = Tally::default();
        let histories = Race::new(&db, 1).unwrap().run(&mut tally).unwrap();
        let mut history = histories.into_iter().max_by_key(|h| h.calls.len()).unwrap();
        history.check(&mut tally).unwrap();
        history.calls.sort_by_key(|call| call.invoked);
        let (last, before) = history.calls.split_last_mut().unwrap();
        let Operation::Read(now) = last.operation else {
            panic!("{last:?}");
        };
        let written = |call: &Call| match call.operation {
            Operation::Write(content) => Some(content),
            _ => None,
        };
        let stale = before.iter().filter_map(written).find(|c| *c != now);
        last.operation = Operation::Read(stale.unwrap());
        let violation = history.check(&mut tally).unwrap_err();
        assert_eq!(violation.promise, Promise::Right, "{violation}");
    }
}
