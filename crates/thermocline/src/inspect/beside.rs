//! Inspection beside a program that has the store open: a medium on which the program works between
//! two steps of the inspection.

use std::path::Path;

use crate::error::Result;
use crate::storage::{
    FileInfo, LogFile, LogStore, Medium, StoreLock, TableFile, TableStore, TableWriter,
};
use crate::sync::Arc;

/// What happens before a file is opened or read, or a directory is listed. It is given the file's
/// name, or an empty one for a directory.
type Before = Arc<dyn Fn(&str) + Send + Sync>;

/// The medium, as the inspection has it.
pub(crate) struct Beside<S: ?Sized> {
    inner: Arc<S>,
    before: Before,
}

impl<S: ?Sized> std::fmt::Debug for Beside<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Beside")
    }
}

impl Beside<dyn Medium> {
    pub(crate) fn new(
        inner: Arc<dyn Medium>,
        before: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let before = Arc::new(before);
        Self { inner, before }
    }
}

impl Medium for Beside<dyn Medium> {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        let inner = self.inner.log_store(dir, create)?;
        let before = Arc::clone(&self.before);
        Ok(Arc::new(Beside { inner, before }))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        let inner = self.inner.table_store(dir, create)?;
        let before = Arc::clone(&self.before);
        Ok(Arc::new(Beside { inner, before }))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.inner.remove_dir(dir)
    }
}

impl LogStore for Beside<dyn LogStore> {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        self.inner.create(name)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        (self.before)(name);
        self.inner.read(name)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        (self.before)("");
        self.inner.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.inner.sync_dir()
    }
}

impl TableStore for Beside<dyn TableStore> {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        self.inner.create(name, expected_len)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        (self.before)(name);
        self.inner.open(name)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        (self.before)("");
        self.inner.list()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        self.inner.link(name, target)
    }

    fn sync_dir(&self) -> Result<()> {
        self.inner.sync_dir()
    }
}

mod tests {
    use super::*;
    use crate::executor::Stepped;
    use crate::inspect::{TablesReport, manifest, tables};
    use crate::storage::Memory;
    use crate::sync::Mutex;
    use crate::tier::Tier;
    use crate::{Db, Options};

    fn options() -> Options {
        Options::one_tier("/db")
    }

    fn open(medium: &Arc<dyn Medium>) -> Db {
        // On one thread: then the tables that a compaction has replaced are gone when it has ended,
        // and not only when the last thread that knew of them lets go.
        let builder = Db::builder(options()).executor(Arc::new(Stepped::new(1)));
        builder.medium(0, Arc::clone(medium)).open().unwrap()
    }

    /// The tiers of the store on `medium`, beside which `before` works.
    fn tiers(
        medium: &Arc<dyn Medium>,
        before: impl Fn(&str) + Send + Sync + 'static,
    ) -> Vec<Arc<Tier>> {
        let beside = Beside::new(Arc::clone(medium), before);
        let tier = options().tiers.remove(0);
        let log = beside.log_store(&tier.path, false).unwrap();
        let tables = beside.table_store(&tier.path, false).unwrap();
        vec![Arc::new(Tier::new(0, tier, tables, Some(log)))]
    }

    /// In one run of four, `inspect tables` beside a running program called tables damaged that a
    /// compaction had replaced between the look at the manifest and the one at the table.
    #[test]
    fn a_table_that_was_replaced_meanwhile_is_not_damaged() {
        let medium: Arc<dyn Medium> = Arc::new(Memory::new());
        let db = open(&medium);
        for _ in 0..2 {
            db.put("key", "value").unwrap();
            db.flush().unwrap();
        }
        // Twice during the first look, and once during the second.
        let left = Mutex::new(3);
        let tiers = tiers(&medium, move |name| {
            let mut left = left.lock();
            if name.ends_with(".sst") && *left > 0 {
                *left -= 1;
                db.put("key", "newer").unwrap();
                db.flush().unwrap();
                db.compact_range::<&str>(..).unwrap();
            }
        });
        let report = tables::look(&tiers).unwrap();
        assert_eq!(report.damaged(), 0, "{report:?}");
        assert_eq!(numbers(&report).len(), 1, "{report:?}");
        assert_eq!(report, tables::look(&tiers).unwrap());
        // A missing table that the manifest still names is lost.
        let lost = tiers[0].tables.list().unwrap();
        let lost = lost.iter().filter(|file| file.name.ends_with(".sst"));
        for file in lost {
            tiers[0].tables.remove(&file.name).unwrap();
        }
        let report = tables::look(&tiers).unwrap();
        assert_eq!(report.damaged(), 1, "{report:?}");
        assert!(report.tables[0].contents.to_string().contains("missing"));
    }

    fn numbers(report: &TablesReport) -> Vec<u64> {
        let numbers = report.tables.iter().map(|table| table.meta.number);
        numbers.collect()
    }

    /// A manifest was called damaged if an opening had put another in its place after `CURRENT` had
    /// named it.
    #[test]
    fn a_manifest_that_was_replaced_meanwhile_is_not_damaged() {
        let medium: Arc<dyn Medium> = Arc::new(Memory::new());
        let db = Mutex::new(Some(open(&medium)));
        let again = Arc::clone(&medium);
        let tiers = tiers(&medium, move |name| {
            let mut db = db.lock();
            if name.starts_with("MANIFEST")
                && let Some(open_now) = db.take()
            {
                open_now.close().unwrap();
                open(&again).close().unwrap();
            }
        });
        let (report, _) = manifest::read(&tiers[0]).unwrap();
        assert_eq!(report.damaged(), 0);
        let store = tiers[0].log.as_ref().unwrap();
        store
            .remove(report.file.file_name().unwrap().to_str().unwrap())
            .unwrap();
        let lost = manifest::read(&tiers[0]).unwrap_err();
        assert!(lost.to_string().contains("missing"), "{lost}");
    }
}
