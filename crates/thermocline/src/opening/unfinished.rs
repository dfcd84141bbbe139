//! The mark of a store that a restore or a checkpoint is making.
//!
//! The mark is put into every tier's directory, durably, before anything else is, and into the
//! first tier's before all others. It is removed once `CURRENT` is durable, from the first tier
//! last. So where a tier is marked and there is no `CURRENT`, the files are a part of a store that
//! was being made, not the rest of one that was whole: nobody repairs it, and a new attempt may
//! remove it. Where there is a `CURRENT`, everything that it names was durable before it, and the
//! mark no longer says anything. `docs/format.md` has the argument.

use std::path::Path;

use crate::error::{Error, Result};
use crate::ids::table_number;
use crate::metrics::Purpose;
use crate::placement::discard;
use crate::storage::{LogStore, Medium, is_of_directory};
use crate::sync::Arc;
use crate::tier::{Tier, copy_number};
use crate::version::{CURRENT, CURRENT_TEMPORARY, identity, manifest_file_name, manifest_number};
use crate::wal::{log_store, segment_number};

/// The mark's name in the tier's directory.
const NAME: &str = "UNFINISHED";

/// What makes a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Making {
    Restore,
    Checkpoint,
}

impl Making {
    fn word(self) -> &'static str {
        match self {
            Making::Restore => "restore",
            Making::Checkpoint => "checkpoint",
        }
    }
}

/// Marks all tiers, which are empty. Durable on return.
///
/// # Errors
/// I/O errors.
pub(crate) fn begin(tiers: &[Arc<Tier>], making: Making) -> Result<()> {
    for tier in tiers {
        let word = making.word().as_bytes();
        let mut mark = tier.create(NAME, word.len() as u64, Purpose::Manifest)?;
        mark.append(word)?;
        mark.finish()?;
    }
    Ok(())
}

/// Removes the marks of a store whose `CURRENT` is durable.
///
/// # Errors
/// I/O errors; [`Error::Poisoned`].
pub(crate) fn finish(tiers: &[Arc<Tier>]) -> Result<()> {
    // The first tier's mark goes last: a tier that is marked while the first is not does not belong
    // to the first one's store.
    for tier in tiers.iter().rev() {
        if is_marked(tier)? {
            tier.tables.remove(NAME)?;
            tier.sync_names(|| tier.tables.sync_dir())?;
        }
    }
    Ok(())
}

/// Refuses a store that is being made, as a mark on one of the tiers `marked` tells: the store's
/// first tier, or all its tiers.
///
/// # Errors
/// [`Error::Unfinished`]; I/O errors.
pub(crate) fn refuse(first: &Tier, marked: &[Arc<Tier>]) -> Result<()> {
    if was_finished(first)? {
        return Ok(());
    }
    for tier in marked {
        if is_marked(tier)? {
            return Err(Error::Unfinished {
                what: what(tier)?,
                path: tier.tables.path().to_path_buf(),
            });
        }
    }
    Ok(())
}

/// Whether the files are a part of a store that was being made, as a mark on one of the tiers
/// `marked` tells.
///
/// # Errors
/// I/O errors.
pub(crate) fn is_there(first: &Tier, marked: &[Arc<Tier>]) -> Result<bool> {
    match refuse(first, marked) {
        Err(Error::Unfinished { .. }) => Ok(true),
        other => other.map(|()| false),
    }
}

/// Refuses a later tier that is not marked, unless it `is_given_up`. That is checked only if the
/// first tier has more than its mark: by then all tiers are marked.
///
/// # Errors
/// [`Error::WrongTier`]; I/O errors.
pub(crate) fn check_all_are_marked(
    tiers: &[Arc<Tier>],
    is_given_up: impl Fn(u8) -> bool,
) -> Result<()> {
    if identity::is_missing(&tiers[0])? {
        return Ok(());
    }
    for tier in &tiers[1..] {
        if !is_given_up(tier.index) && !is_marked(tier)? {
            return Err(Error::WrongTier {
                tier: usize::from(tier.index),
                path: tier.tables.path().to_path_buf(),
                problem: format!(
                    "nothing is here of what was begun at {}; check that the device is mounted and the path is right",
                    tiers[0].options.path.display()
                ),
            });
        }
    }
    Ok(())
}

/// Removes from the marked tiers what an unfinished restore or checkpoint has made of a store.
/// `fast` is the medium of the first tier.
///
/// The first tier's mark stays until everything else is gone, even if the removal is cut short.
///
/// # Errors
/// I/O errors; [`Error::Poisoned`].
pub(crate) fn clear(fast: &dyn Medium, tiers: &[Arc<Tier>]) -> Result<()> {
    let mut marked = Vec::new();
    for tier in tiers {
        if is_marked(tier)? {
            marked.push(tier);
        }
    }
    for tier in &marked {
        if let Some(log) = &tier.log {
            discard(fast, tier)?;
            remove_manifests(&**log)?;
        }
        for file in tier.tables.list()? {
            let numbered = table_number(&file.name).or(copy_number(&file.name));
            if numbered.is_some() || identity::is_left_over(&file.name) {
                tier.tables.remove(&file.name)?;
            }
        }
        tier.sync_names(|| tier.tables.sync_dir())?;
    }
    for tier in marked.iter().rev() {
        tier.tables.remove(identity::NAME)?;
        tier.sync_names(|| tier.tables.sync_dir())?;
    }
    finish(tiers)
}

/// Empties the tiers if they hold a part of a store, and refuses them if they hold anything else.
/// `option` is the option that named them.
///
/// # Errors
/// [`Error::InvalidOption`] naming a file; I/O errors.
pub(crate) fn make_way(fast: &dyn Medium, tiers: &[Arc<Tier>], option: &'static str) -> Result<()> {
    if is_there(&tiers[0], &tiers[..1])? {
        clear(fast, tiers)?;
    }
    tiers.iter().try_for_each(|tier| check_empty(tier, option))
}

/// Refuses a tier that is not empty: a store's own files, or those of another, must not be mixed
/// with what is made. The locks that a destroyed store leaves do not count.
///
/// # Errors
/// As [`make_way`].
pub(crate) fn check_empty(tier: &Tier, option: &'static str) -> Result<()> {
    let mut files = tier.tables.list()?;
    if let Some(log) = &tier.log {
        files.extend(log.list()?);
    }
    match files.iter().find(|file| !is_of_directory(&file.name)) {
        None => Ok(()),
        Some(file) => Err(not_empty(&tier.options.path, &file.name, option)),
    }
}

/// The error for a directory that should be empty but holds `file`.
pub(crate) fn not_empty(dir: &Path, file: &str, option: &'static str) -> Error {
    Error::InvalidOption {
        option,
        reason: format!(
            "{} is not empty: {file} is there; choose an empty or new directory",
            dir.display()
        ),
    }
}

/// Whether the tier is marked. The content of the mark does not matter: a crash may have taken it.
///
/// # Errors
/// I/O errors.
pub(crate) fn is_marked(tier: &Tier) -> Result<bool> {
    match tier.tables.open(NAME) {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What was begun on a marked tier.
fn what(tier: &Tier) -> Result<&'static str> {
    let mark = tier.tables.open(NAME)?;
    let len = mark.len().min(Making::Checkpoint.word().len() as u64);
    let said = mark.read(0, len as usize)?;
    let words = [Making::Restore, Making::Checkpoint].map(Making::word);
    let known = words.into_iter().find(|word| word.as_bytes() == &said[..]);
    Ok(known.unwrap_or("restore or checkpoint"))
}

/// Whether there is a `CURRENT`, or was one. A log tells that there was: only an opening begins a
/// log, after `CURRENT` is there and the marks are gone. So a mark that is back after a failed sync
/// does no harm to a store that has lost its `CURRENT` since.
fn was_finished(first: &Tier) -> Result<bool> {
    let files = log_store(first)?.list()?;
    let is_of_store = |name: &str| name == CURRENT || segment_number(name).is_some();
    Ok(files.iter().any(|file| is_of_store(&file.name)))
}

fn remove_manifests(log: &dyn LogStore) -> Result<()> {
    log.remove(CURRENT_TEMPORARY)?;
    for file in log.list()? {
        if let Some(number) = manifest_number(&file.name) {
            log.remove(&manifest_file_name(number))?;
        }
    }
    log.sync_dir()
}
