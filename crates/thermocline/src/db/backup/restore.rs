//! A store made of a generation.

use std::collections::BTreeMap;

use super::generation::Generation;
use super::{Backups, copy};
use crate::db::DbBuilder;
use crate::db::Shape;
use crate::db::more_tiers::place;
use crate::db::open::{check_tier_count, open_tiers};
use crate::error::{Damaged, Error, Result};
use crate::options::{Options, Resolved};
use crate::storage::is_of_directory;
use crate::sync::Arc;
use crate::tier::{Purpose, Tier};
use crate::version::edit::table_file_name;
use crate::version::{CURRENT_TEMPORARY, Manifest, identity};
use crate::wal::log_store;

/// Copies the tables of `generation`, then writes the manifest and puts it in force: before that there is
/// no store.
pub(super) fn restore(
    backups: &Backups,
    generation: &Generation,
    builder: &DbBuilder,
) -> Result<()> {
    builder.check_tiers()?;
    let sizes = builder.options.resolve()?;
    check_tiers(generation, builder.options.tiers.len())?;
    let generation = &placed(generation, &builder.options, &sizes);
    let path = backups
        .path
        .join(super::generation::file_name(generation.number));
    let shape = Shape::from_edits(generation.edits.clone());
    let shape = shape.map_err(|misfit| {
        let error = Error::corruption(path, 0, misfit.what);
        error.of(Damaged::Backup)
    })?;
    // Else nothing would open what is restored.
    check_tier_count(&shape, builder.options.tiers.len())?;
    let (tiers, _locks) = open_tiers(builder, true)?;
    for tier in &tiers {
        check_empty(tier)?;
    }
    copy_tables(backups, generation, &tiers).inspect_err(|_| {
        let _ = clear(generation, &tiers);
    })?;
    Manifest::create(
        Arc::clone(&tiers[0]),
        generation.database,
        shape.next_file,
        &generation.edits,
        builder.points.clone(),
    )
    .inspect_err(|error| {
        // Else it may be in force.
        if !matches!(error, Error::Poisoned { .. }) {
            // With a manifest there a destruction takes a tier without a `TIER` for one that is not mounted.
            let log = log_store(&tiers[0]);
            let is_gone = log.and_then(|log| tiers[0].sync_names(|| log.sync_dir()));
            let _ = is_gone.and_then(|()| clear(generation, &tiers));
        }
    })?;
    Ok(())
}

/// `generation` with its tables on the tiers where they are to lie: that of one tier is divided among more.
fn placed(generation: &Generation, options: &Options, sizes: &Resolved) -> Generation {
    let mut generation = generation.clone();
    place(&mut generation.edits, options, sizes);
    let added = generation.edits.iter().flat_map(|edit| &edit.added);
    let tiers: BTreeMap<_, _> = added.map(|table| (table.id, table.tier)).collect();
    for table in &mut generation.tables {
        table.tier = tiers.get(&table.id).copied().unwrap_or(table.tier);
    }
    generation
}

/// Refuses a restore that could not be finished before it has begun.
fn check_tiers(generation: &Generation, tiers: usize) -> Result<()> {
    let needed = generation.tables.iter().map(|table| table.tier);
    let needed = needed.max().map_or(0, |tier| usize::from(tier) + 1);
    if needed > tiers {
        return Err(Error::InvalidOption {
            option: "tiers",
            reason: format!("the backup has tables on {needed} tiers, {tiers} given"),
        });
    }
    Ok(())
}

/// Fills the tiers. Whose they are comes first: what a crash leaves can then be destroyed.
fn copy_tables(backups: &Backups, generation: &Generation, tiers: &[Arc<Tier>]) -> Result<()> {
    for tier in tiers {
        identity::write(tier, generation.database)?;
    }
    for table in &generation.tables {
        let tier = &tiers[usize::from(table.tier)];
        let name = table_file_name(table.id);
        let mut writer = tier.create(&name, table.len, Purpose::Maintenance)?;
        // A table that turns out not to be what was backed up is not finished, and so removed.
        copy::checked(&*backups.tables, table, &mut |piece| writer.append(piece))?;
        writer.finish()?;
    }
    Ok(())
}

/// Removes what a restore into empty tiers has written, so that it can be repeated. What cannot be removed
/// the next attempt finds there, and says so; it can be destroyed.
fn clear(generation: &Generation, tiers: &[Arc<Tier>]) -> Result<()> {
    let mut cleared = Ok(());
    for table in &generation.tables {
        let tier = &tiers[usize::from(table.tier)];
        cleared = cleared.and(tier.tables.remove(&table_file_name(table.id)));
    }
    if let Some(log) = &tiers[0].log {
        cleared = cleared.and(log.remove(CURRENT_TEMPORARY));
    }
    // Last, and the first tier's last of all, as in a destruction: where something stays, it is still known whose it is.
    cleared?;
    for tier in &tiers[1..] {
        tier.tables.remove(identity::NAME)?;
        tier.sync_names(|| tier.tables.sync_dir())?;
    }
    tiers[0].tables.remove(identity::NAME)
}

/// A store's own files, or those of another, must not be mixed with what is restored.
fn check_empty(tier: &Tier) -> Result<()> {
    let mut files = tier.tables.list()?;
    if let Some(log) = &tier.log {
        files.extend(log.list()?);
    }
    match files.iter().find(|file| !is_of_directory(&file.name)) {
        None => Ok(()),
        Some(file) => Err(Error::InvalidOption {
            option: "restore paths",
            reason: format!(
                "{} is not empty: {} is there; choose an empty or new directory",
                tier.options.path.display(),
                file.name
            ),
        }),
    }
}
