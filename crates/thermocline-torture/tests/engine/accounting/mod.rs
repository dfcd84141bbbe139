//! Every byte that reaches a medium, and the time of background work, is counted under its purpose.

mod counting;

use std::sync::Arc;

use counting::Counting;
use thermocline::executor::Stepped;
use thermocline::metrics::{Activity, IoMetrics, Metrics};
use thermocline::{Batch, Db, Error, Expect, Options, Purpose};
use thermocline_torture::stores::small_options;

const RECORDS: u32 = 10_000;

fn open(media: &[Counting; 2]) -> Db {
    let mut options = small_options();
    // Reads of what is hot reach the tables.
    options.block_cache = Some(0);
    let mut builder = Db::builder(options).executor(Arc::new(Stepped::new(3)));
    for (tier, medium) in media.iter().enumerate() {
        builder = builder.medium(tier, Arc::new(medium.clone()));
    }
    builder.open().unwrap()
}

fn key(n: u32) -> String {
    format!("key{:06}", n.wrapping_mul(7919) % RECORDS)
}

/// Fills both tiers, and reads a part so often, among updates, that it is promoted. It is another
/// part in each life, because what is promoted in one life is still up in the next.
fn work(db: &Db, life: u32) {
    for n in 0..RECORDS {
        db.put(key(n), [n as u8; 600]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    for n in 0..40_000u32 {
        assert!(db.get(key(600 * life + n * 31 % 600)).unwrap().is_some());
        if n % 20 == 0 {
            db.put(key(n), [n as u8; 600]).unwrap();
        }
    }
    assert_eq!(db.iter().take(500).count(), 500);
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

fn io(metrics: &Metrics, tier: usize, purpose: Purpose) -> IoMetrics {
    let all = &metrics.tiers[tier].io;
    let found = all.iter().find(|io| io.purpose == purpose);
    found.unwrap().clone()
}

#[test]
fn what_is_counted_by_purpose_is_all_that_passed_the_media() {
    let media = [Counting::default(), Counting::default()];
    let mut before = [(0, 0); 2];
    // Created, then recovered.
    for life in 0..2 {
        let db = open(&media);
        work(&db, life);
        let metrics = db.metrics();
        for ((tier, medium), before) in metrics.tiers.iter().zip(&media).zip(&mut before) {
            let (read, written) = medium.passed.now();
            assert_eq!(
                (tier.read_bytes(), tier.write_bytes()),
                (read - before.0, written - before.1),
                "{:?}",
                tier.io
            );
        }
        for (tier, purpose, reads, writes) in [
            (0, Purpose::Wal, false, true),
            (0, Purpose::Flush, false, true),
            (0, Purpose::Compaction, true, true),
            (1, Purpose::Compaction, true, true),
            (0, Purpose::UserRead, true, false),
            (1, Purpose::UserRead, true, false),
            (0, Purpose::Promotion, true, true),
            (0, Purpose::Hotness, true, true),
        ] {
            let io = io(&metrics, tier, purpose);
            assert_eq!(
                (io.read_ops > 0, io.write_ops > 0),
                (reads, writes),
                "{io:?}"
            );
            assert_eq!((io.read_bytes > 0, io.write_bytes > 0), (reads, writes));
        }
        db.close().unwrap();
        before = [media[0].passed.now(), media[1].passed.now()];
    }
}

#[test]
fn tables_are_written_in_large_operations() {
    let media = [Counting::default(), Counting::default()];
    let db = open(&media);
    work(&db, 0);
    let metrics = db.metrics();
    let flushed = io(&metrics, 0, Purpose::Flush);
    // Tables of 32 KiB: the writer gathers the blocks of 1 KiB.
    assert_eq!(flushed.write_ops, metrics.flushes, "{flushed:?}");
}

/// Regression: each table of a compaction asked its disk for the room of a whole table, however
/// little there was to compact. If less was free the job failed, although what it had to write
/// would have fitted.
#[test]
fn a_small_compaction_asks_for_little_room() {
    let medium = Counting::default();
    let options = Options::one_tier("/fast");
    let builder = Db::builder(options).medium(0, Arc::new(medium.clone()));
    let db = builder.executor(Arc::new(Stepped::new(3))).open().unwrap();
    for life in 0..2 {
        for n in 0..100 {
            db.put(key(n), [life; 600]).unwrap();
        }
        db.flush().unwrap();
    }
    let inputs = db.metrics().levels[0].bytes;
    let before = medium.passed.expected();
    db.compact_range::<&str>(..).unwrap();
    let asked = medium.passed.expected() - before;
    assert!(
        asked >= inputs / 2 && asked <= inputs / 4 * 5,
        "{asked} for inputs of {inputs}"
    );
}

#[test]
fn the_time_of_jobs_counts_for_their_activity() {
    let media = [Counting::default(), Counting::default()];
    let db = open(&media);
    let seconds = |db: &Db, activity| {
        let cpu = db.metrics().cpu;
        cpu.iter().find(|c| c.activity == activity).unwrap().seconds
    };
    // Nothing that would be tracked or promoted.
    for n in 0..RECORDS {
        db.put(key(n), [1; 600]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    for (activity, some) in [
        (Activity::Flush, true),
        (Activity::Compaction, true),
        (Activity::Promotion, false),
        (Activity::Ralt, false),
    ] {
        assert_eq!(seconds(&db, activity) > 0.0, some, "{activity:?}");
    }
    work(&db, 0);
    for &activity in Activity::ALL {
        assert!(seconds(&db, activity) > 0.0, "{activity:?}");
    }
    let ralt = db.metrics().hotrap.unwrap().ralt;
    assert_eq!(ralt.cpu_seconds, seconds(&db, Activity::Ralt));
}

/// Regression: the bytes of a batch's encoding were counted, 9 more than the key and value of a
/// single record, and before it was known whether its conditions held. So write amplification was
/// too low with short records, and with batches that were refused.
#[test]
fn what_writers_hand_in_is_the_keys_and_values_of_what_is_committed() {
    let db = open(&[Counting::default(), Counting::default()]);
    let written = || {
        let metrics = db.metrics();
        (metrics.user_writes, metrics.user_write_bytes)
    };
    db.put("key", "value").unwrap();
    assert_eq!(written(), (1, 8));
    db.delete("key").unwrap();
    assert_eq!(written(), (2, 11));
    let mut batch = Batch::new();
    batch.put("dropped", "before");
    batch.clear();
    batch.put("a", [7; 300]);
    batch.delete("b");
    batch.require(&db, "key", Expect::Present);
    let refused = db.write(batch.clone()).unwrap_err();
    assert!(matches!(refused, Error::ConditionFailed { index: 0 }));
    assert_eq!(written(), (2, 11));
    db.put("key", "").unwrap();
    db.write(batch).unwrap();
    assert_eq!(written(), (5, 11 + 3 + 302));
}

#[test]
fn a_scan_that_is_not_to_fill_the_block_cache_leaves_it_as_it_was() {
    let builder = Db::builder(Options::one_tier("/fast"));
    let builder = builder.medium(0, Arc::new(Counting::default()));
    let db = builder.executor(Arc::new(Stepped::new(3))).open().unwrap();
    for n in 0..500 {
        db.put(key(n), [1; 600]).unwrap();
    }
    db.flush().unwrap();
    let cached = || db.metrics().memory.block_cache;
    let before = cached();
    assert_eq!(db.iter().fill_cache(false).count(), 500);
    assert_eq!(db.iter().fill_cache(false).rev().count(), 500);
    assert_eq!(db.snapshot().iter().fill_cache(false).count(), 500);
    assert_eq!(cached(), before);
    assert_eq!(db.iter().count(), 500);
    assert!(cached() > before + 500 * 600, "{} of {before}", cached());
    // Blocks that are in the cache are used.
    let reads = || io(&db.metrics(), 0, Purpose::UserRead).read_ops;
    let before = reads();
    assert_eq!(db.iter().fill_cache(false).count(), 500);
    assert_eq!(reads(), before);
}
