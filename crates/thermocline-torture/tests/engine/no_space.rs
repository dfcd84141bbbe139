//! Devices and tiers become full: in the middle of a log append, a flush, a compaction. Reads go
//! on. Once there is space again writes do too, without a restart.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use thermocline::storage::CrashStyle;
use thermocline::{Batch, Compression, Db, Durability, Error};
use thermocline_torture::life::history::contents;
use thermocline_torture::life::{FAST, SLOW, Trial};

/// Writes until one fails for want of space. Returns `false` when none does.
fn fill(trial: &mut Trial, db: &Db, from: u32) -> bool {
    for n in from..from + 700 {
        let record = (
            "default",
            format!("key{:06}", n * 7919 % 100_003),
            Some("x".repeat(900)),
        );
        match trial.history.write(db, vec![record], Durability::Buffered) {
            Ok(()) => {}
            Err(stop) => {
                let error = stop.error().unwrap();
                assert!(error.is_no_space(), "{}: {error}", trial.name);
                return true;
            }
        }
    }
    false
}

fn full_device_recovers(dir: &str, spare: u64, threads: bool) -> bool {
    let mut trial = Trial::new(spare);
    trial.threads = threads;
    trial.name = format!("{dir} with {spare} bytes to spare, threads {threads}");
    let db = trial.db().unwrap();
    assert!(!fill(&mut trial, &db, 0), "{}: full at once", trial.name);
    db.wait_idle().unwrap();
    let files = trial.disk.list_raw(Path::new(dir));
    let used: u64 = files.iter().map(|f| f.len).sum();
    trial.disk.capacity(Path::new(dir), used + spare);
    let failed = fill(&mut trial, &db, 1000) || db.flush().is_err();
    assert!(
        contents(&db).unwrap() == trial.history.visible(),
        "{}",
        trial.name
    );

    trial.disk.capacity(Path::new(dir), u64::MAX);
    // A thread's job may be about to report what it met before.
    let settled = threads && (0..4).any(|_| db.wait_idle().is_ok());
    assert!(settled || !threads, "{}: never idle", trial.name);
    assert!(
        !fill(&mut trial, &db, 2000),
        "{}: full for ever",
        trial.name
    );
    db.flush().unwrap_or_else(|e| panic!("{}: {e}", trial.name));
    db.wait_idle()
        .unwrap_or_else(|e| panic!("{}: {e}", trial.name));
    assert!(
        contents(&db).unwrap() == trial.history.visible(),
        "{}",
        trial.name
    );
    drop(db);
    trial.survive(CrashStyle::LoseAll).unwrap();
    failed
}

#[test]
fn a_device_that_was_full_takes_writes_again_once_it_is_not() {
    let mut failed = 0;
    for dir in [FAST, SLOW] {
        for step in 0..16 {
            failed += usize::from(full_device_recovers(dir, step * step * 577, false));
        }
        failed += usize::from(full_device_recovers(dir, 5000, true));
    }
    assert!(failed > 16, "only {failed} devices were full");
}

/// RALT's directory on the fast tier. The tier's capacity holds for both together.
const RALT: &str = "/fast/ralt";

/// The most that was ever on the fast tier, seen at every point where something is written.
#[derive(Default)]
struct Watched {
    highest: AtomicU64,
    /// The most that RALT had of that.
    highest_ralt: AtomicU64,
    over: Mutex<Option<String>>,
}

impl Watched {
    fn start(trial: &Trial, db: &Db) -> Arc<Self> {
        let watched = Arc::<Self>::default();
        let capacity = db.metrics().tiers[0].capacity;
        for point in POINTS {
            let (disk, seen) = (trial.disk.clone(), Arc::clone(&watched));
            trial.points.set(point, move || {
                let bytes = |dir: &str| {
                    let files = disk.list_raw(Path::new(dir));
                    files.iter().map(|f| f.len).sum::<u64>()
                };
                let ralt = bytes(RALT);
                let used = bytes(FAST) + ralt;
                seen.highest_ralt.fetch_max(ralt, Ordering::Relaxed);
                seen.highest.fetch_max(used, Ordering::Relaxed);
                if used > capacity {
                    let over = format!("{used} bytes of {capacity} at {point}");
                    seen.over.lock().unwrap().get_or_insert(over);
                }
                Ok(())
            });
        }
        watched
    }

    /// The most that there was. It was never over the capacity (I8).
    fn check(&self, name: &str) -> u64 {
        let over = self.over.lock().unwrap().clone();
        assert_eq!(over, None, "{name}");
        self.highest.load(Ordering::Relaxed)
    }
}

const POINTS: [&str; 12] = [
    "commit.published",
    "flush.start",
    "flush.before_edit",
    "flush.installed",
    "compaction.start",
    "compaction.table_written",
    "compaction.before_edit",
    "compaction.installed",
    "wal.after_hand_over",
    "ralt.flush",
    "ralt.step",
    "ralt.before_state",
];

#[test]
fn a_tiny_fast_tier_keeps_its_capacity_under_load() {
    for (seed, threads) in [(1, false), (2, false), (3, true), (4, true)] {
        let mut trial = Trial::new(seed);
        trial.threads = threads;
        trial.options.tiers[1].compression = Compression::None;
        trial.name = format!("seed {seed}, threads {threads}");
        let db = trial.db().unwrap();
        let watched = Watched::start(&trial, &db);
        let mut state = seed;
        for n in 0..6000u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let random = state >> 33;
            let mut batch = Batch::new();
            for i in 0..1 + random % 3 {
                let key = format!("key{:05}", (random / 3 + i * 911) % 4000);
                batch.put(key, vec![n as u8; (random % 1500) as usize]);
            }
            db.write_with(batch, Durability::None)
                .unwrap_or_else(|e| panic!("{}: write {n}: {e}", trial.name));
        }
        db.wait_idle().unwrap();
        let metrics = db.metrics();
        assert!(metrics.tiers[1].table_bytes > metrics.tiers[0].capacity);
        let highest = watched.check(&trial.name);
        assert!(
            highest > metrics.tiers[0].capacity / 2,
            "{highest}: it was made use of"
        );
        let report = db.verify(&mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

/// Access records are on the fast tier too. Its capacity holds for them and the rest together (I8).
#[test]
fn access_records_count_within_the_capacity() {
    for (seed, threads) in [(1, false), (2, true)] {
        let mut trial = Trial::new(seed);
        trial.threads = threads;
        trial.options.tiers[1].compression = Compression::None;
        trial.name = format!("seed {seed}, threads {threads}");
        let db = trial.db().unwrap();
        let watched = Watched::start(&trial, &db);
        let capacity = db.metrics().tiers[0].capacity;
        let key = |n: u64| format!("key{:05}", n * 7919 % 4001);
        for n in 0..16_000u64 {
            if n % 4 == 0 {
                let value = vec![n as u8; (n * 31 % 1200) as usize];
                db.put_with(key(n / 4), value, Durability::None)
                    .unwrap_or_else(|e| panic!("{}: write {n}: {e}", trial.name));
            }
            // Every record is read once, and those of a small part are read again and again.
            let read = if n % 2 == 0 { n % 97 } else { n };
            drop(db.get(key(read)).unwrap());
        }
        db.wait_idle().unwrap();
        let metrics = db.metrics();
        assert!(metrics.tiers[1].table_bytes > capacity);
        let highest = watched.check(&trial.name);
        let ralt = watched.highest_ralt.load(Ordering::Relaxed);
        assert!(highest > capacity / 2 && ralt > capacity / 20, "{ralt}");
    }
}

/// A batch may be larger than the free space, and larger than the whole tier.
#[test]
fn a_batch_that_does_not_fit_the_fast_tier_is_refused() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let capacity = db.metrics().tiers[0].capacity;
    let watched = Watched::start(&trial, &db);
    for len in [
        20 << 10,
        100 << 10,
        200 << 10,
        300 << 10,
        capacity as usize,
        1 << 20,
    ] {
        let written = db.put(format!("key{len}"), vec![1; len]);
        if let Err(error) = &written {
            let never_fits = matches!(error, Error::DoesNotFit { .. });
            assert_eq!(
                never_fits,
                len as u64 + (16 << 10) > capacity,
                "{len}: {error}"
            );
        }
        let found = db.get(format!("key{len}")).unwrap();
        assert_eq!(found.is_some(), written.is_ok(), "{len}");
        let tier = &db.metrics().tiers[0];
        assert!(
            tier.file_bytes + tier.reserved_bytes <= capacity,
            "{len}: {} and {} of {capacity}",
            tier.file_bytes,
            tier.reserved_bytes
        );
    }
    for n in 0..300 {
        db.put(format!("small{n}"), [2; 400]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    watched.check("large batches");
}

/// An iterator and a snapshot pin old files and old versions. They go on giving the answers of
/// their moment, the metrics name them, and the fast tier's capacity still holds (I8).
#[test]
fn long_held_readers_keep_their_view_within_the_capacity() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let write = |round: u8, db: &Db| {
        for n in 0..250 {
            let value = [&[round][..], &[n as u8; 700]].concat();
            db.put(format!("key{n:04}"), value)?;
        }
        Ok(())
    };
    write(0, &db).unwrap();
    db.flush().unwrap();
    let watched = Watched::start(&trial, &db);
    let (snapshot, mut held) = (db.snapshot(), db.iter());
    assert_eq!(held.next().unwrap().unwrap().1[0], 0);
    let mut refused: Option<Error> = None;
    for round in 1..12 {
        refused = refused.or(write(round, &db).err());
    }
    let metrics = db.metrics();
    let pinned: u64 = metrics.tiers.iter().map(|t| t.pinned_obsolete_bytes).sum();
    assert!(pinned > 0);
    assert!(metrics.oldest_pin.is_some() && metrics.snapshots > 0);
    assert!(
        metrics.tiers[0].file_bytes + metrics.tiers[0].reserved_bytes <= metrics.tiers[0].capacity
    );
    assert!(refused.is_none_or(|error| error.is_no_space()));
    for (n, record) in held.enumerate() {
        let (key, value) = record.unwrap();
        assert_eq!(key[..], format!("key{:04}", n + 1).into_bytes()[..]);
        assert_eq!(value[0], 0, "as it was when the iterator was made");
    }
    assert!(snapshot.iter().all(|record| record.unwrap().1[0] == 0));
    assert_eq!(snapshot.iter().count(), 250);
    drop(snapshot);
    write(12, &db).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    // Files are removed by a job that nobody waits for.
    trial.drain();
    let metrics = db.metrics();
    assert_eq!(metrics.tiers[0].pinned_obsolete_bytes, 0);
    assert!(metrics.oldest_pin.is_none() && metrics.snapshots == 0);
    assert!(db.iter().all(|record| record.unwrap().1[0] == 12));
    watched.check("long-held readers");
}
