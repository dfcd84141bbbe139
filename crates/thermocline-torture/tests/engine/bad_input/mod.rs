//! Tiers, options and sizes that are wrong: each is refused with an error that says what and
//! where, and nothing is lost by it.

mod checkpoint_paths;
mod fewer_tiers;
mod foreign_keyspace;
mod ralt_dir;
mod repair;
mod strays;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

use thermocline::executor::Stepped;
use thermocline::storage::{Faulty, Medium};
use thermocline::{
    Batch, Compression, Db, Durability, Error, MAX_KEY_LEN, MAX_VALUE_LEN, Options, Result,
    TierOptions,
};
use thermocline_torture::life::{FAST, SLOW, Trial, tiny_options};
use xxhash_rust::xxh3::xxh3_64;

/// A store on `disk` with tables on both tiers and a record in its log.
fn filled(disk: &Faulty, paths: [&str; 2]) {
    let mut trial = Trial::new(1);
    trial.disk = disk.clone();
    trial.options.seed = Some(u64::from(paths[0].as_bytes()[1]));
    let db = trial.open_at(paths).unwrap();
    for n in 0..700 {
        db.put(format!("key{:05}", n * 7919 % 1009), [n as u8; 700])
            .unwrap();
    }
    db.wait_idle().unwrap();
    db.close().unwrap();
    let tiers = db.metrics().tiers;
    assert!(tiers.iter().all(|tier| tier.table_bytes > 0), "{tiers:?}");
}

fn open(disk: &Faulty, options: &Options) -> Result<Db> {
    let mut builder = Db::builder(options.clone());
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::new(disk.clone()));
    }
    builder.executor(Arc::new(Stepped::new(1))).open()
}

fn with_paths(paths: [&str; 2]) -> Options {
    let mut options = tiny_options();
    for (tier, path) in options.tiers.iter_mut().zip(paths) {
        tier.path = path.into();
    }
    options
}

#[test]
fn tiers_in_the_wrong_place_are_refused_and_named() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    filled(&disk, ["/other-fast", "/other-slow"]);
    let cases = [
        ([SLOW, FAST], SLOW, "swapped"),
        ([FAST, "/other-slow"], "/other-slow", "a foreign slow tier"),
        (["/other-fast", SLOW], SLOW, "a foreign fast tier"),
        (
            [FAST, "/nothing"],
            "/nothing",
            "a slow tier that is missing",
        ),
        (["/nothing", SLOW], "/", "a fast tier that is missing"),
    ];
    for (paths, named, what) in cases {
        let error = open(&disk, &with_paths(paths)).expect_err(what);
        let told = matches!(error, Error::WrongTier { .. });
        assert!(told && error.to_string().contains(named), "{what}: {error}");
    }
    for paths in [[FAST, SLOW], ["/other-fast", "/other-slow"]] {
        let db = open(&disk, &with_paths(paths)).unwrap();
        assert_eq!(db.iter().count(), 700);
    }
}

#[test]
fn a_store_that_is_missing_is_not_found_unless_it_may_be_created() {
    let disk = Faulty::new(1);
    let mut options = tiny_options();
    options.create_if_missing = false;
    let error = open(&disk, &options).unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { path } if path == Path::new(FAST)),
        "{error}"
    );
    assert!(matches!(
        Db::builder(options.clone())
            .medium(0, Arc::new(disk.clone()))
            .medium(1, Arc::new(disk.clone()))
            .destroy(),
        Err(Error::NotFound { .. })
    ));
    options.create_if_missing = true;
    open(&disk, &options).unwrap();
    options.create_if_missing = false;
    open(&disk, &options).unwrap();
}

#[test]
fn a_store_is_open_once() {
    let disk = Faulty::new(1);
    let options = tiny_options();
    let db = open(&disk, &options).unwrap();
    let error = open(&disk, &options).unwrap_err();
    assert!(
        matches!(&error, Error::Locked { path } if path == Path::new(FAST)),
        "{error}"
    );
    // Another store with the same slow tier.
    let error = open(&disk, &with_paths(["/third", SLOW])).unwrap_err();
    assert!(
        matches!(&error, Error::Locked { path } if path == Path::new(SLOW)),
        "{error}"
    );
    db.put("key", "value").unwrap();
    db.close().unwrap();
    assert!(matches!(db.put("key", "value"), Err(Error::Closed)));
    assert!(matches!(db.get("key"), Err(Error::Closed)));
    assert!(open(&disk, &options).unwrap().get("key").unwrap().is_some());
}

#[test]
fn options_that_contradict_each_other_name_the_option() {
    let change = |change: fn(&mut Options)| {
        let mut options = tiny_options();
        change(&mut options);
        options
    };
    let cases: [(&str, Options); 19] = [
        ("tiers", change(|o| o.tiers.clear())),
        ("tiers", change(|o| o.tiers[1].path = FAST.into())),
        ("tiers", change(|o| o.tiers[1].path = PathBuf::new())),
        (
            "tiers",
            change(|o| o.tiers = (0..9).map(|n| TierOptions::fast(format!("/{n}"))).collect()),
        ),
        ("memtable_size", change(|o| o.memtable_size = Some(100))),
        ("memtable_size", change(|o| o.memtable_size = Some(2 << 20))),
        ("memory", change(|o| o.memory = 60 << 10)),
        ("tiers", change(|o| o.tiers[0].capacity = 100 << 10)),
        ("tiers", change(|o| o.table_size = Some(1 << 20))),
        ("table_size", change(|o| o.table_size = Some(1))),
        ("block_cache", change(|o| o.block_cache = Some(1 << 30))),
        ("record_cache", change(|o| o.record_cache = Some(1 << 30))),
        ("record_cache", change(|o| o.record_cache = Some(1000))),
        (
            "record_cache",
            change(|o| (o.block_cache, o.record_cache) = (Some(0), Some(64 << 10))),
        ),
        ("block_size", change(|o| o.tiers[0].block_size = 1)),
        (
            "compression",
            change(|o| o.tiers[1].compression = Compression::Zstd(99)),
        ),
        ("l0_trigger", change(|o| o.l0_trigger = 0)),
        ("l0_slowdown", change(|o| o.l0_stop = o.l0_slowdown)),
        ("level_ratio", change(|o| o.level_ratio = 1)),
    ];
    for (expected, options) in cases {
        let disk = Faulty::new(1);
        match open(&disk, &options) {
            Err(Error::InvalidOption { option, reason }) => {
                assert_eq!(option, expected, "{reason}");
            }
            other => panic!("{expected}: {other:?}"),
        }
        assert!(
            disk.list_raw(Path::new(FAST)).is_empty(),
            "nothing was made"
        );
    }
}

/// Regression: a medium for a tier that does not exist was ignored without a word, and the store
/// was made on the disk.
#[test]
fn a_tier_that_there_is_not_is_refused() {
    let disk = Faulty::new(1);
    let builder = || {
        let builder = Db::builder(tiny_options());
        builder.medium(0, Arc::new(disk.clone()))
    };
    let refused = [
        builder().medium(2, Arc::new(disk.clone())).open().map(drop),
        builder().give_up_tier(2).repair(true).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        assert!(
            error.contains("tier 2") && error.contains("number 0"),
            "{error}"
        );
    }
    assert!(disk.list_raw(Path::new(FAST)).is_empty());
}

#[test]
fn options_that_contradict_the_store_are_refused() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let mut fewer = tiny_options();
    fewer.tiers.truncate(1);
    let error = open(&disk, &fewer).unwrap_err();
    assert!(
        matches!(
            error,
            Error::InvalidOption {
                option: "tiers",
                ..
            }
        ),
        "{error}"
    );
    let mut more = tiny_options();
    more.tiers.insert(1, TierOptions::fast("/middle"));
    let error = open(&disk, &more).unwrap_err();
    assert!(
        matches!(error, Error::WrongTier { tier: 1 | 2, .. }),
        "{error}"
    );
    // Everything else may change from one opening to the next.
    let mut other = tiny_options();
    other.tiers[0].capacity *= 4;
    other.tiers[1].compression = Compression::Zstd(1);
    other.tiers[1].block_size = 8 << 10;
    other.level_ratio = 8;
    other.memtable_size = None;
    let db = open(&disk, &other).unwrap();
    assert_eq!(db.iter().count(), 700);
    db.compact_range::<&[u8]>(..).unwrap();
    db.close().unwrap();
    let db = open(&disk, &tiny_options()).unwrap();
    assert_eq!(db.iter().count(), 700);
}

/// A store that is opened with a fast tier too small for what lies there moves that down.
#[test]
fn a_fast_tier_that_shrank_is_emptied_down_to_its_capacity() {
    let disk = Faulty::new(1);
    let mut larger = tiny_options();
    larger.tiers[0].capacity = 4 << 20;
    let db = open(&disk, &larger).unwrap();
    for n in 0..1000 {
        db.put(format!("key{:05}", n * 7919 % 1009), [n as u8; 700])
            .unwrap();
    }
    db.close().unwrap();
    let capacity = tiny_options().tiers[0].capacity;
    assert!(db.metrics().tiers[0].file_bytes > capacity);
    drop(db);
    let db = open(&disk, &tiny_options()).unwrap();
    db.wait_idle().unwrap();
    for n in 0..100 {
        db.put(format!("new{n}"), [0; 500]).unwrap();
    }
    db.wait_idle().unwrap();
    let tier = &db.metrics().tiers[0];
    assert!(
        tier.file_bytes <= tier.capacity,
        "{} bytes",
        tier.file_bytes
    );
    assert_eq!(db.iter().count(), 1100);
}

#[test]
fn sizes_over_a_limit_say_the_limit() {
    let disk = Faulty::new(1);
    let db = open(&disk, &tiny_options()).unwrap();
    let key = vec![7; MAX_KEY_LEN + 1];
    let refused = [
        (db.put(&key, "").map(|_| ()), MAX_KEY_LEN),
        (db.delete(&key).map(|_| ()), MAX_KEY_LEN),
        (db.create_keyspace(&"x".repeat(256)).map(|_| ()), 255),
    ];
    for (outcome, limit) in refused {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
    }
    let mut batch = Batch::new();
    batch.put("fits", "and must not be written");
    batch.put("value", vec![0; MAX_VALUE_LEN + 1]);
    let error = db.write(batch).unwrap_err();
    assert!(
        error.to_string().contains(&MAX_VALUE_LEN.to_string()),
        "{error}"
    );
    assert!(db.get("fits").unwrap().is_none());
    // A key that is too long is not there; that is no error.
    assert!(db.get(&key).unwrap().is_none());
    db.put(vec![7; MAX_KEY_LEN], "").unwrap();
    db.put("", "the empty key is a key").unwrap();
    assert!(db.get("").unwrap().is_some());
}

/// Raises the format version at `at` of a file. Then corrects the checksum over the `covered` bytes
/// from `start`, which stands behind them.
fn raise_version(disk: &Faulty, dir: &Path, name: &str, start: usize, covered: usize, at: usize) {
    let mut bytes = disk.read_raw(dir, name).unwrap();
    bytes[start + at] = 200;
    let end = start + covered;
    let sum = xxh3_64(&bytes[start..end]);
    bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
    disk.write_raw(dir, name, &bytes);
}

#[test]
fn files_of_a_newer_format_are_refused_and_named() {
    for kind in ["TIER", "MANIFEST", ".wal", ".sst"] {
        let disk = Faulty::new(1);
        filled(&disk, [FAST, SLOW]);
        let dir = Path::new(FAST);
        let files = disk.list_raw(dir);
        let file = files.iter().find(|f| f.name.contains(kind)).unwrap();
        let (start, covered, at) = match kind {
            "TIER" => (0, 29, 8),
            ".sst" => (file.len as usize - 64, 48, 44),
            _ => (0, 64, 8),
        };
        raise_version(&disk, dir, &file.name, start, covered, at);
        let refused = match open(&disk, &tiny_options()) {
            // The tables of a store that was closed are opened when they are read.
            Ok(db) if kind == ".sst" => db.iter().find_map(Result::err),
            opened => opened.err(),
        };
        match refused {
            Some(Error::FormatVersion {
                path, found: 200, ..
            }) => {
                assert_eq!(path, dir.join(&file.name));
            }
            other => panic!("{kind}: {other:?}"),
        }
    }
}

/// Directories of a real disk that cannot be written to, or are no directories.
#[test]
fn directories_that_cannot_be_used_are_named() {
    let parent = tempfile::tempdir().unwrap();
    let (fast, slow) = (parent.path().join("fast"), parent.path().join("slow"));
    let mut options = Options::two_tiers(&fast, 64 << 20, &slow);
    options.create_if_missing = false;
    let error = Db::open(options.clone()).unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { path } if *path == fast),
        "{error}"
    );
    options.create_if_missing = true;
    std::fs::write(&slow, "a file").unwrap();
    let error = Db::open(options.clone()).unwrap_err();
    assert!(
        error.to_string().contains(&*slow.to_string_lossy()),
        "{error}"
    );
    std::fs::remove_file(&slow).unwrap();
    let db = Db::open(options.clone()).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let error = Db::open(options.clone()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    db.close().unwrap();
    let mut permissions = std::fs::metadata(&fast).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&fast, permissions.clone()).unwrap();
    // Root can write where others may not.
    let ignored = std::fs::write(fast.join("probe"), "").is_ok();
    if !ignored {
        let error = Db::open(options.clone()).unwrap_err();
        assert!(
            error.to_string().contains(&*fast.to_string_lossy()),
            "{error}"
        );
    }
    #[expect(
        clippy::permissions_set_readonly_false,
        reason = "a directory of this test"
    )]
    permissions.set_readonly(false);
    std::fs::set_permissions(&fast, permissions).unwrap();
    let db = Db::open(options).unwrap();
    assert!(db.get("key").unwrap().is_some());
}

/// Closing in the middle of a compaction ends it. Either its output is gone, or all of it is
/// installed.
#[test]
fn closing_during_a_compaction_loses_nothing_and_leaves_nothing() {
    for point in [
        "compaction.start",
        "compaction.table_written",
        "compaction.before_edit",
    ] {
        let mut trial = Trial::new(3);
        trial.threads = true;
        let db = trial.db().unwrap();
        for n in 0..250 {
            let key = format!("key{:05}", n * 7919 % 1009);
            db.put_with(key, [n as u8; 500], Durability::None).unwrap();
        }
        db.wait_idle().unwrap();
        db.put("key00000", "newer than what is below").unwrap();
        let (reached, compacting) = mpsc::channel();
        let (refused, let_go) = mpsc::channel::<()>();
        let (reached, let_go) = (Mutex::new(reached), Mutex::new(let_go));
        trial.points.set(point, move || {
            let _ = reached.lock().unwrap().send(());
            // It waits here until the store is closed under it and whoever asked for the compaction
            // has been refused. A caller that still looks for work holds the version that it looks
            // at, and with it the version's files.
            let _ = let_go.lock().unwrap().recv();
            Ok(())
        });
        let compactor = db.clone();
        let compacted = std::thread::spawn(move || {
            let outcome = compactor.compact_range::<&[u8]>(..);
            drop(refused);
            outcome
        });
        compacting.recv().unwrap();
        db.close().unwrap();
        let outcome = compacted.join().unwrap();
        assert!(matches!(outcome, Err(Error::Closed)), "{outcome:?}");
        trial.points.clear(point);
        drop((db, trial.db.take()));
        let db = trial.open_at([FAST, SLOW]).unwrap();
        assert_eq!(db.recovery().orphans, 0, "{point}: output was left");
        assert_eq!(db.iter().count(), 250);
        assert!(db.verify(&mut |_| {}).unwrap().problems.is_empty());
    }
}

/// Regression: a stray file whose name is the largest number that fits was taken for one of the
/// store's. New files counted on from that number and wrapped around to 0, and the next opening
/// refused the edit that said so. A number that no store gets to use does not belong to the store.
#[test]
fn a_file_with_a_number_beyond_all_numbers_is_not_the_stores() {
    for name in [
        "18446744073709551615.sst",
        "18446744073709551615.wal",
        "MANIFEST-18446744073709551615",
    ] {
        let disk = Faulty::new(1);
        filled(&disk, [FAST, SLOW]);
        let medium: &dyn Medium = &disk;
        let log = medium.log_store(Path::new(FAST), false).unwrap();
        log.create(name).unwrap().append(b"stray").unwrap();
        let options = with_paths([FAST, SLOW]);
        for round in 0..3u8 {
            let db =
                open(&disk, &options).unwrap_or_else(|error| panic!("{name}, {round}: {error}"));
            db.put("key", [round]).unwrap();
            db.flush().unwrap();
            assert_eq!(
                db.get("key").unwrap().as_deref(),
                Some(&[round][..]),
                "{name}"
            );
            db.close().unwrap();
        }
        assert_eq!(log.read(name).unwrap(), b"stray");
    }
}

/// Regression: the largest number that a name may have was counted on from. The next opening could
/// not read what `CURRENT` named, and a repair saw nothing of what had been written since. From a
/// somewhat smaller number no keyspace could be made any more.
#[test]
fn a_file_with_a_number_that_the_store_has_not_come_to_is_refused() {
    for name in [
        "72057594037927935.sst",
        "72057594037927934.wal",
        "72057594037927935.copy",
        "MANIFEST-72057594037927935",
        "4294967295.sst",
        "1732600000000.sst",
    ] {
        let disk = Faulty::new(1);
        filled(&disk, [FAST, SLOW]);
        let medium: &dyn Medium = &disk;
        let log = medium.log_store(Path::new(FAST), false).unwrap();
        log.create(name).unwrap();
        let names = || log.list().unwrap().into_iter().map(|file| file.name);
        let before: Vec<_> = names().collect();
        let options = with_paths([FAST, SLOW]);
        let refused = open(&disk, &options).map(|_| ());
        assert!(
            matches!(&refused, Err(Error::WrongTier { problem, .. }) if problem.contains(name)),
            "{name}: {refused:?}"
        );
        assert!(names().eq(before), "{name}");
        log.remove(name).unwrap();
        for round in 0..2u8 {
            let db = open(&disk, &options).unwrap();
            db.create_keyspace(&format!("new{round}")).unwrap();
            db.put("key", [round]).unwrap();
            db.flush().unwrap();
            db.close().unwrap();
        }
    }
}

/// Regression: nothing refused the largest number as an amount of memory, and it ended the process:
/// the block cache took room for all the blocks that would fit.
#[test]
fn a_store_may_be_given_more_memory_than_there_is() {
    let disk = Faulty::new(1);
    let mut options = tiny_options();
    options.memory = u64::MAX;
    let db = open(&disk, &options).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    db.close().unwrap();
    // As large a memtable as there may be, on a tier without a bound.
    options.tiers[0].capacity = u64::MAX;
    options.memtable_size = Some(1 << 40);
    options.block_cache = Some(0);
    assert!(options.validate().is_ok());
}
