//! Founding a store where there is none.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Shape, unfinished};
use crate::error::{Error, Result};
use crate::ids::table_number;
use crate::opening::request::Request;
use crate::options::Resolved;
use crate::placement::last_fast_level;
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::KeyspaceMeta;
use crate::version::identity;

pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// File numbers start here; 0 would be a keyspace's.
pub(crate) const FIRST_FILE: u64 = 1;

/// Founds a store: draws its number and gives each tier its identity. A crash on the way leaves
/// identities without a manifest; the next attempt takes them up again.
pub(crate) fn found_new_store(request: &Request, tiers: &[Arc<Tier>]) -> Result<u128> {
    // The number tells tiers of different stores apart. On disks that must hold even for stores of
    // one seed.
    let drawn: u128 = match request.options.seed {
        Some(seed) if !request.is_on_disks() => SmallRng::seed_from_u64(seed).random(),
        _ => rand::random(),
    };
    // All of them before any is claimed: what is refused is left as it was.
    check_first_is_there(tiers)?;
    for tier in tiers {
        refuse_foreign_tables(tier)?;
    }
    let mut database = None;
    for (index, tier) in tiers.iter().enumerate() {
        let store = request.medium_of(index);
        let store = store.log_store(&tier.options.path, false)?;
        database = Some(identity::claim(tier, &*store, database, drawn)?);
    }
    Ok(database.unwrap_or(drawn))
}

/// Refuses directories if a later one has files of a store and the first has none: the first tier
/// looks like that while its device is not mounted.
///
/// A founding, a restore or a checkpoint that was cut short does not look like that: it marks the
/// first tier, durably, before any other, and a founding writes no table before the manifest. Nor
/// does a destruction of all tiers: it removes the first tier's mark last. It may leave only marks
/// of other tiers behind: those of tiers that were missing or not named when it was resumed, and
/// those whose removal a failed sync has lost.
///
/// # Errors
/// [`Error::WrongTier`] naming the first tier; I/O errors.
pub(crate) fn check_first_is_there(tiers: &[Arc<Tier>]) -> Result<()> {
    let Some((first, later)) = tiers.split_first() else {
        return Ok(());
    };
    if !identity::is_missing(first)? {
        return Ok(());
    }
    for tier in later {
        if !identity::is_missing(tier)? || has_tables(tier)? || unfinished::is_marked(tier)? {
            return Err(Error::WrongTier {
                tier: usize::from(first.index),
                path: first.options.path.clone(),
                problem: format!(
                    "nothing of a store is here, and tier {} at {} has files of one; check that the device is \
                     mounted and the path is right. For a new store, choose empty directories. Only if all that was here \
                     is lost or removed: `thermocline repair --give-up fast` keeps what the other tiers hold, \
                     `thermocline destroy --give-up fast` removes it (`DbBuilder::give_up_tier`)",
                    tier.index,
                    tier.options.path.display()
                ),
            });
        }
    }
    Ok(())
}

fn has_tables(tier: &Tier) -> Result<bool> {
    let files = tier.tables.list()?;
    Ok(files.iter().any(|file| table_number(&file.name).is_some()))
}

/// Refuses a directory that is to become a store's but holds tables.
///
/// # Errors
/// [`Error::WrongTier`]; I/O errors.
pub(crate) fn refuse_foreign_tables(tier: &Tier) -> Result<()> {
    if has_tables(tier)? {
        return Err(Error::WrongTier {
            tier: usize::from(tier.index),
            path: tier.options.path.clone(),
            problem: "the directory holds tables, but no store; choose an empty directory".into(),
        });
    }
    Ok(())
}

/// The shape of a store with an empty default keyspace.
pub(crate) fn new_shape(request: &Request, sizes: &Resolved) -> Shape {
    let default = KeyspaceMeta {
        id: 0,
        name: Bytes::from_static(DEFAULT_KEYSPACE.as_bytes()),
        last_fast_level: last_fast_level(
            &request.options,
            sizes,
            request.options.tiers[0].capacity,
        ),
    };
    Shape {
        keyspaces: BTreeMap::from([(0, default)]),
        flushed_through: BTreeMap::from([(0, 0)]),
        next_file: FIRST_FILE,
        ..Shape::default()
    }
}
