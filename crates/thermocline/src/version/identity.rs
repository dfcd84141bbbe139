//! `TIER`: the object that distinguishes a tier's directory from every other.

use xxhash_rust::xxh3::xxh3_64;

use crate::coding::Decoder;
use crate::error::{Error, Result};
use crate::metrics::Purpose;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::tier::Tier;

/// Its name in the tier's directory.
pub(crate) const NAME: &str = "TIER";
/// Name of the new file before it is renamed to that.
const TEMPORARY: &str = "TIER.tmp";
/// An empty file that exists for as long as a [replaced](replace) identity may be only in the
/// system's cache.
const UNSYNCED: &str = "TIER.unsynced";
const MAGIC: &[u8; 8] = b"TCLNTIER";
const VERSION: u32 = 1;
/// Magic, version, database, tier index, checksum; the same in every version.
const LEN: usize = 8 + 4 + 16 + 1 + 8;

fn encode(database: u128, index: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(LEN);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&database.to_le_bytes());
    out.push(index);
    let checksum = xxh3_64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Version, database and tier index, if `bytes` are intact.
fn decode(bytes: &[u8]) -> Option<(u32, u128, u8)> {
    let mut decoder = Decoder::new(bytes);
    if decoder.take(8)? != MAGIC {
        return None;
    }
    let fields = (decoder.u32()?, decoder.u128()?, decoder.u8()?);
    let covered = bytes.get(..decoder.position())?;
    (decoder.u64()? == xxh3_64(covered) && decoder.is_empty()).then_some(fields)
}

/// Marks the tier's directory as belonging to `database`; durable on return.
///
/// # Errors
/// I/O errors of the table store.
pub(crate) fn write(tier: &Arc<Tier>, database: u128) -> Result<()> {
    let mut object = tier.create(NAME, LEN as u64, Purpose::Manifest)?;
    object.append(&encode(database, tier.index))?;
    object.finish()
}

/// As [`write`], but replaces the identity that is there; `store` is at the tier's directory. It
/// does so by a rename: if the old file were missing for a moment, a tier that holds nothing else
/// would look like a device that is not mounted.
///
/// # Errors
/// I/O errors of the log store; the tier then [is marked](is_unsynced).
pub(crate) fn replace(tier: &Tier, store: &dyn LogStore, database: u128) -> Result<()> {
    // The mark comes first: from the rename on, the next opening finds the new identity, whether it
    // is durable or not.
    store.create(UNSYNCED)?;
    let file = store.create(TEMPORARY)?;
    file.append(&encode(database, tier.index))?;
    tier.count_write(Purpose::Manifest, LEN as u64);
    file.sync()?;
    store.rename(TEMPORARY, NAME)?;
    tier.sync_names(|| store.sync_dir())?;
    // If a loss of power undoes this, it costs one more replacement.
    store.remove(UNSYNCED)
}

/// Whether the tier's identity may be only in the system's cache: the process that replaced it was
/// killed, or its sync failed. No later sync makes durable what a failed one has lost (I9), so the
/// identity must be replaced once more.
///
/// # Errors
/// I/O errors.
pub(crate) fn is_unsynced(tier: &Tier) -> Result<bool> {
    match tier.tables.open(UNSYNCED) {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the file `name` is what an interrupted replacement leaves behind.
pub(crate) fn is_left_over(name: &str) -> bool {
    name == TEMPORARY || name == UNSYNCED
}

/// What a tier's directory says about itself.
enum Found {
    Nothing,
    Damaged,
    Identity {
        version: u32,
        database: u128,
        index: u8,
    },
}

fn read(tier: &Arc<Tier>) -> Result<Found> {
    let file = match tier.open(NAME) {
        Ok(file) => file,
        Err(Error::NotFound { .. }) => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    if file.file.len() != LEN as u64 {
        return Ok(Found::Damaged);
    }
    let decoded = decode(&file.read_bytes(Purpose::Open, 0, LEN)?);
    Ok(
        decoded.map_or(Found::Damaged, |(version, database, index)| {
            Found::Identity {
                version,
                database,
                index,
            }
        }),
    )
}

/// Makes the directory of a tier that holds no tables belong to a new store; returns the store's
/// number. The number is `database`; without that, the one that an unfinished creation left in the
/// directory; and without that, `drawn`. `store` is at the tier's directory.
///
/// # Errors
/// As [`check`], when the directory belongs to another store.
pub(crate) fn claim(
    tier: &Arc<Tier>,
    store: &dyn LogStore,
    database: Option<u128>,
    drawn: u128,
) -> Result<u128> {
    let wanted = match read(tier)? {
        Found::Identity { database: left, .. } => {
            let wanted = database.unwrap_or(left);
            check(tier, wanted)?;
            // If the process that wrote it was killed, it may be only in the system's cache.
            replace(tier, store, wanted)?;
            return Ok(wanted);
        }
        Found::Nothing => database.unwrap_or(drawn),
        Found::Damaged => {
            // Torn by a crash in the creation: no table was ever written here.
            tier.tables.remove(NAME)?;
            database.unwrap_or(drawn)
        }
    };
    write(tier, wanted)?;
    Ok(wanted)
}

/// The database that the tier's directory says it belongs to; `None` if the file is missing or
/// damaged.
///
/// # Errors
/// I/O errors.
pub(crate) fn database(tier: &Arc<Tier>) -> Result<Option<u128>> {
    Ok(match read(tier)? {
        Found::Identity { database, .. } => Some(database),
        Found::Nothing | Found::Damaged => None,
    })
}

/// Whether the tier's directory has no identity, not even a damaged one.
///
/// # Errors
/// I/O errors.
pub(crate) fn is_missing(tier: &Arc<Tier>) -> Result<bool> {
    read(tier).map(|found| matches!(found, Found::Nothing))
}

/// Whether the tier's directory is the one that belongs in this place.
///
/// # Errors
/// [`Error::WrongTier`], which says what the directory is instead; [`Error::FormatVersion`] for the
/// identity of a newer release; I/O errors.
pub(crate) fn check(tier: &Arc<Tier>, database: u128) -> Result<()> {
    let path = tier.tables.path().to_path_buf();
    let wrong = |problem: String| {
        Err(Error::WrongTier {
            tier: usize::from(tier.index),
            path: path.clone(),
            problem,
        })
    };
    match read(tier)? {
        Found::Nothing => wrong(
            "there is no TIER file, so the directory is empty or holds something else; \
             check that the device is mounted and the path is right. If tables of the store are there, `thermocline repair` writes \
             the file anew"
                .into(),
        ),
        Found::Damaged => wrong(
            "its TIER file is damaged; `thermocline repair`, or `Db::repair`, writes it anew and \
             loses nothing by that"
                .into(),
        ),
        Found::Identity { version, .. } if version != VERSION => Err(Error::FormatVersion {
            path: path.join(NAME),
            found: version,
            supported: VERSION,
        }),
        Found::Identity {
            database: other, ..
        } if other != database => wrong(format!(
            "the directory belongs to database {other:032x}, not to {database:032x}; \
             correct the path"
        )),
        Found::Identity { index, .. } if index != tier.index => wrong(format!(
            "the directory is tier {index} of this database; put the tiers in the order \
             they were created in"
        )),
        Found::Identity { .. } => Ok(()),
    }
}

/// Refuses the directory of another tier, of whatever store. A directory that does not say what it
/// is passes.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_place(tier: &Arc<Tier>) -> Result<()> {
    match database(tier)? {
        Some(own) => check(tier, own),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::test_store::TestStore;

    fn problem(result: Result<()>) -> String {
        match result {
            Err(Error::WrongTier {
                tier: 1, problem, ..
            }) => problem,
            other => panic!("expected a wrong tier, got {other:?}"),
        }
    }

    #[test]
    fn a_directory_is_accepted_in_its_own_place_only() {
        let store = TestStore::new();
        let tier = store.tier_at(1);
        assert!(problem(check(&tier, 7)).contains("no TIER file"));
        check_place(&store.tier_at(0)).unwrap();
        write(&tier, 7).unwrap();
        check(&tier, 7).unwrap();
        check_place(&tier).unwrap();
        assert!(problem(check(&tier, 8)).contains("belongs to database"));
        for swapped in [check(&store.tier_at(0), 7), check_place(&store.tier_at(0))] {
            let swapped = swapped.unwrap_err().to_string();
            assert!(swapped.contains("tier 1 of this database"), "{swapped}");
        }
    }

    #[test]
    fn every_flipped_byte_and_truncation_is_seen() {
        let store = TestStore::new();
        let tier = store.tier_at(1);
        write(&tier, 7).unwrap();
        let bytes = store.get(NAME).unwrap();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x20;
            store.put(NAME, bad);
            assert!(problem(check(&tier, 7)).contains("damaged"), "byte {at}");
            store.put(NAME, bytes[..at].to_vec());
            assert!(problem(check(&tier, 7)).contains("damaged"), "length {at}");
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let store = TestStore::new();
        let mut bytes = encode(7, 1);
        bytes[8] = 2;
        let checksum = xxh3_64(&bytes[..LEN - 8]);
        bytes[LEN - 8..].copy_from_slice(&checksum.to_le_bytes());
        store.put(NAME, bytes);
        let error = check(&store.tier_at(1), 7).unwrap_err();
        assert!(matches!(error, Error::FormatVersion { found: 2, .. }));
    }
}
