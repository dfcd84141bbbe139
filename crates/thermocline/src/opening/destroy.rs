//! Removing a store.

use super::founding::check_first_is_there;
use super::open::{check_tier_count, open_tiers};
use super::{Shape, unfinished};
use crate::cache::discard_flash;
use crate::error::{Error, Result};
use crate::ids::{FileId, table_number};
use crate::opening::request::Request;
use crate::placement::{check_not_alone, discard};
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::tier::{Tier, copy_number};
use crate::version::{
    CURRENT, CURRENT_TEMPORARY, Manifest, current_manifest, identity, manifest_file_name,
    manifest_number,
};
use crate::wal::{is_temporary, log_store, segment_number};

/// Removes the store's own files, in this order:
///
/// - `CURRENT` goes first, so a crash on the way leaves no store that names files that are gone.
/// - The manifests go after the tables of all tiers but the first, and before any `TIER`. As long
///   as a manifest is there, it tells which tiers have to be named, and one of them without a
///   `TIER` is a device that is not mounted.
/// - `TIER` goes last from each tier, so that what is left can be told and removed. From the first
///   tier it goes when no other has one any more: without it a device that is not mounted would
///   look like a tier that a destruction has come to.
pub(crate) fn destroy(request: &Request) -> Result<()> {
    request.options.validate()?;
    let (tiers, locks) = open_tiers(request, false)?;
    let first = &tiers[0];
    let may_say_so = if request.has_given_up(0) {
        tiers.len()
    } else {
        1
    };
    if unfinished::is_there(first, &tiers[..may_say_so])? {
        unfinished::check_all_are_marked(&tiers, |tier| request.has_given_up(tier))?;
        return unfinished::clear(&*request.medium_of(0), &tiers);
    }
    let log = log_store(first)?;
    let was_begun = match current_manifest(&*log) {
        // A damaged `CURRENT` is there all the same.
        Err(Error::Corruption { .. }) => false,
        current => current?.is_none(),
    };
    let manifests = manifests(&*log)?;
    let database = match was_begun {
        true => database_of_the_rest(request, &tiers, &*log, &manifests)?,
        false => database(request, &tiers)?,
    };
    let has_come_to_identities = was_begun && manifests.is_empty();
    for tier in &tiers {
        let may_lack_it = has_come_to_identities || request.has_given_up(tier.index);
        if may_lack_it && identity::is_missing(tier)? {
            continue;
        }
        identity::check(tier, database)?;
    }
    // The marks go before `CURRENT`: without it they would say that only a part of a store is
    // there.
    unfinished::finish(&tiers)?;
    remove_log(&*log)?;
    for tier in &tiers[1..] {
        // A tier without a `TIER` is one that a destruction has come to: what is there is not the
        // store's.
        if !identity::is_missing(tier)? {
            remove_tables(tier)?;
        }
    }
    for number in manifests {
        log.remove(&manifest_file_name(number))?;
    }
    // Synced in any case: an earlier destruction may have removed manifests and been cut short
    // here.
    log.sync_dir()?;
    for tier in &tiers[1..] {
        tier.tables.remove(identity::NAME)?;
        // In any case, too.
        tier.sync_names(|| tier.tables.sync_dir())?;
    }
    // Only now: without a manifest nothing else tells that there are others.
    discard(&*request.medium_of(0), first)?;
    discard_flash(&first.options.path)?;
    remove_tables(first)?;
    first.tables.remove(identity::NAME)?;
    drop(locks);
    Ok(())
}

/// Removes tables, copies, and what the replacement of a `TIER` has left; durable on return.
fn remove_tables(tier: &Tier) -> Result<()> {
    for file in tier.tables.list()? {
        let numbered = table_number(&file.name).or(copy_number(&file.name));
        if numbered.is_some() || identity::is_left_over(&file.name) {
            tier.tables.remove(&file.name)?;
        }
    }
    tier.sync_names(|| tier.tables.sync_dir())
}

/// The manifests that are there.
fn manifests(log: &dyn LogStore) -> Result<Vec<FileId>> {
    let files = log.list()?;
    let numbers = files.iter().filter_map(|file| manifest_number(&file.name));
    Ok(numbers.collect())
}

/// Which store it is; if the manifest is damaged, the first tier says so. Refuses if tiers are left
/// out, as far as anything tells.
fn database(request: &Request, tiers: &[Arc<Tier>]) -> Result<u128> {
    match Manifest::recover(&tiers[0]) {
        Ok(Some(found)) => {
            match Shape::from_edits(found.edits) {
                Ok(shape) => check_tier_count(&shape, tiers.len())?,
                Err(_) => check_not_alone(&request.options, &*request.medium_of(0))?,
            }
            Ok(found.database)
        }
        Ok(None) => Err(Error::NotFound {
            path: tiers[0].options.path.clone(),
        }),
        Err(damage @ Error::Corruption { .. }) => match identity::database(&tiers[0])? {
            Some(database) => {
                check_not_alone(&request.options, &*request.medium_of(0)).map(|()| database)
            }
            None => Err(damage),
        },
        Err(error) => Err(error),
    }
}

/// As [`database`], where a destruction was begun or `CURRENT` is lost: the tiers that no
/// destruction has come to say which store it is.
fn database_of_the_rest(
    request: &Request,
    tiers: &[Arc<Tier>],
    log: &dyn LogStore,
    manifests: &[FileId],
) -> Result<u128> {
    if !request.has_given_up(0) {
        check_first_is_there(tiers)?;
    }
    check_not_alone(&request.options, &*request.medium_of(0))?;
    for number in manifests {
        match Manifest::read(&tiers[0], log, *number) {
            // Any of them may have been in force.
            Ok(found) => {
                if let Ok(shape) = Shape::from_edits(found.edits) {
                    check_tier_count(&shape, tiers.len())?;
                }
            }
            Err(Error::Corruption { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    for tier in tiers {
        if let Some(database) = identity::database(tier)? {
            return Ok(database);
        }
    }
    database(request, tiers)
}

/// Removes `CURRENT`, durably, then the segments and the temporary files.
fn remove_log(log: &dyn LogStore) -> Result<()> {
    log.remove(CURRENT)?;
    log.sync_dir()?;
    let is_own = |name: &str| {
        segment_number(name).is_some() || is_temporary(name) || name == CURRENT_TEMPORARY
    };
    for file in log.list()? {
        if is_own(&file.name) {
            log.remove(&file.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
