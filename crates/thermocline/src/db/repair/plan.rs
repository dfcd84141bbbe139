//! What a repair is going to do: which tables stay, which are written anew, what the log still gives, and
//! what is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bytes::Bytes;

use super::evidence::{Evidence, ReadManifest};
use super::live::{Origin, Said, Standing, standings};
use super::report::{Loss, RepairReport};
use crate::cache::{BlockCache, PinBudget};
use crate::db::builder::DbBuilder;
use crate::db::open::DEFAULT_KEYSPACE;
use crate::db::recovery::{Shape, was_named};
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::options::{RecoveryMode, Resolved};
use crate::placement::last_fast_level;
use crate::sync::Arc;
use crate::table::{LostPart, Salvage, Table};
use crate::tier::Tier;
use crate::version::MAX_LEVELS;
use crate::version::edit::{FileId, KeyspaceId, KeyspaceMeta, TableMeta, table_file_name};
use crate::wal;

/// Tables that are written anew as one sorted run.
#[derive(Debug)]
pub(super) struct Merge {
    pub(super) keyspace: KeyspaceId,
    pub(super) sources: Vec<TableMeta>,
    pub(super) level: u8,
    pub(super) tier: u8,
    pub(super) epoch: u64,
    /// Bytes after which an output ends; a single table stays one.
    pub(super) table_size: u64,
}

/// Everything that a repair does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) database: u128,
    /// What the new manifest names, but for the tables that merges are going to write.
    pub(super) shape: Shape,
    pub(super) merges: Vec<Merge>,
    pub(super) nameless_tiers: Vec<usize>,
    /// Tables that the repaired store does not use, or not as they are.
    pub(super) tables_aside: Vec<(usize, FileId)>,
    /// Files beside `CURRENT` in the first tier's directory that are replaced.
    pub(super) logs_aside: Vec<String>,
    /// Above what the log is to be read from: it is synced through there.
    pub(super) from: SeqNo,
    kept: u64,
    logged: u64,
    rebuilt: bool,
    problems: Vec<String>,
    /// Copies made of files that are going to be removed or replaced.
    pub(super) set_aside: Vec<PathBuf>,
    pub(super) losses: Vec<Loss>,
}

impl Plan {
    /// Looks at every table and at the log. Changes nothing.
    ///
    /// # Errors
    /// [`Error::FormatVersion`]; I/O errors.
    pub(super) fn new(
        builder: &DbBuilder,
        sizes: &Resolved,
        tiers: &[Arc<Tier>],
        evidence: Evidence,
    ) -> Result<Self> {
        let mut plan = Self {
            database: evidence.database,
            shape: Shape::default(),
            merges: Vec::new(),
            nameless_tiers: evidence.nameless_tiers.clone(),
            tables_aside: Vec::new(),
            logs_aside: Vec::new(),
            from: 0,
            kept: 0,
            logged: 0,
            rebuilt: false,
            problems: evidence.problems.clone(),
            set_aside: Vec::new(),
            losses: Vec::new(),
        };
        for tier in &evidence.nameless_tiers {
            let file = tiers[*tier].tables.path().join("TIER");
            plan.problems
                .push(format!("{} is missing or damaged", file.display()));
        }
        let whole = evidence
            .manifest
            .as_ref()
            .filter(|manifest| manifest.shape.is_some());
        let lost_an_edit = match whole {
            Some(manifest) => lost_an_edit(manifest, &evidence, &tiers[0])?,
            None => true,
        };
        if !lost_an_edit {
            plan.trust_the_manifest(tiers, &evidence)?;
        } else {
            if let Some(manifest) = whole {
                let problem = manifest.lacks("edits are missing at its end");
                plan.problems.push(problem);
            }
            plan.rebuilt = true;
            plan.rebuild(builder, sizes, tiers, &evidence)?;
        }
        plan.kept = plan.shape.tables.len() as u64;
        plan.read_the_sources(tiers)?;
        plan.read_the_log(builder, sizes, tiers, &evidence)?;
        plan.shape.next_file = plan.shape.next_file.max(evidence.next_file);
        Ok(plan)
    }

    /// Whether the store is sound.
    pub(super) fn nothing_to_do(&self) -> bool {
        self.problems.is_empty()
    }

    /// What is found and planned.
    pub(super) fn report(&self) -> RepairReport {
        let names = self.shape.keyspaces.values();
        RepairReport {
            problems: self.problems.clone(),
            repaired: false,
            rebuilt: self.rebuilt,
            keyspaces: names
                .map(|k| String::from_utf8_lossy(&k.name).into_owned())
                .collect(),
            kept: self.kept,
            rewritten: self
                .merges
                .iter()
                .map(|merge| merge.sources.len() as u64)
                .sum(),
            logged: self.logged,
            losses: self.losses.clone(),
            set_aside: self.set_aside.clone(),
        }
    }

    /// Reads every table that is to be written anew, to know what of it is lost.
    fn read_the_sources(&mut self, tiers: &[Arc<Tier>]) -> Result<()> {
        let sources = self.merges.iter().flat_map(|merge| merge.sources.clone());
        for meta in sources.collect::<Vec<_>>() {
            let tier = &tiers[usize::from(meta.tier)];
            let file = tier.tables.path().join(meta.file_name());
            let lost = match open(tier, &meta, self.database) {
                Ok(table) => {
                    let mut salvage = Salvage::new(table);
                    while salvage.next()? {}
                    salvage.into_lost()
                }
                Err(Error::Corruption { offset, what, .. }) => vec![LostPart {
                    offset,
                    what,
                    after: meta.range.first.clone(),
                    last: meta.range.last.clone(),
                }],
                Err(error) => return Err(error),
            };
            for part in lost {
                let (path, offset) = (file.display(), part.offset);
                self.problems
                    .push(format!("{path} at offset {offset}: {}", part.what));
                self.losses.push(Loss {
                    file: file.clone(),
                    offset: Some(offset),
                    what: part.what,
                    keyspace: self.keyspace_name(meta.keyspace),
                    keys: Some((part.after, part.last)),
                    seqs: Some((meta.min_seq, meta.max_seq)),
                });
                self.tables_aside.push((usize::from(meta.tier), meta.id));
            }
        }
        self.problems.dedup();
        self.tables_aside.sort_unstable();
        self.tables_aside.dedup();
        Ok(())
    }

    pub(super) fn keyspace_name(&self, keyspace: KeyspaceId) -> Option<String> {
        let keyspace = self.shape.keyspaces.get(&keyspace)?;
        Some(String::from_utf8_lossy(&keyspace.name).into_owned())
    }

    /// The manifest decides; tables that are not whole are written anew in their place.
    fn trust_the_manifest(&mut self, tiers: &[Arc<Tier>], evidence: &Evidence) -> Result<()> {
        let Some(shape) = evidence.manifest.as_ref().and_then(|m| m.shape.as_ref()) else {
            return Ok(());
        };
        self.shape = shape.clone();
        for meta in shape.tables.values() {
            let tier = &tiers
                .get(usize::from(meta.tier))
                .ok_or_else(|| too_few_tiers(meta))?;
            let file = tier.tables.path().join(meta.file_name());
            match open(tier, meta, self.database).and_then(|table| table.verify()) {
                Ok(_) => {}
                Err(error @ Error::Corruption { .. }) => {
                    self.problems.push(error.to_string());
                    self.shape.tables.remove(&meta.id);
                    self.merges.push(Merge {
                        keyspace: meta.keyspace,
                        sources: vec![meta.clone()],
                        level: meta.level,
                        tier: meta.tier,
                        epoch: meta.epoch,
                        table_size: u64::MAX,
                    });
                    self.tables_aside.push((usize::from(meta.tier), meta.id));
                }
                Err(Error::NotFound { .. }) => {
                    self.problems.push(format!("{} is missing", file.display()));
                    self.shape.tables.remove(&meta.id);
                    self.lose_table(file, meta, "the file is missing");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn lose_table(&mut self, file: PathBuf, meta: &TableMeta, what: &str) {
        self.losses.push(Loss {
            file,
            offset: None,
            what: what.to_owned(),
            keyspace: self.keyspace_name(meta.keyspace),
            keys: Some((meta.range.first.clone(), meta.range.last.clone())),
            seqs: Some((meta.min_seq, meta.max_seq)),
        });
    }

    /// The tables decide, with what can be read of edits: each keyspace becomes one run.
    fn rebuild(
        &mut self,
        builder: &DbBuilder,
        sizes: &Resolved,
        tiers: &[Arc<Tier>],
        evidence: &Evidence,
    ) -> Result<()> {
        if evidence.manifest.is_none() {
            self.problems
                .push("no edit of a manifest can be read".to_owned());
        }
        let edits = evidence
            .manifest
            .as_ref()
            .map_or(&[][..], |manifest| &manifest.edits);
        let said = Said::by(edits);
        let mut known: BTreeMap<FileId, &TableMeta> = BTreeMap::new();
        for edit in edits {
            known.extend(edit.added.iter().map(|table| (table.id, table)));
        }
        let (mut origins, mut metas, mut foreign) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (id, found) in &evidence.tables {
            match &found.described {
                Ok(table) if table.identity.database == self.database => {
                    let identity = &table.identity;
                    let origin = Origin {
                        keyspace: identity.keyspace,
                        replaces: identity.replaces.clone(),
                        gone: identity.gone.clone(),
                    };
                    origins.insert(*id, origin);
                    metas.insert(*id, table);
                }
                Ok(_) => foreign.push(*id),
                Err(_) => {}
            }
        }
        let there: BTreeSet<FileId> = evidence.tables.keys().copied().collect();
        let standings = standings(&origins, &there, &said);
        let taken_over = |id: &FileId| {
            origins.iter().any(|(other, origin)| {
                let counts = standings.get(other) != Some(&Standing::Unproven);
                counts && origin.replaces.contains(id) || origin.gone.contains(id)
            })
        };
        let names = metas.values().map(|table| {
            let identity = &table.identity;
            (identity.keyspace, identity.keyspace_name.clone())
        });
        self.name_keyspaces(builder, sizes, evidence, names.collect());
        let last = u8::try_from(tiers.len() - 1).unwrap_or(u8::MAX);
        let mut merges: BTreeMap<KeyspaceId, Merge> = BTreeMap::new();
        for (id, found) in &evidence.tables {
            if standings.get(id) == Some(&Standing::Live)
                && let Some(table) = metas.get(id)
            {
                let keyspace = table.meta.keyspace;
                let merge = merges.entry(keyspace).or_insert_with(|| Merge {
                    keyspace,
                    sources: Vec::new(),
                    level: MAX_LEVELS as u8 - 1,
                    tier: last,
                    epoch: 0,
                    table_size: sizes.table_size,
                });
                merge.epoch = merge.epoch.max(table.meta.epoch);
                merge.sources.push(table.meta.clone());
                self.shape.last_seq = self.shape.last_seq.max(table.meta.max_seq);
                continue;
            }
            self.tables_aside.push((found.tier, *id));
            let is_gone = said.tables.get(id) == Some(&false) || taken_over(id);
            if foreign.contains(id) {
                self.losses.push(whole_file(
                    found.path.clone(),
                    "it belongs to another database",
                ));
            } else if let (Err(error), false) = (&found.described, is_gone) {
                self.problems.push(error.to_string());
                match known.get(id) {
                    Some(meta) => self.lose_table(found.path.clone(), meta, &words(error)),
                    None => self
                        .losses
                        .push(whole_file(found.path.clone(), &words(error))),
                }
            }
        }
        for (id, meta) in known {
            let is_named =
                said.tables.get(&id) == Some(&true) && !said.dropped.contains(&meta.keyspace);
            if is_named && !there.contains(&id) && !taken_over(&id) {
                let dir = tiers
                    .get(usize::from(meta.tier))
                    .map(|tier| tier.tables.path());
                let file = dir.map_or_else(PathBuf::new, |dir| dir.join(table_file_name(id)));
                self.problems.push(format!("{} is missing", file.display()));
                let what = "the file is missing, unless an edit that cannot be read replaced it";
                self.lose_table(file, meta, what);
            }
        }
        self.merges = merges.into_values().collect();
        Ok(())
    }

    /// Every keyspace that edits or tables tell of, by the name that they give it.
    fn name_keyspaces(
        &mut self,
        builder: &DbBuilder,
        sizes: &Resolved,
        evidence: &Evidence,
        named: Vec<(KeyspaceId, Bytes)>,
    ) {
        let edits = evidence
            .manifest
            .iter()
            .flat_map(|manifest| &manifest.edits);
        for edit in edits {
            for keyspace in &edit.created {
                self.shape.keyspaces.insert(keyspace.id, keyspace.clone());
            }
            for keyspace in &edit.dropped {
                self.shape.keyspaces.remove(keyspace);
            }
            let next = edit.next_file.unwrap_or(0);
            self.shape.next_file = self.shape.next_file.max(next);
            self.shape.last_seq = self.shape.last_seq.max(edit.last_seq.unwrap_or(0));
            self.shape.placed_by = edit.placed_by.or(self.shape.placed_by);
        }
        let dropped = evidence.dropped();
        let default = Bytes::from_static(DEFAULT_KEYSPACE.as_bytes());
        // The newest first: of two keyspaces of one name, the older one had been dropped.
        let named: BTreeMap<KeyspaceId, Bytes> = named.into_iter().chain([(0, default)]).collect();
        for (id, name) in named.into_iter().rev() {
            if !dropped.contains(&id) {
                self.add_keyspace(builder, sizes, id, name);
            }
        }
        for keyspace in self.shape.keyspaces.keys() {
            self.shape.flushed_through.insert(*keyspace, 0);
        }
    }

    fn add_keyspace(&mut self, builder: &DbBuilder, sizes: &Resolved, id: KeyspaceId, name: Bytes) {
        if self.shape.keyspaces.contains_key(&id) {
            return;
        }
        let is_taken = self
            .shape
            .keyspaces
            .values()
            .any(|other| other.name == name);
        let name = match name.is_empty() || is_taken {
            true => Bytes::from(format!("keyspace-{id}")),
            false => name,
        };
        let keyspace = KeyspaceMeta {
            id,
            name,
            last_fast_level: last_fast_level(&builder.options, sizes),
        };
        self.shape.keyspaces.insert(id, keyspace);
        self.shape.flushed_through.insert(id, 0);
        self.shape.next_file = self.shape.next_file.max(u64::from(id) + 1);
    }

    /// Replays the log without keeping anything: where it ends, and which keyspaces it writes to.
    fn read_the_log(
        &mut self,
        builder: &DbBuilder,
        sizes: &Resolved,
        tiers: &[Arc<Tier>],
        evidence: &Evidence,
    ) -> Result<()> {
        let newest = |merge: &Merge| merge.sources.iter().map(|table| table.max_seq).max();
        let newest: BTreeMap<KeyspaceId, SeqNo> = self
            .merges
            .iter()
            .filter_map(|merge| Some((merge.keyspace, newest(merge)?)))
            .collect();
        self.from = match self.rebuilt {
            // No manifest says where the log may begin: where it does, then.
            true => {
                let tables = newest.values().copied().max().unwrap_or(0);
                tables.max(wal::first_header(&tiers[0])?.map_or(0, |header| header.base_seq))
            }
            false => self.shape.log_floor,
        };
        let mut writes: BTreeMap<KeyspaceId, u64> = BTreeMap::new();
        let surveyed = wal::survey(
            &tiers[0],
            self.database,
            RecoveryMode::Tolerant,
            self.from,
            &mut |_, keyspace, _, _, _| {
                *writes.entry(keyspace).or_insert(0) += 1;
                Ok(())
            },
        )?;
        self.logged = writes.values().sum();
        let recovered = surveyed.recovered;
        self.shape.last_seq = self.shape.last_seq.max(recovered.last_seq);
        if let Some(cut) = recovered
            .cut
            .as_ref()
            .filter(|cut| cut.damaged || self.rebuilt)
        {
            if cut.damaged {
                let (file, offset) = (cut.path.display(), cut.offset);
                self.problems
                    .push(format!("{file} at offset {offset}: {}", cut.what));
            }
            let last = wal::last_readable(&tiers[0])?;
            self.losses.push(Loss {
                file: cut.path.clone(),
                offset: Some(cut.offset),
                what: format!("{}; {} bytes of log are given up", cut.what, cut.bytes),
                keyspace: None,
                keys: None,
                seqs: last
                    .filter(|last| *last > recovered.last_seq)
                    .map(|last| (recovered.last_seq + 1, last)),
            });
            let name = cut.path.file_name().unwrap_or_default().to_string_lossy();
            self.logs_aside.push(name.into_owned());
            let doomed = surveyed.doomed.iter();
            self.logs_aside
                .extend(doomed.map(|number| wal::segment_file_name(*number)));
            self.logs_aside.sort();
            self.logs_aside.dedup();
        }
        // A keyspace that only the log knows: the edit that made it is lost.
        let next = self.shape.next_file;
        for keyspace in writes.keys() {
            let was_dropped = match self.rebuilt {
                true => evidence.dropped().contains(keyspace),
                false => u64::from(*keyspace) < next,
            };
            if !was_dropped && !self.shape.keyspaces.contains_key(keyspace) {
                let what =
                    format!("the log writes to keyspace {keyspace}, the edit that made it is gone");
                let manifest = evidence.manifest.as_ref();
                self.problems
                    .push(manifest.map_or_else(|| what.clone(), |manifest| manifest.lacks(&what)));
                self.add_keyspace(builder, sizes, *keyspace, Bytes::new());
            }
        }
        self.decide_what_is_replayed(&newest, recovered.cut.is_none());
        Ok(())
    }

    /// A log without a gap holds every write from its beginning on: replayed as a whole it is right, and
    /// gives back what damaged tables lost. One that was cut must not put an older version on top of
    /// what tables hold (I1): of a keyspace, what is older than its newest table is skipped.
    fn decide_what_is_replayed(&mut self, newest: &BTreeMap<KeyspaceId, SeqNo>, has_no_gap: bool) {
        let has_lost: BTreeSet<KeyspaceId> = self.merges.iter().map(|m| m.keyspace).collect();
        for (keyspace, through) in &mut self.shape.flushed_through {
            let newest = newest.get(keyspace).copied().unwrap_or(0);
            if !has_no_gap {
                *through = newest.max(*through);
            } else if self.rebuilt || has_lost.contains(keyspace) || !self.losses.is_empty() {
                *through = 0;
            }
        }
        self.shape.log_floor = self.from;
    }
}

/// Whether edits are missing at the end of a manifest that reads as a whole: it ends early, and so does
/// one that a crash cut short.
fn lost_an_edit(manifest: &ReadManifest, evidence: &Evidence, first: &Arc<Tier>) -> Result<bool> {
    let Some(shape) = &manifest.shape else {
        return Ok(true);
    };
    // The log goes away only behind a flush that an edit tells of.
    if wal::first_header(first)?.is_some_and(|header| header.base_seq > shape.log_floor) {
        return Ok(true);
    }
    let mode = RecoveryMode::Tolerant;
    let nothing = &mut |_, _, _, _, _| Ok(());
    let log = wal::survey(first, evidence.database, mode, shape.log_floor, nothing)?;
    let unnamed = evidence
        .tables
        .iter()
        .filter(|(id, _)| !shape.tables.contains_key(id));
    let described = unnamed.filter_map(|(_, table)| table.described.as_ref().ok());
    let described: Vec<_> = described.collect();
    if described
        .iter()
        .any(|table| was_named(table, shape, &log.recovered))
    {
        return Ok(true);
    }
    let is_missing =
        |id: &FileId| shape.tables.contains_key(id) && !evidence.tables.contains_key(id);
    if manifest.torn {
        return Ok(shape.tables.keys().any(is_missing));
    }
    let mut replaced = described.iter().flat_map(|table| &table.identity.replaces);
    Ok(replaced.any(is_missing))
}

fn too_few_tiers(meta: &TableMeta) -> Error {
    Error::InvalidOption {
        option: "tiers",
        reason: format!(
            "the store has tables on tier {}; name all its tiers",
            meta.tier
        ),
    }
}

fn whole_file(file: PathBuf, what: &str) -> Loss {
    Loss {
        file,
        offset: None,
        what: what.to_owned(),
        keyspace: None,
        keys: None,
        seqs: None,
    }
}

/// What a damage is, without the file.
fn words(error: &Error) -> String {
    match error {
        Error::Corruption { offset, what, .. } => format!("at offset {offset}: {what}"),
        other => other.to_string(),
    }
}

/// Opens a table past every cache.
pub(super) fn open(tier: &Arc<Tier>, meta: &TableMeta, database: u128) -> Result<Arc<Table>> {
    let cache = Arc::new(BlockCache::new(0));
    let pins = Arc::new(PinBudget::new(0));
    Table::open(tier, meta.clone(), database, cache, pins).map(Arc::new)
}
