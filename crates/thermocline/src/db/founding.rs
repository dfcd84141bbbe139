//! Founding a store where there is none.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::builder::DbBuilder;
use super::shape::Shape;
use crate::error::{Error, Result};
use crate::options::Resolved;
use crate::placement::last_fast_level;
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::{KeyspaceMeta, table_number};
use crate::version::identity;

pub(super) const DEFAULT_KEYSPACE: &str = "default";

/// File numbers start here; 0 would be a keyspace's.
pub(super) const FIRST_FILE: u64 = 1;

/// Founds a store: its number, and the identity of each tier. A crash on the way leaves
/// identities without a manifest; the next attempt takes them up again.
pub(super) fn found_new_store(builder: &DbBuilder, tiers: &[Arc<Tier>]) -> Result<u128> {
    let mut rng = match builder.options.seed {
        Some(seed) => SmallRng::seed_from_u64(seed),
        None => rand::make_rng(),
    };
    let drawn = rng.random::<u128>();
    let mut database = None;
    for (index, tier) in tiers.iter().enumerate() {
        refuse_foreign_tables(tier)?;
        let store = builder.medium_of(index);
        let store = store.log_store(&tier.options.path, false)?;
        database = Some(identity::claim(tier, &*store, database, drawn)?);
    }
    Ok(database.unwrap_or(drawn))
}

fn refuse_foreign_tables(tier: &Tier) -> Result<()> {
    let tables = tier.tables.list()?;
    if tables.iter().any(|file| table_number(&file.name).is_some()) {
        return Err(Error::WrongTier {
            tier: usize::from(tier.index),
            path: tier.options.path.clone(),
            problem: "the directory holds tables, but no store; choose an empty directory".into(),
        });
    }
    Ok(())
}

/// The shape of a store with an empty default keyspace.
pub(super) fn new_shape(builder: &DbBuilder, sizes: &Resolved) -> Shape {
    let default = KeyspaceMeta {
        id: 0,
        name: Bytes::from_static(DEFAULT_KEYSPACE.as_bytes()),
        last_fast_level: last_fast_level(&builder.options, sizes),
    };
    Shape {
        keyspaces: BTreeMap::from([(0, default)]),
        flushed_through: BTreeMap::from([(0, 0)]),
        next_file: FIRST_FILE,
        ..Shape::default()
    }
}
