//! What the files of a store say, in readable form: manifest, tables, log, access records.
//!
//! Inspection changes nothing: it takes no lock, replays nothing and creates no file. As far as
//! anything can still be read, damage is an entry of the result and not an error. The store may be
//! open meanwhile, in this process or another. Then the result shows it as it was a moment ago, and
//! tells a file that was replaced since from one that is lost.
//!
//! ```
//! # fn main() -> thermocline::Result<()> {
//! # let dir = tempfile::tempdir().expect("a temporary directory");
//! let options = thermocline::Options::one_tier(dir.path());
//! let db = thermocline::Db::open(options.clone())?;
//! db.put("lake", "deep")?;
//! db.close()?;
//! for edit in thermocline::inspect::manifest(&options)?.edits {
//!     println!("{}: {}", edit.offset, edit.content);
//! }
//! let tables = thermocline::inspect::tables(&options)?;
//! assert_eq!(tables.tables[0].meta.entries, 1);
//! # Ok(())
//! # }
//! ```

mod access_records;
#[cfg(test)]
pub(crate) mod beside;
mod levels;
mod manifest;
mod tables;
mod wal;

use std::fmt;
use std::path::Path;

#[cfg(test)]
pub(crate) use access_records::report;
pub use access_records::{AccessRecords, AccessRecordsReport, access_records, hotness};
pub use levels::TableEntry;
pub use manifest::{Change, Edit, ManifestReport, manifest};
pub use tables::{Contents, TableReport, TablesReport, UnnamedFile, tables};
pub use wal::{Group, SegmentHeader, SegmentReport, Segments, Write, wal};

use crate::error::{Error, Result};
use crate::options::{Options, TierOptions};
use crate::storage::{Disk, Medium};
use crate::sync::Arc;
use crate::tier::Tier;
pub use crate::version::edit::PlacedBy;

/// Something at a place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<T> {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What stands there.
    pub content: Content<T>,
}

/// What stands at a place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<T> {
    /// It is as it was written.
    Valid(T),
    /// Nothing valid stands here or behind it: what a crash in the last write leaves.
    Torn,
    /// It is not what was written; in words.
    Damaged(String),
}

impl<T> Content<T> {
    /// What was written, unless it is torn or damaged.
    pub fn valid(&self) -> Option<&T> {
        match self {
            Content::Valid(content) => Some(content),
            _ => None,
        }
    }

    /// Whether it is damaged; a torn end is not.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Content::Damaged(_))
    }
}

impl<T: fmt::Display> fmt::Display for Content<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Valid(content) => content.fmt(f),
            Content::Torn => f.write_str("torn: nothing valid from here on"),
            Content::Damaged(what) => write!(f, "DAMAGED: {what}"),
        }
    }
}

/// Keys longer than this are shown shortened, in bytes.
const SHOWN: usize = 32;

/// A key for people: printable as it is, the rest escaped, a long one shortened.
struct Key<'a>(&'a [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..SHOWN).unwrap_or(self.0);
        let more = if shown.len() < self.0.len() {
            "…"
        } else {
            ""
        };
        write!(f, "\"{}{more}\"", shown.escape_ascii())
    }
}

/// A tier for reading. Without direct I/O, because finding out whether the filesystem has it
/// creates a file.
fn open_tier(index: usize, options: &TierOptions) -> Result<Arc<Tier>> {
    let medium = Disk::new(false);
    let log = match index {
        0 => Some(medium.log_store(&options.path, false)?),
        _ => None,
    };
    let tables = medium.table_store(&options.path, false)?;
    Ok(Arc::new(Tier::new(
        index as u8,
        options.clone(),
        tables,
        log,
    )))
}

/// Every tier of `options`.
fn open_tiers(options: &Options) -> Result<Vec<Arc<Tier>>> {
    options.validate()?;
    let tiers = options.tiers.iter().enumerate();
    tiers
        .map(|(index, options)| open_tier(index, options))
        .collect()
}

/// `error` in words if it tells of damage or of another format. Damage of `path` is told without
/// the path, which the caller knows. Other errors stay errors.
fn damage(error: Error, path: &Path) -> Result<(u64, String)> {
    match error {
        Error::Corruption {
            path: damaged,
            offset,
            what,
            ..
        } if damaged == path => Ok((offset, what)),
        other @ (Error::Corruption { .. } | Error::FormatVersion { .. }) => {
            Ok((0, other.to_string()))
        }
        other => Err(other),
    }
}
