//! Removing a store.

use super::builder::DbBuilder;
use super::open::open_tiers;
use super::tracking::discard_ralt;
use crate::cache::discard_flash;
use crate::error::{Error, Result};
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::tier::{Tier, copy_number};
use crate::version::edit::table_number;
use crate::version::{
    CURRENT, CURRENT_TEMPORARY, Manifest, current_manifest, identity, manifest_number,
};
use crate::wal::{is_temporary, log_store, segment_number};

/// Removes the store's own files, `CURRENT` first: a crash on the way leaves no store
/// that names files that are gone. `TIER` goes last from each tier, so that what is left can be told and removed.
pub(super) fn destroy(builder: &DbBuilder) -> Result<()> {
    builder.options.validate()?;
    let (tiers, locks) = open_tiers(builder, false)?;
    let was_begun = current_manifest(&*log_store(&tiers[0])?)?.is_none();
    let database = database(&tiers, was_begun)?;
    let mut left = Vec::new();
    for tier in &tiers {
        if was_begun && identity::is_missing(tier)? {
            continue;
        }
        identity::check(tier, database)?;
        left.push(tier);
    }
    for tier in left {
        if let Some(log) = &tier.log {
            remove_log(&**log)?;
            discard_ralt(builder, tier)?;
            discard_flash(&tier.options.path)?;
        }
        for file in tier.tables.list()? {
            let numbered = table_number(&file.name).or(copy_number(&file.name));
            if numbered.is_some() || file.name == identity::TEMPORARY {
                tier.tables.remove(&file.name)?;
            }
        }
        tier.sync_names(|| tier.tables.sync_dir())?;
        tier.tables.remove(identity::NAME)?;
    }
    drop(locks);
    Ok(())
}

/// Which store it is. Where a destruction was begun, the tiers that it has not come to say so.
fn database(tiers: &[Arc<Tier>], was_begun: bool) -> Result<u128> {
    if was_begun {
        for tier in tiers {
            if let Some(database) = identity::database(tier)? {
                return Ok(database);
            }
        }
    }
    match Manifest::recover(&tiers[0])? {
        Some(found) => Ok(found.database),
        None => Err(Error::NotFound {
            path: tiers[0].options.path.clone(),
        }),
    }
}

fn remove_log(log: &dyn LogStore) -> Result<()> {
    log.remove(CURRENT)?;
    log.sync_dir()?;
    let is_own = |name: &str| {
        segment_number(name).is_some()
            || manifest_number(name).is_some()
            || is_temporary(name)
            || name == CURRENT_TEMPORARY
    };
    for file in log.list()? {
        if is_own(&file.name) {
            log.remove(&file.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::executor::Stepped;
    use crate::options::{Options, TierOptions};
    use crate::storage::{Fault, Faulty};

    fn builder(disk: &Faulty) -> DbBuilder {
        let fast = TierOptions::fast("/fast").capacity(64 << 20);
        let options = Options::with_tiers(vec![fast, TierOptions::slow("/slow")]);
        let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
        let builder = builder.medium(1, Arc::new(disk.clone()));
        builder.executor(Arc::new(Stepped::new(1)))
    }

    fn names(disk: &Faulty) -> Vec<String> {
        let dirs = ["/fast", "/fast/ralt", "/slow"];
        let files = dirs.map(|dir| disk.list_raw(dir.as_ref()));
        files.into_iter().flatten().map(|file| file.name).collect()
    }

    /// Without `CURRENT`, which goes first, a destruction that had been cut short was refused as damage, as was opening: the
    /// tables, all of the space, were for people to remove. Temporary files stayed in any case.
    #[test]
    fn a_destruction_that_is_cut_short_is_finished_by_the_next() {
        let store = Faulty::new(1);
        let db = builder(&store).open().unwrap();
        db.put("key", "value").unwrap();
        db.close().unwrap();
        drop(db);
        for (dir, name) in [
            ("/fast", "CURRENT.tmp"),
            ("/fast", "00000007.wal.tmp"),
            ("/slow", "00000099.sst"),
            ("/slow", "TIER.tmp"),
            ("/slow", "notes.txt"),
        ] {
            store.write_raw(dir.as_ref(), name, b"left");
        }
        let mut cut_short = 0;
        for fault in [Fault::Io, Fault::PowerLoss] {
            for call in 1.. {
                let disk = store.image(|_| true);
                disk.fail_nth(call, fault);
                let done = builder(&disk).destroy();
                if disk.triggered() == 0 {
                    done.unwrap();
                    assert_eq!(names(&disk), ["notes.txt"]);
                    break;
                }
                assert!(done.is_err(), "{fault:?} at call {call}");
                cut_short += 1;
                let images = match fault {
                    Fault::PowerLoss => vec![disk.image(|_| false), disk.image(|_| true)],
                    _ => vec![disk],
                };
                for left in images {
                    let again = builder(&left).destroy();
                    assert!(again.is_ok(), "{fault:?} at call {call}: {again:?}");
                    assert_eq!(names(&left), ["notes.txt"], "{fault:?} at call {call}");
                }
            }
        }
        assert!(cut_short > 30, "{cut_short}");
        assert!(matches!(
            builder(&Faulty::new(1)).destroy(),
            Err(Error::NotFound { .. })
        ));
    }
}
