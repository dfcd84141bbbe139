//! Making durable what a replay decided, before the store goes on.
//!
//! Bytes that a replay has read may still be only in the system's cache, and a tail that was cut
//! off may come back: a second crash would then show a log that nobody wrote. So segments that are
//! not proven to be durable are copied up to their valid length, synced, and renamed over.
//!
//! If the log is cut because it is damaged, they are not cut: what comes after a cut may be all
//! that proves the damage. It stays until a manifest says what is given up.

use super::segment::{ClosedSegment, segment_file_name};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::metrics::Purpose;
use crate::points::{Points, point};
use crate::storage::LogStore;
use crate::tier::Tier;

const TEMPORARY: &str = ".wal.tmp";

/// Whether a file of this name is a copy of a segment that was to be renamed.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.ends_with(TEMPORARY)
}

/// Makes the `unproven` segments durable: at their valid length, or, if the log `is_damaged`, as
/// they are. May be cut short anywhere: a replay then finds the same prefix, and judges what comes
/// after it in the same way.
pub(super) fn settle(
    tier: &Tier,
    store: &dyn LogStore,
    unproven: &[ClosedSegment],
    is_damaged: bool,
    points: &Points,
) -> Result<()> {
    for file in store.list()? {
        if is_temporary(&file.name) {
            store.remove(&file.name)?;
        }
    }
    for segment in unproven {
        let len = (!is_damaged).then_some(segment.len);
        rewrite(tier, store, segment.number, len, points)?;
    }
    if !unproven.is_empty() {
        store.sync_dir()?;
    }
    Ok(())
}

/// Puts a durable copy of segment `number` in its place, cut to `len` bytes if that is given.
pub(super) fn rewrite(
    tier: &Tier,
    store: &dyn LogStore,
    number: FileId,
    len: Option<u64>,
    points: &Points,
) -> Result<()> {
    let name = segment_file_name(number);
    let temporary = format!("{number:08}{TEMPORARY}");
    let bytes = store.read(&name)?;
    tier.count_read(Purpose::Open, bytes.len() as u64);
    let valid = len.map_or(Some(bytes.len()), |len| usize::try_from(len).ok());
    let Some(valid) = valid.and_then(|len| bytes.get(..len)) else {
        let what = "the segment became shorter while it was recovered";
        let path = store.path().join(name);
        return Err(Error::corruption(path, bytes.len() as u64, what));
    };
    let file = store.create(&temporary)?;
    if let Err(error) = file.append(valid) {
        // If it stays, it is removed by the next recovery at the latest.
        let _ = store.remove(&temporary);
        return Err(error);
    }
    tier.count_write(Purpose::Wal, valid.len() as u64);
    file.sync()?;
    point!(points, "recovery.log_copied")?;
    store.rename(&temporary, &name)?;
    point!(points, "recovery.log_settled")
}
