//! Which segments belong to the log.
//!
//! The removal of a segment, or of its end, may be undone: a sync fails, the store is opened again
//! on what the system's cache shows, and later the power goes. So each opening writes into its
//! manifest what it has found to be the log.

use super::FoundLog;
use super::segment::{log_store, segment_number};
use super::settle::rewrite;
use crate::error::Result;
use crate::ids::FileId;
use crate::key::SeqNo;
use crate::points::{Points, point};
use crate::tier::Tier;

/// What the manifest says of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    /// Segments with lower numbers are obsolete.
    pub(crate) start: FileId,
    /// The highest sequence number that any edit of a flush or a drop names. The log was synced
    /// through it (I5), and no segment beyond it was removed. A log that starts after `floor + 1`
    /// or ends before `floor` is damaged.
    pub(crate) floor: SeqNo,
    /// What the latest opening took over.
    pub(crate) found: Option<FoundLog>,
}

impl Bounds {
    /// The length of the segment when an opening took it over; all of that was durable.
    pub(super) fn found_len(&self, number: FileId) -> Option<u64> {
        self.found.as_ref()?.len_of(number)
    }

    /// Those of the segments `there` that belong to the log, and those that should be there, in
    /// their order.
    pub(super) fn segments(&self, there: impl Iterator<Item = FileId>) -> Vec<FileId> {
        let is_own = |number: &FileId| {
            let found = self.found.as_ref();
            *number >= self.start
                && found.is_none_or(|f| *number >= f.next || self.found_len(*number).is_some())
        };
        let mut numbers: Vec<FileId> = there.filter(is_own).collect();
        numbers.sort_unstable();
        // Obsolete segments are removed oldest first, and each removal is durable before the next:
        // none may be missing in between.
        let first = numbers.first().copied().unwrap_or(FileId::MAX);
        let found = self.found.iter().flat_map(|found| &found.segments);
        numbers.extend(found.map(|(number, _)| *number).filter(|n| *n > first));
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// Removes what is not part of the log that was found, as the manifest in force says: older
/// segments, and what segments hold after their end. These were given up, or their removal was
/// undone.
///
/// # Errors
/// I/O errors of the log store.
pub(crate) fn remove_others(tier: &Tier, found: &FoundLog, points: &Points) -> Result<()> {
    let store = log_store(tier)?;
    for file in store.list()? {
        let Some(number) = segment_number(&file.name) else {
            continue;
        };
        match found.len_of(number) {
            Some(len) if len < file.len => {
                rewrite(tier, &*store, number, Some(len), points)?;
            }
            None if number < found.next => store.remove(&file.name)?,
            _ => continue,
        }
        point!(points, "recovery.log_shortened")?;
    }
    Ok(())
}
