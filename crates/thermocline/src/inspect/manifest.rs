//! The manifest, edit by edit.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Content, Entry, TableEntry, damage, open_tier};
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::log_format::{FileHeader, FileKind, Found, Records};
use crate::options::Options;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::{Learned, PlacedBy, VersionEdit};
use crate::version::{current_manifest, manifest_file_name};
use crate::wal::{FoundLog, log_store};

/// The manifest in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestReport {
    /// The file.
    pub file: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// The database it belongs to; none when the file's header is damaged.
    pub database: Option<u128>,
    /// Who decides where records live, by those of its edits that are intact; none if no opening
    /// said so.
    pub placed_by: Option<PlacedBy>,
    /// Its edits, oldest first. What is damaged is among them.
    pub edits: Vec<Entry<Edit>>,
}

impl ManifestReport {
    /// Entries that are damaged; a torn end is not.
    pub fn damaged(&self) -> usize {
        let damaged = |edit: &&Entry<Edit>| edit.content.is_damaged();
        self.edits.iter().filter(damaged).count()
    }
}

/// What one edit changes; all of it takes effect at once. The edit that a clean close leaves says
/// what compactions learned, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// In the order in which they apply.
    pub changes: Vec<Change>,
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_learned = |change: &Change| matches!(change, Change::Learned { .. });
        let closes = self.changes.iter().all(is_learned);
        if closes {
            f.write_str("closed")?;
        }
        for (index, change) in self.changes.iter().enumerate() {
            let separator = if closes || index > 0 { "; " } else { "" };
            write!(f, "{separator}{change}")?;
        }
        Ok(())
    }
}

/// One change of the store's shape.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A keyspace exists from here on.
    KeyspaceCreated {
        /// Its number.
        keyspace: u32,
        /// Its name.
        name: String,
        /// Its last level on the fast tier.
        last_fast_level: u8,
    },
    /// A table is no longer part of the store.
    TableRemoved {
        /// Number of its keyspace.
        keyspace: u32,
        /// Its number.
        table: u64,
    },
    /// A table is part of the store.
    TableAdded(TableEntry),
    /// Every record of the keyspace up to this sequence number is in tables.
    FlushedThrough {
        /// Number of the keyspace.
        keyspace: u32,
        /// The sequence number.
        seq: SeqNo,
    },
    /// What a keyspace's compactions learned, in parts of 10,000.
    Learned {
        /// Number of the keyspace.
        keyspace: u32,
        /// The part of their input from the last fast level that crossings brought down.
        cold: u16,
        /// The part of what came from the level above the last fast one that could pass that one
        /// by.
        fresh: u16,
    },
    /// How hot a table is.
    Heat {
        /// Its number.
        table: u64,
        /// Reads of its blocks from a device a second, on average, in thousandths.
        millireads: u64,
        /// Over how many seconds that was watched.
        watched: u64,
    },
    /// A keyspace and all its tables are gone.
    KeyspaceDropped {
        /// Its number.
        keyspace: u32,
    },
    /// File numbers below this one may be in use.
    NextFile(u64),
    /// No record that only tables hold has a higher sequence number.
    LastSeq(SeqNo),
    /// The log was synced through this sequence number and may be gone up to it.
    LogFloor(SeqNo),
    /// Log segments with lower numbers are obsolete.
    LogStart(u64),
    /// Who decides where records live.
    PlacedBy(PlacedBy),
    /// What the store is to cost, or how fast it is to be, as
    /// [`Target`](crate::Target) is written.
    Target(String),
    /// What an opening took over of the log, and where it went on. A segment with a lower number
    /// than `next` that is not named is no part of the log.
    LogFound {
        /// Numbers of the segments and their lengths in bytes, in their order.
        segments: Vec<(u64, u64)>,
        /// Segments that were begun since have this number or a higher one.
        next: u64,
    },
    /// Records through this sequence number that the found log lacks were given up.
    LogGivenUp(SeqNo),
    /// The manifest was put in force with this many edits.
    BeganWith(u64),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::KeyspaceCreated {
                keyspace,
                name,
                last_fast_level,
            } => write!(
                f,
                "create keyspace {keyspace} {name:?}, L0 to L{last_fast_level} on the fast tier"
            ),
            Change::TableRemoved { keyspace, table } => {
                write!(f, "remove table {table} of keyspace {keyspace}")
            }
            Change::TableAdded(table) => write!(f, "add {table}"),
            Change::FlushedThrough { keyspace, seq } => {
                write!(f, "keyspace {keyspace} is flushed through sequence {seq}")
            }
            Change::Learned {
                keyspace,
                cold,
                fresh,
            } => write!(
                f,
                "crossings of keyspace {keyspace} bring down {} %, and {} % could pass the last \
                 fast level by",
                percent(*cold),
                percent(*fresh)
            ),
            Change::Heat {
                table,
                millireads,
                watched,
            } => write!(
                f,
                "table {table} has {}.{:03} reads a second, over {watched} seconds",
                millireads / 1000,
                millireads % 1000
            ),
            Change::KeyspaceDropped { keyspace } => write!(f, "drop keyspace {keyspace}"),
            Change::NextFile(number) => write!(f, "file numbers go on from {number}"),
            Change::LastSeq(seq) => write!(f, "last sequence {seq}"),
            Change::LogFloor(seq) => write!(f, "the log may be gone through sequence {seq}"),
            Change::LogStart(number) => write!(f, "the log begins with segment {number}"),
            Change::LogFound { segments, next } => {
                f.write_str("the log consists of ")?;
                for (number, bytes) in segments {
                    write!(f, "segment {number} of {bytes} bytes, ")?;
                }
                write!(f, "segments from {next} on")
            }
            Change::LogGivenUp(seq) => {
                write!(f, "what the log lacks through sequence {seq} was given up")
            }
            Change::BeganWith(edits) => write!(f, "put in force with {edits} edits"),
            Change::Target(target) => write!(f, "target {target}"),
            Change::PlacedBy(placed_by) => write!(f, "records live by {placed_by}"),
        }
    }
}

fn percent(part: u16) -> f64 {
    100.0 * f64::from(part) / f64::from(Learned::WHOLE)
}

impl Edit {
    fn new(edit: &VersionEdit) -> Self {
        // All fields by name, so that a new one cannot be left out here.
        let VersionEdit {
            created,
            dropped,
            removed,
            added,
            flushed_through,
            learned,
            heats,
            next_file,
            log_floor,
            log_start,
            found_log,
            last_seq,
            placed_by,
            target,
            snapshot,
        } = edit;
        let mut changes = Vec::new();
        changes.extend(created.iter().map(|k| Change::KeyspaceCreated {
            keyspace: k.id,
            name: String::from_utf8_lossy(&k.name).into_owned(),
            last_fast_level: k.last_fast_level,
        }));
        let removed = removed.iter();
        changes.extend(removed.map(|&(keyspace, table)| Change::TableRemoved { keyspace, table }));
        let added = added.iter().map(TableEntry::new);
        changes.extend(added.map(Change::TableAdded));
        let flushed = flushed_through.iter();
        changes.extend(flushed.map(|&(keyspace, seq)| Change::FlushedThrough { keyspace, seq }));
        for &(keyspace, Learned { cold, fresh }) in learned {
            changes.push(Change::Learned {
                keyspace,
                cold,
                fresh,
            });
        }
        changes.extend(heats.iter().map(|&(table, heat)| Change::Heat {
            table,
            millireads: (f64::from(heat.rate) * 1000.0) as u64,
            watched: heat.watched as u64,
        }));
        let dropped = dropped.iter();
        changes.extend(dropped.map(|&keyspace| Change::KeyspaceDropped { keyspace }));
        changes.extend(next_file.map(Change::NextFile));
        changes.extend(last_seq.map(Change::LastSeq));
        changes.extend(log_floor.map(Change::LogFloor));
        changes.extend(log_start.map(Change::LogStart));
        changes.extend(placed_by.map(Change::PlacedBy));
        let target = target.as_ref().map(|set| set.target.to_string());
        changes.extend(target.map(Change::Target));
        if let Some(found) = found_log {
            let FoundLog {
                segments,
                next,
                reaches,
            } = found;
            changes.push(Change::LogFound {
                segments: segments.clone(),
                next: *next,
            });
            changes.extend(reaches.map(Change::LogGivenUp));
        }
        changes.extend(snapshot.map(Change::BeganWith));
        Self { changes }
    }
}

/// The manifest in force of the store that `options` describe. Only the first tier is looked
/// at.
///
/// # Errors
/// [`Error::NotFound`] when there is no store; [`Error::Corruption`] when `CURRENT` names no
/// manifest that is there, so that there is nothing to show; I/O errors.
pub fn manifest(options: &Options) -> Result<ManifestReport> {
    options.validate()?;
    let tier = open_tier(0, &options.tiers[0])?;
    let (mut report, edits) = read(&tier)?;
    report.edits = edits
        .into_iter()
        .map(|entry| Entry {
            offset: entry.offset,
            content: match entry.content {
                Content::Valid(edit) => Content::Valid(Edit::new(&edit)),
                Content::Torn => Content::Torn,
                Content::Damaged(what) => Content::Damaged(what),
            },
        })
        .collect();
    Ok(report)
}

/// The manifest without its edits, and these as they were decoded.
pub(super) fn read(tier: &Arc<Tier>) -> Result<(ManifestReport, Vec<Entry<VersionEdit>>)> {
    let store = log_store(tier)?;
    let (number, bytes) = read_current(&*store, &tier.options.path)?;
    let file = store.path().join(manifest_file_name(number));
    let mut edits = Vec::new();
    let header = match FileHeader::decode(&file, FileKind::Manifest, &bytes) {
        Ok(header) => header.filter(|header| header.number == number),
        // The manifest is of a newer format: say that, and do not guess at the rest.
        Err(error) => {
            let (offset, what) = damage(error, &file)?;
            let content = Content::Damaged(what);
            edits.push(Entry { offset, content });
            None
        }
    };
    if edits.is_empty() {
        if header.is_none() {
            let content = Content::Damaged("the file header is damaged".into());
            edits.push(Entry { offset: 0, content });
        }
        read_edits(number, &bytes, &mut edits);
    }
    let intact = edits.iter().filter_map(|edit| edit.content.valid());
    let report = ManifestReport {
        file,
        placed_by: intact.filter_map(|edit| edit.placed_by).next_back(),
        bytes: bytes.len() as u64,
        database: header.map(|header| header.database),
        edits: Vec::new(),
    };
    Ok((report, edits))
}

/// The manifest that `CURRENT` names. A manifest is there before it is named, and goes only once
/// another is named (I4). So if it is missing and still named afterwards, it is lost.
fn read_current(store: &dyn LogStore, path: &Path) -> Result<(u64, Vec<u8>)> {
    let mut missing = None;
    loop {
        let Some(number) = current_manifest(store)? else {
            let path = path.to_path_buf();
            return Err(Error::NotFound { path });
        };
        let name = manifest_file_name(number);
        match store.read(&name) {
            Err(Error::NotFound { .. }) if missing != Some(number) => missing = Some(number),
            Err(Error::NotFound { .. }) => {
                let what = "CURRENT names this manifest, but it is missing";
                return Err(Error::corruption(store.path().join(name), 0, what));
            }
            read => return Ok((number, read?)),
        }
    }
}

fn read_edits(number: u64, bytes: &[u8], edits: &mut Vec<Entry<VersionEdit>>) {
    let mut records = Records::new(number, bytes);
    loop {
        let (offset, content) = match records.next() {
            Found::End => return,
            Found::Torn { offset } => (offset, Content::Torn),
            Found::Damaged { offset, .. } => {
                let what = "an edit does not match its checksum";
                (offset, Content::Damaged(what.into()))
            }
            Found::Record { offset, payload } => {
                let payload = bytes.get(payload).unwrap_or_default();
                match VersionEdit::decode(payload) {
                    Ok(edit) => (offset, Content::Valid(edit)),
                    Err(bad) => (offset, Content::Damaged(bad.to_string())),
                }
            }
        };
        edits.push(Entry { offset, content });
    }
}
