//! Backups as they are pruned, beside others that are taken and after some that failed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use thermocline::storage::{CrashStyle, Fault, Faulty, Operation};
use thermocline::{Error, Points};
use thermocline_torture::life::history::{Contents, contents};

use super::support::{TABLES, backups, builder, restored, write};

/// How long a test waits for what must not happen, and how long it waits at most for what must
/// happen.
const A_MOMENT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(30);

#[test]
fn pruning_keeps_what_the_generations_that_stay_need() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    let backups = backups(&disk);
    let mut last = Contents::new();
    for round in 0..4 {
        write(&db, round, 600);
        db.compact_range::<&[u8]>(..).unwrap();
        backups.take(&db).unwrap();
        last = contents(&db).unwrap();
    }
    let bytes = || -> u64 { disk.list_raw(Path::new(TABLES)).iter().map(|f| f.len).sum() };
    let before = bytes();
    assert_eq!(backups.prune(2).unwrap(), [1, 2]);
    assert!(bytes() < before);
    assert_eq!(backups.verify(Some(3)).unwrap().1.len(), 0);
    assert_eq!(restored(&disk, &backups, 4, "restored"), last);
    let gone = backups.restore_with(Some(1), builder(&disk, "gone"));
    assert!(matches!(gone, Err(Error::NoBackup { .. })));
    // The last one always stays.
    assert_eq!(backups.prune(0).unwrap(), [3]);
    assert_eq!(backups.verify(None).unwrap().0.bytes, bytes());
}

/// Regression: threads with one handle took no notice of each other. A thread that pruned removed
/// what a backup of another had copied and not named yet, and both reported success.
#[test]
fn nothing_is_pruned_while_a_backup_is_taken() {
    let (disk, points) = (Faulty::new(1), Points::default());
    let store = builder(&disk, "store").points(points.clone());
    let db = store.open().unwrap();
    let backups = Arc::new(backups(&disk));
    write(&db, 0, 300);
    backups.take(&db).unwrap();
    write(&db, 1, 300);
    let state = contents(&db).unwrap();
    let (answer, answers) = mpsc::channel();
    let answers = Arc::new(Mutex::new(answers));
    let was_early = Arc::new(AtomicBool::new(false));
    let (pruner, asked) = (Arc::clone(&backups), Arc::clone(&answers));
    let is_early = Arc::clone(&was_early);
    points.set("backup.before_generation", move || {
        let (pruner, answer) = (Arc::clone(&pruner), answer.clone());
        let (says, said) = mpsc::channel();
        thread::spawn(move || {
            let _ = says.send(());
            answer.send(pruner.prune(1))
        });
        said.recv_timeout(LONG).unwrap();
        // From here on there is time enough for it to remove what no generation names, if it may.
        let early = asked.lock().unwrap().recv_timeout(A_MOMENT);
        is_early.store(early.is_ok(), Ordering::SeqCst);
        Ok(())
    });
    backups.take(&db).unwrap();
    points.clear("backup.before_generation");
    assert!(!was_early.load(Ordering::SeqCst));
    let pruned = answers.lock().unwrap().recv_timeout(LONG).unwrap();
    assert_eq!(pruned.unwrap(), [1]);
    assert_eq!(backups.verify(None).unwrap().1.len(), 0);
    assert_eq!(restored(&disk, &backups, 2, "restored"), state);
}

/// Regression: the directory could not be synced when a backup was put in force. The generation was
/// listed all the same, and the next prune removed all others for it. When the power went, none was
/// left (I9).
#[test]
fn no_generation_goes_for_one_that_is_not_durable() {
    let (disk, points) = (Faulty::new(1), Points::default());
    let store = builder(&disk, "store").points(points.clone());
    let db = store.open().unwrap();
    let first = backups(&disk);
    write(&db, 0, 300);
    first.take(&db).unwrap();
    write(&db, 1, 300);
    let state = contents(&db).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let device = disk.clone();
    points.set("backup.before_generation", move || {
        let is_sync = |operation, _: &str| operation == Operation::SyncDir;
        device.fail_where(is_sync, Fault::SyncFails);
        Ok(())
    });
    let taken = first.take(&db).map(|_| ());
    points.clear("backup.before_generation");
    disk.heal();
    for failed in [
        taken,
        first.take(&db).map(|_| ()),
        first.prune(1).map(|_| ()),
    ] {
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
    }
    drop(first);
    let second = backups(&disk);
    assert_eq!(second.generations().unwrap().len(), 2);
    assert_eq!(second.prune(1).unwrap(), [1]);
    drop((second, db));
    let disk = disk.crash(CrashStyle::KeepAll);
    let backups = backups(&disk);
    assert_eq!(restored(&disk, &backups, 2, "restored"), state);
}

/// Regression: a prune that was cut short had removed the file of a generation and had not synced
/// that. The next backup took the generation for gone and removed its tables. When the power then
/// went, the generation was listed again and could not be restored.
#[test]
fn a_generation_is_gone_for_good_before_its_tables_are() {
    let (disk, points) = (Faulty::new(1), Points::default());
    let store = builder(&disk, "store").points(points.clone());
    let db = store.open().unwrap();
    let first = backups(&disk);
    for round in 0..3 {
        write(&db, round, 300);
        db.compact_range::<&[u8]>(..).unwrap();
        first.take(&db).unwrap();
    }
    let is_second = |operation, name: &str| {
        operation == Operation::Remove && name.ends_with("GENERATION-00000002")
    };
    disk.fail_where(is_second, Fault::Io);
    first.prune(1).unwrap_err();
    drop(first);
    disk.heal();
    points.set("backup.before_generation", || Err(Error::Closed));
    let second = backups(&disk);
    assert_eq!(second.generations().unwrap().len(), 2);
    second.take(&db).unwrap_err();
    points.clear("backup.before_generation");
    drop((second, db));
    let disk = disk.crash(CrashStyle::LoseAll);
    let backups = backups(&disk);
    let generations = backups.generations().unwrap();
    assert_eq!(generations.len(), 2, "{generations:?}");
    for generation in generations {
        assert_eq!(
            backups.verify(Some(generation.generation)).unwrap().1.len(),
            0
        );
    }
}

/// Regression: a prune wrote what it keeps before it removed anything. If a backup that found no
/// room had filled the disk, there was no room for that either.
#[test]
fn pruning_makes_room_before_it_needs_any() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    let backups = backups(&disk);
    for round in 0..2 {
        write(&db, round, 300);
        backups.take(&db).unwrap();
    }
    let tables = || disk.list_raw(Path::new(TABLES));
    let (named, name) = (tables().len(), tables()[0].name.clone());
    // This is how a backup that is cut short leaves it.
    disk.write_raw(Path::new(TABLES), &format!("9{name}"), &[7; 4096]);
    let is_new =
        |operation, name: &str| operation == Operation::Create && name.starts_with("GENERATION");
    disk.fail_where(is_new, Fault::NoSpace);
    assert!(backups.prune(1).is_err());
    assert_eq!(tables().len(), named, "half a table is gone");
}
