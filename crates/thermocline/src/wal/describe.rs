//! Readable records, for inspection.

use std::path::Path;

use super::record::Group;
use crate::error::Result;
use crate::log_format::{FileHeader, FileKind, Found, Records};

/// One line of a segment's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    /// Where in the file, in bytes.
    pub(crate) offset: u64,
    /// What stands there.
    pub(crate) text: String,
}

/// Every record of a segment, bad places included; `path` is for messages.
///
/// # Errors
/// [`crate::Error::FormatVersion`] for a segment of a newer release.
pub(crate) fn describe(path: &Path, bytes: &[u8]) -> Result<Vec<Described>> {
    let Some(header) = FileHeader::decode(path, FileKind::Wal, bytes)? else {
        let text = "damaged or torn file header".into();
        return Ok(vec![Described { offset: 0, text }]);
    };
    let previous = match header.previous {
        Some((number, len)) => format!("continues segment {number} of {len} bytes"),
        None => "the first segment".into(),
    };
    let text = format!(
        "segment {} of database {:032x}, {previous}, sequence numbers above {}",
        header.number, header.database, header.base_seq
    );
    let mut lines = vec![Described { offset: 0, text }];
    let mut records = Records::new(header.number, bytes);
    loop {
        let (offset, text) = match records.next() {
            Found::End => return Ok(lines),
            Found::Record { offset, payload } => (offset, describe_group(bytes.get(payload))),
            Found::Torn { offset } => (offset, "torn: nothing valid from here on".into()),
            Found::Damaged { offset, gave_up } => {
                let more = if gave_up { "may" } else { "do" };
                (offset, format!("damaged; valid records {more} follow"))
            }
        };
        lines.push(Described { offset, text });
    }
}

fn describe_group(payload: Option<&[u8]>) -> String {
    let Some(group) = payload.and_then(Group::decode) else {
        return "a record that does not decode".into();
    };
    let header = group.header;
    let older = if header.older_durable { "" } else { "not " };
    if header.count == 0 {
        return format!("closed: {} bytes durable", header.durable_len);
    }
    format!(
        "sequence {} to {}, {} batches; older segments {older}durable, {} bytes of this one",
        header.first_seq,
        header.last_seq(),
        group.batches.len(),
        header.durable_len
    )
}
