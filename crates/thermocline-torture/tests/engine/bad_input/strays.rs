//! Tables in a store's directories that do not belong to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thermocline::storage::{Fault, Faulty};
use thermocline::{Db, DbBuilder};
use thermocline_torture::life::{FAST, SLOW};

use super::{filled, open, with_paths};

const OTHERS: [&str; 2] = ["/other", "/others-slow"];

fn builder(disk: &Faulty) -> DbBuilder {
    let builder = Db::builder(with_paths([FAST, SLOW])).medium(0, Arc::new(disk.clone()));
    builder.medium(1, Arc::new(disk.clone()))
}

/// The numbers of the tables in `dir`.
fn numbers(disk: &Faulty, dir: &str) -> Vec<u64> {
    let files = disk.list_raw(dir.as_ref()).into_iter();
    let numbers = files.filter_map(|file| file.name.strip_suffix(".sst")?.parse().ok());
    numbers.collect()
}

/// A store, and another whose newest table has a number above all numbers of the first. Returns
/// that table too, by name and bytes.
fn with_another() -> (Faulty, String, Vec<u8>) {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    filled(&disk, OTHERS);
    let other = open(&disk, &with_paths(OTHERS)).unwrap();
    let own = numbers(&disk, FAST).into_iter().chain(numbers(&disk, SLOW));
    let most = own.max().unwrap() + 100;
    while numbers(&disk, OTHERS[0])
        .iter()
        .all(|number| *number < most)
    {
        other.put("key", "value").unwrap();
        other.flush().unwrap();
    }
    other.close().unwrap();
    let number = numbers(&disk, OTHERS[0]).into_iter().max().unwrap();
    let name = format!("{number:08}.sst");
    let bytes = disk.read_raw(OTHERS[0].as_ref(), &name).unwrap();
    (disk, name, bytes)
}

/// Regression: an empty file `99999999.sst` was removed at the opening without a word, and the
/// store's numbers went on from it. The same happened to a table of another store, which may have
/// been the only one that held its records.
#[test]
fn a_table_that_is_not_the_stores_is_set_aside_and_not_counted_on_from() {
    let (whole, name, bytes) = with_another();
    // Under a number that is not its own.
    let number: u64 = name.strip_suffix(".sst").unwrap().parse().unwrap();
    let misnamed = format!("{:08}.sst", number + 1);
    let strays: [(&str, &[u8]); 3] = [("99999999.sst", &[]), (&name, &bytes), (&misnamed, &bytes)];
    for (name, bytes) in strays {
        for dir in [FAST, SLOW] {
            let disk = whole.image(|_| true);
            disk.write_raw(dir.as_ref(), name, bytes);
            let lost = Path::new(dir).join("lost");
            // There is another file of that name there, from an earlier time.
            disk.write_raw(&lost, name, b"before");
            let db = builder(&disk).open().unwrap();
            let aside = PathBuf::from(dir).join("lost.2");
            let when = format!("{name} in {dir}");
            assert_eq!(db.recovery().set_aside, [aside.join(name)], "{when}");
            assert_eq!(disk.read_raw(&aside, name).unwrap(), bytes, "{when}");
            assert_eq!(disk.read_raw(&lost, name).unwrap(), b"before", "{when}");
            let stray: u64 = name.strip_suffix(".sst").unwrap().parse().unwrap();
            let is_below = |disk: &Faulty| {
                let all = [FAST, SLOW].map(|dir| numbers(disk, dir)).concat();
                all.iter().all(|number| *number < stray)
            };
            db.put("key", "value").unwrap();
            db.flush().unwrap();
            assert!(is_below(&disk), "{when}");
            // It does not come back with the power either: its number may be another table's by
            // then (I4).
            assert!(is_below(&disk.image(|_| false)), "{when}");
            db.close().unwrap();
            drop(db);
            let db = builder(&disk).open().unwrap();
            assert!(db.recovery().set_aside.is_empty(), "{when}");
        }
    }
}

/// A crash leaves half a table: that is removed, as before, and its number counted on from.
#[test]
fn half_a_table_of_a_crash_is_none_of_them() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let last = [FAST, SLOW].map(|dir| numbers(&disk, dir)).concat();
    let half = last.into_iter().max().unwrap() + 1000;
    disk.write_raw(FAST.as_ref(), &format!("{half:08}.sst"), b"half");
    let db = builder(&disk).open().unwrap();
    assert!(db.recovery().set_aside.is_empty());
    assert_eq!(db.recovery().orphans, 1);
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    assert!(numbers(&disk, FAST).iter().any(|number| *number > half));
}

/// A loss of power anywhere in the opening leaves the table either where it was or where it was set
/// aside.
#[test]
fn it_is_somewhere_whenever_the_power_goes() {
    let (whole, name, bytes) = with_another();
    whole.write_raw(FAST.as_ref(), &name, &bytes);
    for call in 1.. {
        let disk = whole.image(|_| true);
        disk.fail_nth(call, Fault::PowerLoss);
        let opened = builder(&disk).open().map(drop);
        let has_come_to_it = disk.triggered() > 0;
        for keeps in [false, true] {
            let left = disk.image(|_| keeps);
            let lost = Path::new(FAST).join("lost");
            let places = [Path::new(FAST), &lost];
            let mut found = places.iter().map(|dir| left.read_raw(dir, &name));
            assert!(
                found.any(|read| read.is_ok_and(|read| read == bytes)),
                "call {call}, {keeps}"
            );
        }
        if !has_come_to_it {
            opened.unwrap();
            break;
        }
    }
}

/// Regression: a repair removed it too, if the store had another damage. A repair without a
/// manifest counted on from its number. A stray table with the number of a table that the repair
/// was to write kept that from being written.
#[test]
fn a_repair_sets_it_aside_too() {
    let (whole, name, bytes) = with_another();
    for (name, bytes) in [("99999999.sst", &[][..]), (&name, &bytes)] {
        for is_manifest_lost in [false, true] {
            let disk = whole.image(|_| true);
            let all = open(&disk, &with_paths([FAST, SLOW])).unwrap();
            let count = all.iter().count();
            all.close().unwrap();
            drop(all);
            disk.write_raw(SLOW.as_ref(), name, bytes);
            if is_manifest_lost {
                super::repair::lose_the_manifest(&disk);
            } else {
                disk.corrupt(SLOW.as_ref(), "TIER", 20, 1).unwrap();
            }
            let report = builder(&disk).repair(false).unwrap();
            let aside = Path::new(SLOW).join("lost").join(name);
            let when = format!("{name}, {is_manifest_lost}: {report:?}");
            assert!(report.set_aside.contains(&aside), "{when}");
            let stray: u64 = name.strip_suffix(".sst").unwrap().parse().unwrap();
            let all = [FAST, SLOW].map(|dir| numbers(&disk, dir)).concat();
            assert!(all.iter().all(|number| *number < stray), "{when}");
            let db = builder(&disk).open().unwrap();
            assert!(db.recovery().set_aside.is_empty(), "{when}");
            assert_eq!(db.iter().count(), count, "{when}");
        }
    }
}

/// Regression: of two files with one number in two tiers, the one that was found first counted if
/// it was whole, even if it was another store's. Without a manifest the store's own table was
/// removed, and nothing said so.
#[test]
fn another_stores_table_does_not_stand_for_one_of_the_same_number() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let own = numbers(&disk, SLOW)[0];
    let name = format!("{own:08}.sst");
    // Another store with a table of that number.
    let seed = ["/seed", "/seed-slow"];
    filled(&disk, seed);
    let dir = seed
        .into_iter()
        .find(|dir| numbers(&disk, dir).contains(&own));
    let bytes = disk.read_raw(Path::new(dir.unwrap()), &name).unwrap();
    let count = open(&disk, &with_paths([FAST, SLOW]))
        .unwrap()
        .iter()
        .count();
    disk.write_raw(FAST.as_ref(), &name, &bytes);
    super::repair::lose_the_manifest(&disk);
    builder(&disk).repair(false).unwrap();
    let db = builder(&disk).open().unwrap();
    assert_eq!(db.iter().count(), count);
    let aside = Path::new(FAST).join("lost");
    assert_eq!(disk.read_raw(&aside, &name).unwrap(), bytes);
}

/// Regression: without a manifest, another store's table with the number of one that a compaction
/// had replaced stood for that one. Everything that the compaction wrote was set aside, and its
/// records with it.
#[test]
fn it_does_not_stand_for_a_table_that_was_replaced() {
    let (whole, _, bytes) = with_another();
    let own = [FAST, SLOW].map(|dir| numbers(&whole, dir)).concat();
    let last = own.iter().copied().max().unwrap();
    let gone = (1..last).filter(|number| !own.contains(number));
    // Once as it is, and once under a number that is not its own.
    let others = OTHERS.map(|dir| numbers(&whole, dir).into_iter().map(move |id| (dir, id)));
    let others: Vec<_> = others.into_iter().flatten().collect();
    let mut tried = 0;
    for number in gone {
        let name = format!("{number:08}.sst");
        let other = others.iter().find(|(_, id)| *id == number);
        let read = |(dir, _): &(&str, u64)| whole.read_raw(dir.as_ref(), &name).unwrap();
        for bytes in [Some(bytes.clone()), other.map(read)].into_iter().flatten() {
            let disk = whole.image(|_| true);
            disk.write_raw(SLOW.as_ref(), &name, &bytes);
            let files = disk.list_raw(FAST.as_ref()).into_iter();
            for file in files.filter(|file| file.name.starts_with("MANIFEST")) {
                disk.truncate_raw(FAST.as_ref(), &file.name, 0).unwrap();
            }
            assert!(builder(&disk).repair(false).unwrap().rebuilt);
            let db = builder(&disk).open().unwrap();
            assert_eq!(db.iter().count(), 700, "{number}");
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}
