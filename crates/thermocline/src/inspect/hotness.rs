//! By which settings a store's accesses are scored, and what is hot is limited.

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
