//! Changes of a store's shape beyond flushes and compactions: keyspaces, and a new manifest
//! when the old one has grown long.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::engine::Engine;
use super::tree::Tree;
use crate::error::{Error, Result};
use crate::placement::last_fast_level;
use crate::points::point;
use crate::sync::Arc;
use crate::version::edit::{KeyspaceId, KeyspaceMeta, VersionEdit};
use crate::version::{Manifest, Version};

/// Longest keyspace name, in bytes.
const MAX_NAME_LEN: usize = 255;

/// Length in bytes at which a manifest is replaced by one that holds the present state.
const ROLL_AT: u64 = 4 << 20;

impl Engine {
    /// Edits that add up to the present state. The caller holds the manifest's lock, so that
    /// nothing is installed meanwhile.
    pub(super) fn snapshot_edits(&self) -> Vec<VersionEdit> {
        let mut edits = vec![VersionEdit {
            next_file: Some(self.next_file.load(Ordering::Relaxed)),
            last_seq: Some(self.visible()),
            log_floor: Some(self.log_floor.load(Ordering::Acquire)),
            log_start: Some(self.commit.log_sync.first_segment()),
            placed_by: self.placed_by(),
            ..VersionEdit::default()
        }];
        edits.extend(self.all_trees().iter().map(|tree| tree.snapshot_edit()));
        edits
    }

    /// Starts a new manifest when the present one is long.
    pub(crate) fn roll_manifest(&self) -> Result<()> {
        let mut manifest = self.manifest.lock();
        if manifest.len() < ROLL_AT {
            return Ok(());
        }
        let mut edits = self.snapshot_edits();
        if let Some(first) = edits.first_mut() {
            first.found_log = Some(self.found_log.clone());
        }
        let tier = Arc::clone(self.fast());
        let points = self.points.clone();
        *manifest = Manifest::create(tier, self.database, self.new_file(), &edits, points)?;
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
        let mut manifest = self.manifest.lock();
        let trees = self.all_trees();
        if let Some(tree) = trees.into_iter().find(|tree| tree.name == name.as_bytes()) {
            return Ok(tree);
        }
        // A file number serves as the keyspace's: neither is ever used twice.
        let id = KeyspaceId::try_from(self.new_file()).map_err(|_| Error::TooLarge {
            what: "number of keyspaces and files",
            len: usize::MAX,
            limit: KeyspaceId::MAX as usize,
        })?;
        let meta = KeyspaceMeta {
            id,
            name: Bytes::copy_from_slice(name.as_bytes()),
            last_fast_level: last_fast_level(&self.options, &self.sizes),
        };
        let edit = VersionEdit {
            created: vec![meta.clone()],
            next_file: Some(self.next_file.load(Ordering::Relaxed)),
            ..VersionEdit::default()
        };
        manifest
            .append(&edit)
            .inspect_err(|error| self.background.note_poison(error))?;
        let _: Result<()> = point!(self.points, "keyspace.created");
        let tree = Tree::new(id, meta.name, meta.last_fast_level, Version::default(), 0);
        let tree = Arc::new(tree);
        if let Some(ralt) = &self.ralt {
            ralt.forget(tree.id);
        }
        self.trees.rcu(|trees| {
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
        // The log's lock: no group is half way into the keyspace's memtable.
        let _log = self.commit.log.lock();
        let mut manifest = self.manifest.lock();
        if self.tree(tree.id).is_none() {
            return Ok(());
        }
        let edit = VersionEdit {
            dropped: vec![tree.id],
            ..VersionEdit::default()
        };
        manifest
            .append(&edit)
            .inspect_err(|error| self.background.note_poison(error))?;
        let _: Result<()> = point!(self.points, "keyspace.dropped");
        let active = tree.peek().active.bytes();
        self.commit
            .active_bytes
            .fetch_sub(active, Ordering::Relaxed);
        self.trees.rcu(|trees| {
            let mut trees = (**trees).clone();
            trees.remove(&tree.id);
            trees
        });
        let before = tree.empty();
        let _: Result<()> = point!(self.points, "keyspace.emptied");
        // After the tree is empty, when no fill is current any more and no read asks.
        if let Some(records) = &self.records {
            records.forget(tree.id);
        }
        for table in before.tables() {
            table.file.mark_obsolete();
        }
        Ok(())
    }
}
