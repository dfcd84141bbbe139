//! What becomes of the table of recent accesses costs speed, never an answer (I7).

use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use thermocline::executor::Stepped;
use thermocline::storage::{Faulty, Medium};
use thermocline::{Db, ManualClock, Options};

const KEYS: u32 = 3000;
const CAPACITY: u64 = 768 << 10;

/// What is learnt, and what of it is promoted, depends on how reads, flushes and compactions meet:
/// background work runs in an order drawn from a seed, so that each run is the same.
fn open(disk: &Faulty) -> Db {
    let mut options = Options::two_tiers("/fast", CAPACITY, "/slow");
    options.memory = 2 << 20;
    options.memtable_size = Some(16 << 10);
    options.table_size = Some(16 << 10);
    options.block_cache = Some(0);
    options.seed = Some(1);
    Db::builder(options)
        .medium(0, Arc::new(disk.clone()))
        .medium(1, Arc::new(disk.clone()))
        .executor(Arc::new(Stepped::new(1)))
        .clock(Arc::new(ManualClock::default()))
        .open()
        .unwrap()
}

/// Where the table of recent accesses lies.
fn tracking() -> &'static Path {
    Path::new("/fast/ralt")
}

fn key(n: u32) -> String {
    format!("key{:06}", n * 7919 % KEYS)
}

/// Bytes that do not compress: what all values take together is more than the fast tier has.
fn value(n: u32) -> Vec<u8> {
    let mut value = vec![0; 300 + n as usize % 90];
    SmallRng::seed_from_u64(n.into()).fill_bytes(&mut value);
    value
}

/// Reads every key, and a twentieth of them again and again. After each round all that it made due
/// is done.
fn check(db: &Db, at: &str) {
    let hot = 0..KEYS / 20;
    for round in std::iter::once(0..KEYS).chain(std::iter::repeat_n(hot, 40)) {
        for n in round {
            let found = db.get(key(n)).unwrap();
            assert!(found.as_deref() == Some(&value(n)[..]), "{at}: {}", key(n));
        }
        db.wait_idle().unwrap();
    }
    assert_eq!(db.iter().count(), KEYS as usize, "{at}");
}

/// The files of recent accesses, with their lengths.
fn files(disk: &Faulty) -> Vec<(String, u64)> {
    let files = disk.list_raw(tracking()).into_iter();
    let files = files.map(|file| (file.name, file.len));
    files.filter(|(_, len)| *len > 0).collect()
}

/// Does `damage` to a file of recent accesses of a closed store, to another each time; after each
/// the store opens and answers as before. Why the accesses were of no use comes back.
fn after_damage(what: &str, damage: impl Fn(&Faulty, &str, u64)) -> Vec<Option<String>> {
    let disk = Faulty::new(1);
    let db = open(&disk);
    for n in 0..KEYS {
        db.put(key(n), value(n)).unwrap();
    }
    check(&db, "before");
    let hotrap = db.metrics().hotrap.unwrap();
    let promoted = hotrap.promoted_flush_bytes + hotrap.promoted_compaction_bytes;
    assert!(promoted > 0, "{hotrap:?}");
    db.close().unwrap();
    drop(db);
    let mut reasons = Vec::new();
    for index in 0..3 {
        // Opened again, the store has written others; there is one at least.
        let files = files(&disk);
        let (name, len) = &files[index % files.len()];
        damage(&disk, name, *len);
        let at = format!("{what} of {name}");
        let db = open(&disk);
        reasons.push(db.recovery().hotness.clone());
        check(&db, &at);
        let report = db.verify(&mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{at}: {report:?}");
        assert!(db.metrics().tiers[0].file_bytes <= CAPACITY, "{at}");
        db.close().unwrap();
    }
    reasons
}

fn remove(disk: &Faulty, name: &str) {
    let files = disk.log_store(tracking(), false).unwrap();
    files.remove(name).unwrap();
}

/// What was said of them ended with the advice to restore the store from a backup, as if records of
/// it were damaged.
#[test]
fn recent_accesses_that_were_cut_short_are_forgotten() {
    for part in [0, 3] {
        let reasons = after_damage("truncation", |disk, name, len| {
            disk.truncate_raw(tracking(), name, len * part / 4).unwrap();
        });
        assert!(reasons.iter().all(Option::is_some), "{reasons:?}");
        for reason in reasons.iter().flatten() {
            let is_said = reason.contains("No record of the store is lost");
            assert!(is_said && !reason.contains("from a backup"), "{reason}");
        }
    }
}

#[test]
fn flipped_bits_in_recent_accesses_change_no_answer() {
    for part in [1, 3] {
        after_damage("a flipped bit", |disk, name, len| {
            disk.corrupt(tracking(), name, len * part / 4, 4).unwrap();
        });
    }
}

#[test]
fn recent_accesses_that_were_removed_are_learnt_anew() {
    let reasons = after_damage("removal", |disk, name, _| remove(disk, name));
    assert!(reasons.iter().any(Option::is_some), "{reasons:?}");
    let reasons = after_damage("removal of all", |disk, _, _| {
        files(disk).iter().for_each(|(name, _)| remove(disk, name));
    });
    // The manifest remembers that there were some.
    assert!(reasons.iter().all(Option::is_some), "{reasons:?}");
}
