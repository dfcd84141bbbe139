//! Sets files aside that are no longer used but may be all that is left of something.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::opening::request::Request;
use crate::storage::{Medium, TableFile, TableStore};
use crate::sync::Arc;
use crate::tier::Tier;

/// The directory for them, in the directory of their tier.
pub(crate) const LOST: &str = "lost";

/// Bytes that are compared at once.
const READ: usize = 1 << 20;

/// Gives each of `tables` a second name, or a copy, in the directory [`LOST`]; durable on return.
/// Each table comes with the number of its tier. Returns the paths that they have there.
///
/// # Errors
/// I/O errors.
pub(crate) fn set_aside(
    request: &Request,
    tiers: &[Arc<Tier>],
    tables: &[(usize, String)],
) -> Result<Vec<PathBuf>> {
    let mut set_aside = Vec::new();
    for (index, tier) in tiers.iter().enumerate() {
        let mut places = Places {
            medium: request.medium_of(index),
            tier,
            made: Vec::new(),
        };
        for (_, name) in tables.iter().filter(|(tier, _)| *tier == index) {
            set_aside.push(places.take_in(name)?);
        }
        for (_, place) in places.made {
            place.sync_dir()?;
        }
    }
    Ok(set_aside)
}

/// A tier's directories for what is set aside.
struct Places<'a> {
    medium: Arc<dyn Medium>,
    tier: &'a Tier,
    /// The directories needed so far: [`LOST`], then the same name with a number.
    made: Vec<(PathBuf, Arc<dyn TableStore>)>,
}

impl Places<'_> {
    /// Puts a table into the first directory where nothing else has its name. An earlier repair may
    /// have set aside another table of that name, from a store that was destroyed since, and that
    /// table may be all that is left of that store.
    fn take_in(&mut self, name: &str) -> Result<PathBuf> {
        let mut number = 0;
        loop {
            let (dir, store) = self.place(number)?;
            match store.open(name) {
                Err(Error::NotFound { .. }) => {}
                // An attempt that was cut short has put the table there, and its sync may have
                // failed. No later sync makes a name durable that a failed one lost (I9), so the
                // table is named anew. Until a manifest is in force it is in its old place, too.
                Ok(there) if is_same(&*there, &*self.tier.tables.open(name)?)? => {
                    store.remove(name)?;
                }
                Ok(_) => {
                    number += 1;
                    continue;
                }
                Err(error) => return Err(error),
            }
            self.tier.tables.link(name, &dir)?;
            return Ok(dir.join(name));
        }
    }

    fn place(&mut self, number: usize) -> Result<(PathBuf, Arc<dyn TableStore>)> {
        if let Some(place) = self.made.get(number) {
            return Ok(place.clone());
        }
        let name = match number {
            0 => LOST.to_owned(),
            more => format!("{LOST}.{}", more + 1),
        };
        let dir = self.tier.options.path.join(name);
        let store = self.medium.table_store(&dir, true)?;
        self.made.push((dir.clone(), Arc::clone(&store)));
        Ok((dir, store))
    }
}

/// Whether two files have the same bytes.
fn is_same(one: &dyn TableFile, other: &dyn TableFile) -> Result<bool> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for offset in (0..one.len()).step_by(READ) {
        let len = (READ as u64).min(one.len() - offset) as usize;
        if one.read(offset, len)?[..] != other.read(offset, len)?[..] {
            return Ok(false);
        }
    }
    Ok(true)
}
