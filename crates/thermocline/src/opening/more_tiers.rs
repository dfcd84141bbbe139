//! A store of one tier that is given more: its levels are divided among them anew.

use std::collections::BTreeMap;

use super::Shape;
use super::founding::refuse_foreign_tables;
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::options::{Options, Resolved};
use crate::placement::last_fast_level;
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::{KeyspaceMeta, VersionEdit};
use crate::version::{MAX_LEVELS, identity};

/// The level f that a keyspace gets if it was made with one tier and there are more now: that of a
/// new keyspace.
fn new_f(keyspace: &KeyspaceMeta, options: &Options, sizes: &Resolved) -> Option<u8> {
    // Only a keyspace that was made on a single tier has all its levels there.
    let is_of_one = usize::from(keyspace.last_fast_level) == MAX_LEVELS - 1;
    (is_of_one && options.tiers.len() > 1)
        .then(|| last_fast_level(options, sizes, options.tiers[0].capacity))
}

/// Checks that tiers that are not marked as the store's can become so: the store has had one tier
/// so far, and the new ones hold no tables.
///
/// # Errors
/// [`Error::WrongTier`] for the first that cannot: a device that is not mounted looks like a new
/// tier.
pub(crate) fn check_new_tiers(
    tiers: &[Arc<Tier>],
    database: u128,
    shape: &Shape,
    options: &Options,
) -> Result<()> {
    let mut keyspaces = shape.keyspaces.values();
    let is_of_one = keyspaces.all(|of| usize::from(of.last_fast_level) == MAX_LEVELS - 1);
    for tier in tiers {
        if !is_of_one {
            identity::check(tier, database)?;
        }
        if !options.create_if_missing {
            return Err(Error::WrongTier {
                tier: usize::from(tier.index),
                path: tier.options.path.clone(),
                problem: "there is no TIER file, and the store has had one tier so far; to add this one, open the \
                          store once with `create_if_missing` (`thermocline put --create`)"
                    .into(),
            });
        }
        refuse_foreign_tables(tier)?;
    }
    Ok(())
}

/// Divides the levels of `keyspaces` anew. Their tables stay where they lie (I3): those below level
/// f are brought to the slow tier by compactions.
pub(crate) fn divide_levels<'a>(
    keyspaces: impl Iterator<Item = &'a mut KeyspaceMeta>,
    options: &Options,
    sizes: &Resolved,
) {
    for keyspace in keyspaces {
        if let Some(f) = new_f(keyspace, options, sizes) {
            keyspace.last_fast_level = f;
        }
    }
}

/// Divides the levels in `edits`, which add up to a store that is copied, and names for each table
/// the tier that its level belongs on then.
pub(crate) fn place(edits: &mut [VersionEdit], options: &Options, sizes: &Resolved) {
    let created = edits.iter().flat_map(|edit| &edit.created);
    let divided = created.filter_map(|of| Some((of.id, new_f(of, options, sizes)?)));
    let divided: BTreeMap<KeyspaceId, u8> = divided.collect();
    let last = options.tiers.len() as u8 - 1;
    for edit in edits {
        divide_levels(edit.created.iter_mut(), options, sizes);
        for table in &mut edit.added {
            if divided
                .get(&table.keyspace)
                .is_some_and(|f| table.level > *f)
            {
                table.tier = last;
            }
        }
    }
}
