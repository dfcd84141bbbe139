//! Checks the numbers in the names of a store's files against those that the store has reached.

use crate::error::{Error, Result};
use crate::ids::{FileId, table_number};
use crate::sync::Arc;
use crate::tier::{Tier, copy_number};
use crate::version::manifest_number;
use crate::wal::segment_number;

/// A store draws far fewer numbers than this between two edits that record them.
const MOST_AHEAD: u64 = 1 << 31;

/// Refuses a file whose number the store cannot have reached; `known` is the next number that its
/// manifest names. Counting on from such a number would use up the numbers of keyspaces, or those
/// that a name may have: the store could not be opened again.
///
/// # Errors
/// [`Error::WrongTier`] that names the file; I/O errors.
pub(crate) fn check_numbers(tiers: &[Arc<Tier>], known: FileId) -> Result<()> {
    let most = known.saturating_add(MOST_AHEAD);
    for tier in tiers {
        let logs = tier.log.as_ref().map_or(Ok(Vec::new()), |log| log.list())?;
        for file in tier.tables.list()?.into_iter().chain(logs) {
            let name = &file.name;
            let number = table_number(name)
                .or_else(|| copy_number(name))
                .or_else(|| segment_number(name))
                .or_else(|| manifest_number(name));
            if number.is_some_and(|number| number > most) {
                return Err(Error::WrongTier {
                    tier: usize::from(tier.index),
                    path: tier.tables.path().to_path_buf(),
                    problem: format!(
                        "{name} has a number that this store, whose next is {known}, has not come to; it is none of its \
                         files: move it away"
                    ),
                });
            }
        }
    }
    Ok(())
}
