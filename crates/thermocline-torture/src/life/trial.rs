//! A store in the middle of its life.

use std::path::PathBuf;
use std::sync::Arc;

use thermocline::executor::{Executor, Stepped, ThreadPool};
use thermocline::storage::Faulty;
use thermocline::{Db, Durability, Error, ManualClock, Options, Points, Result, TierOptions};

use super::history::{After, Contents, History, Write, contents, difference};
use super::impatient::Impatient;
use super::{Hotness, SIDE, Step, Stop};
use crate::random_options::set_some_target;
use crate::verdict::Violation;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// The first tier of [`tiny_options`].
pub const FAST: &str = "/fast";
/// The last tier of [`tiny_options`].
pub const SLOW: &str = "/slow";

/// How many keys there are.
const KEYS: usize = 149;

/// The smallest memtables and tables there may be, so that a few hundred writes reach the
/// slow tier.
pub fn tiny_options() -> Options {
    let mut options = Options::with_tiers(vec![
        TierOptions::fast(FAST).capacity(400 << 10).block_size(1024),
        TierOptions::slow(SLOW).block_size(2048),
    ]);
    options.memory = 4 << 20;
    options.memtable_size = Some(16 << 10);
    options.table_size = Some(16 << 10);
    options.l0_trigger = 2;
    options.level_ratio = 2;
    options.seed = Some(1);
    options
}

fn numbered(number: usize) -> String {
    format!("key{:04}", number % KEYS)
}

/// A store in the middle of its life.
pub struct Trial {
    /// What all its tiers lie on.
    pub disk: Faulty,
    /// The options of the next opening.
    pub options: Options,
    /// Its named points.
    pub points: Points,
    /// Real threads instead of the one that a seed drives.
    pub threads: bool,
    /// The seed of the order in which background work runs.
    pub seed: u64,
    /// What it was told.
    pub history: History,
    /// The open store.
    pub db: Option<Db>,
    /// What this trial is about, for messages.
    pub name: String,
    /// What placement by hotness did so far.
    pub hotness: Hotness,
    /// Keyspaces that were acknowledged.
    pub(super) keyspaces: Vec<&'static str>,
    /// The last checkpoint.
    pub(super) copy: Option<Copied>,
    /// What ended the store that is to be opened next.
    pub(super) ended: After,
    stepped: Arc<Stepped>,
    copies: usize,
    written: usize,
}

/// A checkpoint that was begun.
#[derive(Debug, Clone)]
pub(super) struct Copied {
    /// Where it lies, by tier.
    pub(super) paths: Vec<PathBuf>,
    /// What it holds, if it is a store. Nobody writes while it is made.
    pub(super) contents: Contents,
    pub(super) acknowledged: bool,
}

impl Trial {
    /// A store that is yet to be created, on a disk without faults.
    pub fn new(seed: u64) -> Self {
        Self {
            disk: Faulty::new(seed),
            options: tiny_options(),
            points: Points::default(),
            threads: false,
            seed,
            history: History::default(),
            db: None,
            name: String::new(),
            hotness: Hotness::default(),
            keyspaces: vec!["default"],
            copy: None,
            ended: After::Exit,
            stepped: Arc::new(Stepped::new(seed)),
            copies: 0,
            written: 0,
        }
    }

    /// The same store after the power went, on `disk`, one of the images that may be left.
    pub fn on(&self, disk: Faulty) -> Self {
        Self {
            options: self.options.clone(),
            seed: self.seed,
            history: self.history.clone(),
            name: self.name.clone(),
            keyspaces: self.keyspaces.clone(),
            copy: self.copy.clone(),
            ended: After::PowerLoss,
            copies: self.copies,
            written: self.written,
            disk,
            ..Self::new(self.seed)
        }
    }

    /// Opens a store whose tiers lie in `paths`, fastest first, on this trial's disk.
    ///
    /// # Errors
    /// As [`Db::open`]; [`Error::Io`] when no thread can be started.
    pub fn open_at(&mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Result<Db> {
        let executor: Arc<dyn Executor> = if self.threads {
            let pool = ThreadPool::new(2).map_err(|source| Error::Io {
                operation: "start threads of",
                path: "the executor".into(),
                source: Arc::new(source),
            })?;
            Arc::new(pool)
        } else {
            self.stepped = Arc::new(Stepped::new(self.seed));
            Arc::new(Impatient(Arc::clone(&self.stepped)))
        };
        let mut options = self.options.clone();
        for (tier, path) in options.tiers.iter_mut().zip(paths) {
            tier.path = path.into();
        }
        let mut builder = Db::builder(options)
            .clock(Arc::new(ManualClock::default()))
            .executor(executor)
            .points(self.points.clone());
        for tier in 0..self.options.tiers.len() {
            builder = builder.medium(tier, Arc::new(self.disk.clone()));
        }
        let db = builder.open()?;
        set_some_target(&db, &mut SmallRng::seed_from_u64(self.seed));
        Ok(db)
    }

    /// Where the tiers lie, fastest first.
    pub fn paths(&self) -> Vec<PathBuf> {
        let tiers = self.options.tiers.iter();
        tiers.map(|tier| tier.path.clone()).collect()
    }

    /// The store, opened unless it is open. What opening finds is a prefix of the writes.
    ///
    /// # Errors
    /// [`Stop::Failed`] when it cannot be opened or read, [`Stop::Broken`] when what it holds is no
    /// such prefix.
    pub fn db(&mut self) -> Result<Db, Stop> {
        if let Some(db) = &self.db {
            return Ok(db.clone());
        }
        let db = self.open_at(self.paths())?;
        let found = contents(&db)?;
        self.history
            .recovered(&found, self.ended)
            .map_err(|problem| self.named(problem))?;
        self.ended = After::Exit;
        Ok(self.db.insert(db).clone())
    }

    /// `violation`, with this trial's name in front unless it is there already.
    pub(crate) fn named(&self, violation: Violation) -> Violation {
        if violation.message.starts_with(&self.name) {
            return violation;
        }
        let message = format!("{}: {}", self.name, violation.message);
        Violation {
            message,
            ..violation
        }
    }

    /// Runs all background work that there is, if no thread does.
    pub fn drain(&self) {
        self.stepped.drain();
    }

    /// Runs the whole of `steps`, until one fails.
    ///
    /// # Errors
    /// As [`Trial::step`].
    pub fn run(&mut self, steps: &[Step]) -> Result<(), Stop> {
        steps.iter().try_for_each(|step| self.step(*step))
    }

    /// Runs `steps` until the power goes. Returns whether it went.
    ///
    /// # Errors
    /// The promise that was broken on the way: with the power on, a store has no reason to fail.
    pub fn run_until_the_power_goes(&mut self, steps: &[Step]) -> Result<bool, Violation> {
        match self.run(steps) {
            Ok(()) => Ok(false),
            Err(Stop::Failed(_)) if self.disk.triggered() > 0 => Ok(true),
            Err(stop) => Err(self.named(stop.unexpected("with the power on"))),
        }
    }

    /// Does one step.
    ///
    /// # Errors
    /// [`Stop::Failed`] with the store's own error, [`Stop::Broken`] when it broke a promise.
    pub fn step(&mut self, step: Step) -> Result<(), Stop> {
        let db = self.db()?;
        match step {
            Step::Write(count) => (0..count).try_for_each(|_| self.write(&db)),
            Step::Read => self.read(&db),
            Step::Flush => self.durable(db.flush()),
            Step::Sync => self.durable(db.sync()),
            Step::Compact => {
                self.durable(db.compact_range::<&[u8]>(..))?;
                match db.keyspace(SIDE) {
                    Ok(side) => Ok(side.compact_range::<&[u8]>(..)?),
                    Err(_) => Ok(()),
                }
            }
            Step::Ingest(count) => self.ingest(&db, count),
            Step::Idle => Ok(db.wait_idle()?),
            Step::CreateKeyspace(name) => {
                db.create_keyspace(name)?;
                if !self.keyspaces.contains(&name) {
                    self.keyspaces.push(name);
                }
                Ok(())
            }
            Step::Checkpoint => self.checkpoint(&db),
            Step::Reopen => {
                self.hotness.note(&db.metrics());
                self.db = None;
                self.durable(db.close())?;
                drop(db);
                self.db().map(|_| ())
            }
        }
    }

    /// Copies the store to a place where nothing is yet. It is for the owner of a failed copy to
    /// remove what is left of it.
    fn checkpoint(&mut self, db: &Db) -> Result<(), Stop> {
        let number = self.copies;
        self.copies += 1;
        let tiers = 0..self.options.tiers.len();
        let paths: Vec<PathBuf> = tiers
            .map(|tier| format!("/copy-{number}-{tier}").into())
            .collect();
        let copy = self.copy.insert(Copied {
            paths,
            contents: self.history.visible(),
            acknowledged: false,
        });
        db.checkpoint(&copy.paths)?;
        copy.acknowledged = true;
        self.history.all_synced();
        Ok(())
    }

    fn read(&self, db: &Db) -> Result<(), Stop> {
        let wanted = self.history.visible();
        for name in db.keyspaces() {
            let keyspace = db.keyspace(&name)?;
            for number in 0..KEYS {
                let key = numbered(number);
                let found = keyspace.get(&key)?;
                let at = (name.clone(), key.into_bytes());
                if let Some(problem) = difference(&at, wanted.get(&at), found.as_deref()) {
                    return Err(self.named(problem).into());
                }
            }
        }
        Ok(())
    }

    fn durable(&mut self, done: Result<()>) -> Result<(), Stop> {
        done?;
        self.history.all_synced();
        Ok(())
    }

    fn write(&mut self, db: &Db) -> Result<(), Stop> {
        let number = self.written;
        self.written += 1;
        let durability = match number % 5 {
            0 | 3 => Durability::None,
            1 | 2 => Durability::Buffered,
            _ => Durability::Sync,
        };
        let write = self.make(number);
        self.history.write(db, write, durability)
    }

    /// Ingests neighbouring keys, every second one, into one of the keyspaces.
    fn ingest(&mut self, db: &Db, count: usize) -> Result<(), Stop> {
        let number = self.written;
        self.written += 1;
        let side = self.keyspaces.contains(&SIDE) && number.is_multiple_of(2);
        let keyspace = if side { SIDE } else { "default" };
        let first = number * 7919 % KEYS;
        let keys = (first..KEYS).step_by(2).take(count);
        let put = |key| {
            let value = format!("{number}:{}", "y".repeat(500 + key % 300));
            (keyspace, numbered(key), Some(value))
        };
        self.history.ingest(db, keys.map(put).collect())
    }

    /// Write `number`: a put, now and then a delete, and every third write a batch over two
    /// keyspaces.
    fn make(&self, number: usize) -> Write {
        let key = numbered(number * 7919);
        let value = || format!("{number}:{}", "x".repeat(500 + number % 300));
        let put = |keyspace, key: &str| (keyspace, key.to_owned(), Some(value()));
        let side = self.keyspaces.contains(&SIDE);
        match number % 9 {
            3 | 6 if side => vec![
                put("default", &key),
                put(SIDE, &key),
                ("default", numbered(number * 31), None),
            ],
            8 => vec![("default", key, None)],
            _ => vec![put("default", &key)],
        }
    }
}
