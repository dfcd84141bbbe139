//! What proves that a log is damaged lies behind the damage. It must stay until a manifest says
//! what is given up.

use std::path::Path;
use std::sync::{Arc, Mutex};

use thermocline::executor::Stepped;
use thermocline::storage::{CrashStyle, Fault, Faulty};
use thermocline::{Db, DbBuilder, Durability, Error, Options, Points, RecoveryMode, TierOptions};

const DIR: &str = "/fast";

fn in_mode(disk: &Faulty, recovery: RecoveryMode) -> DbBuilder {
    let mut options = Options::with_tiers(vec![TierOptions::fast(DIR)]);
    options.recovery = recovery;
    let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
    builder.executor(Arc::new(Stepped::new(1)))
}

fn strict(disk: &Faulty) -> DbBuilder {
    in_mode(disk, RecoveryMode::Strict)
}

fn key(n: u64) -> String {
    format!("key{n:03}")
}

fn fill(db: &Db) {
    for n in 1..=100 {
        db.put_with(key(n), "value", Durability::Sync).unwrap();
    }
}

/// Flips a byte of write 50 in the only segment.
fn damage_the_log(disk: &Faulty) {
    let (name, content) = segment(disk);
    let key = key(50);
    let at = content.windows(key.len()).position(|w| w == key.as_bytes());
    disk.corrupt(Path::new(DIR), &name, at.unwrap() as u64, 1)
        .unwrap();
}

fn segment(disk: &Faulty) -> (String, Vec<u8>) {
    let segments = files(disk).into_iter();
    let mut segments = segments.filter(|(name, _)| name.ends_with(".wal"));
    segments.next().unwrap()
}

/// Every file of the store with its content.
fn files(disk: &Faulty) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(DIR);
    let names = disk.list_raw(dir).into_iter().map(|file| file.name);
    let mut files: Vec<_> = names
        .map(|name| (name.clone(), disk.read_raw(dir, &name).unwrap()))
        .collect();
    files.sort();
    files
}

fn is_refused(disk: &Faulty, when: &str) {
    let refused = strict(disk).open().map(|_| ());
    let is_damage = refused.as_ref().is_err_and(Error::is_corruption);
    assert!(is_damage, "{when}: {refused:?}");
    let found = strict(disk).repair(true).unwrap();
    assert_eq!(found.losses.len(), 1, "{when}: {found:?}");
}

fn has_what_was_before_the_damage(disk: &Faulty) {
    let db = strict(disk).open().unwrap();
    assert_eq!(db.iter().count(), 49);
}

/// A repair and a tolerant opening put the segment in its place that ended before the damage, and
/// wrote the manifest that declares the loss after that. Cut short in between, they left a log that
/// looked whole: the next opening and the next repair found nothing wrong, and half of the
/// acknowledged writes were gone without a word.
#[test]
fn a_recovery_that_is_cut_short_leaves_the_proof_of_damage() {
    let disk = Faulty::new(1);
    let db = strict(&disk).open().unwrap();
    fill(&db);
    let disk = disk.crash(CrashStyle::KeepAll);
    damage_the_log(&disk);
    is_refused(&disk, "at first");
    let whole = segment(&disk).1.len();
    for repairs in [false, true] {
        for (point, is_in_force) in [
            ("recovery.log_copied", false),
            ("recovery.log_settled", false),
            ("manifest.before_current", false),
            ("manifest.after_current", true),
            ("recovery.log_shortened", true),
        ] {
            let when = format!("{point}, {repairs}");
            let disk = disk.image(|_| true);
            let points = Points::default();
            points.set(point, || Err(Error::Closed));
            let tolerant = in_mode(&disk, RecoveryMode::Tolerant).points(points);
            let failed = match repairs {
                true => tolerant.repair(false).map(|_| ()),
                false => tolerant.open().map(|_| ()),
            };
            // Behind its manifest a repair has not failed.
            let is_repaired = repairs && point == "recovery.log_shortened";
            assert_eq!(failed.is_ok(), is_repaired, "{when}: {failed:?}");
            let left = [
                disk.crash(CrashStyle::LoseAll),
                disk.crash(CrashStyle::KeepAll),
            ];
            for disk in left {
                if !is_in_force {
                    is_refused(&disk, &when);
                    assert_eq!(segment(&disk).1.len(), whole, "{when}");
                    assert!(strict(&disk).repair(false).unwrap().repaired);
                }
                has_what_was_before_the_damage(&disk);
                assert!(segment(&disk).1.len() < whole, "{when}: it takes room");
            }
        }
    }
}

/// A tolerant opening that an orphan made refuse, the edit that named it being lost, had shortened
/// the damaged log before it looked.
#[test]
fn a_tolerant_opening_that_refuses_changes_nothing() {
    let disk = Faulty::new(1);
    let (points, left) = (Points::default(), Arc::new(Mutex::new(None)));
    let (device, kept) = (disk.clone(), Arc::clone(&left));
    points.set("flush.before_edit", move || {
        *kept.lock().unwrap() = Some(device.image(|_| true));
        Ok(())
    });
    let db = strict(&disk).points(points).open().unwrap();
    fill(&db);
    db.flush().unwrap();
    let disk = left.lock().unwrap().take().unwrap();
    damage_the_log(&disk);
    let before = files(&disk);
    let refused = in_mode(&disk, RecoveryMode::Tolerant).open().unwrap_err();
    assert!(refused.to_string().contains("edit"), "{refused}");
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&files(&disk)), names(&before));
    assert!(files(&disk) == before, "a file was changed");
}

/// An opening looked at the tables last, when the damaged log had been cut and the manifest that
/// declares the loss was in force. Where one of them was damaged, too, it failed without its
/// report, and nobody ever heard of the log's loss.
#[test]
fn an_opening_that_a_damaged_table_makes_refuse_changes_nothing() {
    let disk = Faulty::new(1);
    let db = strict(&disk).open().unwrap();
    db.put("of a table", "value").unwrap();
    db.flush().unwrap();
    fill(&db);
    let disk = disk.crash(CrashStyle::KeepAll);
    damage_the_log(&disk);
    is_refused(&disk, "the log");
    let is_table = |(name, _): &(String, Vec<u8>)| name.ends_with(".sst");
    let tables: Vec<_> = files(&disk).into_iter().filter(is_table).collect();
    let [(table, content)] = &tables[..] else {
        panic!("{} tables", tables.len());
    };
    let last = content.len() as u64 - 1;
    let flip = || disk.corrupt(Path::new(DIR), table, last, 1).unwrap();
    flip();
    let before = files(&disk);
    for mode in [RecoveryMode::Tolerant, RecoveryMode::Strict] {
        let refused = in_mode(&disk, mode).open().unwrap_err();
        assert!(refused.is_corruption(), "{refused}");
        assert!(files(&disk) == before, "{mode:?}: a file was changed");
    }
    // The table is whole again, and the loss of the log is told.
    flip();
    let db = in_mode(&disk, RecoveryMode::Tolerant).open().unwrap();
    assert!(db.recovery().damaged);
    assert_eq!(db.iter().count(), 1 + 49);
}

/// A copy that is set aside had its name before it was durable. If its sync failed, a repeated
/// repair took it for what it had set aside, and removed the original: after a loss of power
/// neither was there. So it was with a table, whose link was taken for durable after the
/// directory's sync had failed.
#[test]
fn what_is_set_aside_is_durable_before_anything_goes_by_it() {
    let disk = Faulty::new(1);
    let db = strict(&disk).open().unwrap();
    db.put("of a table", "value").unwrap();
    db.flush().unwrap();
    fill(&db);
    let disk = disk.crash(CrashStyle::KeepAll);
    damage_the_log(&disk);
    let is_table = |(name, _): &(String, Vec<u8>)| name.ends_with(".sst");
    let (table, _) = files(&disk).into_iter().find(is_table).unwrap();
    disk.corrupt(Path::new(DIR), &table, 0, 1).unwrap();
    let content = disk.read_raw(Path::new(DIR), &table).unwrap();
    let damaged = [segment(&disk), (table, content)];
    let mut repeated = 0;
    for call in 1..400 {
        let disk = disk.image(|_| true);
        disk.fail_nth(call, Fault::SyncFails);
        let first = strict(&disk).repair(false);
        // Most calls are no syncs.
        if disk.triggered() == 0 || first.is_ok() {
            continue;
        }
        disk.heal();
        let again = strict(&disk).repair(false);
        if !again.is_ok_and(|report| report.repaired) {
            continue;
        }
        repeated += 1;
        let disk = disk.crash(CrashStyle::LoseAll);
        let lost = Path::new(DIR).join("lost");
        for (name, content) in &damaged {
            let kept = disk.list_raw(&lost).into_iter();
            let mut kept = kept.filter(|file| file.name.starts_with(name));
            let whole = kept.any(|file| disk.read_raw(&lost, &file.name).unwrap() == *content);
            assert!(whole, "{name} after a sync failed at call {call}");
        }
    }
    assert!(repeated > 2, "{repeated}");
}
