//! RALT's place in the store: opened with it, remembered by its manifest, copied and removed with it.

use crate::options::ralt_dir;

use super::ralt::{self, Ralt, RaltParts};
use crate::db::DbBuilder;
use crate::db::Engine;
use crate::db::Shape;
use crate::error::{Error, Result};
use crate::metrics::Activity;
use crate::options::{Options, Placement};
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::PlacedBy;

/// Opens RALT, if hotness decides where records live. `shape` is what the store's manifest says.
pub(crate) fn open_ralt(
    builder: &DbBuilder,
    database: u128,
    fast: &Arc<Tier>,
    shape: &Shape,
) -> Option<Arc<Ralt>> {
    let options = builder.options.hotrap()?;
    Some(Arc::new(Ralt::open(RaltParts {
        database,
        options: options.clone(),
        fast: Arc::clone(fast),
        medium: builder.medium_of(0),
        path: ralt_dir(&fast.options.path),
        points: builder.points.clone(),
        keyspaces: shape.keyspaces.keys().copied().collect(),
        before: shape.placed_by,
        reads_only: builder.reads_only,
    })))
}

/// Removes what RALT left on the fast tier: nobody keeps it up to date from now on. What cannot be
/// removed counts as used (I8).
///
/// # Errors
/// I/O errors.
pub(crate) fn discard_ralt(builder: &DbBuilder, fast: &Tier) -> Result<()> {
    let medium = builder.medium_of(0);
    ralt::discard(&*medium, &ralt_dir(&fast.options.path), fast)
}

/// Refuses a single tier where RALT has left a state: the store had others to place records on. For where no manifest says
/// which tiers hold tables; of a store that places records by level nothing else does.
///
/// # Errors
/// [`Error::InvalidOption`]; I/O errors.
pub(crate) fn check_not_alone(builder: &DbBuilder) -> Result<()> {
    let [only] = &builder.options.tiers[..] else {
        return Ok(());
    };
    let dir = ralt_dir(&only.path);
    if !Ralt::has_left_a_state(&*builder.medium_of(0), &dir)? {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: "tiers",
        reason: format!(
            "one is given, and {} holds access records, which only a store of several has; \
             name all its tiers",
            dir.display()
        ),
    })
}

/// What a manifest is to say of placement. By hotness only if RALT has a state on disk: the next
/// opening takes a missing one for lost.
pub(crate) fn placed_by(options: &Options, ralt: Option<&Ralt>) -> Option<PlacedBy> {
    match &options.placement {
        // The cache is gone with the store's closing; the tables lie by level, on one tier.
        Placement::ByLevel | Placement::FlashCache => Some(PlacedBy::Level),
        Placement::HotRap(_) if ralt.is_some_and(Ralt::has_state) => Some(PlacedBy::Hotness),
        Placement::HotRap(_) => None,
    }
}

impl Engine {
    /// What a manifest that is begun now is to say of placement.
    pub(crate) fn placed_by(&self) -> Option<PlacedBy> {
        placed_by(&self.options, self.ralt.as_deref())
    }

    /// Copies what is known of hotness to the fast tier `target` of a checkpoint; gives back what the
    /// copy's manifest is to say of placement. Hotness is advice (I7): where it cannot be copied,
    /// the checkpoint goes without.
    pub(crate) fn copy_hotness(&self, target: &Tier) -> Option<PlacedBy> {
        let Some(ralt) = &self.ralt else {
            return self.placed_by();
        };
        let (medium, dir) = (&*self.media[0], ralt_dir(&target.options.path));
        let store = medium.log_store(&dir, true);
        let copied = store.and_then(|store| {
            let copy = || ralt.copy_to(&*store);
            self.cpu.measured(Activity::Ralt, copy)
        });
        if ralt.has_work() {
            self.schedule_tracking();
        }
        if let Ok(true) = copied {
            return Some(PlacedBy::Hotness);
        }
        // Half a copy would be taken for damage. If it stays, that is all it costs.
        let _ = ralt::discard(medium, &dir, target);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::db::Db;
    use crate::executor::Stepped;
    use crate::options::TierOptions;
    use crate::storage::{Fault, Faulty, FileInfo, Operation};
    use crate::testing::scene::{Scene, options};

    fn open(disk: &Faulty, placement: Placement) -> Db {
        let mut options = Options::with_tiers(vec![
            TierOptions::fast("/fast").capacity(4 << 20),
            TierOptions::slow("/slow"),
        ]);
        options.memory = 8 << 20;
        options.memtable_size = Some(32 << 10);
        options.placement = placement;
        let mut builder = Db::builder(options).executor(Arc::new(Stepped::new(1)));
        for tier in 0..2 {
            builder = builder.medium(tier, Arc::new(disk.clone()));
        }
        builder.open().unwrap()
    }

    fn said(db: &Db) -> Option<PlacedBy> {
        let engine = db.engine();
        let _manifest = engine.manifest.lock();
        engine.snapshot_edits()[0].placed_by
    }

    #[test]
    fn a_manifest_begun_while_the_store_is_open_says_it_too() {
        let (disk, hotness) = (Faulty::new(1), Placement::default());
        assert_eq!(said(&open(&disk, hotness)), Some(PlacedBy::Hotness));
        assert_eq!(
            said(&open(&disk, Placement::ByLevel)),
            Some(PlacedBy::Level)
        );
    }

    /// It waited for RALT's work to be done, and for a copy of its tables, which to another file system takes as long as there
    /// are bytes. No flush and no compaction could end meanwhile, and writers stopped.
    #[test]
    fn a_manifest_is_begun_while_hotness_is_copied() {
        let scene = Scene::new();
        let hook = scene.at("checkpoint.hotness_linked", |scene| {
            let engine = scene.engine();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                let _manifest = engine.manifest.lock();
                let placed_by = engine.snapshot_edits()[0].placed_by;
                sender.send(placed_by).unwrap();
            });
            let said = receiver.recv_timeout(Duration::from_secs(20));
            assert_eq!(said, Ok(Some(PlacedBy::Hotness)));
            Ok(())
        });
        let copy: [PathBuf; 2] = ["/copy-fast".into(), "/copy-slow".into()];
        scene.db.checkpoint(&copy).unwrap();
        drop(hook);
    }

    /// And RALT itself waited, until all was copied: no access was written, those that came were dropped, and whoever
    /// promoted waited for its work.
    #[test]
    fn access_records_are_worked_on_while_they_are_copied() {
        let scene = Scene::new();
        let hook = scene.at("checkpoint.hotness_linked", |scene| {
            let engine = scene.engine();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                let is_more_due = engine.ralt.as_ref().unwrap().work();
                sender.send(is_more_due).unwrap();
            });
            let worked = receiver.recv_timeout(Duration::from_secs(20));
            assert_eq!(worked, Ok(false));
            Ok(())
        });
        let copy: [PathBuf; 2] = ["/copy-fast".into(), "/copy-slow".into()];
        scene.db.checkpoint(&copy).unwrap();
        drop(hook);
    }

    /// RALT's directory on the fast tier, and its state there.
    fn left_by_ralt(disk: &Faulty) -> (Vec<FileInfo>, Vec<u8>) {
        let dir = ralt_dir(Path::new("/fast"));
        (disk.list_raw(&dir), disk.read_raw(&dir, "RALT").unwrap())
    }

    /// The copy began with a flush of what reads had logged, those too that closing had overtaken. A table and a state came into
    /// a directory that was nobody's by then, or another process's: that found the number of its next table taken, and
    /// learnt nothing more.
    #[test]
    fn a_checkpoint_that_closing_has_overtaken_writes_no_access_records() {
        let disk = Faulty::new(1);
        let scene = Scene::on(Arc::new(disk.clone()), options());
        let (sender, receiver) = mpsc::channel();
        let closed = disk.clone();
        let hook = scene.at("checkpoint.identified", move |scene| {
            scene.db.close()?;
            scene.engine().log_access(scene.tree().id, b"key", 1, 1);
            sender.send(left_by_ralt(&closed)).unwrap();
            Ok(())
        });
        let copy: [PathBuf; 2] = ["/copy-fast".into(), "/copy-slow".into()];
        scene.db.checkpoint(&copy).unwrap();
        drop(hook);
        assert_eq!(left_by_ralt(&disk), receiver.recv().unwrap());
    }

    /// Else the next opening would miss what never was.
    #[test]
    fn where_no_state_could_be_written_none_is_expected() {
        let disk = Faulty::new(1);
        disk.fail_where(
            |operation, name| operation == Operation::Create && name == "RALT.tmp",
            Fault::NoSpace,
        );
        let db = open(&disk, Placement::default());
        assert_eq!((said(&db), &db.recovery().hotness), (None, &None));
        db.close().unwrap();
        disk.heal();
        let db = open(&disk, Placement::default());
        assert_eq!(
            (said(&db), &db.recovery().hotness),
            (Some(PlacedBy::Hotness), &None)
        );
    }
}
