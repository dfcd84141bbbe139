//! What a repair is going to do: which tables stay, which are written anew, what the log still
//! gives, and what is lost.

mod log;
mod rebuilt;
mod target;
mod trusted;
mod untold;

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;

use super::evidence::Evidence;
use super::report::{Loss, RepairReport};
use crate::cache::{BlockCache, PinBudget};
use crate::error::{Error, Result};
use crate::ids::{FileId, KeyspaceId};
use crate::opening::Shape;
use crate::opening::request::Request;
use crate::options::Resolved;
use crate::placement::last_fast_level;
use crate::sync::Arc;
use crate::table::{LostPart, Salvage, Table, TableMeta};
use crate::tier::Tier;
use crate::version::edit::KeyspaceMeta;
use crate::wal::Bounds;

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
    /// From where the log is to be read.
    pub(super) log: Bounds,
    kept: u64,
    logged: u64,
    rebuilt: bool,
    pub(super) problems: Vec<String>,
    /// Copies made of files that are going to be removed or replaced.
    pub(super) set_aside: Vec<PathBuf>,
    pub(super) losses: Vec<Loss>,
    /// What became of the target.
    target: Option<String>,
    /// Numbers that strays have until the end of the repair. New files skip them, and numbering
    /// does not go on from them (I4).
    pub(super) taken: BTreeSet<FileId>,
}

impl Plan {
    /// Looks at every table and at the log. Changes nothing.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] where a tier is missing among `tiers`; [`Error::FormatVersion`];
    /// I/O errors.
    pub(super) fn new(
        request: &Request,
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
            log: Bounds::default(),
            kept: 0,
            logged: 0,
            rebuilt: false,
            problems: evidence.problems.clone(),
            set_aside: Vec::new(),
            losses: Vec::new(),
            target: None,
            taken: BTreeSet::new(),
        };
        for tier in &evidence.nameless_tiers {
            let file = tiers[*tier].tables.path().join("TIER");
            plan.problems
                .push(format!("{} is missing or damaged", file.display()));
        }
        plan.lose_tiers(tiers, &evidence);
        let whole = evidence
            .manifest
            .as_ref()
            .filter(|manifest| manifest.shape.is_some());
        let lost_an_edit = match whole {
            Some(manifest) => trusted::lost_an_edit(manifest, &evidence, &tiers[0])?,
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
            plan.lose_manifest(tiers, &evidence);
            plan.rebuild(request, sizes, tiers, &evidence)?;
            plan.keep_the_target(tiers, &evidence);
        }
        plan.kept = plan.shape.tables.len() as u64;
        plan.read_the_sources(tiers)?;
        plan.read_the_log(request, sizes, tiers, &evidence)?;
        plan.shape.next_file = plan.shape.next_file.max(evidence.next_file);
        // Whatever is not named is going to be removed.
        plan.tables_aside.extend(&evidence.strays);
        plan.tables_aside.sort_unstable();
        plan.tables_aside.dedup();
        plan.taken = evidence.strays.iter().map(|(_, id)| *id).collect();
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
            target: self.target.clone(),
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
        // The damage that condemned a table is met again when the rest of the table is read.
        let mut seen = BTreeSet::new();
        self.problems.retain(|problem| seen.insert(problem.clone()));
        Ok(())
    }

    pub(super) fn keyspace_name(&self, keyspace: KeyspaceId) -> Option<String> {
        let keyspace = self.shape.keyspaces.get(&keyspace)?;
        Some(String::from_utf8_lossy(&keyspace.name).into_owned())
    }

    pub(super) fn lose_table(&mut self, file: PathBuf, meta: &TableMeta, what: &str) {
        self.losses.push(Loss {
            file,
            offset: None,
            what: what.to_owned(),
            keyspace: self.keyspace_name(meta.keyspace),
            keys: Some((meta.range.first.clone(), meta.range.last.clone())),
            seqs: Some((meta.min_seq, meta.max_seq)),
        });
    }

    pub(super) fn add_keyspace(
        &mut self,
        request: &Request,
        sizes: &Resolved,
        id: KeyspaceId,
        name: Bytes,
    ) {
        if self.shape.keyspaces.contains_key(&id) {
            return;
        }
        let keyspace = KeyspaceMeta {
            id,
            name: self.free_name(id, name),
            last_fast_level: last_fast_level(
                &request.options,
                sizes,
                request.options.tiers[0].capacity,
            ),
        };
        self.shape.keyspaces.insert(id, keyspace);
        self.shape.flushed_through.insert(id, 0);
        self.shape.next_file = self.shape.next_file.max(u64::from(id) + 1);
    }

    /// `name`, or a name made up for keyspace `id` if it is empty or another keyspace has it.
    fn free_name(&self, id: KeyspaceId, name: Bytes) -> Bytes {
        let is_taken = |name: &[u8]| {
            let mut others = self.shape.keyspaces.values();
            others.any(|other| other.name == name)
        };
        if !name.is_empty() && !is_taken(&name) {
            return name;
        }
        let mut free = format!("keyspace-{id}");
        while is_taken(free.as_bytes()) {
            free.push('-');
        }
        Bytes::from(free)
    }
}

/// Opens a table past every cache.
pub(super) fn open(tier: &Arc<Tier>, meta: &TableMeta, database: u128) -> Result<Arc<Table>> {
    let cache = Arc::new(BlockCache::new(0));
    let pins = Arc::new(PinBudget::new(0));
    Table::open(tier, meta.clone(), database, cache, pins).map(Arc::new)
}
