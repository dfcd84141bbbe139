//! The fast tier as a cache of blocks: where things lie, what is counted, what is refused.

use std::path::Path;
use std::sync::Arc;

use thermocline::metrics::Metrics;
use thermocline::storage::Medium;
use thermocline::{Compression, Db, Error, Options, Placement, Purpose};
use thermocline_torture::stores::{memory, open_on, small_options};

const RECORDS: u32 = 4000;

/// The message with which `options` are refused.
fn refusal(options: &Options) -> String {
    options.validate().unwrap_err().to_string()
}

fn options(root: &Path) -> Options {
    let mut options = small_options();
    // The cache lies in the file system, whatever the tiers are made of.
    options.tiers[0].path = root.join("fast");
    options.tiers[1].compression = Compression::None;
    options.block_cache = Some(0);
    options.placement = Placement::FlashCache;
    options
}

fn key(number: u32) -> String {
    format!("key{number:08}")
}

fn fill(db: &Db) {
    for number in 0..RECORDS {
        db.put(key(number), vec![number as u8; 500]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

fn check(db: &Db, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let value = db.get(key(number)).unwrap().unwrap();
        assert_eq!(&value[..], &[number as u8; 500][..], "{number}");
    }
}

fn cache_io(metrics: &Metrics) -> (u64, u64) {
    let io = metrics.tiers[0].io.iter();
    let mut io = io.filter(|io| io.purpose == Purpose::FlashCache);
    let io = io.next().unwrap();
    assert_eq!(
        (io.read_ops > 0, io.write_ops > 0),
        (io.read_bytes > 0, io.write_bytes > 0)
    );
    (io.read_bytes, io.write_bytes)
}

#[test]
fn tables_lie_on_the_slow_tier_and_their_blocks_on_the_fast_one() {
    let root = tempfile::tempdir().unwrap();
    let options = options(root.path());
    let db = open_on(&options, &memory()).unwrap();
    fill(&db);
    let before = db.metrics();
    assert_eq!(before.tiers[0].table_bytes, 0);
    assert!(before.tiers[1].table_bytes > 500 * u64::from(RECORDS));
    assert!(before.tiers[0].file_bytes <= options.tiers[0].capacity);
    // This is half of what the cache holds. A block that was read is read from there the next time.
    let hot = 0..RECORDS / 8;
    let mut reads = 0;
    loop {
        check(&db, hot.clone());
        reads += hot.len() as u64;
        let now = db.metrics();
        let (read, written) = cache_io(&now);
        if read > 0 && written > 0 && now.hits.without_slow_device > 0 {
            assert!(now.hits.without_slow_device <= now.hits.gets);
            break;
        }
        assert!(reads < 10_000_000, "{now:?}");
    }
    assert!(db.metrics().tiers[0].file_bytes <= options.tiers[0].capacity);
    db.close().unwrap();
}

#[test]
fn it_begins_empty_and_leaves_nothing_to_another_placement() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    let medium = memory();
    let db = open_on(&options, &medium).unwrap();
    fill(&db);
    check(&db, 0..RECORDS);
    db.close().unwrap();
    // A file of somebody else's, among files of an earlier opening, whose contents nobody knows any
    // more.
    let dir = root.path().join("fast/flash-cache");
    std::fs::write(dir.join("foreign"), "kept").unwrap();
    let db = open_on(&options, &medium).unwrap();
    assert_eq!(cache_io(&db.metrics()).0, 0);
    check(&db, 0..RECORDS);
    db.close().unwrap();
    options.placement = Placement::ByLevel;
    let db = open_on(&options, &medium).unwrap();
    let left = std::fs::read_dir(&dir).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["foreign"]);
    check(&db, 0..RECORDS);
    db.close().unwrap();
}

#[test]
fn a_store_with_tables_on_the_fast_tier_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    let medium: Arc<dyn Medium> = memory();
    options.placement = Placement::ByLevel;
    let db = open_on(&options, &medium).unwrap();
    fill(&db);
    db.close().unwrap();
    options.placement = Placement::FlashCache;
    let refused = open_on(&options, &medium).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::InvalidOption {
                option: "placement",
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn it_needs_a_capacity_and_a_slow_tier() {
    let mut unlimited = options("/".as_ref());
    unlimited.tiers[0].capacity = u64::MAX;
    assert!(refusal(&unlimited).contains("capacity"));
    let mut single = options("/".as_ref());
    single.tiers.truncate(1);
    assert!(refusal(&single).contains("second tier"));
}
