//! A store made of a generation.

use super::generation::Generation;
use super::{Backups, copy};
use crate::db::DbBuilder;
use crate::db::Shape;
use crate::db::open::open_tiers;
use crate::error::{Error, Result};
use crate::sync::Arc;
use crate::tier::{Purpose, Tier};
use crate::version::edit::table_file_name;
use crate::version::{Manifest, identity};

/// Copies the tables of `generation`, then writes the manifest and puts it in force: before that there is
/// no store.
pub(super) fn restore(
    backups: &Backups,
    generation: &Generation,
    builder: &DbBuilder,
) -> Result<()> {
    builder.options.resolve()?;
    let (tiers, _locks) = open_tiers(builder, true)?;
    for tier in &tiers {
        check_empty(tier)?;
    }
    for table in &generation.tables {
        let Some(tier) = tiers.get(usize::from(table.tier)) else {
            let needed = table.tier + 1;
            return Err(Error::InvalidOption {
                option: "tiers",
                reason: format!(
                    "the backup has tables on {needed} tiers, {} given",
                    tiers.len()
                ),
            });
        };
        let name = table_file_name(table.id);
        let mut writer = tier.create(&name, table.len, Purpose::Maintenance)?;
        // A table that turns out not to be what was backed up is not finished, and so removed.
        copy::checked(&*backups.tables, table, &mut |piece| writer.append(piece))?;
        writer.finish()?;
    }
    for tier in &tiers {
        identity::write(tier, generation.database)?;
    }
    let path = backups
        .path
        .join(super::generation::file_name(generation.number));
    let shape = Shape::from_edits(generation.edits.clone());
    let shape = shape.map_err(|misfit| Error::corruption(path, 0, misfit.what))?;
    Manifest::create(
        Arc::clone(&tiers[0]),
        generation.database,
        shape.next_file,
        &generation.edits,
        builder.points.clone(),
    )?;
    Ok(())
}

/// A store's own files, or those of another, must not be mixed with what is restored.
fn check_empty(tier: &Tier) -> Result<()> {
    let mut files = tier.tables.list()?;
    if let Some(log) = &tier.log {
        files.extend(log.list()?);
    }
    match files
        .iter()
        .find(|file| !file.name.starts_with("LOCK") && !file.name.starts_with("DIRECT-IO"))
    {
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
