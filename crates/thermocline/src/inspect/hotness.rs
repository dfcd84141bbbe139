//! By which settings a store's accesses are scored, and what is hot is limited; and what is known of them.

use std::fmt;
use std::path::PathBuf;

use super::{Content, PlacedBy, manifest};
use crate::db::ralt_dir;
use crate::error::Result;
use crate::options::{HotRapOptions, Options};
use crate::ralt::Ralt;
use crate::storage::Disk;

/// The settings that the records of recent accesses in the first tier of `options` are scored and limited by, and the defaults for
/// the others. Whoever opens the store with other ones begins anew to learn what is hot, or forgets a part of it; so this is what a
/// program goes by that opens a store of another one for a moment. None where there are no such records, or none that can be read.
///
/// ```
/// # fn main() -> thermocline::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// use thermocline::{Db, HotRapOptions, Options, Placement, inspect};
/// let mut options = Options::two_tiers(dir.path().join("fast"), 64 << 20, dir.path().join("slow"));
/// let mut hotrap = HotRapOptions::default();
/// hotrap.slice = 0.05;
/// options.placement = Placement::HotRap(hotrap);
/// Db::open(options.clone())?.close()?;
///
/// let found = inspect::hotness(&options)?.expect("there are records");
/// assert!((found.slice / found.hot_set_max - 0.05 / HotRapOptions::default().hot_set_max).abs() < 1e-9);
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
    /// What is wrong. By any of it no record is lost: the next opening begins anew to learn what is hot.
    pub fn damaged(&self) -> usize {
        usize::from(self.contents.is_damaged()) + self.problems.len()
    }
}

/// What is known of accesses to a closed store, by its state. Names are those of [`crate::metrics::RaltMetrics`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AccessRecords {
    /// The database that they are of.
    pub database: u128,
    /// Most bytes of keys and values that may be hot. While the store is open, room in its last fast level may limit them more.
    pub hot_set_limit_bytes: u64,
    /// Tables of access records, in bytes.
    pub physical_bytes: u64,
    /// What `physical_bytes` is kept below.
    pub physical_limit_bytes: u64,
    /// Access records in tables; of a key that lies in several, each.
    pub records: u64,
    /// How many tables there are.
    pub tables: u64,
    /// The score, as of the state, from which on a record is hot, in the class of records that the limit goes through.
    pub hot_threshold: f64,
    /// The score, as of the state, below which the last eviction forgot records, in the class of records that it went through.
    pub evicted_threshold: f64,
    /// Evictions ever.
    pub evictions: u64,
    /// The time slice: bytes accessed so far by the slice's size.
    pub tick: u64,
}

impl fmt::Display for AccessRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hot set of at most {} bytes, hot from a score of {:.3} on; {} records in {} tables, {} of at most {} bytes; {} evictions",
            self.hot_set_limit_bytes,
            self.hot_threshold,
            self.records,
            self.tables,
            self.physical_bytes,
            self.physical_limit_bytes,
            self.evictions
        )?;
        if self.evictions > 0 {
            write!(f, ", forgotten below {:.3}", self.evicted_threshold)?;
        }
        write!(f, "; slice {}, database {:032x}", self.tick, self.database)
    }
}

/// The state of the access records in the first tier of `options`. None where the store places no records by hotness, or nothing says
/// that it does and no state is there.
///
/// # Errors
/// As [`super::manifest`].
pub fn access_records(options: &Options) -> Result<Option<AccessRecordsReport>> {
    let manifest = manifest(options)?;
    if manifest.placed_by == Some(PlacedBy::Level) {
        // What a crash left of their removal is neither of use nor damage.
        return Ok(None);
    }
    let expected = manifest.placed_by == Some(PlacedBy::Hotness);
    let dir = ralt_dir(&options.tiers[0].path);
    let mut found = Ralt::inspect(&Disk::new(false), &dir, expected)?;
    if let Some(report) = &mut found
        && let Some(records) = report.contents.valid()
        && manifest.database.is_some_and(|id| id != records.database)
    {
        let of = format!("it belongs to database {:032x}", records.database);
        report.problems.push(of);
    }
    Ok(found)
}
