//! The levels of the fast tier stay on it as long as there is data that can make way.

use std::sync::Arc;

use thermocline::Db;
use thermocline::executor::Stepped;
use thermocline_torture::stores::{memory, small_options};

/// A job that finds no room sends tables of the last fast level down. If its output went to the
/// slow tier instead, recent data would lie there although older data is on the fast one.
#[test]
fn recent_data_stays_on_the_fast_tier_under_steady_writing() {
    let medium = memory();
    let mut builder = Db::builder(small_options()).executor(Arc::new(Stepped::new(7)));
    for tier in 0..2 {
        builder = builder.medium(tier, Arc::clone(&medium));
    }
    let db = builder.open().unwrap();
    for n in 0..40_000u32 {
        db.put(format!("key{:08}", n * 7919 % 40_000), [n as u8; 400])
            .unwrap();
        if n % 500 == 0 {
            let levels = db.metrics().levels;
            let spilled: u64 = levels[..=2].iter().map(|level| level.tier_bytes[1]).sum();
            assert_eq!(spilled, 0, "at write {n}");
        }
    }
    let metrics = db.metrics();
    assert!(metrics.tiers[1].table_bytes > 0, "old data made way");
    assert!(metrics.tiers[0].file_bytes <= metrics.tiers[0].capacity);
}
