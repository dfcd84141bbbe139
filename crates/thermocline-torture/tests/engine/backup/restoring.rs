//! Backups as they are restored, whole, damaged, and cut short.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thermocline::storage::{CrashStyle, Fault, Medium, Operation};
use thermocline::{Backups, Db, Error, Options};
use thermocline_torture::life::history::contents;
use thermocline_torture::stores::open_on;

use super::support::{BACKUPS, TABLES, at, backed_up, backups, builder, copy, restored};

/// Regression: the error also said to restore the store from a backup.
#[test]
fn every_damaged_file_of_a_backup_is_named_and_not_restored() {
    let (disk, _) = backed_up(300);
    let mut files = 0;
    for dir in [BACKUPS, TABLES].map(Path::new) {
        for file in disk.list_raw(dir).into_iter().filter(|file| file.len > 0) {
            files += 1;
            for at in (0..file.len).step_by(file.len as usize / 20 + 1) {
                let disk = copy(&disk);
                disk.corrupt(dir, &file.name, at, 0x08).unwrap();
                let backups = backups(&disk);
                let problem = match backups.verify(None) {
                    Ok((_, mut problems)) => problems.pop().unwrap(),
                    Err(error) => error,
                };
                let restored = backups.restore_with(None, builder(&disk, "restored"));
                for error in [problem, restored.unwrap_err()] {
                    assert!(error.is_corruption(), "{error}");
                    let says = error.to_string();
                    assert!(says.contains(&file.name), "{says}");
                    assert!(says.contains("Remove that file"), "{says}");
                    assert!(!says.contains("repair"), "{says}");
                }
                let mut options = self::at("restored");
                options.create_if_missing = false;
                let medium: Arc<dyn Medium> = Arc::new(disk);
                assert!(open_on(&options, &medium).is_err());
            }
        }
    }
    assert!(files > 2, "{files}");
}

/// Regression: a verification ended with the first table that the device refused. It said nothing
/// of the other tables of that generation, nor of any later generation.
#[test]
fn a_table_that_cannot_be_read_is_one_problem_of_its_generation() {
    let (disk, _) = backed_up(300);
    let backups = backups(&disk);
    let listed = backups.generation(1).unwrap();
    let files = disk.list_raw(Path::new(TABLES)).into_iter();
    let mut tables = files.filter(|file| file.name.ends_with(".table"));
    let refused = tables.next().unwrap().name;
    let name = refused.clone();
    let is_refused =
        move |operation, file: &str| operation == Operation::Read && file.ends_with(name.as_str());
    disk.fail_where(is_refused, Fault::Io);
    let (generation, problems) = backups.verify(Some(1)).unwrap();
    assert_eq!(generation, listed);
    let [Error::Io { path, .. }] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert!(path.ends_with(&refused), "{path:?}");
}

/// Regression: if all tables came from the first of two tiers, one tier was enough for a restore. A
/// store of two tiers cannot be opened with one, so nothing would have opened what was restored.
#[test]
fn a_backup_of_two_tiers_is_not_restored_to_one() {
    let (disk, state) = backed_up(5);
    let slow = disk.list_raw(Path::new("/store/slow"));
    assert!(slow.iter().all(|file| !file.name.ends_with(".sst")));
    let mut one_tier = at("restored");
    one_tier.tiers.truncate(1);
    let one_tier = Db::builder(one_tier).medium(0, Arc::new(disk.clone()));
    let refused = backups(&disk).restore_with(None, one_tier);
    let is_told = matches!(
        refused,
        Err(Error::InvalidOption {
            option: "tiers",
            ..
        })
    );
    assert!(is_told, "{refused:?}");
    assert!(disk.list_raw(Path::new("/restored/fast")).is_empty());
    assert_eq!(restored(&disk, &backups(&disk), 1, "restored"), state);
}

/// Regression: tables stayed behind from a restore that failed. The next restore found its
/// directories not empty, and there was no store to destroy.
#[test]
fn a_restore_that_failed_can_be_repeated() {
    let (disk, state) = backed_up(6000);
    let mut one_tier = at("restored");
    one_tier.tiers.truncate(1);
    let one_tier = Db::builder(one_tier).medium(0, Arc::new(disk.clone()));
    let refused = backups(&disk).restore_with(None, one_tier);
    assert!(
        matches!(refused, Err(Error::InvalidOption { .. })),
        "{refused:?}"
    );
    assert_eq!(restored(&disk, &backups(&disk), 1, "restored"), state);
}

/// As above, whichever call fails. There is a store already only if the failing call comes at the
/// end, behind `CURRENT`.
#[test]
fn a_restore_that_failed_anywhere_can_be_repeated() {
    let (disk, state) = backed_up(300);
    let (mut repeated, mut whole) = (0, 0);
    for call in 1.. {
        let disk = copy(&disk);
        let begun = backups(&disk);
        disk.fail_nth(call, Fault::Io);
        let done = begun.restore_with(None, builder(&disk, "restored"));
        if disk.triggered() == 0 {
            done.unwrap();
            break;
        }
        drop(begun);
        // The fault may have hit where it does no harm.
        if done.is_ok() {
            continue;
        }
        match backups(&disk).restore_with(None, builder(&disk, "restored")) {
            Ok(_) => repeated += 1,
            Err(refused) => {
                assert!(refused.to_string().contains("is there"), "{refused}");
                let current = disk.read_raw(Path::new("/restored/fast"), "CURRENT");
                assert!(current.is_ok(), "call {call}: {done:?}, then {refused}");
                whole += 1;
            }
        }
        let db = builder(&disk, "restored").open().unwrap();
        assert_eq!(contents(&db).unwrap(), state, "call {call}");
    }
    assert!(repeated > 10 && whole > 0, "{repeated}, {whole}");
}

/// A restore that cannot remove all that it has written keeps the first tier's `TIER` as long as
/// another tier has one, because a first tier without it is taken for one that is not mounted.
#[test]
fn a_restore_that_cannot_be_cleared_can_be_destroyed() {
    let (disk, state) = backed_up(300);
    for nth in 1..=2 {
        let disk = copy(&disk);
        let removals = AtomicU64::new(0);
        let is_hit = move |operation, name: &str| match operation {
            Operation::Create => name.starts_with("MANIFEST"),
            Operation::Remove if name == "TIER" => {
                removals.fetch_add(1, Ordering::SeqCst) + 1 == nth
            }
            _ => false,
        };
        disk.fail_where(is_hit, Fault::Io);
        let failed = backups(&disk).restore_with(None, builder(&disk, "restored"));
        assert!(failed.is_err(), "removal {nth}");
        assert_eq!(disk.triggered(), 2, "removal {nth}: {failed:?}");
        disk.heal();
        builder(&disk, "restored").destroy().unwrap();
        assert_eq!(restored(&disk, &backups(&disk), 1, "restored"), state);
    }
}

/// The manifest that a failed restore removes is gone for good before any `TIER` is, and the `TIER`
/// files are before the marks. If the manifest came back after a loss of power, it would say that
/// the slow tier, which has no `TIER` any more, is not mounted.
#[test]
fn the_manifest_of_a_restore_that_failed_stays_away() {
    let (disk, state) = backed_up(300);
    let disk = copy(&disk);
    let current = |operation, name: &str| operation == Operation::Create && name == "CURRENT.tmp";
    disk.fail_where(current, Fault::NoSpace);
    let failed = backups(&disk).restore_with(None, builder(&disk, "restored"));
    assert!(matches!(failed, Err(Error::NoSpace { .. })), "{failed:?}");
    let disk = disk.crash(CrashStyle::LoseAll);
    assert_eq!(restored(&disk, &backups(&disk), 1, "restored"), state);
}

/// Regression: listing the backups of a directory that has none made it a directory of backups, and
/// found that it had none. So a mistake in the path was never reported.
#[test]
fn to_look_for_backups_makes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let names = |dir: &Path| {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    std::fs::create_dir(path("photos")).unwrap();
    for place in ["photos", "missing"] {
        let refused = Backups::open_existing(path(place)).unwrap_err();
        let named = refused.to_string().contains(place);
        assert!(
            matches!(refused, Error::NoBackup { .. }) && named,
            "{refused}"
        );
    }
    assert_eq!(names(home.path()), ["photos"]);
    assert!(names(&path("photos")).is_empty());

    let db = Db::open(Options::one_tier(path("store"))).unwrap();
    db.put("key", "value").unwrap();
    Backups::open(path("backups")).unwrap().take(&db).unwrap();
    let before = [names(&path("backups")), names(&path("backups/tables"))];
    let backups = Backups::open_existing(path("backups")).unwrap();
    assert_eq!(backups.generations().unwrap().len(), 1);
    assert!(backups.verify(None).unwrap().1.is_empty());
    let after = [names(&path("backups")), names(&path("backups/tables"))];
    assert_eq!(after, before);
}
