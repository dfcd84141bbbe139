//! What these tests share.

use std::path::Path;
use std::sync::Arc;

use thermocline::storage::{Faulty, Medium};
use thermocline::{Backups, Db, DbBuilder, Options};
use thermocline_torture::life::history::{Contents, contents};
use thermocline_torture::stores::small_options;

pub(crate) const BACKUPS: &str = "/backups";
pub(crate) const TABLES: &str = "/backups/tables";

/// The options of a store whose tiers lie in directories of this name.
pub(crate) fn at(name: &str) -> Options {
    let mut options = small_options();
    options.tiers[0].capacity = 24 * (32 << 10);
    for tier in &mut options.tiers {
        tier.path = format!("/{name}{}", tier.path.display()).into();
    }
    options
}

pub(crate) fn builder(disk: &Faulty, name: &str) -> DbBuilder {
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    let builder = Db::builder(at(name)).medium(0, Arc::clone(&medium));
    builder.medium(1, medium)
}

pub(crate) fn backups(disk: &Faulty) -> Backups {
    Backups::open_on(disk, BACKUPS).unwrap()
}

/// Writes `count` records whose values tell the round, and deletes some. Enough of them reach the
/// slow tier.
pub(crate) fn write(db: &Db, round: usize, count: usize) {
    let side = db.create_keyspace("side").unwrap();
    for n in 0..count {
        let key = format!("key{:05}", n * 7919 % count);
        let value = format!("{round}:{n}:{}", "x".repeat(200));
        if n % 3 == 0 {
            side.put(&key, &value).unwrap();
        }
        match n % 11 == round {
            true => db.delete(&key).map(|_| ()).unwrap(),
            false => db.put(&key, value).map(|_| ()).unwrap(),
        }
    }
}

/// What generation `number` is restored to.
pub(crate) fn restored(disk: &Faulty, backups: &Backups, number: u64, name: &str) -> Contents {
    let restored = backups.restore_with(Some(number), builder(disk, name));
    assert_eq!(restored.unwrap().generation, number);
    let db = builder(disk, name).open().unwrap();
    let report = db.verify(&mut |_| {}).unwrap();
    assert_eq!(report.problems.len(), 0, "{:?}", report.problems);
    assert_eq!(db.recovery().orphans, 0);
    contents(&db).unwrap()
}

/// The same files on a disk of their own.
pub(crate) fn copy(disk: &Faulty) -> Faulty {
    let copy = Faulty::new(1);
    for dir in [
        "/store/fast",
        "/store/fast/ralt",
        "/store/slow",
        BACKUPS,
        TABLES,
    ] {
        let dir = Path::new(dir);
        copy.log_store(dir, true).unwrap();
        for file in disk.list_raw(dir) {
            copy.write_raw(dir, &file.name, &disk.read_raw(dir, &file.name).unwrap());
        }
    }
    copy
}

/// A disk with a backup of a store of `count` records, which is closed, and what the store holds.
pub(crate) fn backed_up(count: usize) -> (Faulty, Contents) {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    write(&db, 0, count);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    backups(&disk).take(&db).unwrap();
    let state = contents(&db).unwrap();
    (disk, state)
}
