//! A disk that loses power and fails: test support.

mod crash;
mod files;
mod handle;
mod image;
mod plan;
mod raw;
mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::StdRng;

pub use self::crash::CrashStyle;
use self::files::{Directory, InodeRef, device_gone};
pub use self::image::Unsynced;
use self::plan::Plan;
pub use self::plan::{Fault, Operation};
use self::store::{FaultyStore, Kind};
use super::{LogStore, Medium, TableStore};
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex, MutexGuard};

/// A disk in memory with a volatile cache. Its power can be cut, and its calls can be made to fail.
/// Clones share the disk. Everything random follows from the seed.
///
/// - A file's bytes are durable after its `sync`, its name is after its directory's `sync_dir`;
///   neither implies the other. Directories themselves are durable at once.
/// - [`Faulty::crash`] cuts the power and returns what a reboot finds.
/// - A sync that fails drops what it should have made durable: that stays readable until the crash,
///   but no later sync writes it. Kernels behave like this, and therefore I9 forbids trying again.
///
/// ```
/// use std::path::Path;
/// use thermocline::storage::{CrashStyle, Faulty, Medium};
/// let disk = Faulty::new(7);
/// let dir = Path::new("fast");
/// let logs = disk.log_store(dir, true)?;
/// let log = logs.create("1.wal")?;
/// logs.sync_dir()?;
/// log.append(b"kept ")?;
/// log.sync()?;
/// log.append(b"lost")?;
/// let disk = disk.crash(CrashStyle::LoseAll);
/// assert_eq!(disk.read_raw(dir, "1.wal")?, b"kept ");
/// assert!(log.append(b"!").is_err(), "the old device is gone");
/// # Ok::<(), thermocline::Error>(())
/// ```
#[derive(Clone)]
pub struct Faulty {
    state: Arc<Mutex<State>>,
}

/// The whole disk. Its lock is taken before an inode's.
struct State {
    /// Ordered, so that a crash draws its random numbers in the same order every time.
    directories: BTreeMap<PathBuf, Directory>,
    locked: Vec<(PathBuf, Kind)>,
    plan: Plan,
    rng: StdRng,
    /// The power was cut: every call fails.
    gone: bool,
}

/// Prints no files: their content belongs to the users.
impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faulty").finish_non_exhaustive()
    }
}

impl Faulty {
    /// An empty disk whose random choices follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self::with(State {
            directories: BTreeMap::new(),
            locked: Vec::new(),
            plan: Plan::default(),
            rng: StdRng::seed_from_u64(seed),
            gone: false,
        })
    }

    fn with(state: State) -> Self {
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Cuts the power and returns the disk as the next boot finds it, without planned faults;
    /// capacities stay. Handles to the old disk fail from now on, and its locks are free.
    #[must_use = "the disk after the crash is the returned one"]
    pub fn crash(&self, how: CrashStyle) -> Faulty {
        Self::with(crash::cut_power(&mut self.state.lock(), how))
    }

    /// Number of fallible calls so far: on files (create, append, truncate, sync, open, read) and
    /// on directories (list, rename, remove, link, sync). Opening a store and taking a lock are not
    /// counted. A test sweeps its faults over this range.
    pub fn calls(&self) -> u64 {
        self.state.lock().plan.calls()
    }

    /// Number of calls that have been made to fail so far.
    pub fn triggered(&self) -> u64 {
        self.state.lock().plan.triggered()
    }

    /// Makes the `n`-th call from now fail; 1 is the next. Nothing happens when `fault` does not
    /// apply to that call, as with [`Fault::NoSpace`] and a read.
    pub fn fail_nth(&self, n: u64, fault: Fault) {
        self.state.lock().plan.fail_nth(n, fault);
    }

    /// Makes the `n`-th call from now and every later one fail if `fault` applies to it; 1 is the
    /// next.
    pub fn fail_from(&self, n: u64, fault: Fault) {
        self.state.lock().plan.fail_from(n, fault);
    }

    /// Makes every call fail to which `fault` applies and whose operation and file name `matches`
    /// accepts. The name is empty for operations on a whole directory.
    ///
    /// ```
    /// use thermocline::storage::{Fault, Faulty, Operation};
    /// Faulty::new(1).fail_where(
    ///     |operation, name| operation == Operation::Sync && name.ends_with(".wal"),
    ///     Fault::SyncFails,
    /// );
    /// ```
    pub fn fail_where(
        &self,
        matches: impl Fn(Operation, &str) -> bool + Send + Sync + 'static,
        fault: Fault,
    ) {
        self.state.lock().plan.fail_where(Box::new(matches), fault);
    }

    /// Removes all planned faults. Capacities stay, and what a failed sync lost stays lost.
    pub fn heal(&self) {
        self.state.lock().plan.heal();
    }

    /// Limits the files of `dir` to `bytes` in all. An append past that writes what fits and then
    /// fails for lack of space. The limit may be raised and lowered at any time.
    pub fn capacity(&self, dir: &Path, bytes: u64) {
        let mut state = self.state.lock();
        state.directory_or_new(dir).capacity = bytes;
    }

    fn store(&self, dir: &Path, create: bool, kind: Kind) -> Result<FaultyStore> {
        let mut state = self.state.lock();
        if state.gone {
            return Err(device_gone("open directory", dir));
        }
        if create {
            state.directory_or_new(dir);
        } else if !state.directories.contains_key(dir) {
            let path = dir.to_path_buf();
            return Err(Error::NotFound { path });
        }
        Ok(FaultyStore::new(self.clone(), dir, kind))
    }
}

impl Medium for Faulty {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        Ok(Arc::new(self.store(dir, create, Kind::Log)?))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        Ok(Arc::new(self.store(dir, create, Kind::Table)?))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        let mut state = self.call(Operation::Remove, dir, "")?;
        let found = state.directories.get(dir);
        if found.is_some_and(|directory| directory.entries().is_empty()) {
            state.directories.remove(dir);
        }
        Ok(())
    }
}

impl Faulty {
    /// Counts a call and takes the disk's state for it. Fails when the device is gone; a fault that
    /// hits the call is returned for the caller to handle.
    fn begin(
        &self,
        operation: Operation,
        path: &Path,
        name: &str,
    ) -> Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = self.state.lock();
        if state.gone {
            return Err(device_gone(operation.verb(), path));
        }
        let fault = state.plan.next(operation, name);
        if fault == Some(Fault::PowerLoss) {
            state.gone = true;
            return Err(device_gone(operation.verb(), path));
        }
        Ok((state, fault))
    }

    /// As [`Faulty::begin`], for calls that do nothing at all when a fault hits them.
    fn call(&self, operation: Operation, path: &Path, name: &str) -> Result<MutexGuard<'_, State>> {
        match self.begin(operation, path, name)? {
            (state, None) => Ok(state),
            (_, Some(fault)) => Err(fault.error(operation, path)),
        }
    }

    fn sync_directory(&self, dir: &Path) -> Result<()> {
        let (mut state, fault) = self.begin(Operation::SyncDir, dir, "")?;
        let directory = state.directory_or_new(dir);
        match fault {
            None => {
                directory.sync();
                Ok(())
            }
            Some(fault) => {
                directory.lose_unsynced();
                Err(fault.error(Operation::SyncDir, dir))
            }
        }
    }
}

impl State {
    fn directory_or_new(&mut self, dir: &Path) -> &mut Directory {
        self.directories.entry(dir.to_path_buf()).or_default()
    }

    /// The file of that name, as a running process sees it.
    fn file(&self, dir: &Path, name: &str) -> Result<InodeRef> {
        let found = self.directories.get(dir).and_then(|d| d.find(name));
        found.cloned().ok_or_else(|| Error::NotFound {
            path: dir.join(name),
        })
    }
}
