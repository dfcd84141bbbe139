//! What a table's file says about itself, for use without a manifest that says what it should be.

use super::builder::TableIdentity;
use super::footer::{FOOTER_LEN, Footer};
use super::properties::TableProperties;
use super::{TableMeta, stored};
use crate::error::{Error, Result};
use crate::ids::{FileId, MAX_NUMBER, table_file_name};
use crate::key::MAX_SEQ;
use crate::metrics::Purpose;
use crate::sync::Arc;
use crate::tier::{Tier, TierFile};

/// A table by its own properties.
#[derive(Debug, Clone)]
pub(crate) struct SelfDescribed {
    /// The tier is the one that it was found on, the level the one that it was written for (I3).
    pub(crate) meta: TableMeta,
    pub(crate) identity: TableIdentity,
}

impl SelfDescribed {
    /// Reads footer and properties of table `id` on `tier`.
    ///
    /// # Errors
    /// [`Error::Corruption`] when they are damaged or belong to another table;
    /// [`Error::FormatVersion`]; I/O errors of the tier.
    pub(crate) fn read(tier: &Arc<Tier>, id: FileId) -> Result<Self> {
        let file = tier.open(&table_file_name(id))?;
        let (at, footer) = read_footer(&file)?;
        let (path, len) = (file.file.path(), file.file.len());
        if footer.table != id {
            let what = format!("this is table {}, not {id}", footer.table);
            return Err(Error::corruption(path, at, what));
        }
        let handle = footer.properties;
        let stored = file.read_bytes(Purpose::Open, handle.offset, handle.len as usize)?;
        let payload = stored::decode(&stored, id, handle.offset);
        let payload = stored::at(payload, path, handle.offset)?;
        let mut properties = stored::at(TableProperties::decode(&payload), path, handle.offset)?;
        let ingested = properties.ingested_after.is_some();
        if let Some(after) = properties.ingested_after {
            // The manifest knows the number. Without one, this is the least that it can be.
            properties.assign(after.saturating_add(1));
        }
        let content = properties.content();
        let identity = properties.identity;
        let seqs = properties.min_seq.max(properties.max_seq);
        if identity.epoch > MAX_NUMBER || seqs > MAX_SEQ {
            let what = "its properties hold a number that is out of range";
            return Err(Error::corruption(path, handle.offset, what));
        }
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
                ingested,
                content: Some(content),
                range: properties.range,
            },
            identity,
        })
    }

    /// Whether the file named for table `id` on `tier` holds a table with another number. Jobs
    /// never rename a table's file.
    ///
    /// # Errors
    /// [`Error::FormatVersion`]; I/O errors of the tier.
    pub(crate) fn is_misnamed(tier: &Arc<Tier>, id: FileId) -> Result<bool> {
        match read_footer(&tier.open(&table_file_name(id))?) {
            Ok((_, footer)) => Ok(footer.table != id),
            Err(Error::Corruption { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The footer of a table's file, and where it begins.
fn read_footer(file: &TierFile) -> Result<(u64, Footer)> {
    let (path, len) = (file.file.path(), file.file.len());
    let Some(at) = len.checked_sub(FOOTER_LEN as u64) else {
        let what = "the file is shorter than a footer";
        return Err(Error::corruption(path, 0, what));
    };
    let footer = file.read_bytes(Purpose::Open, at, FOOTER_LEN)?;
    Ok((at, Footer::decode(&footer, path, len)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Db;
    use crate::key::{InternalKey, Kind};
    use crate::storage::Memory;
    use crate::table::{TableBuilder, TableIdentity};
    use crate::testing::scene::{Scene, options};
    use crate::wal::log_store;

    /// A store of one table that has lost its manifest, and beside that table a crafted one of
    /// epoch `epoch`.
    fn with_crafted(epoch: u64, max_seq: u64) -> Arc<Memory> {
        let memory = Arc::new(Memory::new());
        let scene = Scene::on(memory.clone(), options());
        scene.put("key", "version");
        scene.db.flush().unwrap();
        let tier = Arc::clone(scene.engine().fast());
        let identity = TableIdentity {
            database: scene.engine().identity.database,
            keyspace: 0,
            id: 900,
            level: 0,
            tier: 0,
            epoch,
            replaces: Vec::new(),
            gone: Vec::new(),
            keyspace_name: bytes::Bytes::new(),
        };
        let builder = TableBuilder::new(&tier, identity, 0, Purpose::Maintenance);
        let mut builder = builder.unwrap();
        let key = InternalKey::new(b"other", 1, Kind::Put);
        builder.add(key, b"value").unwrap();
        builder.craft_max_seq(max_seq);
        builder.finish().unwrap();
        scene.db.close().unwrap();
        let store = log_store(&tier).unwrap();
        for file in store.list().unwrap() {
            if file.name == "CURRENT" || file.name.starts_with("MANIFEST") {
                store.remove(&file.name).unwrap();
            }
        }
        memory
    }

    /// A repair took such numbers from properties and installed a manifest that no opening
    /// accepted. So did each later repair.
    #[test]
    fn a_repair_relies_on_no_numbers_that_a_manifest_must_not_hold() {
        for (epoch, max_seq, is_crafted) in [
            (1 << 20, 1, false),
            (MAX_NUMBER + 1, 1, true),
            (u64::MAX, 1, true),
            (1, MAX_SEQ + 1, true),
            (1, u64::MAX, true),
        ] {
            let memory = with_crafted(epoch, max_seq);
            let builder = || {
                let builder = Db::builder(options()).medium(0, memory.clone());
                builder.medium(1, memory.clone())
            };
            let report = builder().repair(false).unwrap();
            let tables = report.losses.iter().map(|loss| &loss.file);
            let tables = tables.filter(|file| file.extension().is_some_and(|end| end == "sst"));
            assert_eq!(tables.count(), usize::from(is_crafted), "{report:?}");
            let db = builder().open().unwrap();
            assert!(db.get("key").unwrap().is_some());
            assert_eq!(db.get("other").unwrap().is_some(), !is_crafted);
        }
    }
}
