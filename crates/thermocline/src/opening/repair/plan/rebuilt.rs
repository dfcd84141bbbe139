//! The plan where the manifest cannot be read to its end: the tables decide, with the edits that
//! can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::trusted::too_few_tiers;
use super::{Merge, Plan};
use crate::error::{Error, Result};
use crate::ids::{FileId, KeyspaceId, table_file_name};
use crate::opening::founding::DEFAULT_KEYSPACE;
use crate::opening::repair::evidence::Evidence;
use crate::opening::repair::live::{Origin, Said, Standing, standings};
use crate::opening::repair::report::Loss;
use crate::opening::request::Request;
use crate::options::{RecoveryMode, Resolved};
use crate::placement::check_not_alone;
use crate::sync::Arc;
use crate::table::{SelfDescribed, TableMeta};
use crate::tier::Tier;
use crate::version::MAX_LEVELS;
use crate::version::edit::KeyspaceMeta;
use crate::wal::{self, Bounds, Ingestion};

impl Plan {
    /// The tables decide, with the edits that can be read: each keyspace becomes one run.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] where a tier is missing among `tiers`, as far as anything tells;
    /// I/O errors.
    pub(super) fn rebuild(
        &mut self,
        request: &Request,
        sizes: &Resolved,
        tiers: &[Arc<Tier>],
        evidence: &Evidence,
    ) -> Result<()> {
        // Edits that are lost may have named tables of a tier that was left out. The next opening
        // would take those tables for orphans.
        check_not_alone(&request.options, &*request.medium_of(0))?;
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
        let mut misnamed = Vec::new();
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
                Err(_) if SelfDescribed::is_misnamed(&tiers[found.tier], *id)? => {
                    misnamed.push(*id);
                }
                Err(_) => {}
            }
        }
        // Another table under the number of a missing input would make that input seem to be there,
        // and keep the input's outputs from counting.
        let is_own = |id: &&FileId| !foreign.contains(id) && !misnamed.contains(id);
        let own = evidence.tables.keys().filter(is_own);
        let there: BTreeSet<FileId> = own.copied().collect();
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
        self.name_keyspaces(request, sizes, evidence, names.collect());
        let logged = ingestions_of_log(&tiers[0], self.database)?;
        let last = u8::try_from(tiers.len() - 1).unwrap_or(u8::MAX);
        let mut merges: BTreeMap<KeyspaceId, Merge> = BTreeMap::new();
        for (id, found) in &evidence.tables {
            if standings.get(id) == Some(&Standing::Live)
                && let Some(table) = metas.get(id)
            {
                let keyspace = table.meta.keyspace;
                let meta = self.with_number(table.meta.clone(), &found.path, &known, &logged);
                let merge = merges.entry(keyspace).or_insert_with(|| Merge {
                    keyspace,
                    sources: Vec::new(),
                    level: MAX_LEVELS as u8 - 1,
                    tier: last,
                    epoch: 0,
                    table_size: sizes.table_size,
                });
                merge.epoch = merge.epoch.max(meta.epoch);
                self.shape.last_seq = self.shape.last_seq.max(meta.max_seq);
                merge.sources.push(meta);
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
                let tier = tiers
                    .get(usize::from(meta.tier))
                    .ok_or_else(|| too_few_tiers(meta))?;
                let file = tier.tables.path().join(table_file_name(id));
                self.problems.push(format!("{} is missing", file.display()));
                let what = "the file is missing, unless an edit that cannot be read replaced it";
                self.lose_table(file, meta, what);
            }
        }
        self.merges = merges.into_values().collect();
        Ok(())
    }

    /// `meta` with the number that the records of an ingested table have: an edit says it, or the
    /// log. If neither does, it is the least that it can be. That is right for all that was written
    /// before the table or after the ingestion, and a loss in between: such a write may come to lie
    /// above what was ingested over it.
    fn with_number(
        &mut self,
        meta: TableMeta,
        path: &Path,
        known: &BTreeMap<FileId, &TableMeta>,
        logged: &[Ingestion],
    ) -> TableMeta {
        if !meta.ingested {
            return meta;
        }
        let named = known.get(&meta.id).and_then(|known| known.assigned());
        let mut logged = logged.iter();
        let mut of_log = || logged.find(|ingestion| ingestion.tables.contains(&meta.id));
        let Some(seq) = named.or_else(|| of_log().map(|ingestion| ingestion.seq)) else {
            let what = "the sequence number of its records, which were ingested, is lost with the \
                        manifest: keys that were written while the ingestion ran may show what was \
                        written then";
            self.lose_table(path.to_owned(), &meta, what);
            return meta;
        };
        TableMeta {
            min_seq: seq,
            max_seq: seq,
            ..meta
        }
    }

    /// Every keyspace that edits or tables tell of, by the name that they give it.
    fn name_keyspaces(
        &mut self,
        request: &Request,
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
        // A name is given anew only once the keyspace that had it is dropped. If two keyspaces have
        // one name, the edit of that drop cannot be read, and the newest keyspace keeps the name.
        for (id, keyspace) in std::mem::take(&mut self.shape.keyspaces).into_iter().rev() {
            let name = self.free_name(id, keyspace.name);
            let keyspace = KeyspaceMeta { name, ..keyspace };
            self.shape.keyspaces.insert(id, keyspace);
        }
        let dropped = evidence.dropped();
        let default = Bytes::from_static(DEFAULT_KEYSPACE.as_bytes());
        // The newest first: of two keyspaces of one name, the older one had been dropped.
        let named: BTreeMap<KeyspaceId, Bytes> = named.into_iter().chain([(0, default)]).collect();
        for (id, name) in named.into_iter().rev() {
            if !dropped.contains(&id) {
                self.add_keyspace(request, sizes, id, name);
            }
        }
        for keyspace in self.shape.keyspaces.keys() {
            self.shape.flushed_through.insert(*keyspace, 0);
        }
    }
}

/// The ingestions that the log tells of.
fn ingestions_of_log(first: &Arc<Tier>, database: u128) -> Result<Vec<Ingestion>> {
    let bounds = Bounds {
        floor: wal::first_header(first)?.map_or(0, |header| header.base_seq),
        ..Bounds::default()
    };
    let nothing = &mut |_, _, _, _, _| Ok(());
    let log = wal::survey(first, database, RecoveryMode::Tolerant, &bounds, nothing)?;
    Ok(log.recovered.ingestions)
}

pub(super) fn whole_file(file: PathBuf, what: &str) -> Loss {
    Loss {
        file,
        offset: None,
        what: what.to_owned(),
        keyspace: None,
        keys: None,
        seqs: None,
    }
}

/// Describes a damage without naming the file.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::Corruption { offset, what, .. } => format!("at offset {offset}: {what}"),
        other => other.to_string(),
    }
}
