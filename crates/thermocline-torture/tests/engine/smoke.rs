//! The shortest way through the whole engine.

use thermocline_torture::stores::{memory, open_on, small_options};

fn key(i: u32) -> String {
    format!("key{i:08}")
}

#[test]
fn what_is_written_is_read_before_and_after_reopening() {
    let (medium, options) = (memory(), small_options());
    let db = open_on(&options, &medium).unwrap();
    for i in 0..20_000 {
        db.put(key(i * 7919 % 20_000), [i as u8; 400]).unwrap();
    }
    db.wait_idle().unwrap();
    let check = |db: &thermocline::Db| {
        for i in 0..20_000 {
            let value = db.get(key(i * 7919 % 20_000)).unwrap();
            assert_eq!(value.as_deref(), Some(&[i as u8; 400][..]), "{i}");
        }
        assert_eq!(db.iter().count(), 20_000);
        assert_eq!(db.iter().rev().count(), 20_000);
    };
    check(&db);
    let metrics = db.metrics();
    assert!(
        metrics.tiers[1].table_bytes > 0,
        "data went down to the slow tier"
    );
    assert!(metrics.tiers[0].file_bytes <= metrics.tiers[0].capacity);
    drop(db);
    check(&open_on(&options, &medium).unwrap());
}
