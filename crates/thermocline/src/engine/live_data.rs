//! How much of what tables hold is live, by the samples of keys that they carry.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::Engine;
use crate::table::{KeySample, SampledKey};
use crate::version::Version;

/// About how many keys of a keyspace are looked at. More would hardly tell more.
const MOST_KEYS: u64 = 8192;

impl Engine {
    /// Live bytes of keys and values in all tables. Of each key the newest version is live, unless
    /// it is a delete.
    pub(crate) fn live_raw_bytes(&self) -> u64 {
        let trees = self.all_trees();
        let live = trees.iter().map(|tree| live_of(&tree.pin().version));
        live.fold(0, u64::saturating_add)
    }

    /// The part of all keys and values, 0 to 1, that is in two tables, because it was promoted.
    pub(crate) fn part_that_is_there_twice(&self) -> f64 {
        let (mut all, mut twice) = (0.0, 0.0);
        for tree in self.all_trees() {
            let version = tree.version();
            all += version
                .tables()
                .map(|table| table.raw_bytes() as f64)
                .sum::<f64>();
            twice += twice_of(&version);
        }
        twice / f64::max(all, 1.0)
    }
}

/// The samples of a version's tables.
struct Samples<'a> {
    of_tables: Vec<&'a KeySample>,
    /// Keys with hashes up to this are in the samples of all tables that hold them.
    bound: u64,
    /// Bytes of keys and values in tables with a sample, and in those without.
    sampled: u64,
    unsampled: u64,
}

impl<'a> Samples<'a> {
    fn of(version: &'a Version) -> Self {
        let mut samples = Self {
            of_tables: Vec::new(),
            bound: u64::MAX,
            sampled: 0,
            unsampled: 0,
        };
        let mut entries = 0u64;
        for table in version.tables() {
            // If the end of a table cannot be read, that is an error of whoever reads the table.
            let sample = table.table().ok();
            let sample = sample.and_then(|table| table.properties().key_sample.as_ref());
            match sample.and_then(|sample| Some((sample, sample.bound()?))) {
                Some((sample, of_table)) => {
                    samples.sampled = samples.sampled.saturating_add(table.raw_bytes());
                    entries = entries.saturating_add(table.meta.entries);
                    samples.bound = samples.bound.min(of_table);
                    samples.of_tables.push(sample);
                }
                None => samples.unsampled = samples.unsampled.saturating_add(table.raw_bytes()),
            }
        }
        if entries > MOST_KEYS {
            samples.bound = samples.bound.min(u64::MAX / (entries / MOST_KEYS));
        }
        samples
    }

    fn keys(&self) -> impl Iterator<Item = (u64, SampledKey)> {
        let samples = self.of_tables.iter();
        samples.flat_map(|sample| sample.keys(self.bound))
    }
}

fn live_of(version: &Version) -> u64 {
    let samples = Samples::of(version);
    let share = live_share(samples.keys());
    let live = (samples.sampled as f64 * share) as u64;
    samples.unsampled.saturating_add(live)
}

/// Bytes of keys and values that are in two tables of `version`: promotion leaves what it brings up
/// below, too.
fn twice_of(version: &Version) -> f64 {
    let samples = Samples::of(version);
    let mut seen = HashSet::new();
    let (mut all, mut twice) = (0u64, 0u64);
    for (hash, key) in samples.keys() {
        let bytes = key.live.saturating_add(key.dead);
        all = all.saturating_add(bytes);
        if !seen.insert((hash, key.seq)) {
            twice = twice.saturating_add(bytes);
        }
    }
    samples.sampled as f64 * twice as f64 / all.max(1) as f64
}

/// The live part of what sampled keys stand for, 0 to 1.
fn live_share(sampled: impl Iterator<Item = (u64, SampledKey)>) -> f64 {
    let mut keys: HashMap<u64, SampledKey> = HashMap::new();
    for (hash, found) in sampled {
        match keys.entry(hash) {
            Entry::Vacant(place) => {
                place.insert(found);
            }
            Entry::Occupied(mut place) => {
                let (newer, older) = match place.get().seq >= found.seq {
                    true => (*place.get(), found),
                    // A promoted record has the same sequence number as before: one of the two
                    // counts.
                    false => (found, *place.get()),
                };
                let dead = newer.dead.saturating_add(older.dead);
                place.insert(SampledKey {
                    dead: dead.saturating_add(older.live),
                    ..newer
                });
            }
        }
    }
    let sum = |of: fn(&SampledKey) -> u64| keys.values().map(of).fold(0, u64::saturating_add);
    let (live, dead) = (sum(|key| key.live), sum(|key| key.dead));
    match live.saturating_add(dead) {
        0 => 1.0,
        all => live as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::Metrics;
    use crate::options::Compression;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::{Db, Durability, Options};

    /// Two tiers of which only the slow one compresses, with values that shrink to little.
    fn store() -> Db {
        let mut options = Options::two_tiers("/fast", 2 << 20, "/slow");
        options.memory = 4 << 20;
        options.durability = Durability::None;
        options.tiers[1].compression = Compression::Lz4;
        let medium = Arc::new(Memory::new());
        let builder = Db::builder(options).medium(0, Arc::clone(&medium) as Arc<_>);
        builder.medium(1, Arc::new(Memory::new())).open().unwrap()
    }

    /// Writes 10,000 records of 500 bytes in a scrambled order.
    fn write(db: &Db) {
        for number in 0..10_000u64 {
            let key = format!("key{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            db.put(&key, [7; 481]).unwrap();
        }
    }

    fn settled(db: &Db) -> Metrics {
        db.flush().unwrap();
        db.wait_idle().unwrap();
        db.metrics()
    }

    /// Data that had just been loaded was reported with a space amplification of 36: the last level
    /// was compressed and the others were not.
    #[test]
    fn what_was_only_loaded_is_live_however_it_is_compressed() {
        let db = store();
        write(&db);
        let metrics = settled(&db);
        let amplification = metrics.space_amplification();
        assert!((1.0..1.02).contains(&amplification), "{amplification}");
        assert!(metrics.tiers.iter().all(|tier| tier.table_bytes > 0));
        assert!(metrics.compression_ratio() > 2.0);
    }

    /// Compares what is reported with what there is. All records have the same size.
    fn check(db: &Db, live: f64) {
        let metrics = settled(db);
        let records: u64 = db
            .keyspace_metrics()
            .iter()
            .map(|keyspace| keyspace.records)
            .sum();
        let (told, is) = (metrics.space_amplification(), records as f64 / live);
        // It is estimated from a sample of some 150 keys.
        assert!((told / is - 1.0).abs() < 0.25, "{told} of {is}");
    }

    #[test]
    fn superseded_records_and_deletes_count_until_they_are_gone() {
        let db = store();
        write(&db);
        check(&db, 10_000.0);
        // The snapshot keeps what the next versions supersede.
        let snapshot = db.snapshot();
        write(&db);
        check(&db, 10_000.0);
        assert!(db.metrics().space_amplification() > 1.9);
        drop(snapshot);
        write(&db);
        check(&db, 10_000.0);
        db.compact_range::<&[u8]>(..).unwrap();
        check(&db, 10_000.0);
        assert!(db.metrics().space_amplification() < 1.9);

        let _snapshot = db.snapshot();
        let keys: Vec<_> = db.iter().map(|record| record.unwrap().0).collect();
        for key in keys {
            db.delete(&key).unwrap();
        }
        assert_eq!(settled(&db).space_amplification(), f64::INFINITY);
    }
}
