//! Where files go that are not used any more and may be all that is left of something.

use std::path::PathBuf;

use super::builder::DbBuilder;
use crate::error::Result;
use crate::sync::Arc;
use crate::tier::Tier;

/// In the directory of their tier.
pub(super) const LOST: &str = "lost";

/// Gives `tables`, each with the number of its tier, a second name, or a copy, in the directory [`LOST`]; durable on return.
/// The names that they have there come back.
///
/// # Errors
/// I/O errors.
pub(super) fn set_aside(
    builder: &DbBuilder,
    tiers: &[Arc<Tier>],
    tables: &[(usize, String)],
) -> Result<Vec<PathBuf>> {
    let mut set_aside = Vec::new();
    for (index, tier) in tiers.iter().enumerate() {
        let of_tier = tables.iter().filter(|(tier, _)| *tier == index);
        let names: Vec<&String> = of_tier.map(|(_, name)| name).collect();
        if names.is_empty() {
            continue;
        }
        let dir = tier.options.path.join(LOST);
        let to = builder.medium_of(index).table_store(&dir, true)?;
        let there: Vec<String> = to.list()?.into_iter().map(|file| file.name).collect();
        for name in names {
            // One that was cut short has put it there.
            if !there.contains(name) {
                tier.tables.link(name, &dir)?;
            }
            set_aside.push(dir.join(name));
        }
        to.sync_dir()?;
    }
    Ok(set_aside)
}
