//! A store over a fast and a slow directory: what is read often comes to the fast one.
//!
//! `cargo run --release --example two_tiers`

use thermocline::metrics::Metrics;
use thermocline::{Db, Options};

const RECORDS: u64 = 60_000;
/// Every tenth record is read often: 6 MB, more than memory holds.
const HOT: u64 = RECORDS / 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let (fast, slow) = (home.path().join("fast"), home.path().join("slow"));

    // 60 MB of records, of which at most 12 MiB may lie in `fast`.
    let mut options = Options::two_tiers(&fast, 12 << 20, &slow);
    options.memory = 4 << 20;
    let db = Db::open(options)?;
    for number in 0..RECORDS {
        db.put(key(number), [number as u8; 1000])?;
    }
    db.wait_idle()?;

    // The same reads, over and over: every round asks the slow directory less often.
    for round in 1..=6 {
        let before = db.metrics();
        for turn in 0..HOT {
            let number = turn * RECORDS / HOT;
            assert!(db.get(key(number))?.is_some());
        }
        db.wait_idle()?;
        let share = share_without_slow(&before, &db.metrics());
        println!(
            "round {round}: {:.0} % of the reads needed no slow disk",
            100.0 * share
        );
    }

    let tiers = &db.metrics().tiers;
    assert!(tiers[0].file_bytes <= 12 << 20, "the capacity is kept");
    db.close()?;
    Ok(())
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Which part of the reads between two looks was answered without the slow disk.
fn share_without_slow(before: &Metrics, after: &Metrics) -> f64 {
    let reads = after.hits.gets - before.hits.gets;
    let without = after.hits.without_slow_device - before.hits.without_slow_device;
    without as f64 / reads.max(1) as f64
}
