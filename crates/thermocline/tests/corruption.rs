//! Every byte of every kind of file is flipped, and every file cut at many places. The store says
//! so and names the file, or answers rightly; it never panics and never answers wrongly.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;

use thermocline::storage::{CrashStyle, Faulty};
use thermocline::{Db, Durability, Error, Result};
use thermocline_torture::life::history::{Contents, contents};
use thermocline_torture::life::{FAST, SLOW, Trial};

/// A small store with files of every kind, closed or as a loss of power leaves it, what it
/// holds, and what it held at each write of its log.
struct Sound {
    disk: Faulty,
    states: Vec<Contents>,
}

fn sound(closed: bool) -> Sound {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    for n in 0..60 {
        db.put(format!("key{:03}", n * 7 % 60), vec![n as u8; 60])
            .unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    for n in 0..12 {
        db.put(format!("key{:03}", n * 5), vec![n as u8 + 100; 30])
            .unwrap();
    }
    db.flush().unwrap();
    let mut states = vec![contents(&db).unwrap()];
    for n in 0..6 {
        db.put_with(format!("log{n}"), vec![n as u8; 30], Durability::Sync)
            .unwrap();
        states.push(contents(&db).unwrap());
    }
    if closed {
        // Closing flushes; the log is what it is then.
        db.close().unwrap();
        states.drain(..states.len() - 1);
    }
    drop(db);
    let disk = trial.disk.crash(CrashStyle::KeepAll);
    trial.wake(Faulty::new(1));
    Sound { disk, states }
}

/// The same files on a disk of their own.
fn copy(disk: &Faulty) -> Faulty {
    let copy = Faulty::new(1);
    for dir in [FAST, SLOW].map(Path::new) {
        for file in disk.list_raw(dir) {
            copy.write_raw(dir, &file.name, &disk.read_raw(dir, &file.name).unwrap());
        }
    }
    copy
}

/// Opens the store and reads everything in every way.
fn read(disk: &Faulty) -> Result<(Db, Contents)> {
    let mut trial = Trial::new(1);
    trial.disk = disk.clone();
    trial.options.create_if_missing = false;
    let db = trial.open_at([FAST, SLOW])?;
    let found = contents(&db)?;
    for (key, value) in db.iter().rev().collect::<Result<Vec<_>>>()? {
        assert_eq!(db.get(&key)?.as_deref(), Some(&value[..]));
    }
    Ok((db, found))
}

fn check(sound: &Sound, damaged: &Faulty, name: &str, what: &str) -> bool {
    let tables = |disk| files(disk, |name| name.ends_with(".sst"));
    let before = tables(damaged);
    match read(damaged) {
        Ok((db, found)) => {
            assert!(
                sound.states.contains(&found),
                "{what}: {} records, wrong ones among them",
                found.len()
            );
            // A filter is only read where it helps, so a read need not meet the damage.
            let report = db.verify(&mut |_| {}).unwrap();
            let named = |error: &Error| error.to_string().contains(name);
            assert!(
                report.problems.iter().all(named),
                "{what}: {:?}",
                report.problems
            );
            !report.problems.is_empty()
        }
        Err(error) => {
            let told = matches!(
                error,
                Error::Corruption { .. } | Error::FormatVersion { .. } | Error::WrongTier { .. }
            );
            assert!(told, "{what}: {error:?}");
            assert!(
                tables(damaged) == before,
                "{what}: refused, but tables are gone"
            );
            let says = error.to_string();
            // Without a log's first bytes the next segment shows the gap.
            let log = name.ends_with(".wal") && says.contains(".wal");
            // One that lost its last edits names tables that are gone, or disagrees with the log.
            let manifest =
                name.starts_with("MANIFEST") && (says.contains(".wal") || says.contains(".sst"));
            let tier = name == "TIER" && says.contains("TIER");
            assert!(
                says.contains(name) || log || manifest || tier,
                "{what}: {says}"
            );
            true
        }
    }
}

/// Files of the store whose name `chosen` takes: directory, name, length.
fn files(disk: &Faulty, chosen: fn(&str) -> bool) -> Vec<(&'static Path, String, u64)> {
    let dirs = [FAST, SLOW].map(Path::new);
    let files = dirs.into_iter().flat_map(|dir| {
        let files = disk.list_raw(dir).into_iter();
        files.map(move |f| (dir, f.name, f.len))
    });
    files.filter(|(_, name, _)| chosen(name)).collect()
}

/// Flips a bit of every byte, then cuts the file at every length; the number of cases that went
/// unnoticed comes back.
fn damage_everywhere(sound: &Sound, chosen: fn(&str) -> bool) -> Vec<String> {
    let files = files(&sound.disk, chosen);
    assert!(!files.is_empty());
    let mut unnoticed = Vec::new();
    for (dir, name, len) in files {
        let path = dir.join(&name);
        for at in 0..len {
            let flipped = copy(&sound.disk);
            flipped.corrupt(dir, &name, at, 1 << (at % 8)).unwrap();
            let what = format!("{} with byte {at} of {len} flipped", path.display());
            if !check(sound, &flipped, &name, &what) {
                unnoticed.push(what);
            }
            let cut = copy(&sound.disk);
            cut.truncate_raw(dir, &name, at).unwrap();
            let what = format!("{} cut from {len} to {at} bytes", path.display());
            if !check(sound, &cut, &name, &what) {
                unnoticed.push(what);
            }
        }
    }
    unnoticed
}

#[test]
fn damaged_tables_are_noticed_at_every_byte() {
    let unnoticed = damage_everywhere(&sound(true), |name| name.ends_with(".sst"));
    assert_eq!(unnoticed, [""; 0]);
}

#[test]
fn damaged_identities_and_current_are_noticed_at_every_byte() {
    let whole = |name: &str| name == "TIER" || name == "CURRENT";
    assert_eq!(damage_everywhere(&sound(true), whole), [""; 0]);
}

/// The last edit of a manifest and the last record of a log are not told from ones that a loss of
/// power cut short; everything before them is.
#[test]
fn damaged_manifests_give_the_right_answer_or_an_error() {
    let sound = sound(false);
    let unnoticed = damage_everywhere(&sound, |name| name.starts_with("MANIFEST"));
    let (_, _, len) = &files(&sound.disk, |name| name.starts_with("MANIFEST"))[0];
    assert!(
        unnoticed.len() < *len as usize,
        "{} of {len}",
        unnoticed.len()
    );
}

#[test]
fn damaged_logs_give_a_prefix_or_an_error() {
    for closed in [false, true] {
        let sound = sound(closed);
        damage_everywhere(&sound, |name| name.ends_with(".wal"));
    }
}

/// What a file holds is not taken for granted because its name is right.
#[test]
fn files_that_changed_places_are_noticed() {
    let sound = sound(true);
    let tables = files(&sound.disk, |name| name.ends_with(".sst"));
    assert!(tables.len() > 1);
    let (from, to) = (&tables[0], &tables[1]);
    let swapped = copy(&sound.disk);
    let bytes = sound.disk.read_raw(from.0, &from.1).unwrap();
    swapped.write_raw(to.0, &to.1, &bytes);
    assert!(check(
        &sound,
        &swapped,
        &to.1,
        "a table in place of another"
    ));
    let missing = copy(&sound.disk);
    let lost = Faulty::new(2);
    for (dir, name, _) in files(&missing, |_| true) {
        if name != from.1 {
            lost.write_raw(dir, &name, &missing.read_raw(dir, &name).unwrap());
        }
    }
    assert!(check(&sound, &lost, &from.1, "a table that is missing"));
}
