//! Incremental backup: a directory of generations, each a whole store, that share their tables.
//!
//! | module | what it does |
//! |---|---|
//! | `generation` | the file that names the tables of a generation |
//! | `take` | copies what is new of an open store, and puts a generation in force |
//! | `restore` | makes a store of a generation |
//! | `copy` | bytes from one place to another, summed on the way |
//! | `work` | who works on the files, and whether a sync of them has failed |
//!
//! A generation counts once its file has been renamed to its name. Everything that it names is
//! durable before that (I4 holds for backups as it does for stores). So if a backup is cut short,
//! the generations before it stay whole, and the next backup removes what it left.

mod copy;
mod generation;
mod restore;
mod take;
mod work;

use std::collections::BTreeSet;
use std::path::PathBuf;

use generation::{BackedUp, Generation};
use work::Work;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::opening::request::Request;
use crate::storage::{Disk, LogStore, Medium, StoreLock, TableStore};
use crate::sync::{Arc, Mutex};

/// The directory of the tables, in that of the backup.
const TABLES: &str = "tables";

/// A directory of backups of one store. Locked while this lives. If several threads work on the
/// files, they do so one at a time.
///
/// ```
/// # fn main() -> thermocline::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// use thermocline::{Backups, Db, Options};
/// let db = Db::open(Options::one_tier(dir.path().join("store")))?;
/// let backups = Backups::open(dir.path().join("backups"))?;
/// db.put("lake", "deep")?;
/// let first = backups.take(&db)?;
/// db.put("lake", "shallow")?;
/// // Only tables that are new are copied.
/// let second = backups.take(&db)?;
/// assert!(second.copied_tables < second.tables);
///
/// let restored = Options::one_tier(dir.path().join("restored"));
/// backups.restore(Some(first.generation), &restored)?;
/// assert_eq!(Db::open(restored)?.get("lake")?.as_deref(), Some(&b"deep"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Backups {
    pub(crate) path: PathBuf,
    log: Arc<dyn LogStore>,
    tables: Arc<dyn TableStore>,
    work: Mutex<Work>,
    /// None if nobody can write there.
    _lock: Option<Box<dyn StoreLock>>,
}

/// What a backup did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Its number.
    pub generation: u64,
    /// The store's writes up to this one are in it.
    pub through: SeqNo,
    /// Tables that it consists of.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Tables that no generation before it had whole.
    pub copied_tables: u64,
    /// Their bytes.
    pub copied_bytes: u64,
}

/// What a generation consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationInfo {
    /// Its number; higher is newer.
    pub generation: u64,
    /// The store's writes up to this one are in it.
    pub through: SeqNo,
    /// Tables that it consists of.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl GenerationInfo {
    fn of(generation: &Generation) -> Self {
        let lens = generation.tables.iter().map(|table| table.len);
        Self {
            generation: generation.number,
            through: generation.through,
            tables: generation.tables.len() as u64,
            // Lengths of a crafted file may come to anything.
            bytes: lens.fold(0, u64::saturating_add),
        }
    }
}

impl Backups {
    /// The backups in the directory `path` of the disk, which is created where it is missing.
    ///
    /// # Errors
    /// [`Error::Locked`] when somebody else works on it; I/O errors.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open_on(&Disk::default(), path)
    }

    /// As [`Backups::open`], on any medium.
    ///
    /// # Errors
    /// As [`Backups::open`].
    pub fn open_on(medium: &dyn Medium, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let log = medium.log_store(&path, true)?;
        let lock = log.lock()?;
        let tables = medium.table_store(&path.join(TABLES), true)?;
        Ok(Self::of(path, log, tables, Some(lock)))
    }

    /// Opens the backups that are in the directory `path` of the disk, to list, verify, restore or
    /// prune them. Makes nothing there but the file that is locked, and not even that on a file
    /// system that cannot be written to.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// let nothing = thermocline::Backups::open_existing(dir.path());
    /// assert!(matches!(nothing, Err(thermocline::Error::NoBackup { .. })));
    /// ```
    ///
    /// # Errors
    /// [`Error::NoBackup`] when the directory is missing or holds no backups; [`Error::Locked`]
    /// when somebody else works on it; I/O errors.
    pub fn open_existing(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open_existing_on(&Disk::default(), path)
    }

    /// As [`Backups::open_existing`], on any medium.
    ///
    /// # Errors
    /// As [`Backups::open_existing`].
    pub fn open_existing_on(medium: &dyn Medium, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let no_backup = |error| match error {
            Error::NotFound { .. } => Error::NoBackup { path: path.clone() },
            other => other,
        };
        let log = medium.log_store(&path, false).map_err(no_backup)?;
        // Before the lock: taking it would leave its file behind where there is no backup.
        let tables = medium.table_store(&path.join(TABLES), false);
        let tables = tables.map_err(no_backup)?;
        let lock = match log.lock() {
            Err(Error::NotWritable { owner: None, .. }) => None,
            lock => Some(lock?),
        };
        Ok(Self::of(path, log, tables, lock))
    }

    fn of(
        path: PathBuf,
        log: Arc<dyn LogStore>,
        tables: Arc<dyn TableStore>,
        lock: Option<Box<dyn StoreLock>>,
    ) -> Self {
        Self {
            path,
            log,
            tables,
            work: Mutex::default(),
            _lock: lock,
        }
    }

    /// The generations, oldest first.
    ///
    /// # Errors
    /// [`Error::Corruption`] where the file of one is damaged; [`Error::FormatVersion`]; I/O
    /// errors.
    pub fn generations(&self) -> Result<Vec<GenerationInfo>> {
        Ok(self.read_all()?.iter().map(GenerationInfo::of).collect())
    }

    /// The numbers of the generations, oldest first, whether their files can be read or not.
    ///
    /// # Errors
    /// I/O errors.
    pub fn numbers(&self) -> Result<Vec<u64>> {
        let files = self.log.list()?;
        let numbers = files
            .iter()
            .filter_map(|file| generation::number(&file.name));
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// What a generation consists of.
    ///
    /// # Errors
    /// [`Error::NoBackup`] without such a generation; [`Error::Corruption`] where its file is
    /// damaged; [`Error::FormatVersion`]; I/O errors.
    pub fn generation(&self, number: u64) -> Result<GenerationInfo> {
        Ok(GenerationInfo::of(&self.read_one(Some(number))?))
    }

    /// Backs up the store of `engine`.
    pub(crate) fn take_of(&self, engine: &Engine) -> Result<BackupReport> {
        let mut work = self.work.lock();
        work.check()?;
        self.take_from(engine, &mut work)
    }

    /// Makes a store of a generation, in the place that `request` names.
    pub(crate) fn restore_by(
        &self,
        generation: Option<u64>,
        request: &Request,
    ) -> Result<GenerationInfo> {
        let _work = self.work.lock();
        let generation = self.read_one(generation)?;
        restore::restore(self, &generation, request)?;
        Ok(GenerationInfo::of(&generation))
    }

    /// Reads every byte of a generation, the newest one unless another is asked for. Returns one
    /// error for each table that is damaged or cannot be read ([`Error::Io`]).
    ///
    /// # Errors
    /// [`Error::NoBackup`] without such a generation; [`Error::Corruption`] where its own file is
    /// damaged; [`Error::FormatVersion`]; I/O errors of its own file; [`Error::Limit`].
    pub fn verify(&self, generation: Option<u64>) -> Result<(GenerationInfo, Vec<Error>)> {
        let _work = self.work.lock();
        let generation = self.read_one(generation)?;
        let mut problems = Vec::new();
        for table in &generation.tables {
            match copy::check(&*self.tables, table) {
                // The device may refuse one table and have all others.
                Err(error @ (Error::Corruption { .. } | Error::Io { .. })) => problems.push(error),
                checked => checked?,
            }
        }
        Ok((GenerationInfo::of(&generation), problems))
    }

    /// Removes all generations but the newest `keep`, or the newest one where that is 0, and the
    /// tables that no other generation has. Returns the numbers of the removed generations.
    ///
    /// # Errors
    /// [`Error::Corruption`] where the file of a generation is damaged: then it is not known which
    /// tables it needs, and none is removed; I/O errors; [`Error::Poisoned`] as from
    /// [`Backups::take`].
    pub fn prune(&self, keep: usize) -> Result<Vec<u64>> {
        let mut work = self.work.lock();
        work.check()?;
        let all = self.read_all()?;
        let (old, kept) = all.split_at(all.len().saturating_sub(keep.max(1)));
        // First: a backup that found no room may have left files that take all of it.
        self.remove_unnamed(&all, &mut work)?;
        if !old.is_empty() {
            // No generation may be removed while those that are kept are only in the system's
            // cache: a sync of another handle may have failed (I9).
            for generation in kept {
                work.synced(generation.write(&*self.log))?;
            }
        }
        for generation in old {
            self.log.remove(&generation::file_name(generation.number))?;
        }
        self.remove_unnamed(kept, &mut work)?;
        Ok(old.iter().map(|generation| generation.number).collect())
    }

    fn read_all(&self) -> Result<Vec<Generation>> {
        let read = self.numbers()?.into_iter().filter_map(|number| {
            match Generation::read(&*self.log, number) {
                // It was pruned since the listing.
                Err(Error::NotFound { .. }) => None,
                read => Some(read),
            }
        });
        read.collect()
    }

    fn read_one(&self, number: Option<u64>) -> Result<Generation> {
        let mut numbers = self.numbers()?.into_iter();
        let found = match number {
            Some(wanted) => numbers.find(|number| *number == wanted),
            None => numbers.next_back(),
        };
        match found {
            Some(number) => Generation::read(&*self.log, number),
            None => Err(Error::NoBackup {
                path: number.map_or_else(
                    || self.path.clone(),
                    |n| self.path.join(generation::file_name(n)),
                ),
            }),
        }
    }

    /// Removes tables that none of `generations`, which are all that there are, names: those of
    /// pruned generations, and of a backup that was cut short.
    fn remove_unnamed(&self, generations: &[Generation], work: &mut Work) -> Result<()> {
        // Those that are gone must not come back with the power, now or after a prune that was cut
        // short (I4).
        work.synced(self.log.sync_dir())?;
        let tables = generations.iter().flat_map(|generation| &generation.tables);
        let named: BTreeSet<String> = tables.map(BackedUp::file_name).collect();
        for file in self.tables.list()? {
            if generation::is_table(&file.name) && !named.contains(&file.name) {
                self.tables.remove(&file.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    /// The lengths of a crafted generation were added up without a bound: listing two tables of
    /// 2^63 bytes panicked, or said 0 bytes.
    #[test]
    fn lengths_that_no_number_holds_are_listed() {
        let backups = Backups::open_on(&Memory::new(), "/backups").unwrap();
        let table = |id| BackedUp {
            id,
            tier: 0,
            len: 1 << 63,
            checksum: 0,
            content: 0,
        };
        let crafted = Generation {
            number: 1,
            database: 9,
            through: 1,
            tables: vec![table(1), table(2)],
            edits: Vec::new(),
        };
        crafted.write(&*backups.log).unwrap();
        let listed = backups.generations().unwrap();
        assert_eq!((listed.len(), listed[0].bytes), (1, u64::MAX));
    }
}
