//! The plan where the manifest can be read to its end: the manifest decides, and tables that are
//! not whole are written anew in their place.

use super::rebuilt::{whole_file, words};
use super::{Merge, Plan, open};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::opening::orphans::{may_have_been_named, was_named};
use crate::opening::repair::evidence::{Evidence, ReadManifest};
use crate::options::RecoveryMode;
use crate::sync::Arc;
use crate::table::TableMeta;
use crate::tier::Tier;
use crate::wal::{self, Bounds, Recovered};

impl Plan {
    /// The manifest decides; tables that are not whole are written anew in their place.
    pub(super) fn trust_the_manifest(
        &mut self,
        tiers: &[Arc<Tier>],
        evidence: &Evidence,
    ) -> Result<()> {
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
                    let problem = format!("{} {}", file.display(), words(&error));
                    self.problems.push(problem);
                    // A whole copy may have been put into another tier's directory.
                    let whole = tiers.iter().find(|other| {
                        let found = open(other, meta, self.database);
                        other.index != meta.tier && found.is_ok_and(|table| table.verify().is_ok())
                    });
                    let source = whole.map_or(meta.tier, |other| other.index);
                    self.write_anew(meta, source);
                    self.tables_aside.push((usize::from(meta.tier), meta.id));
                }
                Err(Error::NotFound { .. }) => {
                    self.problems.push(format!("{} is missing", file.display()));
                    match evidence.tables.get(&meta.id) {
                        Some(found) => {
                            let what = "it is in the directory of another tier";
                            self.problems
                                .push(format!("{}: {what}", found.path.display()));
                            self.write_anew(meta, tiers[found.tier].index);
                        }
                        None => {
                            self.shape.tables.remove(&meta.id);
                            self.lose_table(file, meta, "the file is missing");
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Replaces table `meta` by what can be read of its file on tier `found_on`.
    fn write_anew(&mut self, meta: &TableMeta, found_on: u8) {
        let source = TableMeta {
            tier: found_on,
            ..meta.clone()
        };
        self.shape.tables.remove(&meta.id);
        self.merges.push(Merge {
            keyspace: meta.keyspace,
            sources: vec![source],
            level: meta.level,
            tier: meta.tier,
            epoch: meta.epoch,
            table_size: u64::MAX,
        });
        self.tables_aside.push((usize::from(found_on), meta.id));
    }

    /// Counts unreadable tables that no edit names as lost, if a lost edit [may have named
    /// them](may_have_been_named).
    pub(super) fn give_up_unreadable_tables(&mut self, evidence: &Evidence, log: &Recovered) {
        let Some(manifest) = &evidence.manifest else {
            return;
        };
        let Some(shape) = &manifest.shape else {
            return;
        };
        if !may_have_been_named(shape, manifest.torn, log) {
            return;
        }
        for (id, found) in &evidence.tables {
            if let (Err(error), false) = (&found.described, shape.knows(*id)) {
                self.problems.push(error.to_string());
                let what = format!(
                    "{}; an edit that is lost may have named it, and the log may lack what it held",
                    words(error)
                );
                self.losses.push(whole_file(found.path.clone(), &what));
                self.tables_aside.push((found.tier, *id));
            }
        }
    }
}

/// Whether edits are missing at the end of a manifest that can be read to its end. Such a manifest
/// ends early, and so does one that a crash cut short.
pub(super) fn lost_an_edit(
    manifest: &ReadManifest,
    evidence: &Evidence,
    first: &Arc<Tier>,
) -> Result<bool> {
    let Some(shape) = &manifest.shape else {
        return Ok(true);
    };
    // The log is removed only after a flush that an edit tells of.
    if wal::first_header(first)?.is_some_and(|header| header.base_seq > shape.log_floor) {
        return Ok(true);
    }
    let mode = RecoveryMode::Tolerant;
    let nothing = &mut |_, _, _, _, _| Ok(());
    let bounds = Bounds {
        start: 0,
        ..shape.log_bounds()
    };
    let log = wal::survey(first, evidence.database, mode, &bounds, nothing)?;
    let unnamed = evidence
        .tables
        .iter()
        .filter(|(id, _)| !shape.tables.contains_key(id));
    let described = unnamed.filter_map(|(_, table)| table.described.as_ref().ok());
    let own = described.filter(|table| table.identity.database == evidence.database);
    let described: Vec<_> = own.collect();
    if described
        .iter()
        .any(|table| was_named(table, shape, manifest.number, &log.recovered))
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

pub(super) fn too_few_tiers(meta: &TableMeta) -> Error {
    Error::InvalidOption {
        option: "tiers",
        reason: format!(
            "the store has tables on tier {}; name all its tiers",
            meta.tier
        ),
    }
}
