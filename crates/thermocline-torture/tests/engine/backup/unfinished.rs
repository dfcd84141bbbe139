//! Restores and checkpoints that are cut short.

use std::path::{Path, PathBuf};

use thermocline::storage::{CrashStyle, Fault, Faulty, Medium};
use thermocline::{Db, Error};
use thermocline_torture::life::history::{Contents, contents};

use super::support::{at, backed_up, backups, builder, copy, restored};

const STYLES: [CrashStyle; 3] = [CrashStyle::LoseAll, CrashStyle::KeepAll, CrashStyle::Random];

/// Opens what is at `name`. Makes no new store.
fn open(disk: &Faulty, name: &str) -> thermocline::Result<Db> {
    let mut options = at(name);
    options.create_if_missing = false;
    let medium = || std::sync::Arc::new(disk.clone());
    let builder = Db::builder(options).medium(0, medium());
    builder.medium(1, medium()).open()
}

/// Checks that what was made there holds `state`, or is reported as unfinished and not called a
/// store by a repair. Returns whether it is whole.
fn check(disk: &Faulty, name: &str, state: &Contents, when: &str) -> bool {
    match open(disk, name) {
        Ok(db) => {
            assert_eq!(contents(&db).unwrap(), *state, "{when}");
            return true;
        }
        Err(Error::Unfinished { .. }) => {}
        // Nothing was durable but directories.
        Err(Error::NotFound { .. }) => {
            let files =
                ["fast", "slow"].map(|dir| disk.list_raw(Path::new(&format!("/{name}/{dir}"))));
            assert!(files.iter().all(Vec::is_empty), "{when}: {files:?}");
        }
        Err(error) => panic!("{when}: {error}"),
    }
    let refused = builder(disk, name).repair(false);
    let is_refused = matches!(
        refused,
        Err(Error::Unfinished { .. } | Error::NotFound { .. })
    );
    assert!(is_refused, "{when}: {refused:?}");
    // Nor is a new store founded on it.
    if let Err(Error::Unfinished { .. }) = refused {
        let founded = builder(disk, name).open().map(drop);
        let is_refused = matches!(founded, Err(Error::Unfinished { .. }));
        assert!(is_refused, "{when}: {founded:?}");
    }
    false
}

/// Runs `cut` on a copy of `disk` for every call in turn, with the power going at that call.
/// `after` gets what is left, and when the power went.
fn at_every_call(disk: &Faulty, cut: impl Fn(&Faulty), after: impl Fn(Faulty, &str)) -> u64 {
    for call in 1.. {
        let disk = disk.image(|_| true);
        disk.fail_nth(call, Fault::PowerLoss);
        cut(&disk);
        if disk.triggered() == 0 {
            return call;
        }
        for style in STYLES {
            after(disk.crash(style), &format!("call {call}, {style:?}"));
        }
    }
    unreachable!("it came to its end")
}

/// Regression: a restore of 1,538 tables was cut short. Opening what there was was refused with the
/// advice to repair it, and the repair said that nothing was lost, with 5,078 of 1,000,000 records.
/// If not even a table was there, a new store was founded.
#[test]
fn a_restore_that_is_cut_short_says_so_and_is_begun_again() {
    let (disk, state) = backed_up(300);
    let disk = copy(&disk);
    let restore = |disk: &Faulty| {
        let _cut_short = backups(disk).restore_with(None, builder(disk, "new"));
    };
    let calls = at_every_call(&disk, restore, |left, when| {
        if !check(&left, "new", &state, when) {
            assert_eq!(restored(&left, &backups(&left), 1, "new"), state, "{when}");
        }
    });
    assert!(calls > 30, "{calls}");
}

/// As above, for a restore that begins again and first removes what the other left.
#[test]
fn one_that_begins_again_may_be_cut_short_too() {
    let (disk, state) = backed_up(300);
    let disk = half_restored(&copy(&disk));
    let restore = |disk: &Faulty| {
        let _cut_short = backups(disk).restore_with(None, builder(disk, "new"));
    };
    at_every_call(&disk, restore, |left, when| {
        if !check(&left, "new", &state, when) {
            assert_eq!(restored(&left, &backups(&left), 1, "new"), state, "{when}");
        }
    });
}

/// What a restore has left can also be removed, and a destruction that is cut short can be
/// continued.
#[test]
fn what_is_left_of_one_is_destroyed() {
    let (disk, state) = backed_up(300);
    let disk = half_restored(&copy(&disk));
    let destroy = |disk: &Faulty| {
        let _cut_short = builder(disk, "new").destroy();
    };
    at_every_call(&disk, destroy, |left, when| {
        assert!(!check(&left, "new", &state, when), "{when}");
        match builder(&left, "new").destroy() {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => panic!("{when}: {error}"),
        }
        for dir in ["/new/fast", "/new/slow"] {
            assert_eq!(left.list_raw(Path::new(dir)), [], "{when}");
        }
    });
}

/// `disk` with a restore that was cut short after its first table.
fn half_restored(disk: &Faulty) -> Faulty {
    let tables = |disk: &Faulty| {
        let files = ["/new/fast", "/new/slow"].map(|dir| disk.list_raw(Path::new(dir)));
        let names = files.into_iter().flatten().map(|file| file.name);
        names.filter(|name| name.ends_with(".sst")).count()
    };
    for call in 1.. {
        let disk = disk.image(|_| true);
        disk.fail_nth(call, Fault::PowerLoss);
        let _cut_short = backups(&disk).restore_with(None, builder(&disk, "new"));
        let left = disk.crash(CrashStyle::LoseAll);
        if tables(&left) > 0 {
            return left;
        }
    }
    unreachable!("it has tables in the end")
}

/// Regression: the store's second tier is given as a directory of another name. It is empty, like
/// that of a device that is not mounted. The first tier's part was destroyed, and what lay on the
/// other then belonged to no store.
#[test]
fn a_tier_that_is_not_mounted_keeps_what_is_left_from_being_destroyed() {
    let (disk, state) = backed_up(300);
    let disk = half_restored(&copy(&disk));
    let away = "/new/unmounted";
    disk.table_store(Path::new(away), true).unwrap();
    let mut options = at("new");
    options.tiers[1].path = away.into();
    let medium = || std::sync::Arc::new(disk.clone());
    let unmounted = || {
        let builder = Db::builder(options.clone()).medium(0, medium());
        builder.medium(1, medium())
    };
    let refused = unmounted().destroy();
    assert!(
        matches!(&refused, Err(Error::WrongTier { tier: 1, problem, .. }) if problem.contains("mounted")),
        "{refused:?}"
    );
    // Nor is a new store founded on the other tier without the first.
    let mut options = at("new");
    options.tiers[0].path = away.into();
    let builder = || {
        let builder = Db::builder(options.clone()).medium(0, medium());
        builder.medium(1, medium())
    };
    let refused = builder().open().map(drop);
    assert!(
        matches!(refused, Err(Error::WrongTier { tier: 0, .. })),
        "{refused:?}"
    );
    let refused = builder().give_up_tier(0).repair(false);
    assert!(
        matches!(refused, Err(Error::Unfinished { .. })),
        "{refused:?}"
    );
    assert_eq!(restored(&disk, &backups(&disk), 1, "new"), state);
}

/// Regression: a checkpoint that was cut short was no better. Its directories had to be emptied by
/// hand, and a repair made a store of what was there.
#[test]
fn a_checkpoint_that_is_cut_short_says_so_and_is_begun_again() {
    let (disk, state) = backed_up(300);
    let paths = ["/new/fast", "/new/slow"].map(PathBuf::from);
    let checkpoint = |disk: &Faulty| {
        if let Ok(db) = builder(disk, "store").open() {
            let _cut_short = db.checkpoint(&paths);
        }
    };
    let calls = at_every_call(&copy(&disk), checkpoint, |left, when| {
        if !check(&left, "new", &state, when) {
            let db = builder(&left, "store").open().unwrap();
            db.checkpoint(&paths).unwrap();
            assert!(check(&left, "new", &state, when), "{when}");
        }
    });
    assert!(calls > 30, "{calls}");
}

/// While a checkpoint is being made, another restore or checkpoint to the same place would take
/// what is there for the remains of one that was cut short, and remove it.
#[test]
fn what_is_being_made_is_locked() {
    let (disk, state) = backed_up(300);
    let disk = copy(&disk);
    let points = thermocline::Points::default();
    let other = disk.clone();
    points.set("checkpoint.linked", move || {
        let refused = backups(&other).restore_with(None, builder(&other, "new"));
        assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
        Ok(())
    });
    let db = builder(&disk, "store").points(points).open().unwrap();
    db.checkpoint(&["/new/fast".into(), "/new/slow".into()])
        .unwrap();
    assert!(check(&disk, "new", &state, "locked"));
}

/// A mark may come back after a failed sync. That is no reason to remove what was written since: a
/// restore that is begun again would do so, if `CURRENT` was lost besides.
#[test]
fn a_store_that_was_open_is_finished_whatever_is_marked() {
    let (disk, state) = backed_up(300);
    assert_eq!(restored(&disk, &backups(&disk), 1, "new"), state);
    for dir in ["/new/fast", "/new/slow"] {
        disk.write_raw(Path::new(dir), "UNFINISHED", b"restore");
    }
    let fast = Path::new("/new/fast");
    let current = disk.read_raw(fast, "CURRENT").unwrap();
    let log = disk.log_store(fast, false).unwrap();
    log.remove("CURRENT").unwrap();
    let opened = open(&disk, "new").map(drop);
    assert!(
        matches!(opened, Err(Error::Corruption { .. })),
        "{opened:?}"
    );
    let refused = backups(&disk).restore_with(None, builder(&disk, "new"));
    assert!(
        matches!(refused, Err(Error::InvalidOption { .. })),
        "{refused:?}"
    );
    builder(&disk, "new").repair(true).unwrap();
    disk.write_raw(fast, "CURRENT", &current);
    assert!(check(&disk, "new", &state, "with CURRENT"));
    let left = disk.list_raw(fast).into_iter();
    assert!(left.map(|file| file.name).all(|name| name != "UNFINISHED"));
}
