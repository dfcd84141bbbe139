//! What the manifest's edits add up to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::ids::{FileId, KeyspaceId, MAX_NUMBER};
use crate::key::{MAX_SEQ, SeqNo};
use crate::table::{Heat, TableMeta};
use crate::version::edit::{KeyspaceMeta, Learned, PlacedBy, SetTarget, VersionEdit};
use crate::wal::{Bounds, FoundLog};

/// An edit that cannot follow from those before it.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// Which of the edits.
    pub(crate) index: usize,
    pub(crate) what: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// The state that the manifest's edits add up to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Shape {
    pub(crate) keyspaces: BTreeMap<KeyspaceId, KeyspaceMeta>,
    pub(crate) tables: BTreeMap<FileId, TableMeta>,
    /// Tables that these edits took out of it.
    pub(crate) removed: BTreeSet<FileId>,
    pub(crate) flushed_through: BTreeMap<KeyspaceId, SeqNo>,
    /// What compactions learned, of keyspaces that had any.
    pub(crate) learned: BTreeMap<KeyspaceId, Learned>,
    /// How hot tables were, some of which may be gone.
    pub(crate) heats: BTreeMap<FileId, Heat>,
    pub(crate) next_file: FileId,
    pub(crate) last_seq: SeqNo,
    /// The highest sequence number that any flush or drop named, dropped keyspaces included.
    pub(crate) log_floor: SeqNo,
    /// Log segments with lower numbers are obsolete.
    pub(crate) log_start: FileId,
    /// What the latest opening took over of the log. Unknown if there was no opening yet, or if it
    /// was one of an older build.
    pub(crate) found_log: Option<FoundLog>,
    /// How records were placed when the store was opened last, if that is known.
    pub(crate) placed_by: Option<PlacedBy>,
    /// What the store is to cost, or how fast it is to be.
    pub(crate) target: Option<SetTarget>,
}

impl Shape {
    /// Adds up `edits`, which are all that a store has. `Err` says which of them cannot follow from
    /// those before it, or cannot be the last.
    pub(crate) fn from_edits(edits: Vec<VersionEdit>) -> Result<Self, Misfit> {
        let mut shape = Shape::default();
        let last = edits.len().saturating_sub(1);
        for (index, edit) in edits.into_iter().enumerate() {
            shape.apply(edit).map_err(|what| Misfit { index, what })?;
        }
        if !shape.keyspaces.contains_key(&0) {
            return Err(Misfit {
                index: last,
                what: "the manifest names no default keyspace".into(),
            });
        }
        Ok(shape)
    }

    /// Tables of one level that cannot both lie there, and why not.
    pub(crate) fn disorder(&self) -> Option<([FileId; 2], String)> {
        let mut levels: BTreeMap<(KeyspaceId, u8), Vec<&TableMeta>> = BTreeMap::new();
        for table in self.tables.values() {
            let level = levels.entry((table.keyspace, table.level)).or_default();
            level.push(table);
        }
        levels.into_iter().find_map(|((_, level), mut tables)| {
            match level {
                0 => tables.sort_by_key(|table| Reverse(table.epoch)),
                _ => tables.sort_by(|a, b| a.range.first.cmp(&b.range.first)),
            }
            let is_wrong = |pair: &&[&TableMeta]| match level {
                0 => pair[0].epoch == pair[1].epoch,
                _ => pair[0].range.last >= pair[1].range.first,
            };
            let pair = tables.windows(2).find(is_wrong)?;
            let (a, b) = (pair[0].id, pair[1].id);
            let what = match level {
                0 => format!("L0 tables {a} and {b} have the same epoch"),
                _ => format!("tables {a} and {b} of L{level} overlap"),
            };
            Some(([a, b], what))
        })
    }

    /// Edits that add up to this shape, for a manifest to begin with.
    pub(crate) fn to_edits(
        &self,
        last_seq: u64,
        log_start: u64,
        placed_by: Option<PlacedBy>,
        found_log: &FoundLog,
    ) -> Vec<VersionEdit> {
        let mut edits = vec![VersionEdit {
            created: self.keyspaces.values().cloned().collect(),
            next_file: Some(self.next_file),
            last_seq: Some(last_seq),
            log_floor: Some(self.log_floor),
            log_start: Some(log_start),
            found_log: Some(found_log.clone()),
            placed_by,
            flushed_through: self.flushed_through.iter().map(|(k, s)| (*k, *s)).collect(),
            learned: self.learned.iter().map(|(k, l)| (*k, *l)).collect(),
            heats: self.heats_of_tables().collect(),
            target: self.target.clone(),
            ..VersionEdit::default()
        }];
        edits.extend(self.tables.values().map(|table| VersionEdit {
            added: vec![table.clone()],
            ..VersionEdit::default()
        }));
        edits
    }

    /// The heats of the tables that are left. A move takes its table out and adds it again, so the
    /// heats of tables that are taken out are kept until here.
    fn heats_of_tables(&self) -> impl Iterator<Item = (FileId, Heat)> {
        let heats = self.heats.iter();
        heats.filter_map(|(id, heat)| self.tables.contains_key(id).then_some((*id, *heat)))
    }

    /// Whether one of these edits names the table, if only to take it out.
    pub(crate) fn knows(&self, table: FileId) -> bool {
        self.tables.contains_key(&table) || self.removed.contains(&table)
    }

    /// What is known of the log.
    pub(crate) fn log_bounds(&self) -> Bounds {
        Bounds {
            start: self.log_start,
            floor: self.log_floor,
            found: self.found_log.clone(),
        }
    }

    /// Adds one edit; `Err` says why it cannot follow from those before it.
    pub(crate) fn apply(&mut self, edit: VersionEdit) -> Result<(), String> {
        check_numbers(&edit)?;
        for keyspace in edit.created {
            let f = keyspace.last_fast_level;
            if !(1..crate::version::MAX_LEVELS).contains(&usize::from(f)) {
                let id = keyspace.id;
                return Err(format!("keyspace {id} has L{f} as its last fast level"));
            }
            // Made from the start: replay takes a keyspace without an entry for a dropped one.
            self.flushed_through.entry(keyspace.id).or_insert(0);
            self.keyspaces.insert(keyspace.id, keyspace);
        }
        for (_, table) in edit.removed {
            if self.tables.remove(&table).is_none() {
                return Err(format!("an edit removes table {table}, which is not there"));
            }
            self.removed.insert(table);
        }
        for table in edit.added {
            if !self.keyspaces.contains_key(&table.keyspace) {
                let (id, keyspace) = (table.id, table.keyspace);
                return Err(format!(
                    "table {id} belongs to keyspace {keyspace}, which is not there"
                ));
            }
            if usize::from(table.level) >= crate::version::MAX_LEVELS {
                return Err(format!("table {} is of level {}", table.id, table.level));
            }
            self.next_file = self.next_file.max(table.id + 1);
            self.last_seq = self.last_seq.max(table.max_seq);
            // A move removes the table and adds it at another level.
            self.removed.remove(&table.id);
            self.tables.insert(table.id, table);
        }
        for (keyspace, through) in edit.flushed_through {
            let flushed = self.flushed_through.entry(keyspace).or_insert(0);
            *flushed = (*flushed).max(through);
            self.last_seq = self.last_seq.max(through);
            self.log_floor = self.log_floor.max(through);
        }
        self.learned.extend(edit.learned);
        self.heats.extend(edit.heats);
        for keyspace in edit.dropped {
            self.learned.remove(&keyspace);
            self.keyspaces.remove(&keyspace);
            self.flushed_through.remove(&keyspace);
            let removed = &mut self.removed;
            self.tables.retain(|id, table| {
                let is_dropped = table.keyspace == keyspace;
                if is_dropped {
                    removed.insert(*id);
                }
                !is_dropped
            });
        }
        self.next_file = self.next_file.max(edit.next_file.unwrap_or(0));
        self.last_seq = self.last_seq.max(edit.last_seq.unwrap_or(0));
        self.log_floor = self.log_floor.max(edit.log_floor.unwrap_or(0));
        self.log_start = self.log_start.max(edit.log_start.unwrap_or(0));
        self.placed_by = edit.placed_by.or(self.placed_by);
        self.target = edit.target.or(self.target.take());
        if let Some(found) = edit.found_log {
            if !found.is_in_order() {
                return Err("an edit names segments of the log out of their order".into());
            }
            // What it leaves out must not come to be named again.
            self.next_file = self.next_file.max(found.next);
            self.found_log = Some(found);
        }
        Ok(())
    }
}

/// Counting on from a number of an edit must not overflow.
fn check_numbers(edit: &VersionEdit) -> Result<(), String> {
    let tables = edit.added.iter().flat_map(|t| [t.id, t.epoch]);
    let found = edit.found_log.as_ref();
    let found = found.map(|log| log.next);
    let mut files = tables.chain(edit.next_file).chain(found);
    let files = files.find(|n| *n > MAX_NUMBER);
    let reached = edit.found_log.as_ref().and_then(|log| log.reaches);
    let flushed = edit.flushed_through.iter().map(|(_, seq)| *seq);
    let seqs = edit.added.iter().flat_map(|t| [t.min_seq, t.max_seq]);
    let mut seqs = seqs
        .chain(flushed)
        .chain(edit.last_seq)
        .chain(edit.log_floor)
        .chain(reached);
    match files.or_else(|| seqs.find(|seq| *seq > MAX_SEQ)) {
        Some(number) => Err(format!(
            "an edit holds the number {number}, which is out of range"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bytes::Bytes;

    use super::*;
    use crate::api::{Db, DbBuilder};
    use crate::error::Error;
    use crate::executor::Stepped;
    use crate::log_format::put_record;
    use crate::options::Options;
    use crate::points::Points;
    use crate::storage::{Faulty, Medium, Memory};
    use crate::sync::Arc;
    use crate::testing::scene::{KEYS, Scene, options};
    use crate::version::{Manifest, manifest_file_name, manifest_number};

    fn builder(memory: &Arc<Memory>) -> DbBuilder {
        let builder = Db::builder(options()).medium(0, memory.clone());
        builder.medium(1, memory.clone())
    }

    /// Ends the manifest of `scene` with `edit`, and closes the store. Returns the manifest's path,
    /// and where the edit stands in it.
    fn end_with(scene: Scene, edit: &VersionEdit) -> (PathBuf, u64) {
        let engine = scene.engine();
        let mut manifest = engine.files.manifest.lock();
        let at = manifest.len();
        manifest.append(edit).unwrap();
        let name = manifest_file_name(manifest.number());
        drop(manifest);
        scene.db.close().unwrap();
        (options().tiers[0].path.join(name), at)
    }

    /// The damage that opening the store on `memory` reports: file, offset, and what it is.
    fn refused(memory: &Arc<Memory>) -> (PathBuf, u64, String) {
        match builder(memory).open().map(|_| ()) {
            Err(Error::Corruption {
                path, offset, what, ..
            }) => (path, offset, what),
            other => panic!("{other:?}"),
        }
    }

    /// Such an edit passed for damage: the opening advised a repair, and the repair turned a sound
    /// store into one run on the slow tier.
    #[test]
    fn a_manifest_with_an_edit_of_a_newer_release_is_refused_as_one() {
        let memory = Arc::new(Memory::new());
        let scene = Scene::on(memory.clone(), options());
        scene.put_all(&KEYS, "old");
        scene.db.flush().unwrap();
        let (manifest, _) = end_with(scene, &VersionEdit::default());
        let name = manifest.file_name().unwrap().to_str().unwrap();
        let store = memory.log_store(manifest.parent().unwrap(), false).unwrap();
        let mut bytes = store.read(name).unwrap();
        let (number, at) = (manifest_number(name).unwrap(), bytes.len() as u64);
        put_record(&mut bytes, number, at, |out| out.extend([1, 99, 0])).unwrap();
        store.create(name).unwrap().append(&bytes).unwrap();
        let is_newer = |error: &Error| matches!(error, Error::FormatVersion { found: 99, .. });
        let opened = builder(&memory).open().map(|_| ()).unwrap_err();
        assert!(is_newer(&opened), "{opened}");
        let repaired = builder(&memory).repair(true).unwrap_err();
        assert!(is_newer(&repaired), "{repaired}");
    }

    /// Such an edit was said to be at the beginning of `CURRENT`, which is whole and holds none.
    #[test]
    fn an_edit_that_cannot_follow_is_named_by_its_place() {
        let memory = Arc::new(Memory::new());
        let scene = Scene::on(memory.clone(), options());
        let wrong = VersionEdit {
            removed: vec![(0, 999)],
            ..VersionEdit::default()
        };
        let (manifest, at) = end_with(scene, &wrong);
        let (path, offset, what) = refused(&memory);
        assert_eq!((&path, offset), (&manifest, at), "{what}");
        assert!(what.contains("table 999"), "{what}");
        let found = builder(&memory).repair(true).unwrap().problems;
        let said = format!("{} at offset {at}: {what}", manifest.display());
        assert!(found.contains(&said), "{found:?}");
    }

    /// No test held that such a manifest is refused. If tables overlap, or have the same epoch,
    /// nothing tells which of them holds the newer versions: reads, and the compactions that
    /// follow, would take either (I2).
    #[test]
    fn tables_that_cannot_lie_on_one_level_are_refused() {
        for is_l0 in [true, false] {
            let memory = Arc::new(Memory::new());
            let scene = Scene::on(memory.clone(), options());
            scene.put_all(&KEYS, "old");
            match is_l0 {
                true => scene.db.flush().unwrap(),
                false => scene.to_last_fast(),
            }
            scene.put_all(&KEYS, "new");
            scene.db.flush().unwrap();
            let tables = scene.tree().version();
            let tables: Vec<&TableMeta> = tables.tables().map(|table| &table.meta).collect();
            let [newer, older] = tables[..] else {
                panic!("{} tables", tables.len());
            };
            let moved = TableMeta {
                level: older.level,
                epoch: older.epoch,
                ..newer.clone()
            };
            let wrong = VersionEdit {
                removed: vec![(0, newer.id)],
                added: vec![moved],
                ..VersionEdit::default()
            };
            let (manifest, at) = end_with(scene, &wrong);
            let (path, offset, what) = refused(&memory);
            assert_eq!((path, offset), (manifest, at), "{what}");
            let wanted = if is_l0 { "the same epoch" } else { "overlap" };
            assert!(what.contains(wanted), "{what}");
        }
    }

    /// Counts of an edit may be any numbers. The sums of two tables overflowed in the metrics of
    /// their keyspace, which gave a panic or a number that was much too small.
    #[test]
    fn counts_that_cannot_be_add_up_to_the_most_that_can() {
        let memory = Arc::new(Memory::new());
        let scene = Scene::on(memory.clone(), options());
        for version in ["old", "new"] {
            scene.put_all(&KEYS, version);
            scene.db.flush().unwrap();
        }
        let tables = scene.tree().version();
        let crafted = tables.tables().map(|table| TableMeta {
            entries: u64::MAX,
            deletes: u64::MAX,
            ..table.meta.clone()
        });
        let crafted: Vec<TableMeta> = crafted.collect();
        assert_eq!(crafted.len(), 2);
        let wrong = VersionEdit {
            removed: crafted.iter().map(|table| (0, table.id)).collect(),
            added: crafted,
            ..VersionEdit::default()
        };
        end_with(scene, &wrong);
        let reopened = builder(&memory).executor(Arc::new(Stepped::new(1)));
        let metrics = reopened.open().unwrap().keyspace_metrics();
        let counts = (metrics[0].records, metrics[0].deletes);
        assert_eq!(counts, (u64::MAX, u64::MAX));
    }

    #[test]
    fn segments_of_the_log_out_of_their_order_are_refused() {
        for (first, second, is_in_order) in [(3, 5, true), (5, 3, false), (3, 3, false)] {
            let edit = VersionEdit {
                found_log: Some(FoundLog {
                    segments: vec![(first, 72), (second, 72)],
                    ..FoundLog::default()
                }),
                ..VersionEdit::default()
            };
            let added = Shape::default().apply(edit);
            assert_eq!(added.is_ok(), is_in_order, "{first}, {second}: {added:?}");
        }
    }

    /// A missing default keyspace was noticed only when the store was open. By then a new manifest
    /// was in force, and files that the old one did not name were gone. An opening that refuses
    /// changes nothing.
    #[test]
    fn a_manifest_without_the_default_keyspace_is_refused_before_anything_changes() {
        let disk = Faulty::new(1);
        let builder = || {
            let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
            builder.executor(Arc::new(Stepped::new(1)))
        };
        let db = builder().open().unwrap();
        db.put("key", "value").unwrap();
        db.close().unwrap();
        let engine = db.engine();
        let number = engine.new_file();
        let other = VersionEdit {
            created: vec![KeyspaceMeta {
                id: 3,
                name: Bytes::from_static(b"other"),
                last_fast_level: 1,
            }],
            next_file: Some(number + 1),
            ..VersionEdit::default()
        };
        let fast = Arc::clone(engine.fast());
        Manifest::create(
            fast,
            engine.identity.database,
            number,
            &[other],
            Points::default(),
        )
        .unwrap();
        drop(db);
        let before = disk.list_raw("/fast".as_ref());
        let refused = builder().open().map(|_| ());
        assert!(
            matches!(&refused, Err(Error::Corruption { what, .. }) if what.contains("default")),
            "{refused:?}"
        );
        assert_eq!(disk.list_raw("/fast".as_ref()), before);
        // Nor does a repair call it sound.
        let found = builder().repair(true).unwrap().problems;
        assert!(
            found.iter().any(|problem| problem.contains("default")),
            "{found:?}"
        );
    }
}
