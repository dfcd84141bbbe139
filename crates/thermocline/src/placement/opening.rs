//! Which policy a store has, and what policies leave on the fast tier.

use std::collections::BTreeSet;

use super::by_level::ByLevel;
use super::flash_cache::FlashCache;
use super::hotrap::{self, HotRap};
use super::tables::ByTable;
use super::{PlacementPolicy, ralt};
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::options::{Options, Placement, ralt_dir};
use crate::points::Points;
use crate::storage::Medium;
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::PlacedBy;

/// What a policy is opened with.
pub(crate) struct Opening<'a> {
    pub(crate) options: &'a Options,
    pub(crate) database: u128,
    pub(crate) fast: &'a Arc<Tier>,
    /// What the fast tier is made of.
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) points: Points,
    pub(crate) keyspaces: BTreeSet<KeyspaceId>,
    /// What the store's manifest says of placement.
    pub(crate) before: Option<PlacedBy>,
    pub(crate) reads_only: bool,
    /// Whether reads tell what is hot.
    pub(crate) counts_accesses: bool,
}

/// The policy that the options ask for.
pub(crate) fn open(with: Opening<'_>) -> Arc<dyn PlacementPolicy> {
    match (&with.options.placement, with.options.hotrap()) {
        (Placement::ByLevel, _) => Arc::new(ByLevel {
            placed_by: Some(PlacedBy::Level),
        }),
        (Placement::ByTable, _) if with.options.tiers.len() > 1 => {
            ByTable::new(with.options.table_switches())
        }
        (Placement::ByTable, _) => Arc::new(ByLevel { placed_by: None }),
        (Placement::FlashCache, _) => Arc::new(FlashCache),
        (Placement::HotRap(_), Some(hotrap)) => HotRap::open(hotrap.clone(), with),
        (Placement::HotRap(_), None) => Arc::new(ByLevel { placed_by: None }),
    }
}

/// Removes what a policy has left on the fast tier, since nobody keeps it up to date from now on.
/// What cannot be removed counts as used (I8).
///
/// # Errors
/// I/O errors.
pub(crate) fn discard(medium: &dyn Medium, fast: &Tier) -> Result<()> {
    hotrap::discard(medium, fast)
}

/// Refuses a single tier if a policy for several tiers has left its state there: the store had
/// other tiers to place records on. This is for stores without a manifest that says which tiers
/// hold tables. In a store that places records by level nothing but the manifest says so.
///
/// # Errors
/// [`Error::InvalidOption`]; I/O errors.
pub(crate) fn check_not_alone(options: &Options, medium: &dyn Medium) -> Result<()> {
    let [only] = &options.tiers[..] else {
        return Ok(());
    };
    let dir = ralt_dir(&only.path);
    if !ralt::Ralt::has_left_a_state(medium, &dir)? {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: "tiers",
        reason: format!(
            "one is given, and {} holds access records, which only a store of several has; \
             name all its tiers",
            dir.display()
        ),
    })
}
