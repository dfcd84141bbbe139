//! What a log says without a manifest to vouch for it: for repairs.

use super::record::Group;
use super::segment::{log_store, segment_file_name, segment_number};
use crate::error::Result;
use crate::ids::FileId;
use crate::key::SeqNo;
use crate::log_format::{FileHeader, FileKind, Found, Records};
use crate::tier::Tier;

/// The first header of a segment that can be read.
///
/// # Errors
/// [`crate::Error::FormatVersion`]; I/O errors.
pub(crate) fn first_header(tier: &Tier) -> Result<Option<FileHeader>> {
    let store = log_store(tier)?;
    for number in numbers(tier)? {
        let name = segment_file_name(number);
        let bytes = store.read(&name)?;
        let header = FileHeader::decode(&store.path().join(name), FileKind::Wal, &bytes)?;
        if header.is_some() {
            return Ok(header);
        }
    }
    Ok(None)
}

/// The highest sequence number of any group that can be read, including groups after damage.
///
/// # Errors
/// I/O errors.
pub(crate) fn last_readable(tier: &Tier) -> Result<Option<SeqNo>> {
    let store = log_store(tier)?;
    let mut last = None;
    for number in numbers(tier)? {
        let bytes = store.read(&segment_file_name(number))?;
        let mut records = Records::new(number, &bytes);
        loop {
            match records.next() {
                Found::Record { payload, .. } => {
                    let group = bytes.get(payload).and_then(Group::decode);
                    let group = group.filter(|group| group.header.count > 0);
                    last = last.max(group.map(|group| group.header.last_seq()));
                }
                Found::Damaged { .. } => {}
                Found::End | Found::Torn { .. } => break,
            }
        }
    }
    Ok(last)
}

fn numbers(tier: &Tier) -> Result<Vec<FileId>> {
    let files = log_store(tier)?.list()?;
    let mut numbers: Vec<_> = files
        .iter()
        .filter_map(|f| segment_number(&f.name))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}
