//! A store made of a generation.

use std::collections::BTreeMap;

use super::generation::Generation;
use super::{Backups, copy};
use crate::error::{Damaged, Error, Result};
use crate::ids::table_file_name;
use crate::metrics::Purpose;
use crate::opening::Shape;
use crate::opening::more_tiers::place;
use crate::opening::open::{check_tier_count, open_tiers};
use crate::opening::request::Request;
use crate::opening::unfinished::{self, Making};
use crate::options::{Options, Resolved};
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::{Manifest, identity};

/// Copies the tables of `generation`, then writes the manifest and puts it in force: before that
/// there is no store.
pub(super) fn restore(backups: &Backups, generation: &Generation, request: &Request) -> Result<()> {
    request.check_tiers()?;
    let sizes = request.options.resolve()?;
    check_tiers(generation, request.options.tiers.len())?;
    let generation = &placed(generation, &request.options, &sizes);
    let path = backups
        .path
        .join(super::generation::file_name(generation.number));
    let shape = Shape::from_edits(generation.edits.clone());
    let shape = shape.map_err(|misfit| {
        let error = Error::corruption(path, 0, misfit.what);
        error.of(Damaged::Backup)
    })?;
    // Otherwise nothing would open what is restored.
    check_tier_count(&shape, request.options.tiers.len())?;
    let (tiers, _locks) = open_tiers(request, true)?;
    let fast = request.medium_of(0);
    unfinished::make_way(&*fast, &tiers, "restore paths")?;
    copy_tables(backups, generation, &tiers).inspect_err(|_| {
        let _ = unfinished::clear(&*fast, &tiers);
    })?;
    Manifest::create(
        Arc::clone(&tiers[0]),
        generation.database,
        shape.next_file,
        &generation.edits,
        request.points.clone(),
    )
    .inspect_err(|error| {
        // With a poisoning error the manifest may be in force.
        if !matches!(error, Error::Poisoned { .. }) {
            let _ = unfinished::clear(&*fast, &tiers);
        }
    })?;
    unfinished::finish(&tiers)
}

/// `generation` with its tables on the tiers where they are to lie: that of one tier is divided
/// among more.
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

/// Refuses a restore that could not be finished, before it begins.
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

/// Fills the tiers, after marking them as a part of a store.
fn copy_tables(backups: &Backups, generation: &Generation, tiers: &[Arc<Tier>]) -> Result<()> {
    unfinished::begin(tiers, Making::Restore)?;
    for tier in tiers {
        identity::write(tier, generation.database)?;
    }
    for table in &generation.tables {
        let tier = &tiers[usize::from(table.tier)];
        let name = table_file_name(table.id);
        let mut writer = tier.create(&name, table.len, Purpose::Maintenance)?;
        // A table that turns out not to be what was backed up is not finished, and so it is
        // removed.
        copy::checked(&*backups.tables, table, &mut |piece| writer.append(piece))?;
        writer.finish()?;
    }
    Ok(())
}
