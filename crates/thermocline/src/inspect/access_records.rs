//! The settings by which a store's accesses are scored and what is hot is limited, and what is
//! known of the accesses.

use std::path::{Path, PathBuf};

use super::{Content, PlacedBy, manifest};
use crate::error::Result;
use crate::options::{HotRapOptions, Options, ralt_dir};
pub use crate::placement::AccessRecords;
use crate::placement::ralt::{Ralt, STATE};
use crate::storage::{Disk, Medium};

/// The settings that the records of recent accesses in the first tier of `options` are scored and
/// limited by, with the defaults for all others. None if there are no such records, or none that
/// can be read.
///
/// Opening the store with other settings makes it learn anew what is hot, or forget a part of it.
/// So a program that opens another program's store for a moment goes by these.
///
/// ```
/// # fn main() -> thermocline::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// use thermocline::{Db, HotRapOptions, Options, Placement, inspect};
/// let usual = Options::two_tiers(dir.path().join("fast"), 64 << 20, dir.path().join("slow"));
/// let mut options = usual.clone();
/// options.placement = Placement::HotRap(HotRapOptions::default().hot_share(0.4));
/// Db::open(options)?.close()?;
///
/// // Another program, which does not know the share.
/// let mut options = usual;
/// let found = inspect::hotness(&options)?.expect("there are records");
/// options.placement = Placement::HotRap(found);
/// let db = Db::open(options)?;
/// assert_eq!(db.recovery().hotness, None, "nothing was forgotten");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`crate::Error::InvalidOption`]; I/O errors.
pub fn hotness(options: &Options) -> Result<Option<HotRapOptions>> {
    options.validate()?;
    Ralt::settings(&Disk::new(false), &ralt_dir(&options.tiers[0].path))
}

/// The state of the access records, which says what is hot.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AccessRecordsReport {
    /// Its file.
    pub file: PathBuf,
    /// The file's length in bytes; 0 where it is missing.
    pub bytes: u64,
    /// What it says.
    pub contents: Content<AccessRecords>,
    /// What else keeps it from being used: tables that are not as it says, or another database.
    pub problems: Vec<String>,
}

impl AccessRecordsReport {
    /// How many things are wrong. None of them loses a record: the next opening begins anew to
    /// learn what is hot.
    pub fn damaged(&self) -> usize {
        usize::from(self.contents.is_damaged()) + self.problems.len()
    }
}

/// The state of the access records in the first tier of `options`. None if the store places no
/// records by hotness, or if nothing says that it does and there is no state.
///
/// # Errors
/// As [`super::manifest`].
pub fn access_records(options: &Options) -> Result<Option<AccessRecordsReport>> {
    let manifest = manifest(options)?;
    if manifest.placed_by == Some(PlacedBy::Level) {
        // A crash may have cut their removal short. What it left is of no use, and no damage.
        return Ok(None);
    }
    let expected = manifest.placed_by == Some(PlacedBy::Hotness);
    let dir = ralt_dir(&options.tiers[0].path);
    let mut found = report(&Disk::new(false), &dir, expected)?;
    if let Some(report) = &mut found
        && let Some(records) = report.contents.valid()
        && manifest.database.is_some_and(|id| id != records.database)
    {
        let of = format!("it belongs to database {:032x}", records.database);
        report.problems.push(of);
    }
    Ok(found)
}

/// What the state in the directory `path` says. Where there is none: damage if one is `expected`,
/// else nothing.
///
/// # Errors
/// I/O errors.
pub(crate) fn report(
    medium: &dyn Medium,
    path: &Path,
    expected: bool,
) -> Result<Option<AccessRecordsReport>> {
    let file = path.join(STATE);
    let Some(found) = Ralt::inspect(medium, path)? else {
        return Ok(expected.then(|| AccessRecordsReport {
            file,
            bytes: 0,
            contents: Content::Damaged("the file is missing".to_owned()),
            problems: Vec::new(),
        }));
    };
    Ok(Some(AccessRecordsReport {
        file,
        bytes: found.bytes,
        contents: found.records.map_or_else(Content::Damaged, Content::Valid),
        problems: found.problems,
    }))
}
