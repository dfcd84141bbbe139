//! Damage of the log below what is flushed already: a keyspace that is seldom written to keeps the
//! log of records that tables hold. Also damage of tables whose records no log holds any more.

use std::path::Path;
use std::sync::{Arc, Mutex};

use thermocline::executor::Stepped;
use thermocline::storage::{CrashStyle, Fault, Faulty};
use thermocline::{
    Compression, Db, DbBuilder, Durability, Error, Options, Points, RecoveryMode, TierOptions,
};
use thermocline_torture::life::SIDE;

const DIR: &str = "/fast";

fn builder(disk: &Faulty) -> DbBuilder {
    in_mode(disk, RecoveryMode::Strict)
}

fn in_mode(disk: &Faulty, recovery: RecoveryMode) -> DbBuilder {
    let tier = TierOptions::fast(DIR).block_size(1024);
    let mut options = Options::with_tiers(vec![tier.compression(Compression::None)]);
    options.memory = 4 << 20;
    options.memtable_size = Some(16 << 10);
    options.recovery = recovery;
    let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
    builder.executor(Arc::new(Stepped::new(1)))
}

fn value(n: u8) -> Vec<u8> {
    [n; 600].to_vec()
}

/// Writes a record of another keyspace, then "key" with an old and a new value, and others. All of
/// them are in the log, and all but the first and the last ones are in a table.
fn filled() -> Faulty {
    let disk = Faulty::new(1);
    let db = builder(&disk).open().unwrap();
    let side = db.create_keyspace(SIDE).unwrap();
    side.put_with("quiet", "value", Durability::Sync).unwrap();
    db.put("key", "the old value").unwrap();
    db.put("key", "the new value").unwrap();
    for n in 0..40 {
        db.put(format!("other{n:02}"), value(n)).unwrap();
    }
    db.wait_idle().unwrap();
    assert_eq!(db.metrics().levels[0].tables, 1);
    // This write says in the log how much of that is durable.
    db.put_with("last", "value", Durability::Sync).unwrap();
    disk.crash(CrashStyle::KeepAll)
}

/// Damages the first file whose name ends with `suffix`, where it holds `bytes`.
fn damage(disk: &Faulty, suffix: &str, bytes: &[u8]) {
    let files = disk.list_raw(Path::new(DIR)).into_iter();
    let mut names: Vec<_> = files.map(|file| file.name).collect();
    names.sort();
    let name = names.iter().find(|name| name.ends_with(suffix)).unwrap();
    let content = disk.read_raw(Path::new(DIR), name).unwrap();
    let at = content.windows(bytes.len()).position(|w| w == bytes);
    disk.corrupt(Path::new(DIR), name, at.unwrap() as u64, 1)
        .unwrap();
}

fn is_refused(disk: &Faulty) {
    let error = builder(disk).open().unwrap_err();
    assert!(error.is_corruption(), "{error}");
}

/// The store has what tables hold and what the log holds before the damage, and it works on.
fn goes_on(disk: &Faulty) {
    for round in 0..2 {
        let db = builder(disk).open().unwrap();
        let side = db.keyspace(SIDE).unwrap();
        assert_eq!(side.get("quiet").unwrap().as_deref(), Some(&b"value"[..]));
        let new = db.get("key").unwrap();
        assert_eq!(new.as_deref(), Some(&b"the new value"[..]));
        assert_eq!(db.get("other10").unwrap().unwrap().to_vec(), value(10));
        assert_eq!(db.get("after").unwrap().is_some(), round > 0);
        db.put("after", "value").unwrap();
        db.close().unwrap();
    }
}

/// Regression: what a repair had given up was damage once more to the next opening, and to the next
/// repair, for ever. The log ended below what is flushed, and only a segment that an opening begins
/// would have said that this is known.
#[test]
fn a_repaired_log_is_not_damaged_any_more() {
    let disk = filled();
    damage(&disk, ".wal", &value(5));
    is_refused(&disk);
    let report = builder(&disk).repair(false).unwrap();
    assert!(report.repaired && report.losses.len() == 1, "{report:?}");
    let again = builder(&disk).repair(true).unwrap();
    assert_eq!(again.problems, Vec::<String>::new());
    goes_on(&disk);
}

/// The same for an opening that tolerated the loss and was cut short before it began a segment.
#[test]
fn a_loss_that_was_tolerated_once_is_not_damage_any_more() {
    let disk = filled();
    damage(&disk, ".wal", &value(5));
    let points = Points::default();
    points.set("recovery.swept", || Err(Error::Closed));
    let tolerant = in_mode(&disk, RecoveryMode::Tolerant).points(points);
    assert!(matches!(tolerant.open(), Err(Error::Closed)));
    goes_on(&disk.crash(CrashStyle::LoseAll));
}

/// Regression: if the log has lost a record that a table holds, an older version of its key may be
/// left in the log. A repair put that on top of the table (I1): only a log that was cut by this
/// very repair counted as one with a gap.
#[test]
fn a_repair_after_a_loss_brings_back_no_old_value() {
    for is_begun in [true, false] {
        let disk = filled();
        damage(&disk, ".wal", b"the new value");
        if is_begun {
            let db = in_mode(&disk, RecoveryMode::Tolerant).open().unwrap();
            assert!(db.recovery().damaged);
            db.put_with("next", "value", Durability::Sync).unwrap();
        } else {
            assert!(builder(&disk).repair(false).unwrap().repaired);
        }
        let disk = disk.crash(CrashStyle::KeepAll);
        damage(&disk, ".sst", &value(15));
        let report = builder(&disk).repair(false).unwrap();
        assert!(report.repaired && report.rewritten == 1, "{report:?}");
        goes_on(&disk);
    }
}

/// Regression: nothing can be told of the table that was flushed, because its end is damaged, and
/// the edit that names it is gone. So it looked like half a table that a crash left, though the log
/// had lost what it held. A repair removed it without a word.
#[test]
fn a_table_that_nothing_tells_of_is_reported_where_the_log_is_damaged_too() {
    for log_is_whole in [true, false] {
        let disk = filled();
        let damage_the_end = |what: &str| {
            let mut files = disk.list_raw(Path::new(DIR)).into_iter();
            let file = files.find(|file| file.name.contains(what)).unwrap();
            disk.corrupt(Path::new(DIR), &file.name, file.len - 1, 1)
                .unwrap();
            file.name
        };
        damage_the_end("MANIFEST");
        let table = damage_the_end(".sst");
        if !log_is_whole {
            damage(&disk, ".wal", &value(5));
        }
        let report = builder(&disk).repair(false).unwrap();
        assert!(!report.rebuilt, "{report:?}");
        let path = Path::new(DIR).join(&table);
        let is_reported = report.losses.iter().any(|loss| loss.file == path);
        let aside = Path::new(DIR).join("lost").join(&table);
        let is_kept = report.set_aside.contains(&aside);
        assert_eq!([is_reported, is_kept], [!log_is_whole; 2], "{report:?}");
        let db = builder(&disk).open().unwrap();
        let after_the_damage = db.get("other39").unwrap();
        assert_eq!(after_the_damage.is_some(), log_is_whole);
        let new = db.get("key").unwrap();
        assert_eq!(new.as_deref(), Some(&b"the new value"[..]));
    }
}

/// Regression: a tolerant opening removed such a table, too.
#[test]
fn a_tolerant_opening_keeps_a_table_that_nothing_tells_of() {
    let disk = filled();
    let dir = Path::new(DIR);
    let files = disk.list_raw(dir).into_iter();
    let mut tables = files.filter(|file| file.name.ends_with(".sst"));
    // Nor is the edit that names it a torn one: it has come to nothing.
    let table = tables.next().unwrap();
    let stray = "00000999.sst";
    let bytes = disk.read_raw(dir, &table.name).unwrap();
    disk.write_raw(dir, stray, &bytes[..bytes.len() - 1]);
    for is_damaged in [false, true] {
        let disk = disk.image(|_| true);
        if is_damaged {
            damage(&disk, ".wal", &value(5));
        }
        let db = in_mode(&disk, RecoveryMode::Tolerant).open().unwrap();
        let kept: &[_] = match is_damaged {
            true => &[dir.join("lost").join(stray)],
            false => &[],
        };
        assert_eq!(db.recovery().set_aside, kept);
        assert_eq!(db.recovery().orphans, 1);
        assert!(disk.read_raw(dir, stray).is_err(), "it is swept");
    }
}

/// As [`filled`], without the other keyspace. Everything is in tables, and the log is gone. The
/// table that was written first is damaged.
fn flushed_and_damaged() -> Faulty {
    let disk = Faulty::new(1);
    let db = builder(&disk).open().unwrap();
    db.put("key", "the old value").unwrap();
    for n in 0..40 {
        db.put(format!("other{n:02}"), value(n)).unwrap();
    }
    db.put("key", "the new value").unwrap();
    db.flush().unwrap();
    assert!(db.metrics().levels[0].tables > 1);
    db.close().unwrap();
    drop(db);
    let disk = disk.crash(CrashStyle::KeepAll);
    damage(&disk, ".sst", &value(15));
    disk
}

/// The store has what can be read of its tables.
fn has_the_rest(disk: &Faulty) {
    let db = builder(disk).open().unwrap();
    let new = db.get("key").unwrap();
    assert_eq!(new.as_deref(), Some(&b"the new value"[..]));
    for n in [0, 10, 20, 39] {
        let found = db.get(format!("other{n:02}")).unwrap();
        assert_eq!(found.map(|found| found.to_vec()), Some(value(n)));
    }
}

/// Regression: when tables had been damaged, a repair said that nothing at all was flushed, so that
/// the log would be replayed as a whole. But the log had been trimmed, so neither a number nor the
/// log told what the tables held. What a crash left of the next compaction then passed for a table
/// of a lost edit, and the store did not open.
#[test]
fn a_compaction_that_is_cut_short_after_a_repair_is_no_damage() {
    let disk = flushed_and_damaged();
    let report = builder(&disk).repair(false).unwrap();
    assert!(report.repaired && report.rewritten == 1, "{report:?}");
    let (points, left) = (Points::default(), Arc::new(Mutex::new(None)));
    let (device, kept) = (disk.clone(), Arc::clone(&left));
    points.set("compaction.before_edit", move || {
        *kept.lock().unwrap() = Some(device.image(|_| true));
        Ok(())
    });
    let db = builder(&disk).points(points.clone()).open().unwrap();
    db.compact_range::<&[u8]>(..).unwrap();
    points.clear("compaction.before_edit");
    let left = left.lock().unwrap().take().unwrap();
    assert!(builder(&left).open().unwrap().recovery().orphans > 0);
    has_the_rest(&left);
}

/// Regression: the damaged table was such a table too, if the repair itself was cut short before it
/// had removed it, or the power went soon after. Then the store that had been set right did not
/// open, and the next repair rebuilt all of it.
#[test]
fn a_repair_that_is_cut_short_is_repeated_or_done() {
    let damaged = flushed_and_damaged();
    let mut done = 0;
    for call in 1.. {
        let disk = damaged.image(|_| true);
        disk.fail_nth(call, Fault::PowerLoss);
        let repaired = builder(&disk).repair(false);
        for keeps in [false, true] {
            let left = disk.image(|_| keeps);
            let found = builder(&left).repair(true).unwrap();
            assert!(!found.rebuilt, "call {call}, {keeps}: {found:?}");
            if found.problems.is_empty() {
                done += 1;
            } else {
                assert!(repaired.is_err(), "call {call}, {keeps}: {found:?}");
                assert!(builder(&left).repair(false).unwrap().repaired);
            }
            has_the_rest(&left);
        }
        if disk.triggered() == 0 {
            break;
        }
    }
    assert!(done > 2, "{done}");
}
