//! What is left of a store: the edits of its manifests that can be read, and its tables by their
//! own properties.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::ids::{FileId, KeyspaceId, table_number};
use crate::log_format::{FileHeader, FileKind, Found, Records};
use crate::opening::Shape;
use crate::opening::orphans::is_stray;
use crate::opening::request::Request;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::table::SelfDescribed;
use crate::tier::Tier;
use crate::version::edit::VersionEdit;
use crate::version::{
    BadEdit, current_manifest, identity, lacks_edits, manifest_file_name, manifest_number,
};
use crate::wal::{self, log_store, segment_number};

/// What the files of a store say.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) database: u128,
    /// The manifest that knows most; none where no edit of any can be read.
    pub(super) manifest: Option<ReadManifest>,
    /// Without such a manifest, the file that should have been it: the one that `CURRENT` names, or
    /// else the last of those that are there.
    pub(super) lost_manifest: Option<PathBuf>,
    /// What is wrong with `CURRENT` and the manifests.
    pub(super) problems: Vec<String>,
    /// Every table file, by number. If several have one number, the store's own.
    pub(super) tables: BTreeMap<FileId, FoundTable>,
    /// Tables that [somebody has put there](is_stray), each with the number of its tier.
    pub(super) strays: Vec<(usize, FileId)>,
    /// Tiers whose `TIER` is missing or damaged.
    pub(super) nameless_tiers: Vec<usize>,
    /// Those of them that hold nothing and were given up.
    pub(super) given_up: Vec<usize>,
    /// Above every number in the name of a file (I4), except those of strays.
    pub(super) next_file: FileId,
}

/// What can be read of a manifest.
#[derive(Debug)]
pub(super) struct ReadManifest {
    pub(super) path: PathBuf,
    /// Where its edits end.
    end: u64,
    pub(super) number: FileId,
    database: Option<u128>,
    pub(super) edits: Vec<VersionEdit>,
    /// The offset of the first place that cannot be read.
    damaged: Option<u64>,
    /// Whether it ends in bytes that are no edit.
    pub(super) torn: bool,
    /// What the edits add up to, if none is missing.
    pub(super) shape: Option<Shape>,
}

impl ReadManifest {
    /// The message that says `what` of the place behind the last edit.
    pub(super) fn lacks(&self, what: &str) -> String {
        format!("{} at offset {}: {what}", self.path.display(), self.end)
    }

    /// The offset of the first edit that is missing or cannot be read.
    pub(super) fn lost_from(&self) -> u64 {
        self.damaged.unwrap_or(self.end)
    }
}

/// A table file.
#[derive(Debug)]
pub(super) struct FoundTable {
    pub(super) tier: usize,
    pub(super) path: PathBuf,
    pub(super) described: std::result::Result<SelfDescribed, Error>,
}

impl Evidence {
    /// Reads manifests and tails of tables. Changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is nothing of a store; [`Error::Corruption`] where nothing
    /// says which one it is; [`Error::FormatVersion`] of any file; [`Error::WrongTier`] for a tier
    /// of another store, and for one that has nothing and was not given up; I/O errors.
    pub(super) fn gather(request: &Request, tiers: &[Arc<Tier>]) -> Result<Self> {
        let store = log_store(&tiers[0])?;
        let ReadManifests {
            best: manifest,
            last: lost_manifest,
            problems,
        } = read_manifests(&*store)?;
        let mut next_file = 1;
        for file in store.list()? {
            let segment = segment_number(&file.name);
            let number = segment.or_else(|| manifest_number(&file.name));
            next_file = next_file.max(number.map_or(0, |number| number.saturating_add(1)));
        }
        let has_log_or_manifest = next_file > 1;
        let files = find_tables(tiers)?;
        let mut nameless_tiers = Vec::new();
        let mut database = manifest.as_ref().and_then(|manifest| manifest.database);
        for tier in tiers {
            match identity::database(tier)? {
                None => nameless_tiers.push(usize::from(tier.index)),
                found => database = database.or(found),
            }
        }
        let described = files
            .iter()
            .filter_map(|(_, table)| table.described.as_ref().ok());
        let database = database.or_else(|| most_common(described.map(|t| t.identity.database)));
        let log = wal::first_header(&tiers[0])?;
        let Some(database) = database.or(log.map(|header| header.database)) else {
            let path = tiers[0].options.path.clone();
            if files.is_empty() && next_file == 1 {
                return Err(Error::NotFound { path });
            }
            let what = "no file that is whole says which database this is";
            return Err(Error::corruption(path.join(identity::NAME), 0, what));
        };
        let mut given_up = Vec::new();
        for tier in tiers {
            let index = usize::from(tier.index);
            if !nameless_tiers.contains(&index) {
                identity::check(tier, database)?;
                continue;
            }
            let holds_something = files.iter().any(|(_, table)| table.tier == index)
                || index == 0 && has_log_or_manifest;
            if holds_something || !identity::is_missing(tier)? {
                continue;
            }
            if !request.has_given_up(tier.index) {
                return Err(nothing_there(tier));
            }
            given_up.push(index);
        }
        let said = manifest.iter().flat_map(|manifest| &manifest.edits);
        next_file = next_file.max(said.filter_map(|edit| edit.next_file).max().unwrap_or(0));
        let (tables, strays) = sort_out(files, database, &mut next_file);
        Ok(Self {
            database,
            manifest,
            lost_manifest,
            problems,
            tables,
            strays,
            nameless_tiers,
            given_up,
            next_file,
        })
    }
}

impl Evidence {
    /// Keyspaces that an edit drops.
    pub(super) fn dropped(&self) -> BTreeSet<KeyspaceId> {
        let edits = self.manifest.iter().flat_map(|manifest| &manifest.edits);
        edits.flat_map(|edit| &edit.dropped).copied().collect()
    }
}

/// A device that is not mounted looks just like that, and it is not for a repair to decide that all
/// that lies on it is given up.
fn nothing_there(tier: &Tier) -> Error {
    Error::WrongTier {
        tier: usize::from(tier.index),
        path: tier.tables.path().to_path_buf(),
        problem: "nothing of the store is in the directory; check that the device is mounted and the path \
                  is right, and only if all that it held is lost, give it up: `thermocline repair --give-up`, \
                  `DbBuilder::give_up_tier`"
            .into(),
    }
}

fn most_common(databases: impl Iterator<Item = u128>) -> Option<u128> {
    let mut counts = BTreeMap::new();
    for database in databases {
        *counts.entry(database).or_insert(0u64) += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map(|(database, _)| database)
}

fn find_tables(tiers: &[Arc<Tier>]) -> Result<Vec<(FileId, FoundTable)>> {
    let mut tables = Vec::new();
    for tier in tiers {
        for file in tier.tables.list()? {
            let Some(id) = table_number(&file.name) else {
                continue;
            };
            let described = match SelfDescribed::read(tier, id) {
                Err(error @ Error::Corruption { .. }) => Err(error),
                described => Ok(described?),
            };
            let found = FoundTable {
                tier: usize::from(tier.index),
                path: tier.tables.path().join(&file.name),
                described,
            };
            tables.push((id, found));
        }
    }
    Ok(tables)
}

/// The tables of `files` by number, and the strays among them. Raises `next_file` above the numbers
/// of all others.
fn sort_out(
    files: Vec<(FileId, FoundTable)>,
    database: u128,
    next_file: &mut FileId,
) -> (BTreeMap<FileId, FoundTable>, Vec<(usize, FileId)>) {
    // A number stands for one table. Of two files with one number the store's own whole table comes
    // first, and another store's comes last.
    let rank = |table: &FoundTable| match &table.described {
        Ok(described) if described.identity.database == database => 2,
        Err(_) => 1,
        Ok(_) => 0,
    };
    let own = files.iter().filter(|(_, table)| rank(table) == 2);
    let last = own.map(|(id, _)| id.saturating_add(1)).max();
    let known = last.unwrap_or(0).max(*next_file);
    let (mut tables, mut strays) = (BTreeMap::new(), Vec::new());
    for (id, found) in files {
        if is_stray(found.described.as_ref().ok(), id, database, known) {
            strays.push((found.tier, id));
        } else {
            *next_file = id.saturating_add(1).max(*next_file);
        }
        let before = tables.get(&id).map(rank);
        if before.is_none_or(|before| before < rank(&found)) {
            tables.insert(id, found);
        }
    }
    (tables, strays)
}

/// What the manifests say, and what is wrong with them.
struct ReadManifests {
    /// None where no edit of any can be read.
    best: Option<ReadManifest>,
    /// The last manifest that was to be read, whether it is there or not.
    last: Option<PathBuf>,
    problems: Vec<String>,
}

/// The manifest in force. Where `CURRENT` does not say which that is, the one that got furthest: a
/// manifest that was begun but never put in force is no further than the one before it.
fn read_manifests(store: &dyn LogStore) -> Result<ReadManifests> {
    let mut problems = Vec::new();
    let current = match current_manifest(store) {
        Ok(Some(number)) => Some(number),
        Ok(None) => {
            problems.push(format!(
                "{} is missing",
                store.path().join("CURRENT").display()
            ));
            None
        }
        Err(error @ Error::Corruption { .. }) => {
            problems.push(error.to_string());
            None
        }
        Err(error) => return Err(error),
    };
    let files = store.list()?;
    let mut numbers: Vec<FileId> = files
        .iter()
        .filter_map(|f| manifest_number(&f.name))
        .collect();
    numbers.sort_unstable();
    if let Some(number) = current {
        match numbers.contains(&number) {
            true => numbers = vec![number],
            false => {
                let file = store.path().join(manifest_file_name(number));
                problems.push(format!("{} is missing", file.display()));
            }
        }
    }
    let last = current.or(numbers.last().copied());
    let last = last.map(|number| store.path().join(manifest_file_name(number)));
    let mut best: Option<ReadManifest> = None;
    for number in numbers {
        let read = read_manifest(store, number, &mut problems)?;
        let reach = |manifest: &ReadManifest| {
            let shape = manifest.shape.as_ref();
            shape.map(|shape| (shape.next_file, shape.last_seq, manifest.number))
        };
        if best.as_ref().is_none_or(|best| reach(best) < reach(&read)) {
            best = Some(read);
        }
    }
    Ok(ReadManifests {
        best: best.filter(|manifest| !manifest.edits.is_empty()),
        last,
        problems,
    })
}

fn read_manifest(
    store: &dyn LogStore,
    number: FileId,
    problems: &mut Vec<String>,
) -> Result<ReadManifest> {
    let name = manifest_file_name(number);
    let path = store.path().join(&name);
    let bytes = store.read(&name)?;
    let before = problems.len();
    let mut first_damage = None;
    let mut damaged = |offset: u64, what: &str| {
        first_damage.get_or_insert(offset);
        problems.push(format!("{} at offset {offset}: {what}", path.display()));
    };
    let header = FileHeader::decode(&path, FileKind::Manifest, &bytes)?;
    let header = header.filter(|header| header.number == number);
    if header.is_none() {
        damaged(0, "the file header is damaged");
    }
    let (mut edits, mut offsets) = (Vec::new(), Vec::new());
    let (mut torn, mut end) = (false, bytes.len() as u64);
    let mut records = Records::new(number, &bytes);
    loop {
        match records.next() {
            Found::Record { offset, payload } => {
                match VersionEdit::decode(bytes.get(payload).unwrap_or_default()) {
                    Ok(edit) => {
                        edits.push(edit);
                        offsets.push(offset);
                    }
                    // The store is sound, and a repair would lay it on one tier.
                    Err(bad @ BadEdit::Newer { .. }) => return Err(bad.at(&path, offset)),
                    Err(bad) => damaged(offset, &bad.to_string()),
                }
            }
            Found::Damaged { offset, .. } => damaged(offset, "an edit does not match its checksum"),
            // What a crash leaves is no damage: the edit was not in force.
            Found::Torn { offset } => {
                (torn, end) = (true, offset);
                break;
            }
            Found::End => break,
        }
    }
    if lacks_edits(&edits) {
        let what = "it ends within the edits that it began with";
        problems.push(format!("{}: {what}", path.display()));
    }
    let mut shape = None;
    if problems.len() == before {
        match Shape::from_edits(edits.clone()) {
            Ok(added_up) => shape = Some(added_up),
            Err(misfit) => {
                let offset = offsets.get(misfit.index).copied().unwrap_or(0);
                first_damage = Some(offset);
                problems.push(format!("{} at offset {offset}: {misfit}", path.display()));
            }
        }
    }
    Ok(ReadManifest {
        path,
        end,
        number,
        database: header.map(|header| header.database),
        edits,
        damaged: first_damage,
        torn,
        shape,
    })
}
