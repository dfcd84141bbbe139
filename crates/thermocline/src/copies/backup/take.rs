//! A backup of an open store.

use std::collections::BTreeMap;

use super::generation::{BackedUp, Generation};
use super::work::Work;
use super::{BackupReport, Backups, copy};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::points::point;
use crate::sync::Arc;
use crate::version::TableHandle;
use crate::version::edit::PlacedBy;

impl Backups {
    pub(super) fn take_from(&self, engine: &Engine, work: &mut Work) -> Result<BackupReport> {
        let earlier = self.read_all()?;
        if let Some(other) = earlier
            .iter()
            .find(|other| other.database != engine.identity.database)
        {
            return Err(Error::WrongTier {
                tier: 0,
                path: self.path.clone(),
                problem: format!(
                    "the directory holds backups of database {:032x}, not of {:032x}; choose another one",
                    other.database, engine.identity.database
                ),
            });
        }
        self.remove_unnamed(&earlier, work)?;
        // Tables stay where they are while they are pinned, whatever compactions do meanwhile.
        let (through, mut edits, pinned) = engine.pin_all()?;
        if let Some(first) = edits.first_mut() {
            // Hotness stays behind (I7), and no opening may miss it. If the store has none, the
            // backup keeps saying so.
            first.placed_by = first.placed_by.filter(|by| *by == PlacedBy::Level);
        }
        let known: BTreeMap<String, &BackedUp> = earlier
            .iter()
            .flat_map(|generation| &generation.tables)
            .map(|table| (table.file_name(), table))
            .collect();
        // Somebody may have removed or shortened tables that earlier generations name. The store
        // still has them.
        let files = self.tables.list()?.into_iter();
        let present: BTreeMap<String, u64> = files.map(|file| (file.name, file.len)).collect();
        let mut report = BackupReport {
            generation: earlier.last().map_or(1, |last| last.number + 1),
            through,
            tables: 0,
            bytes: 0,
            copied_tables: 0,
            copied_bytes: 0,
        };
        let mut tables = Vec::new();
        for table in pinned.iter().flat_map(|version| version.tables()) {
            let mut backed_up = describe(table)?;
            let before = known.get(&backed_up.file_name());
            if before.is_some_and(|known| known.len != backed_up.len) {
                // The known table is that of another store that was restored from here: the same
                // data with, say, another filter.
                backed_up.content = sum_of_file(table)?;
            }
            let name = backed_up.file_name();
            let found = present.get(&name);
            let is_whole = |known: &&&BackedUp| found == Some(&known.len);
            match known.get(&name).filter(is_whole) {
                Some(known) => backed_up.checksum = known.checksum,
                None => {
                    if found.is_some() {
                        self.tables.remove(&name)?;
                    }
                    let copied = self.copy_table(table, &backed_up);
                    backed_up.checksum = work.synced(copied)?;
                    report.copied_tables += 1;
                    report.copied_bytes += backed_up.len;
                    point!(engine.points, "backup.copied")?;
                }
            }
            report.tables += 1;
            report.bytes += backed_up.len;
            tables.push(backed_up);
        }
        work.synced(self.tables.sync_dir())?;
        point!(engine.points, "backup.before_generation")?;
        let generation = Generation {
            number: report.generation,
            database: engine.identity.database,
            through,
            tables,
            edits,
        };
        work.synced(generation.write(&*self.log))?;
        Ok(report)
    }

    /// Copies a table, which is durable on return (I4). Returns the checksum of its file.
    fn copy_table(&self, table: &Arc<TableHandle>, target: &BackedUp) -> Result<u64> {
        // A damaged table must not pass for a backup.
        table.table()?.verify()?;
        let source = table.lazy.tier().tables.open(&table.meta.file_name())?;
        let mut writer = self.tables.create(&target.file_name(), target.len)?;
        let checksum = copy::pieces(&*source, &mut |piece| writer.append(piece))?;
        writer.finish()?;
        Ok(checksum)
    }
}

fn sum_of_file(table: &TableHandle) -> Result<u64> {
    let file = table.lazy.tier().tables.open(&table.meta.file_name())?;
    copy::pieces(&*file, &mut |_| Ok(()))
}

/// The table as a backup names it, its file's checksum not yet known.
fn describe(table: &Arc<TableHandle>) -> Result<BackedUp> {
    let content = match table.table()?.properties().data_checksum {
        // Records do not say which keyspace they belong to, and an opening asks the file.
        Some(content) => content ^ u64::from(table.meta.keyspace),
        None => sum_of_file(table)?,
    };
    Ok(BackedUp {
        id: table.meta.id,
        tier: table.meta.tier,
        len: table.meta.len,
        checksum: 0,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use crate::testing::scene::{self, Scene};

    /// Backups, checkpoints and verifications pinned the memtables together with the tables. What
    /// was flushed while they copied or read, for hours perhaps, stayed in memory until they ended,
    /// and nobody counted it (I8).
    #[test]
    fn a_backup_keeps_no_memtable() {
        let memory = Memory::new();
        let scene = Scene::on(Arc::new(memory.clone()), scene::options());
        scene.put("key", "old");
        let hook = scene.at("backup.copied", |scene| {
            let active = Arc::downgrade(&scene.tree().peek().active);
            scene.put("key", "new");
            scene.db.flush()?;
            assert!(active.upgrade().is_none(), "somebody has it still");
            Ok(())
        });
        let backups = Backups::open_on(&memory, "/backups").unwrap();
        backups.take(&scene.db).unwrap();
        drop(hook);
    }
}
