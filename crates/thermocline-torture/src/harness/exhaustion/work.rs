//! The child's side: a store works, runs out of something, gets it back, and works on.

use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use thermocline::{Db, Durability, Error, Keyspace, Options};

use super::Resource;
use super::limits::Limit;
use crate::child::{Line, say};
use crate::client::{Client, KEYS, KEYSPACES, Model, find_all, keyspaces};
use crate::harness::kill::options::{self, Directories};
use crate::verdict::{Promise, Violation};

/// What a child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) resource: Resource,
    pub(super) seed: u64,
    /// Where the store lies.
    pub(super) home: PathBuf,
}

/// How many writes there are before the limit, and at most under it.
const WRITES: usize = 150;

/// Works.
///
/// # Errors
/// The first promise that was broken.
pub(crate) fn work(task: &Task) -> Result<(), Violation> {
    let home = task.home.clone();
    let options = options::drawn(task.seed, 0, &Directories { home });
    let db = Db::open(options.clone()).map_err(|error| format!("open: {error}"))?;
    let keyspaces = keyspaces(&db).map_err(|error| format!("keyspaces: {error}"))?;
    let mut user = User {
        task,
        client: Client {
            seed: task.seed,
            index: 0,
            keys: KEYS,
        },
        db,
        keyspaces,
        model: Model::default(),
        next: 1,
        refused: 0,
        rng: SmallRng::seed_from_u64(task.seed),
    };
    user.write_many(WRITES)?;
    if user.refused > 0 {
        return Err("a write was refused before anything was limited".into());
    }
    let limit = Limit::leave(task.resource, user.rest(), &task.home)?;
    let writes = user.rng.random_range(20..WRITES);
    user.write_many(writes)?;
    user.go_on_reading()?;
    say(&Line::Counted("refusals".to_owned(), user.refused));
    limit.lift()?;
    user.check_as_killed(&options)?;
    user.resume()?;
    user.close_and_reopen(&options)
}

/// The store's only user.
struct User<'a> {
    task: &'a Task,
    client: Client,
    db: Db,
    keyspaces: Vec<Keyspace>,
    model: Model,
    next: u64,
    refused: u64,
    rng: SmallRng,
}

/// What must hold of an error that comes while something is used up: it must be one that passes,
/// and say what has run out.
fn check(error: &Error) -> Result<(), Violation> {
    if error.may_pass() {
        return Ok(());
    }
    Err(format!("an error that says nothing of the limit: {error}").into())
}

impl User<'_> {
    fn rest(&mut self) -> u64 {
        match self.task.resource {
            Resource::OpenFiles => self.rng.random_range(0..6),
            Resource::FileSize => self.rng.random_range(0..24 << 10),
            Resource::Disk => self.rng.random_range(0..96 << 10),
        }
    }

    /// Writes, flushes, compacts and reads. A call that is refused leaves no trace.
    fn write_many(&mut self, writes: usize) -> Result<(), Violation> {
        for step in 0..writes {
            let durability = [Durability::None, Durability::Buffered, Durability::Sync][step % 3];
            self.write(durability)?;
            let done = match step % 50 {
                20 => self.db.flush(),
                30 => self.keyspaces[step / 50].compact_range::<&[u8]>(..),
                40 => self.db.sync(),
                45 => self
                    .db
                    .create_keyspace(&format!("more{}", self.next))
                    .map(|_| ()),
                48 => self.copy(),
                _ => Ok(()),
            };
            self.note(done)?;
            self.read(8)?;
        }
        Ok(())
    }

    fn write(&mut self, durability: Durability) -> Result<(), Violation> {
        let batch = self.client.batch(self.next, &self.keyspaces);
        let written = self.db.write_with(batch, durability).map(|_| ());
        if written.is_ok() {
            self.model.apply(self.client, self.next);
        }
        self.next += 1;
        self.note(written)
    }

    fn copy(&self) -> Result<(), Error> {
        let directories = Directories {
            home: self.task.home.join(format!("copy{}", self.next)),
        };
        let paths = directories.copy(self.db.options().tiers.len());
        let copied = self.db.checkpoint(&paths);
        // What is left of the copy may be no store. What cannot be removed only costs space.
        let _ = std::fs::remove_dir_all(directories.home);
        copied
    }

    fn note(&mut self, done: Result<(), Error>) -> Result<(), Violation> {
        if let Err(error) = done {
            check(&error)?;
            self.refused += 1;
        }
        Ok(())
    }

    /// A read gives what was written, or an error that passes.
    fn read(&mut self, times: u32) -> Result<(), Violation> {
        for _ in 0..times {
            let keyspace = self.rng.random_range(0..KEYSPACES.len() as u8);
            let place = (keyspace, self.rng.random_range(0..KEYS / 4));
            match self.keyspaces[usize::from(keyspace)].get(self.client.key(place)) {
                Ok(found) => self.model.check(self.client, place, found.as_deref())?,
                Err(error) => check(&error)?,
            }
        }
        Ok(())
    }

    /// Tables stay open, so reads need none of what is limited here.
    fn go_on_reading(&self) -> Result<(), Violation> {
        let found = find_all(&self.db)?;
        self.check_all(&found)
    }

    fn check_all(&self, found: &crate::client::Found) -> Result<(), Violation> {
        let nothing = Default::default();
        self.model
            .check_all(self.client, found.get(&0).unwrap_or(&nothing))
    }

    /// Opens a copy of the files as a kill would leave them now. Refused calls must not have spoilt
    /// what the log holds of memtables.
    fn check_as_killed(&mut self, options: &Options) -> Result<(), Violation> {
        // Work that ran into the limit may still be under way, and report it once.
        let _ = self.db.wait_idle();
        for _ in 0..5 {
            self.write(Durability::Buffered)?;
        }
        self.db
            .wait_idle()
            .map_err(|error| format!("wait: {error}"))?;
        // A kill need not keep a write that was acknowledged and not handed over.
        self.db.sync().map_err(|error| format!("sync: {error}"))?;
        let killed = self.task.home.join("killed");
        let mut options = options.clone();
        for (index, tier) in options.tiers.iter_mut().enumerate() {
            let copy = killed.join(format!("tier{index}"));
            copy_files(&tier.path, &copy).map_err(|error| format!("copy a store: {error}"))?;
            tier.path = copy;
        }
        let copy = Db::open(options).map_err(|error| format!("open as killed: {error}"))?;
        self.check_all(&find_all(&copy)?)?;
        drop(copy);
        std::fs::remove_dir_all(&killed).map_err(|error| error.to_string().into())
    }

    /// Everything works again without a restart.
    fn resume(&mut self) -> Result<(), Violation> {
        let said = |what: &'static str| {
            move |error: Error| {
                let message = format!("{what}, when nothing is limited any more: {error}");
                Violation::new(Promise::Alive, message)
            }
        };
        self.db.flush().map_err(said("flush"))?;
        let refused = self.refused;
        self.write_many(WRITES)?;
        if self.refused > refused {
            return Err("a write was refused when nothing was limited any more".into());
        }
        self.db
            .compact_range::<&[u8]>(..)
            .map_err(said("compact"))?;
        self.db.wait_idle().map_err(said("wait"))?;
        let metrics = self.db.metrics();
        if let Some(error) = metrics.background_error {
            return Err(format!("background work still fails: {error}").into());
        }
        if let Some(trouble) = metrics.hotrap.and_then(|hotrap| hotrap.ralt.trouble) {
            return Err(format!("hotness is not tracked any more: {trouble}").into());
        }
        let report = self.db.verify(&mut |_| {}).map_err(said("verify"))?;
        if let Some(problem) = report.problems.first() {
            return Err(format!("verify: {problem}").into());
        }
        self.go_on_reading()
    }

    /// If too little is left, opening the store says so. It opens when there is more.
    fn close_and_reopen(&mut self, options: &Options) -> Result<(), Violation> {
        self.db.close().map_err(|error| format!("close: {error}"))?;
        self.keyspaces.clear();
        for rest in 0..12 {
            let limit = Limit::leave(self.task.resource, rest, &self.task.home)?;
            let opened = Db::open(options.clone());
            limit.lift()?;
            if let Err(error) = opened {
                check(&error)?;
                say(&Line::Counted("openings refused".to_owned(), 1));
            }
        }
        self.db = Db::open(options.clone()).map_err(|error| format!("open again: {error}"))?;
        self.go_on_reading()
    }
}

/// Copies the files in `from` and in the directories below it.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_files(&entry.path(), &target)?,
            false => match std::fs::copy(entry.path(), target) {
                // Access records are merged at any time. They are advice (I7).
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => copied.map(|_| ())?,
            },
        }
    }
    Ok(())
}
