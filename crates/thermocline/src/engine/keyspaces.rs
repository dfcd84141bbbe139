//! Changes of a store's shape beyond flushes and compactions: keyspaces, and a new manifest
//! when the old one has grown long.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{Engine, Tree};
use crate::error::{Error, Result};
use crate::ids::{FileId, KeyspaceId};
use crate::placement::last_fast_level;
use crate::points::point;
use crate::sync::Arc;
use crate::table::Heat;
use crate::version::edit::{KeyspaceMeta, Learned, VersionEdit};
use crate::version::{Manifest, Version};

/// Longest keyspace name, in bytes.
const MAX_NAME_LEN: usize = 255;

impl Engine {
    /// Edits that add up to the present state. The caller holds the manifest's lock, so that
    /// nothing is installed meanwhile.
    pub(crate) fn snapshot_edits(&self) -> Vec<VersionEdit> {
        let mut edits = vec![VersionEdit {
            next_file: Some(self.files.next.load(Ordering::Relaxed)),
            // Not the last visible one: what is visible may be in no table yet, and its log may be
            // lost or left behind (I5).
            last_seq: Some(self.sequence.log_floor.load(Ordering::Acquire)),
            log_floor: Some(self.sequence.log_floor.load(Ordering::Acquire)),
            log_start: Some(self.commit.log_sync.first_segment()),
            placed_by: self.placement.placed_by(),
            target: self.target.to_edit(),
            heats: self.heats(),
            ..VersionEdit::default()
        }];
        edits.extend(self.all_trees().iter().map(|tree| tree.snapshot_edit()));
        edits
    }

    /// *f* as placement has it, and as the manifest has it: `founded`.
    pub(crate) fn levels_of(&self, founded: u8) -> [u8; 2] {
        [self.placement.last_fast_level(founded), founded]
    }

    /// How hot tables are, if that is to outlast the store's closing.
    pub(crate) fn heats(&self) -> Vec<(FileId, Heat)> {
        if !self.placement.keeps_heat(self) {
            return Vec::new();
        }
        let mut heats = Vec::new();
        for tree in self.all_trees() {
            let version = tree.version();
            let known = version.tables().map(|t| (t.meta.id, t.lazy.heat().get()));
            heats.extend(known.filter(|(_, heat)| heat.known().is_some()));
        }
        heats
    }

    /// Starts a new manifest when the present one is long. The caller holds neither the log's lock
    /// nor the manifest's.
    pub(crate) fn roll_manifest(&self) -> Result<()> {
        self.roll_manifest_if(Manifest::is_long)
    }

    /// As [`Engine::roll_manifest`], when `is_due` says so of the present one.
    pub(crate) fn roll_manifest_if(&self, is_due: impl Fn(&Manifest) -> bool) -> Result<()> {
        let mut manifest = self.files.manifest.lock();
        // Once the store is closed, another process may have begun a manifest of its own. Once it
        // is poisoned, it is unknown which edits are in force (I9).
        if !is_due(&manifest) || self.check_writable().is_err() {
            return Ok(());
        }
        let mut edits = self.snapshot_edits();
        if let Some(first) = edits.first_mut() {
            first.found_log = Some(self.sequence.found_log.clone());
        }
        let tier = Arc::clone(self.fast());
        let points = self.points.clone();
        match Manifest::create(
            tier,
            self.identity.database,
            self.new_file(),
            &edits,
            points,
        ) {
            Ok(created) => *manifest = created,
            // It is unknown which of the two is in force. An edit of the old one could be lost
            // (I9), and the jobs that wait for the lock would act on their edits.
            Err(error @ Error::Poisoned { .. }) => return Err(manifest.poison(error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(crate) fn create_keyspace(&self, name: &str) -> Result<Arc<Tree>> {
        self.check_writable()?;
        if name.len() > MAX_NAME_LEN {
            return Err(Error::TooLarge {
                what: "keyspace name",
                len: name.len(),
                limit: MAX_NAME_LEN,
            });
        }
        point!(self.points, "keyspace.create")?;
        let mut manifest = self.files.manifest.lock();
        // Checked again: once the store is closed, another process may have begun a manifest of its
        // own.
        self.check_writable()?;
        let trees = self.all_trees();
        if let Some(tree) = trees.into_iter().find(|tree| tree.name == name.as_bytes()) {
            return Ok(tree);
        }
        // The keyspace's number is a file number: neither is ever used twice.
        let id = KeyspaceId::try_from(self.new_file()).map_err(|_| Error::TooLarge {
            what: "number of keyspaces and files",
            len: usize::MAX,
            limit: KeyspaceId::MAX as usize,
        })?;
        let meta = KeyspaceMeta {
            id,
            name: Bytes::copy_from_slice(name.as_bytes()),
            last_fast_level: last_fast_level(&self.options, &self.sizes, self.fast().capacity()),
        };
        let edit = VersionEdit {
            created: vec![meta.clone()],
            next_file: Some(self.files.next.load(Ordering::Relaxed)),
            ..VersionEdit::default()
        };
        manifest
            .append(&edit)
            .inspect_err(|error| self.background.note_poison(error))?;
        let _: Result<()> = point!(self.points, "keyspace.created");
        let tree = Arc::new(Tree::new(
            id,
            meta.name,
            self.levels_of(meta.last_fast_level),
            Version::default(),
            0,
            Learned::default(),
            Arc::clone(&self.keyspaces.tally),
        ));
        self.placement.track(tree.id);
        self.keyspaces.trees.rcu(|trees| {
            let mut trees = (**trees).clone();
            trees.insert(id, Arc::clone(&tree));
            trees
        });
        Ok(tree)
    }

    pub(crate) fn drop_keyspace(&self, tree: &Arc<Tree>) -> Result<()> {
        self.check_writable()?;
        if tree.id == 0 {
            return Err(Error::InvalidOption {
                option: "keyspace",
                reason: "the default keyspace cannot be dropped".into(),
            });
        }
        // Under the log's lock, no group is half way into the keyspace's memtable. And not during a
        // checkpoint: the keyspace would be gone from the copy, and with it what was written
        // before.
        let mut log = self.lock_unheld_log()?;
        let through = log.last_seq;
        // I5: the edit must not get ahead of writes that were acknowledged before it, in whichever
        // keyspace.
        self.commit
            .log_sync
            .sync_through(through)
            .inspect_err(|error| self.background.note_poison(error))?;
        let mut manifest = self.files.manifest.lock();
        if self.tree(tree.id).is_none() {
            return Ok(());
        }
        let edit = VersionEdit {
            dropped: vec![tree.id],
            // The keyspace's records in the log are never flushed, so no other edit lets them go.
            // Records of other keyspaces stay there for as long as they are needed (`trim_log`).
            log_floor: Some(through),
            ..VersionEdit::default()
        };
        manifest
            .append(&edit)
            .inspect_err(|error| self.background.note_poison(error))?;
        let _: Result<()> = point!(self.points, "keyspace.dropped");
        // Under the log's lock: a checkpoint must not name what it has not frozen.
        self.sequence
            .log_floor
            .fetch_max(through, Ordering::Release);
        self.keyspaces.dropped.lock().insert(tree);
        log.unowned += tree.peek().active.bytes();
        self.keyspaces.trees.rcu(|trees| {
            let mut trees = (**trees).clone();
            trees.remove(&tree.id);
            trees
        });
        let before = tree.empty();
        for table in before.tables() {
            table.file.mark_obsolete();
        }
        drop(manifest);
        // From here on the keyspace is gone, whatever fails. What remains of its log goes with the
        // next flush or drop, or when a writer finds no room.
        let _: Result<()> = self.end_unowned_log(&mut log);
        drop(log);
        let _: Result<()> = point!(self.points, "keyspace.emptied");
        // Without the locks, as the whole index is walked. After the tree is empty, when no fill is
        // current any more and no read asks. What stays in the cache until then is found by nobody:
        // the number is never given to another keyspace.
        if let Some(records) = &self.caches.records {
            records.forget(tree.id);
        }
        if let Err(error) = self.trim_log() {
            self.background.note_poison(&error);
        }
        // While the other keyspaces are idle, no flush and no compaction does this. If it fails,
        // the next of them, or the next drop, tries again.
        if let Err(error) = self.roll_manifest() {
            self.background.note_poison(&error);
        }
        self.placement.forget(tree.id);
        // Writers may have been slowed because of what waited here, and others may have room now.
        self.after_change();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::executor::Stepped;
    use crate::options::Options;
    use crate::storage::{Faulty, Medium, Memory};
    use crate::testing::scene::{F, KEYS, Scene, everything, options, value};
    use crate::wal::FoundLog;

    /// An edit that makes a manifest long by itself.
    fn long() -> VersionEdit {
        VersionEdit {
            found_log: Some(FoundLog {
                segments: (0..1 << 20).map(|number| (number, 1 << 20)).collect(),
                next: 0,
                reaches: None,
            }),
            ..VersionEdit::default()
        }
    }

    /// A store whose manifest is long.
    fn open_long(disk: &Faulty) -> Db {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        db.engine().files.manifest.lock().append(&long()).unwrap();
        db
    }

    /// Only flushes and compactions replaced a manifest that had grown long. Where keyspaces came
    /// and went beside idle ones, there were none. The manifest took ever more of the fast tier
    /// (I8), and an opening read all of it.
    #[test]
    fn a_drop_replaces_a_long_manifest() {
        let db = open_long(&Faulty::new(1));
        let before = db.engine().files.manifest.lock().number();
        db.create_keyspace("task").unwrap();
        db.drop_keyspace("task").unwrap();
        let manifest = db.engine().files.manifest.lock();
        assert_ne!(manifest.number(), before);
        assert!(!manifest.is_long(), "{} bytes", manifest.len());
    }

    /// A drop may end after the store is closed, when somebody else has opened its directories. If
    /// the drop began a manifest then, that manifest would be in force, and the edits of the other
    /// manifest would be lost.
    #[test]
    fn nobody_replaces_the_manifest_of_a_closed_store() {
        let disk = Faulty::new(1);
        let db = open_long(&disk);
        db.close().unwrap();
        let before = disk.list_raw("/fast".as_ref());
        // As a drop does when closing has overtaken it.
        db.engine().roll_manifest().unwrap();
        assert_eq!(disk.list_raw("/fast".as_ref()), before);
    }

    /// Once `CURRENT` names another manifest, an edit of the one before is no longer in force. A
    /// rollover that failed after that point left the old manifest open. A compaction that was
    /// about to end wrote its edit there, and removed its inputs. The store did not open again: its
    /// manifest named tables that were gone.
    #[test]
    fn a_rollover_that_failed_too_late_lets_no_edit_go_to_the_old_manifest() {
        // The manifest takes room on the fast tier as well.
        let mut options = options();
        options.tiers[0].capacity = 64 << 20;
        let medium: Arc<dyn Medium> = Arc::new(Memory::new());
        let scene = Scene::on(Arc::clone(&medium), options.clone());
        scene.put_all(&KEYS, "old");
        scene.db.flush().unwrap();
        scene.put_all(&KEYS, "new");
        scene.db.flush().unwrap();
        scene
            .engine()
            .files
            .manifest
            .lock()
            .append(&long())
            .unwrap();
        let hook = scene.at("compaction.before_edit", |scene| {
            let renamed = scene.at("manifest.current_renamed", |_| Err(Error::Closed));
            let rolled = scene.engine().roll_manifest();
            assert!(matches!(rolled, Err(Error::Poisoned { .. })), "{rolled:?}");
            drop(renamed);
            Ok(())
        });
        let plan = scene.pick(0, &everything(), true);
        scene.start(plan.expect("a compaction of L0"));
        scene.drain();
        drop(hook);
        assert!(
            scene.db.close().is_err(),
            "the manifest is not to be relied on"
        );
        drop(scene);
        let scene = Scene::on(medium, options);
        assert_eq!(scene.get(KEYS[0]).as_deref(), Some("new"));
    }

    /// No test checked that a job looks whether its keyspace is still there. Without that look, a
    /// job whose keyspace was dropped between its table and its edit wrote an edit that cannot
    /// follow the drop, and the store did not open again.
    #[test]
    fn a_keyspace_may_be_dropped_while_a_job_of_it_is_about_to_be_installed() {
        for point in [
            "flush.before_edit",
            "move.before_edit",
            "compaction.before_edit",
            "promotion.before_edit",
        ] {
            let scene = Scene::new();
            let side = scene.db.create_keyspace("side").unwrap();
            let (engine, tree) = (scene.engine(), side.tree());
            let write = || {
                for key in KEYS {
                    side.put(key, value("old")).unwrap();
                }
            };
            let start = |from: usize| {
                let plan = scene.pick_in(tree, from, &everything(), true);
                engine.start(tree, plan.expect("a table")).unwrap();
            };
            write();
            if point == "flush.before_edit" {
                scene.freeze();
            } else {
                scene.db.flush().unwrap();
            }
            match point {
                "move.before_edit" => start(0),
                "compaction.before_edit" => {
                    write();
                    scene.db.flush().unwrap();
                    start(0);
                }
                "promotion.before_edit" => {
                    for from in 0..=F {
                        start(from);
                        scene.drain();
                    }
                    for key in KEYS {
                        assert!(side.get(key).unwrap().is_some());
                    }
                    scene.heat_in(tree.id, &KEYS);
                    engine.hotrap().schedule_promotion(&engine, tree);
                }
                _ => {}
            }
            let hook = scene.at(point, |scene| scene.db.drop_keyspace("side"));
            scene.drain();
            drop(hook);
            drop((engine, side));
            let scene = scene.reopen(options());
            assert_eq!(scene.db.keyspaces(), ["default"], "{point}");
        }
    }
}
