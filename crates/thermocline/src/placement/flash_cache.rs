//! The fast tier as a cache of the slow one's blocks (feature `flash-cache`, for comparisons).

use super::{PlacementPolicy, SpacePlan};
use crate::cache::{Flash, FlashPlan, discard_flash, open_flash};
use crate::error::{Error, Result};
use crate::options::{Options, Resolved};
use crate::tier::Tier;
use crate::version::edit::PlacedBy;

/// Every table lies on the last tier; the first has the log and the cache.
pub(crate) struct FlashCache;

impl PlacementPolicy for FlashCache {
    fn level_tiers(&self, tiers: usize) -> [u8; 2] {
        [tiers as u8 - 1; 2]
    }

    /// The cache is gone once the store is closed. The tables then lie by level, on one tier.
    fn placed_by(&self) -> Option<PlacedBy> {
        Some(PlacedBy::Level)
    }
}

/// Refuses a flash cache if `tables` lie on the fast tier: the cache takes the room that they need.
///
/// # Errors
/// [`Error::InvalidOption`].
pub(crate) fn check_flash_cache(options: &Options, tables: usize) -> Result<()> {
    if !options.has_flash_cache() || tables == 0 {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: "placement",
        reason: format!(
            "the store has {tables} tables on the first tier, which is to be a flash cache; load a \
             new store for it"
        ),
    })
}

/// Opens the flash cache on `fast`, empty, if there is to be one. Its whole capacity counts as used
/// from the beginning (I8).
///
/// # Errors
/// Those of the cache; I/O errors.
pub(crate) fn open_flash_cache(
    options: &Options,
    sizes: &Resolved,
    fast: &Tier,
) -> Result<Option<Box<dyn Flash>>> {
    discard_flash(&fast.options.path)?;
    if !options.has_flash_cache() {
        return Ok(None);
    }
    let capacity = SpacePlan::new(options, sizes, fast.planned_bytes()).flash_cache;
    let flash = open_flash(&FlashPlan {
        fast: &fast.options.path,
        capacity,
        buffer: sizes.flash_buffer,
        direct_io: fast.options.direct_io,
    })?;
    fast.add_file_bytes(capacity);
    Ok(Some(flash))
}
