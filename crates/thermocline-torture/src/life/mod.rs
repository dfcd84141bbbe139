//! A fixed life of a small store on a faulty disk: writes, flushes, compactions across tiers,
//! new keyspaces, checkpoints, reopening. The crash and fault tests interrupt it everywhere.

pub mod history;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thermocline::executor::{Executor, Stepped, ThreadPool};
use thermocline::storage::{CrashStyle, Faulty};
use thermocline::{Db, Durability, ManualClock, Options, Points, Result, TierOptions};

use self::history::{After, Contents, History, Write, contents};
use crate::verdict::{Promise, Violation};

pub const FAST: &str = "/fast";
pub const SLOW: &str = "/slow";
const COPY: [&str; 2] = ["/copy-fast", "/copy-slow"];
pub const SIDE: &str = "side";

#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// So many writes, of every durability in turn.
    Write(usize),
    /// Reads every key, and checks what it finds.
    Read,
    Flush,
    Sync,
    CreateKeyspace(&'static str),
    Compact,
    Idle,
    Checkpoint,
    /// Closes the store and opens it again.
    Reopen,
}

/// Goes through every part of the engine that writes to a disk. What is flushed ends in writes
/// that were not synced: their number is no multiple of five.
pub const LIFE: &[Step] = &[
    Step::Write(32),
    Step::CreateKeyspace(SIDE),
    Step::Write(91),
    Step::Idle,
    Step::Flush,
    Step::Write(89),
    Step::Compact,
    Step::CreateKeyspace("later"),
    Step::Checkpoint,
    Step::Write(60),
    Step::Reopen,
    Step::Write(60),
    Step::Sync,
    Step::Compact,
    Step::Write(20),
    Step::Idle,
];

/// Fills the slow tier, and reads until records come up from there on each way there is.
pub const WARMING: &[Step] = &[
    Step::Write(30),
    Step::CreateKeyspace(SIDE),
    Step::Write(300),
    Step::Idle,
    Step::Read,
    Step::Idle,
    Step::Write(120),
    Step::Read,
    Step::Write(121),
    Step::Compact,
    Step::Read,
    Step::Idle,
    Step::Reopen,
    Step::Read,
    Step::Write(60),
    Step::Idle,
];

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

/// How many keys there are.
const KEYS: usize = 149;

fn numbered(number: usize) -> String {
    format!("key{:04}", number % KEYS)
}

/// A store in the middle of its life.
pub struct Trial {
    pub disk: Faulty,
    pub options: Options,
    pub points: Points,
    /// Real threads instead of the one that a seed drives.
    pub threads: bool,
    pub seed: u64,
    pub history: History,
    /// Keyspaces that were acknowledged.
    keyspaces: Vec<&'static str>,
    /// What the checkpoint must hold, once it was acknowledged.
    copied: Option<Contents>,
    checkpoint_begun: bool,
    pub db: Option<Db>,
    stepped: Arc<Stepped>,
    /// What ended the store that is to be opened next.
    ended: After,
    written: usize,
    /// What this trial is about, for messages.
    pub name: String,
}

impl Trial {
    pub fn new(seed: u64) -> Self {
        Self {
            disk: Faulty::new(seed),
            options: tiny_options(),
            points: Points::default(),
            threads: false,
            seed,
            history: History::default(),
            keyspaces: vec!["default"],
            copied: None,
            checkpoint_begun: false,
            db: None,
            stepped: Arc::new(Stepped::new(seed)),
            ended: After::Exit,
            written: 0,
            name: String::new(),
        }
    }

    pub fn open_at(&mut self, paths: [&str; 2]) -> Result<Db> {
        let executor: Arc<dyn Executor> = if self.threads {
            Arc::new(ThreadPool::new(2).expect("threads"))
        } else {
            self.stepped = Arc::new(Stepped::new(self.seed));
            self.stepped.clone()
        };
        let mut options = self.options.clone();
        let mut tiers = options.tiers.iter_mut();
        for path in paths {
            tiers.next().expect("two tiers").path = path.into();
        }
        Db::builder(options)
            .medium(0, Arc::new(self.disk.clone()))
            .medium(1, Arc::new(self.disk.clone()))
            .clock(Arc::new(ManualClock::default()))
            .executor(executor)
            .points(self.points.clone())
            .open()
    }

    /// The store, opened unless it is open. What opening finds is a prefix of the writes.
    pub fn db(&mut self) -> Result<Db> {
        match &self.db {
            Some(db) => Ok(db.clone()),
            None => {
                let db = self.open_at([FAST, SLOW])?;
                let found = contents(&db)?;
                if let Err(problem) = self.history.recovered(&found, self.ended) {
                    panic!("{}: {problem}", self.name);
                }
                self.ended = After::Exit;
                Ok(self.db.insert(db).clone())
            }
        }
    }

    /// Runs all background work there is, where no thread does.
    pub fn drain(&self) {
        self.stepped.drain();
    }

    /// Runs the whole of `steps`, until one fails.
    pub fn run(&mut self, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(*step))
    }

    pub fn step(&mut self, step: Step) -> Result<()> {
        let db = self.db()?;
        match step {
            Step::Write(count) => (0..count).try_for_each(|_| self.write(&db)),
            Step::Read => self.read(&db),
            Step::Flush => self.durable(db.flush()),
            Step::Sync => self.durable(db.sync()),
            Step::Compact => {
                self.durable(db.compact_range::<&[u8]>(..))?;
                match db.keyspace(SIDE) {
                    Ok(side) => side.compact_range::<&[u8]>(..),
                    Err(_) => Ok(()),
                }
            }
            Step::Idle => db.wait_idle(),
            Step::CreateKeyspace(name) => {
                db.create_keyspace(name)?;
                if !self.keyspaces.contains(&name) {
                    self.keyspaces.push(name);
                }
                Ok(())
            }
            Step::Checkpoint => {
                self.checkpoint_begun = true;
                let copied = self.history.visible();
                self.durable(db.checkpoint(&COPY.map(PathBuf::from)))?;
                self.copied = Some(copied);
                Ok(())
            }
            Step::Reopen => {
                self.db = None;
                self.durable(db.close())?;
                drop(db);
                self.db().map(|_| ())
            }
        }
    }

    fn read(&self, db: &Db) -> Result<()> {
        let wanted = self.history.visible();
        for name in db.keyspaces() {
            let keyspace = db.keyspace(&name)?;
            for number in 0..KEYS {
                let key = numbered(number);
                let found = keyspace.get(&key)?;
                let wanted = wanted.get(&(name.clone(), key.clone().into_bytes()));
                let wanted = wanted.map(Vec::as_slice);
                assert_eq!(found.as_deref(), wanted, "{}: {name}/{key}", self.name);
            }
        }
        Ok(())
    }

    fn durable(&mut self, done: Result<()>) -> Result<()> {
        if done.is_ok() {
            self.history.all_synced();
        }
        done
    }

    fn write(&mut self, db: &Db) -> Result<()> {
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

    /// Write `number`: a put, now and then a delete, every third a batch over two keyspaces.
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

    /// Cuts the power, then as [`Trial::come_back`].
    pub fn survive(&mut self, how: CrashStyle) {
        let disk = self.disk.crash(how);
        self.wake(disk);
        self.come_back();
    }

    /// Cuts the power, then as [`Trial::try_to_come_back`].
    pub fn try_to_survive(&mut self, how: CrashStyle) -> Result<(), Violation> {
        let disk = self.disk.crash(how);
        self.wake(disk);
        self.try_to_come_back()
    }

    /// Goes on with `disk`, which a loss of power left.
    pub fn wake(&mut self, disk: Faulty) {
        self.db = None;
        self.disk = disk;
        self.ended = After::PowerLoss;
    }

    /// Opens the store after what happened to it, checks everything that recovery promises, and
    /// that the store works on.
    pub fn come_back(&mut self) {
        if let Err(problem) = self.try_to_come_back() {
            panic!("{}: {problem}", self.name);
        }
    }

    /// As [`Trial::come_back`], without a panic.
    pub fn try_to_come_back(&mut self) -> Result<(), Violation> {
        self.db = None;
        self.points = Points::default();
        let before = self.numbered();
        let said = |what: &'static str| move |error| format!("{what}: {error}");
        let db = self.db().map_err(said("open"))?;
        if let Some(trouble) = &db.recovery().hotness {
            return Err(format!("hotness: {trouble}").into());
        }
        db.wait_idle().map_err(said("idle"))?;
        for keyspace in &self.keyspaces {
            db.keyspace(keyspace).map_err(said("keyspace"))?;
        }
        self.check_tables(&db)?;
        self.check_copy()?;
        drop(db);
        for step in [Step::Write(25), Step::Read, Step::Flush] {
            self.step(step).map_err(said("going on"))?;
        }
        // I4: a number seen anywhere is never used again.
        let highest = before.values().max().copied().unwrap_or(0);
        let mut new = self.numbered().into_iter();
        let reused = new.find(|(name, number)| !before.contains_key(name) && *number <= highest);
        if let Some((name, _)) = reused {
            return Err(format!("{name} is new, though {highest} was in use before").into());
        }
        for step in [Step::Compact, Step::Reopen] {
            self.step(step).map_err(said("going on"))?;
        }
        let db = self.db().map_err(said("open again"))?;
        let orphans = db.recovery().orphans;
        if orphans != 0 {
            return Err(format!("{orphans} orphans after a clean close").into());
        }
        if contents(&db).map_err(said("scan again"))? != self.history.visible() {
            return Err(Violation::new(
                Promise::Kept,
                "a clean close and reopening changed what is there",
            ));
        }
        // What the opening has set off comes to its end first.
        db.wait_idle().map_err(said("idle again"))?;
        self.check_tables(&db)
    }

    /// Tables are what the manifest says, whole, and nothing else is there (I4).
    fn check_tables(&self, db: &Db) -> Result<(), Violation> {
        let report = db.verify(&mut |_| {}).map_err(|e| format!("verify: {e}"))?;
        if !report.problems.is_empty() {
            return Err(format!("verify found {:?}", report.problems).into());
        }
        for (tier, dir) in [FAST, SLOW].into_iter().enumerate() {
            let files = self.disk.list_raw(Path::new(dir));
            let tables = files.iter().filter(|f| f.name.ends_with(".sst"));
            let there: u64 = tables.map(|f| f.len).sum();
            let metrics = &db.metrics().tiers[tier];
            let named = metrics.table_bytes + metrics.pinned_obsolete_bytes;
            if there != named {
                return Err(format!("{dir} holds {there} bytes of tables, {named} named").into());
            }
        }
        Ok(())
    }

    /// A checkpoint that was acknowledged is there and whole; one that was cut short is not a
    /// store, or is the whole of it.
    fn check_copy(&self) -> Result<(), Violation> {
        if !self.checkpoint_begun {
            return Ok(());
        }
        let mut trial = Trial::new(self.seed);
        trial.disk = self.disk.clone();
        trial.options.create_if_missing = false;
        let copy = match (trial.open_at(COPY), &self.copied) {
            (Ok(copy), _) => copy,
            (Err(_), None) => return Ok(()),
            (Err(error), Some(_)) => {
                let message = format!("the checkpoint is gone: {error}");
                return Err(Violation::new(Promise::Kept, message));
            }
        };
        if let Some(trouble) = &copy.recovery().hotness {
            return Err(format!("hotness of the checkpoint: {trouble}").into());
        }
        let found = contents(&copy).map_err(|e| format!("scan of the checkpoint: {e}"))?;
        match &self.copied {
            Some(copied) if *copied != found => Err(Violation::new(
                Promise::Kept,
                "the checkpoint is not what it was",
            )),
            _ => Ok(()),
        }
    }

    /// The files of both directories that have numbers.
    fn numbered(&self) -> BTreeMap<String, u64> {
        let files = [FAST, SLOW].map(|dir| self.disk.list_raw(Path::new(dir)));
        let number = |name: &str| {
            let digits = name.trim_start_matches("MANIFEST-");
            digits.split('.').next()?.parse().ok()
        };
        let names = files.into_iter().flatten().map(|file| file.name);
        names
            .filter_map(|name| number(&name).map(|n| (name, n)))
            .collect()
    }
}
