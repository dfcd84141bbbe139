//! A store that is opened for reading only: nothing in its directories changes.
//!
//! The log is replayed into memtables, which stay in memory. Log and manifest are left as they
//! were, a torn tail included. Orphans stay where they are: no number is given out that could be
//! theirs (I4). Records that were not flushed are in the log as before (I5). Nothing runs in the
//! background, and accesses are not logged.

use super::begin::Begun;
use super::open::Parts;
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::storage::LogFile;
use crate::sync::Arc;
use crate::version::Manifest;
use crate::wal::{Surveyed, Wal};

impl Parts<'_> {
    /// As [`Parts::begin`], but begins nothing.
    pub(crate) fn begin_nothing(
        &mut self,
        surveyed: Surveyed,
        new_file: &dyn Fn() -> FileId,
    ) -> Result<Begun> {
        let request = self.request;
        let tier = &self.tiers[0];
        let recovered = surveyed.recovered;
        let placement = self.open_placement();
        let log_file = new_file();
        let found = (self.manifest.number, self.manifest.end);
        let manifest = Manifest::refusing(
            Arc::clone(tier),
            found,
            Arc::new(Refusing),
            request.points.clone(),
        );
        let wal = Wal::refusing(
            Arc::clone(tier),
            self.database,
            log_file,
            &recovered,
            Arc::new(Refusing),
            request.points.clone(),
        )?;
        Ok(Begun {
            found_log: recovered.found_log(log_file),
            recovered,
            hotness: placement.trouble(),
            placement,
            manifest,
            wal,
            orphans: 0,
            set_aside: Vec::new(),
        })
    }
}

/// Stands for a file that nothing may be written to.
#[derive(Debug)]
struct Refusing;

impl LogFile for Refusing {
    fn append(&self, _bytes: &[u8]) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn sync(&self) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn truncate(&self, _len: u64) -> Result<()> {
        Err(Error::ReadOnly)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Db;
    use crate::executor::Stepped;
    use crate::storage::{Faulty, Medium};
    use crate::sync::Mutex;
    use crate::testing::scene::{KEYS, Scene, options, value};

    const DIRS: [&str; 3] = ["/fast", "/fast/ralt", "/slow"];

    /// Every file, byte by byte.
    fn files(disk: &Faulty) -> Vec<(String, Vec<u8>)> {
        let of = |dir: &'static str| {
            let list = disk.list_raw(Path::new(dir)).into_iter();
            list.map(move |file| {
                let bytes = disk.read_raw(Path::new(dir), &file.name);
                (format!("{dir}/{}", file.name), bytes.unwrap_or_default())
            })
        };
        let mut files: Vec<_> = DIRS.into_iter().flat_map(of).collect();
        files.sort();
        files
    }

    fn open(disk: &Faulty, reads_only: bool) -> Result<Db> {
        let mut builder = Db::builder(options()).executor(Arc::new(Stepped::new(1)));
        for tier in 0..options().tiers.len() {
            builder = builder.medium(tier, Arc::new(disk.clone()));
        }
        match reads_only {
            true => builder.reads_only().open(),
            false => builder.open(),
        }
    }

    /// What a crash leaves: tables, one of them named by no edit, a log with records that are in no
    /// table, and a torn edit.
    fn left_by_a_crash() -> Faulty {
        let disk = Faulty::new(1);
        let scene = Scene::on(Arc::new(disk.clone()), options());
        scene.put_all(&KEYS, "old");
        scene.db.flush().unwrap();
        scene.db.put(KEYS[0], value("new")).unwrap();
        let image = Arc::new(Mutex::new(None));
        let (taken, running) = (Arc::clone(&image), disk.clone());
        let hook = scene.at("flush.before_edit", move |_| {
            *taken.lock() = Some(running.image(|_| true));
            Err(Error::Closed)
        });
        scene.freeze();
        scene.drain();
        assert!(hook.has_run());
        let image: Faulty = image.lock().take().unwrap();
        let fast = Path::new("/fast");
        let log = image.log_store(fast, false).unwrap();
        let list = image.list_raw(fast).into_iter();
        let mut manifests = list.filter(|file| file.name.starts_with("MANIFEST"));
        let name = manifests.next().unwrap().name;
        let edits = log.read(&name).unwrap();
        let manifest = log.create(&name).unwrap();
        manifest.append(&edits).unwrap();
        manifest.append(b"torn").unwrap();
        manifest.sync().unwrap();
        image
    }

    /// A command that only read one key rewrote the manifest, began a segment of the log and a
    /// state of the access records, and removed what a crash had left, which is all that a repair
    /// could have gone by.
    #[test]
    fn whoever_only_reads_changes_no_file() {
        let disk = left_by_a_crash();
        let before = files(&disk);
        let db = open(&disk, true).unwrap();
        for key in KEYS {
            let wanted = value(if key == KEYS[0] { "new" } else { "old" });
            assert_eq!(*db.get(key).unwrap().unwrap(), *wanted, "{key}");
        }
        assert_eq!(db.iter().count(), KEYS.len());
        assert!(db.verify(&mut |_| {}).unwrap().problems.is_empty());
        assert!(db.metrics().background_error.is_none());
        let refused = [
            db.put("key", "value").map(|_| ()),
            db.delete("key").map(|_| ()),
            db.flush(),
            db.compact_range::<&[u8]>(..),
            db.create_keyspace("other").map(|_| ()),
            db.checkpoint(&["/copy-fast".into(), "/copy-slow".into()]),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
        }
        let _: Result<()> = db.wait_idle();
        db.close().unwrap();
        assert!(db.get(KEYS[0]).is_err(), "it is closed");
        drop(db);
        assert_eq!(files(&disk), before);

        let db = open(&disk, false).unwrap();
        assert_eq!(db.recovery().orphans, 1);
        assert_eq!(*db.get(KEYS[0]).unwrap().unwrap(), *value("new"));
    }

    /// Where there is no store, reading makes none, whatever the options allow.
    #[test]
    fn whoever_only_reads_founds_no_store() {
        let disk = Faulty::new(1);
        let opened = open(&disk, true).map(|_| ());
        assert!(matches!(opened, Err(Error::NotFound { .. })), "{opened:?}");
        assert!(files(&disk).is_empty());
    }
}
