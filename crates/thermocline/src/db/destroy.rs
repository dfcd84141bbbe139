//! Removing a store.

use super::builder::DbBuilder;
use super::founding::check_first_is_there;
use super::open::{check_tier_count, open_tiers};
use super::shape::Shape;
use super::tracking::{check_not_alone, discard_ralt};
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
/// that names files that are gone. `TIER` goes last from each tier, so that what is left can be told and removed, and from the first
/// tier when no other has one any more: without that a device that is not mounted would look like a tier that a destruction has
/// come to.
pub(super) fn destroy(builder: &DbBuilder) -> Result<()> {
    builder.options.validate()?;
    let (tiers, locks) = open_tiers(builder, false)?;
    let was_begun = match current_manifest(&*log_store(&tiers[0])?) {
        // What is damaged is there.
        Err(Error::Corruption { .. }) => false,
        current => current?.is_none(),
    };
    let database = database(builder, &tiers, was_begun)?;
    for tier in &tiers {
        if was_begun && identity::is_missing(tier)? {
            continue;
        }
        identity::check(tier, database)?;
    }
    let first = &tiers[0];
    if let Some(log) = &first.log {
        remove_log(&**log)?;
    }
    for tier in &tiers[1..] {
        // Else a destruction has come to it, and what is there is not the store's.
        if !identity::is_missing(tier)? {
            remove_tables(tier)?;
            tier.tables.remove(identity::NAME)?;
        }
        // In any case: whoever has removed it may have been cut short here.
        tier.sync_names(|| tier.tables.sync_dir())?;
    }
    // Only now: where a destruction was begun nothing else tells that there are others.
    discard_ralt(builder, first)?;
    discard_flash(&first.options.path)?;
    remove_tables(first)?;
    first.tables.remove(identity::NAME)?;
    drop(locks);
    Ok(())
}

/// Removes tables, copies, and what was to become the tier's `TIER`; durable on return.
fn remove_tables(tier: &Tier) -> Result<()> {
    for file in tier.tables.list()? {
        let numbered = table_number(&file.name).or(copy_number(&file.name));
        if numbered.is_some() || file.name == identity::TEMPORARY {
            tier.tables.remove(&file.name)?;
        }
    }
    tier.sync_names(|| tier.tables.sync_dir())
}

/// Which store it is. Where a destruction was begun, the tiers that it has not come to say so; where the manifest is
/// damaged, the first tier does. Refuses where tiers are left out, as far as anything tells.
fn database(builder: &DbBuilder, tiers: &[Arc<Tier>], was_begun: bool) -> Result<u128> {
    if was_begun {
        check_first_is_there(tiers)?;
        check_not_alone(builder)?;
        for tier in tiers {
            if let Some(database) = identity::database(tier)? {
                return Ok(database);
            }
        }
    }
    match Manifest::recover(&tiers[0]) {
        Ok(Some(found)) => {
            match Shape::from_edits(found.edits) {
                Ok(shape) => check_tier_count(&shape, tiers.len())?,
                Err(_) => check_not_alone(builder)?,
            }
            Ok(found.database)
        }
        Ok(None) => Err(Error::NotFound {
            path: tiers[0].options.path.clone(),
        }),
        Err(damage @ Error::Corruption { .. }) => match identity::database(&tiers[0])? {
            Some(database) => check_not_alone(builder).map(|()| database),
            None => Err(damage),
        },
        Err(error) => Err(error),
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
    use std::path::Path;

    use super::*;
    use crate::Db;
    use crate::executor::Stepped;
    use crate::options::{Options, TierOptions};
    use crate::promotion::tests::scene::{self, KEYS, Scene};
    use crate::storage::{Fault, Faulty, Medium};

    fn builder(disk: &Faulty) -> DbBuilder {
        let fast = TierOptions::fast("/fast").capacity(64 << 20);
        let options = Options::with_tiers(vec![fast, TierOptions::slow("/slow")]);
        let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
        let builder = builder.medium(1, Arc::new(disk.clone()));
        builder.executor(Arc::new(Stepped::new(1)))
    }

    /// As [`builder`], with the first tier alone.
    fn one_tier(disk: &Faulty) -> DbBuilder {
        let mut options = scene::options();
        options.tiers.truncate(1);
        Db::builder(options).medium(0, Arc::new(disk.clone()))
    }

    /// A closed store that has tables on the slow tier.
    fn with_slow_tables() -> Faulty {
        let store = Faulty::new(1);
        let scene = Scene::on(Arc::new(store.clone()), scene::options());
        scene.put_all(&KEYS, "old");
        scene.to_slow();
        scene.db.close().unwrap();
        store
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
                    // Else the first tier's `TIER` may be gone and another's be back.
                    let slow = Some(Path::new("/slow"));
                    let mut unsynced = disk.unsynced().into_iter();
                    assert!(unsynced.all(|piece| piece.directory.as_deref() != slow));
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

    /// A store whose `CURRENT` or manifest was damaged could neither be destroyed, because of the damage, nor restored into, because
    /// its directory was not empty.
    #[test]
    fn a_store_with_a_damaged_manifest_is_removed() {
        let store = Faulty::new(1);
        let db = builder(&store).open().unwrap();
        db.put("key", "value").unwrap();
        db.close().unwrap();
        drop(db);
        store.write_raw("/fast".as_ref(), "notes.txt", b"left");
        for what in ["CURRENT", "MANIFEST"] {
            let disk = store.image(|_| true);
            let name = names(&disk).into_iter().find(|name| name.starts_with(what));
            disk.corrupt("/fast".as_ref(), &name.unwrap(), 20, 1)
                .unwrap();
            assert!(builder(&disk).open().unwrap_err().is_corruption());
            builder(&disk).destroy().unwrap();
            assert_eq!(names(&disk), ["notes.txt"], "{what}");
        }
    }

    /// A mount point without its device has no `CURRENT` either: it was taken for the first tier of a store whose destruction had been
    /// begun, and the other tier was removed. With the device back the store could neither be opened nor destroyed.
    #[test]
    fn a_first_tier_that_is_not_mounted_is_no_destruction_that_was_begun() {
        let (store, slow) = (with_slow_tables(), Path::new("/slow"));
        let unmounted = Faulty::new(1);
        unmounted.log_store("/fast".as_ref(), true).unwrap();
        for file in store.list_raw(slow) {
            let bytes = store.read_raw(slow, &file.name).unwrap();
            unmounted.write_raw(slow, &file.name, &bytes);
        }
        let refused = builder(&unmounted).destroy().unwrap_err();
        assert!(
            matches!(refused, Error::WrongTier { tier: 0, .. }),
            "{refused:?}"
        );
        assert_eq!(unmounted.list_raw(slow), store.list_raw(slow));
        assert!(store.list_raw(slow).len() > 1, "tables, and whose they are");
    }

    /// Of a store of two tiers, with one of them named, that one was removed, and all went well. The other's tables stayed, which were
    /// nobody's then.
    #[test]
    fn a_store_is_not_removed_without_all_of_its_tiers() {
        let store = with_slow_tables();
        let is_refused = |disk: &Faulty| {
            let before = names(disk);
            let refused = one_tier(disk).destroy().unwrap_err();
            let Error::InvalidOption { option, reason } = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((option, names(disk)), ("tiers", before));
            assert!(reason.contains("; name "), "{reason}");
        };
        is_refused(&store);
        let damaged = store.image(|_| true);
        damaged.corrupt("/fast".as_ref(), "CURRENT", 20, 1).unwrap();
        is_refused(&damaged);
        // Nor without a `CURRENT`: whoever had lost it, or begun a destruction, was asked for nothing.
        let lost = store.image(|_| true);
        let log = lost.log_store("/fast".as_ref(), false).unwrap();
        log.remove(CURRENT).unwrap();
        is_refused(&lost);
        let scene = Scene::on(Arc::new(store.clone()), scene::options());
        assert!(KEYS.iter().all(|key| scene.get(key).is_some()));
    }

    /// What tells of the slow tier goes after it: access records went before, so that whoever took up a destruction with the first tier
    /// alone was left with the tables of the other.
    #[test]
    fn a_destruction_that_is_cut_short_misses_a_tier_as_long_as_there_is_one() {
        let store = with_slow_tables();
        let mut refused = 0;
        for call in 1.. {
            let disk = store.image(|_| true);
            disk.fail_nth(call, Fault::PowerLoss);
            let done = builder(&disk).destroy();
            if disk.triggered() == 0 {
                done.unwrap();
                break;
            }
            for keeps in [false, true] {
                let left = disk.image(|_| keeps);
                let slow = left.list_raw("/slow".as_ref());
                if !slow.is_empty() {
                    refused += 1;
                    let alone = one_tier(&left).destroy();
                    assert!(alone.is_err(), "call {call}, {keeps}");
                    assert_eq!(left.list_raw("/slow".as_ref()), slow);
                }
                builder(&left).destroy().unwrap();
            }
        }
        assert!(refused > 10, "{refused}");
    }
}
