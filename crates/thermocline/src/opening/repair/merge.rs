//! Writes tables anew from what can be read of others. Of each user key the newest version is kept,
//! by sequence number, so the order in which the sources lay does not matter (I1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::plan::{Merge, Plan, open};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::key::InternalKey;
use crate::metrics::Purpose;
use crate::sync::Arc;
use crate::table::{Salvage, TableBuilder, TableIdentity, TableMeta};
use crate::tier::Tier;

/// A source stands at this record: user key, then the newest first, then the source's place.
type Head = Reverse<(Vec<u8>, Reverse<u64>, usize)>;

/// Writes the tables of `merge` and returns what the manifest is to name. What cannot be read is
/// among the losses of `plan` already.
///
/// # Errors
/// I/O errors; what was written is then removed.
pub(super) fn write(
    plan: &Plan,
    merge: &Merge,
    tiers: &[Arc<Tier>],
    new_file: &mut dyn FnMut() -> FileId,
) -> Result<Vec<TableMeta>> {
    let mut sources = Vec::new();
    for meta in &merge.sources {
        match open(&tiers[usize::from(meta.tier)], meta, plan.database) {
            Ok(table) => sources.push(Salvage::new(table)),
            Err(Error::Corruption { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let name = plan.shape.keyspaces.get(&merge.keyspace);
    let identity = TableIdentity {
        database: plan.database,
        keyspace: merge.keyspace,
        id: 0,
        level: merge.level,
        tier: merge.tier,
        epoch: merge.epoch,
        replaces: merge.sources.iter().map(|source| source.id).collect(),
        gone: Vec::new(),
        keyspace_name: name
            .map(|keyspace| keyspace.name.clone())
            .unwrap_or_default(),
    };
    let tier = &tiers[usize::from(merge.tier)];
    let mut writer = Writer {
        tier,
        identity,
        table_size: merge.table_size,
        new_file,
        builder: None,
        written: Vec::new(),
    };
    if let Err(error) = merge_into(&mut writer, &mut sources) {
        remove(tiers, &writer.written);
        return Err(error);
    }
    Ok(writer.written)
}

/// Removes the tables that a failed repair wrote.
pub(super) fn remove(tiers: &[Arc<Tier>], written: &[TableMeta]) {
    for meta in written {
        let tier = &tiers[usize::from(meta.tier)];
        // The first error is the one that counts; what stays is an orphan.
        let _ = tier.tables.remove(&meta.file_name());
    }
}

fn merge_into(writer: &mut Writer<'_>, sources: &mut [Salvage]) -> Result<()> {
    let mut heads: BinaryHeap<Head> = BinaryHeap::new();
    for (place, source) in sources.iter_mut().enumerate() {
        push(&mut heads, place, source)?;
    }
    let mut last: Option<Vec<u8>> = None;
    while let Some(Reverse((key, Reverse(trailer), place))) = heads.pop() {
        let source = &mut sources[place];
        if last.as_deref() != Some(&key[..])
            && let Some((record, value)) = source.record()
        {
            debug_assert_eq!(record.trailer(), trailer);
            writer.add(record, value)?;
        }
        last = Some(key);
        push(&mut heads, place, source)?;
    }
    writer.end_table()
}

fn push(heads: &mut BinaryHeap<Head>, place: usize, source: &mut Salvage) -> Result<()> {
    if source.next()?
        && let Some((key, _)) = source.record()
    {
        heads.push(Reverse((
            key.user_key.to_vec(),
            Reverse(key.trailer()),
            place,
        )));
    }
    Ok(())
}

struct Writer<'a> {
    tier: &'a Arc<Tier>,
    identity: TableIdentity,
    table_size: u64,
    new_file: &'a mut dyn FnMut() -> FileId,
    builder: Option<TableBuilder>,
    written: Vec<TableMeta>,
}

impl Writer<'_> {
    fn add(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let is_full = |builder: &TableBuilder| builder.estimated_len() >= self.table_size;
        if self.builder.as_ref().is_some_and(is_full) {
            self.end_table()?;
        }
        let builder = match &mut self.builder {
            Some(builder) => builder,
            none => {
                let identity = TableIdentity {
                    id: (self.new_file)(),
                    ..self.identity.clone()
                };
                let builder = TableBuilder::new(self.tier, identity, 0, Purpose::Maintenance)?;
                none.insert(builder)
            }
        };
        builder.add(key, value)
    }

    fn end_table(&mut self) -> Result<()> {
        if let Some(builder) = self.builder.take() {
            self.written.push(builder.finish()?);
        }
        Ok(())
    }
}
