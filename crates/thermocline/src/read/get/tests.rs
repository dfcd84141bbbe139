use super::*;
use crate::Db;
use crate::metrics::Purpose;
use crate::options::Options;
use crate::storage::Memory;

fn open(medium: &Arc<Memory>) -> Db {
    let builder = Db::builder(Options::one_tier("/db"));
    builder.medium(0, Arc::clone(medium) as _).open().unwrap()
}

/// Reads of users on the device so far.
fn reads(db: &Db) -> u64 {
    db.metrics().tiers[0].io[Purpose::UserRead as usize].read_ops
}

/// All keys of a `multi_get` were looked up before the first block came into the cache. Then each
/// of them read, decoded and kept the block that it needed for itself. A thousand neighbours were a
/// thousand reads of eight blocks, where a thousand single gets would have been eight reads. The
/// counts of reads, by which the tables that are read most are copied, were misled alike.
#[test]
fn keys_of_one_block_share_its_read() {
    let medium = Arc::new(Memory::new());
    let key = |n: u32| format!("key{n:06}");
    let value = |n: u32| [n as u8; 100];
    let db = open(&medium);
    for n in 0..1000 {
        db.put(key(n), value(n)).unwrap();
    }
    db.close().unwrap();
    // One of them is asked for twice.
    let asked: Vec<u32> = (300..400).chain([350]).collect();
    let keys: Vec<String> = asked.iter().copied().map(key).collect();

    let db = open(&medium);
    for key in &keys {
        assert!(db.get(key).unwrap().is_some());
    }
    let one_by_one = reads(&db);
    assert!((2..20).contains(&one_by_one), "{one_by_one}");
    db.close().unwrap();

    let db = open(&medium);
    let values = db.multi_get(&keys).unwrap();
    for (n, found) in asked.iter().zip(&values) {
        assert_eq!(found.as_deref(), Some(&value(*n)[..]));
    }
    assert_eq!(reads(&db), one_by_one);
    let hits = db.metrics().hits;
    assert_eq!(hits.block_cache_misses, one_by_one);
    let lookups = hits.block_cache_hits + hits.block_cache_misses;
    assert_eq!(lookups, asked.len() as u64);
    // Those of one block are parts of the same memory.
    let end = |value: &Option<Value>| value.as_ref().map(|value| value.as_ptr_range().end);
    assert_eq!(end(&values[50]), end(&values[100]));
}

/// The buffers of all blocks that a round needed were there at once, outside of every budget: for a
/// hundred thousand keys some three GB.
#[test]
fn blocks_are_read_a_few_megabytes_at_a_time() {
    let quarter = MAX_TOGETHER as u32 / 4;
    assert_eq!(read_together([quarter; 9].into_iter()), 4);
    assert_eq!(read_together([quarter, 4 * quarter].into_iter()), 1);
    let longest = [8 * quarter, 1];
    assert_eq!(
        read_together(longest.into_iter()),
        1,
        "or it never would be"
    );
}
