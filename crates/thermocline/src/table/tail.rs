//! The end of a table's file: top-level index, properties, footer. Opening a table reads it.

use std::path::Path;

use bytes::Bytes;

use super::TableMeta;
use super::footer::{FOOTER_LEN, Footer};
use super::partitions::TopIndex;
use super::properties::TableProperties;
use super::stored::{self, BlockHandle, Damage};
use crate::error::{Error, Result};
use crate::metrics::Purpose;
use crate::tier::TierFile;

/// Most bytes that opening reads at the end of a file: the top-level index, the properties and the
/// footer of a table of any usual size.
const TAIL_LEN: u64 = 64 << 10;

/// Fewest bytes that opening reads there.
const LEAST_TAIL: u64 = 4 << 10;

/// With records of a hundred bytes, the index and filters take this part of a table. The first read
/// is that long, so they come with the end of the file.
const TAIL_PART: u64 = 32;

/// The parts of a table that its tail holds.
pub(super) struct Tail {
    /// The bytes read, and where in the file they begin.
    pub(super) bytes: Bytes,
    pub(super) start: u64,
    pub(super) properties: TableProperties,
    pub(super) top: TopIndex,
}

impl Tail {
    /// Reads the tail and checks it against what the manifest says about the table.
    pub(super) fn read(
        file: &TierFile,
        purpose: Purpose,
        meta: &TableMeta,
        database: u128,
    ) -> Result<Self> {
        let path = file.file.path();
        let len = file.file.len();
        if len != meta.len {
            let what = format!("the file has {len} bytes, the manifest says {}", meta.len);
            return Err(Error::corruption(path, len.min(meta.len), what));
        }
        let read = |tail_len: u64| -> Result<(u64, Bytes)> {
            let start = len.saturating_sub(tail_len);
            let bytes = file.read_bytes(purpose, start, (len - start) as usize)?;
            Ok((start, bytes))
        };
        let tail = (len / TAIL_PART).clamp(LEAST_TAIL, TAIL_LEN);
        let (start, bytes) = match read(tail) {
            // Opening does not need the records, filters and index in the tail: an unreadable
            // sector among them must not keep the table from being opened.
            Err(Error::Io { .. }) => read(FOOTER_LEN as u64)?,
            tail => tail?,
        };
        let footer = Footer::decode(&bytes, path, len)?;
        if footer.table != meta.id {
            let what = format!("this is table {}, not {}", footer.table, meta.id);
            return Err(Error::corruption(path, len - FOOTER_LEN as u64, what));
        }
        let payload = |handle: BlockHandle| {
            let stored = match handle.offset.checked_sub(start) {
                Some(from) => {
                    let from = from as usize;
                    bytes
                        .get(from..from + handle.len as usize)
                        .map(|part| bytes.slice_ref(part))
                }
                None => Some(file.read_bytes(purpose, handle.offset, handle.len as usize)?),
            };
            let stored = stored.ok_or(Damage("the footer points outside of the file"));
            let stored = stored::at(stored, path, handle.offset)?;
            stored::at(
                stored::decode(&stored, meta.id, handle.offset),
                path,
                handle.offset,
            )
        };
        let at = footer.properties.offset;
        let properties = TableProperties::decode(&payload(footer.properties)?);
        let mut properties = stored::at(properties, path, at)?;
        check_identity(&properties, meta, database, path, at)?;
        // Only a repair, which has no manifest, needs these. If readers held replaced tables, there
        // may be very many of them, for each table.
        properties.identity.gone = Vec::new();
        if let Some(seq) = meta.assigned() {
            properties.assign(seq);
        }
        let at = footer.top_index.offset;
        let top = TopIndex::new(payload(footer.top_index)?, at);
        let top = stored::at(top, path, at)?;
        let regions = [
            properties.data_bytes,
            properties.filter_bytes,
            properties.index_bytes,
        ];
        let sum = regions
            .iter()
            .try_fold(0u64, |sum, len| sum.checked_add(*len));
        if sum != Some(at) {
            let what = "the regions of the properties do not end where the top-level index begins";
            return Err(Error::corruption(path, at, what));
        }
        Ok(Self {
            bytes,
            start,
            properties,
            top,
        })
    }
}

fn check_identity(
    properties: &TableProperties,
    meta: &TableMeta,
    database: u128,
    path: &Path,
    offset: u64,
) -> Result<()> {
    let identity = &properties.identity;
    let what = if identity.id != meta.id {
        format!(
            "its properties are those of table {}, not {}",
            identity.id, meta.id
        )
    } else if identity.database != database {
        format!(
            "it belongs to database {:032x}, not {database:032x}",
            identity.database
        )
    } else if identity.keyspace != meta.keyspace {
        format!(
            "it belongs to keyspace {}, not {}",
            identity.keyspace, meta.keyspace
        )
    } else if properties.ingested_after.is_some() != meta.ingested {
        let said = if meta.ingested {
            "ingested"
        } else {
            "not ingested"
        };
        format!("the manifest says that it was {said}, and the table says otherwise")
    } else {
        return Ok(());
    };
    Err(Error::corruption(path, offset, what))
}
