//! Checkpoints: a second store that shares the tables of the first.

use std::path::{Path, PathBuf};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::opening::open::Locks;
use crate::opening::unfinished::{self, Making};
use crate::options::{dir_conflict, ralt_dir};
use crate::points::point;
use crate::storage::{FileInfo, Medium, is_one_dir};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::tier::Tier;
use crate::version::edit::VersionEdit;
use crate::version::{Manifest, Version, identity};

/// Keeps memtables from freezing while it lives.
struct HoldFreezes<'a>(&'a Engine);

impl<'a> HoldFreezes<'a> {
    /// Freezes all memtables at one sequence number, and lets none freeze after that, not even for
    /// a flush that a user asks for. Such a flush could bring one keyspace's part of a later batch
    /// into tables and not another's.
    fn after_freezing_all(engine: &'a Engine) -> Result<(Self, SeqNo)> {
        let holds = &engine.commit.freeze_holds;
        let through = engine.freeze_all_then(|| {
            holds.fetch_add(1, Ordering::Relaxed);
        })?;
        Ok((Self(engine), through))
    }
}

impl Drop for HoldFreezes<'_> {
    fn drop(&mut self) {
        self.0.commit.freeze_holds.fetch_sub(1, Ordering::Relaxed);
        self.0.executor.notify();
    }
}

/// The writes through a sequence number, as edits and the versions that hold their tables. It pins
/// nothing else: what is only in memory would stay there for as long as tables are copied (I8).
pub(crate) type Pinned = (SeqNo, Vec<VersionEdit>, Vec<Arc<Version>>);

impl Engine {
    /// Brings everything through one sequence number into tables, which stay as long as the caller
    /// holds what is returned.
    ///
    /// All memtables freeze at that number and are flushed, and none freezes until the versions are
    /// pinned. So the tables hold all keyspaces through that number, and no log is needed beside
    /// them.
    pub(crate) fn pin_all(&self) -> Result<Pinned> {
        self.check_writable()?;
        let (hold, through) = HoldFreezes::after_freezing_all(self)?;
        point!(self.points, "checkpoint.frozen")?;
        self.flush_frozen(through)?;
        point!(self.points, "checkpoint.flushed")?;
        // The manifest's lock: edits and versions are of one moment.
        let manifest = self.files.manifest.lock();
        let edits = self.snapshot_edits();
        let versions = self.all_trees().into_iter();
        let pinned = versions.map(|tree| tree.version()).collect();
        drop(manifest);
        drop(hold);
        Ok((through, edits, pinned))
    }

    /// Links the tables of one moment into a second store, or copies them. Copying to another file
    /// system may take long, but neither readers nor writers wait for it.
    pub(crate) fn checkpoint(&self, paths: &[PathBuf]) -> Result<()> {
        self.check_writable()?;
        let (targets, _locks) = self.open_targets(paths)?;
        let (_, mut edits, pinned) = self.pin_all()?;
        unfinished::begin(&targets, Making::Checkpoint)?;
        point!(self.points, "checkpoint.begun")?;
        for (target, tier) in targets.iter().zip(&self.tiers) {
            let tables = edits.iter().flat_map(|edit| &edit.added);
            for table in tables.filter(|table| table.tier == tier.index) {
                tier.tables.link(&table.file_name(), target.tables.path())?;
            }
            point!(self.points, "checkpoint.linked")?;
            target.tables.sync_dir()?;
            identity::write(target, self.identity.database)?;
            point!(self.points, "checkpoint.identified")?;
        }
        drop(pinned);
        let placed_by = self.placement.copy_to(self, &targets[0]);
        if let Some(first) = edits.first_mut() {
            first.placed_by = placed_by;
        }
        point!(self.points, "checkpoint.before_manifest")?;
        // CURRENT comes last: before it there is no store.
        let fast = Arc::clone(&targets[0]);
        Manifest::create(
            fast,
            self.identity.database,
            self.new_file(),
            &edits,
            self.points.clone(),
        )?;
        unfinished::finish(&targets)
    }

    /// The tiers of the copy, empty and locked. Without the lock another caller that begins there
    /// would remove what is being made.
    fn open_targets(&self, paths: &[PathBuf]) -> Result<(Vec<Arc<Tier>>, Locks)> {
        let invalid = |reason| Error::InvalidOption {
            option: OPTION,
            reason,
        };
        if paths.len() != self.tiers.len() {
            let tiers = self.tiers.len();
            let reason = format!("{} given, the store has {tiers} tiers", paths.len());
            return Err(invalid(reason));
        }
        for (index, path) in paths.iter().enumerate() {
            if let Some(reason) = dir_conflict(path, &paths[..index], |a, b| a == b) {
                return Err(invalid(reason));
            }
        }
        let mut targets = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let mut options = self.tiers[index].options.clone();
            options.path.clone_from(path);
            let medium = &self.media[index];
            let log = match index {
                0 => Some(medium.log_store(path, true)?),
                _ => None,
            };
            let tables = medium.table_store(path, true)?;
            // Another name for a directory can be recognised only once the directory is there.
            if let Some(reason) = dir_conflict(path, &paths[..index], is_one_dir) {
                return Err(invalid(reason));
            }
            targets.push(Arc::new(Tier::new(index as u8, options, tables, log)));
        }
        let fast = &*self.media[0];
        if !unfinished::is_there(&targets[0], &targets[..1])? {
            // A directory that holds another store, or this one, is refused as such, and not as
            // locked.
            check_empty(fast, &targets)?;
        }
        let mut locks = Vec::new();
        for target in &targets {
            if let Some(log) = &target.log {
                locks.push(log.lock()?);
            }
            locks.push(target.tables.lock()?);
        }
        unfinished::make_way(fast, &targets, OPTION)?;
        check_empty(fast, &targets)?;
        Ok((targets, locks))
    }
}

/// The option that names the directories.
const OPTION: &str = "checkpoint paths";

/// Refuses targets that hold files, and a first one that holds access records.
fn check_empty(fast: &dyn Medium, targets: &[Arc<Tier>]) -> Result<()> {
    for target in targets {
        unfinished::check_empty(target, OPTION)?;
    }
    let dir = ralt_dir(&targets[0].options.path);
    match list(fast, &dir)?.first() {
        None => Ok(()),
        Some(file) => Err(unfinished::not_empty(&dir, &file.name, OPTION)),
    }
}

/// The files in `dir`, which need not exist.
fn list(medium: &dyn Medium, dir: &Path) -> Result<Vec<FileInfo>> {
    match medium.log_store(dir, false) {
        Err(Error::NotFound { .. }) => Ok(Vec::new()),
        store => store?.list(),
    }
}
