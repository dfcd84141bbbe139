//! RALT's place in the store: opened with it, remembered by its manifest, copied and removed with
//! it.

use super::HotRap;
use super::ralt::{self, Ralt, RaltParts};
use crate::engine::Engine;
use crate::error::Result;
use crate::metrics::Activity;
use crate::options::{HotRapOptions, ralt_dir};
use crate::placement::Opening;
use crate::placement::copying::Copier;
use crate::storage::Medium;
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::tier::Tier;
use crate::version::edit::PlacedBy;

impl HotRap {
    /// Opens RALT, and places records by it.
    pub(crate) fn open(options: HotRapOptions, with: Opening<'_>) -> Arc<Self> {
        let switches = options.switches();
        let ralt = Arc::new(Ralt::open(RaltParts {
            database: with.database,
            options,
            fast: Arc::clone(with.fast),
            medium: with.medium,
            path: ralt_dir(&with.fast.options.path),
            points: with.points,
            keyspaces: with.keyspaces,
            before: with.before,
            reads_only: with.reads_only,
        }));
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            ralt,
            counts_accesses: with.counts_accesses && !with.reads_only,
            switches,
            tracking: AtomicBool::new(false),
            promotions: Default::default(),
            hot_room: Default::default(),
            least_room: Default::default(),
            // Room that is there at opening does not come from a compaction: even little of it is
            // worth filling.
            has_spare_room: AtomicBool::new(true),
            copying: Default::default(),
            copier: Copier::new(true),
            governor: Default::default(),
            below_f: Default::default(),
            between: Default::default(),
        })
    }

    /// Copies what is known of hotness to the fast tier `target` of a checkpoint. Returns what the
    /// copy's manifest has to say about placement. Hotness is advice (I7): if it cannot be copied,
    /// the checkpoint goes without.
    pub(super) fn copy_hotness(&self, engine: &Engine, target: &Tier) -> Option<PlacedBy> {
        let (medium, dir) = (&*engine.media[0], ralt_dir(&target.options.path));
        let store = medium.log_store(&dir, true);
        let copied = store.and_then(|store| {
            let copy = || self.ralt.copy_to(&*store);
            engine.cpu.measured(Activity::Ralt, copy)
        });
        if self.ralt.has_work() {
            self.schedule_tracking(engine);
        }
        if let Ok(true) = copied {
            return Some(PlacedBy::Hotness);
        }
        // Half a copy would be taken for damage. If it cannot be removed, that is all it costs.
        let _ = ralt::discard(medium, &dir, target);
        None
    }
}

/// Removes what RALT has left on `fast`.
///
/// # Errors
/// I/O errors.
pub(in crate::placement) fn discard(medium: &dyn Medium, fast: &Tier) -> Result<()> {
    ralt::discard(medium, &ralt_dir(&fast.options.path), fast)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::api::Db;
    use crate::executor::Stepped;
    use crate::options::{Options, Placement, TierOptions};
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
        let _manifest = engine.files.manifest.lock();
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

    /// Beginning a manifest waited for RALT's work to be done, and for its tables to be copied. To
    /// another file system that takes the longer, the more bytes there are. No flush and no
    /// compaction could end meanwhile, and writers stopped.
    #[test]
    fn a_manifest_is_begun_while_hotness_is_copied() {
        let scene = Scene::new();
        let hook = scene.at("checkpoint.hotness_linked", |scene| {
            let engine = scene.engine();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                let _manifest = engine.files.manifest.lock();
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

    /// RALT itself waited, too, until all was copied: no access was written, those that came were
    /// dropped, and promotions waited for its work.
    #[test]
    fn access_records_are_worked_on_while_they_are_copied() {
        let scene = Scene::new();
        let hook = scene.at("checkpoint.hotness_linked", |scene| {
            let engine = scene.engine();
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                let is_more_due = engine.hotrap().ralt.work();
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

    /// The copy began with a flush of the accesses that reads had logged, even if closing had
    /// overtaken them. So a table and a state came into a directory that by then was nobody's, or
    /// another process's. That process found the number of its next table taken, and learnt nothing
    /// more.
    #[test]
    fn a_checkpoint_that_closing_has_overtaken_writes_no_access_records() {
        let disk = Faulty::new(1);
        let scene = Scene::on(Arc::new(disk.clone()), options());
        let (sender, receiver) = mpsc::channel();
        let closed = disk.clone();
        let hook = scene.at("checkpoint.identified", move |scene| {
            scene.db.close()?;
            scene
                .engine()
                .hotrap()
                .log_access(&scene.engine(), scene.tree().id, b"key", 1, 1);
            sender.send(left_by_ralt(&closed)).unwrap();
            Ok(())
        });
        let copy: [PathBuf; 2] = ["/copy-fast".into(), "/copy-slow".into()];
        scene.db.checkpoint(&copy).unwrap();
        drop(hook);
        assert_eq!(left_by_ralt(&disk), receiver.recv().unwrap());
    }

    /// Else the next opening would miss a state that never was.
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
