//! What a table's file says of itself, where no manifest says what it should be.

use super::builder::TableIdentity;
use super::footer::{FOOTER_LEN, Footer};
use super::properties::TableProperties;
use super::stored;
use crate::error::{Error, Result};
use crate::sync::Arc;
use crate::tier::{Purpose, Tier};
use crate::version::edit::{FileId, TableMeta, table_file_name};

/// A table by its own properties.
#[derive(Debug, Clone)]
pub(crate) struct SelfDescribed {
    /// Its tier is the one that it was found on, its level the one that it was written for (I3).
    pub(crate) meta: TableMeta,
    pub(crate) identity: TableIdentity,
}

impl SelfDescribed {
    /// Reads footer and properties of table `id` on `tier`.
    ///
    /// # Errors
    /// [`Error::Corruption`] where they are damaged or another table's; [`Error::FormatVersion`]; I/O
    /// errors of the tier.
    pub(crate) fn read(tier: &Arc<Tier>, id: FileId) -> Result<Self> {
        let file = tier.open(&table_file_name(id))?;
        let (path, len) = (file.file.path(), file.file.len());
        let Some(at) = len.checked_sub(FOOTER_LEN as u64) else {
            return Err(Error::corruption(
                path,
                0,
                "the file is shorter than a footer",
            ));
        };
        let footer = file.read_bytes(Purpose::Open, at, FOOTER_LEN)?;
        let footer = Footer::decode(&footer, path, len)?;
        if footer.table != id {
            let what = format!("this is table {}, not {id}", footer.table);
            return Err(Error::corruption(path, at, what));
        }
        let handle = footer.properties;
        let stored = file.read_bytes(Purpose::Open, handle.offset, handle.len as usize)?;
        let payload = stored::decode(&stored, id, handle.offset);
        let payload = stored::at(payload, path, handle.offset)?;
        let properties = stored::at(TableProperties::decode(&payload), path, handle.offset)?;
        let identity = properties.identity;
        Ok(Self {
            meta: TableMeta {
                id,
                keyspace: identity.keyspace,
                level: identity.level,
                tier: tier.index,
                epoch: identity.epoch,
                len,
                entries: properties.entries,
                deletes: properties.deletes,
                min_seq: properties.min_seq,
                max_seq: properties.max_seq,
                range: properties.range,
            },
            identity,
        })
    }
}
