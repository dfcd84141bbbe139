//! The store's counters, gathered into one struct.

use std::time::Duration;

use super::{Engine, Tree};
use crate::cache::RecordCache;
use crate::error::Result;
use crate::metrics::{
    HeatReport, IoMetrics, KeyspaceMetrics, LevelMetrics, MemoryMetrics, Metrics, Purpose,
    StallMetrics, TierMetrics,
};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tier::Tier;
use crate::version::MAX_LEVELS;
use crate::write::Reason;

fn seconds(nanos: &AtomicU64) -> f64 {
    Duration::from_nanos(nanos.load(Ordering::Relaxed)).as_secs_f64()
}

/// The targets of all keyspaces' levels, summed up by level, in bytes.
#[derive(Default)]
struct TargetSums {
    /// Levels that are the last fast one of their keyspace. Keyspaces differ in how many fast
    /// levels they have.
    last_fast: [u64; MAX_LEVELS],
    /// All other levels.
    others: [u64; MAX_LEVELS],
}

impl TargetSums {
    /// Adds the targets of a keyspace whose last fast level is `f`.
    fn add(&mut self, targets: &[u64; MAX_LEVELS], f: usize) {
        for (number, bytes) in targets.iter().enumerate() {
            let sums = match number == f {
                true => &mut self.last_fast,
                false => &mut self.others,
            };
            sums[number] = sums[number].saturating_add(*bytes);
        }
    }

    /// The sums, with those of last fast levels cut to `most`: the room that one keyspace leaves
    /// empty there is in the targets of all others.
    fn capped(&self, most: u64) -> [u64; MAX_LEVELS] {
        std::array::from_fn(|number| {
            let last_fast = self.last_fast[number].min(most);
            self.others[number].saturating_add(last_fast)
        })
    }
}

impl Engine {
    pub(crate) fn metrics(&self) -> Metrics {
        let (hits, level_hits) = self.stats.hits(self.tiers.len());
        let (user_writes, user_write_bytes, flushes) = self.stats.totals();
        let ages = self
            .tiers
            .iter()
            .map(|tier| self.graveyard.pinned(tier.index).1);
        let background_error = self.trouble().map(|error| error.to_string());
        Metrics {
            tiers: self
                .tiers
                .iter()
                .map(|tier| self.tier_metrics(tier))
                .collect(),
            levels: self.level_metrics(&level_hits),
            keyspaces: Vec::new(),
            live_raw_bytes: self.live_raw_bytes(),
            compactions: self.stats.compactions(),
            compaction_debt_bytes: self.compaction_debt(),
            cpu: self.cpu.metrics(),
            flushes,
            stalls: self.stall_metrics(),
            latencies: self.latencies(),
            memory: self.memory_metrics(),
            user_write_bytes,
            user_writes,
            record_cache: self.record_cache_metrics(&hits),
            hotrap: self.placement.metrics(self),
            cost: self.cost_metrics(),
            snapshots: self.snapshots.count() as u64,
            oldest_snapshot: self.snapshots.oldest(),
            last_seq: self.visible(),
            oldest_pin: ages.flatten().max(),
            background_error,
            hits,
            uptime: self.clock.now().saturating_sub(self.identity.opened),
        }
    }

    pub(crate) fn keyspace_metrics(&self, tree: &Tree) -> KeyspaceMetrics {
        let pinned = tree.pin();
        let memtables = pinned.immutables.iter().chain([&pinned.active]);
        let mut metrics = KeyspaceMetrics {
            name: String::from_utf8_lossy(&tree.name).into_owned(),
            memtable_bytes: memtables.map(|memtable| memtable.bytes()).sum(),
            table_bytes: vec![0; self.tiers.len()],
            hot_bytes: self.placement.hot_bytes(tree.id),
            ..KeyspaceMetrics::default()
        };
        for table in pinned.version.tables() {
            metrics.tables += 1;
            metrics.table_bytes[usize::from(table.meta.tier)] += table.meta.len;
            // An opening checks the length against the file, and these counts against nothing.
            metrics.records = metrics.records.saturating_add(table.meta.entries);
            metrics.deletes = metrics.deletes.saturating_add(table.meta.deletes);
        }
        metrics
    }

    /// What is hot and what is not.
    pub(crate) fn heat(&self, most: usize) -> Result<HeatReport> {
        self.check_open()?;
        self.placement.heat(self, most)
    }

    /// How much of what is hot lies on the fast tier.
    pub(crate) fn hot_bytes_on_fast(&self) -> Result<Option<u64>> {
        self.check_open()?;
        self.placement.hot_bytes_on_fast(self)
    }

    fn tier_metrics(&self, tier: &Tier) -> TierMetrics {
        let on_tier = |tree: &std::sync::Arc<super::tree::Tree>| {
            let pinned = tree.pin();
            let here = pinned
                .version
                .tables()
                .filter(|t| t.meta.tier == tier.index);
            here.map(|table| table.meta.len).sum::<u64>()
        };
        let each = Purpose::ALL.iter();
        let mut io: Vec<IoMetrics> = each.map(|&purpose| tier.io(purpose)).collect();
        // Access records have a tier of their own, over a directory of the fast one.
        if let Some(of_records) = self.placement.io().filter(|_| tier.index == 0) {
            io[Purpose::Hotness as usize].add(&of_records);
        }
        // The flash cache counts its own I/O.
        if let Some(flash) = self.caches.blocks.flash_io().filter(|_| tier.index == 0) {
            io[Purpose::FlashCache as usize].add(&IoMetrics {
                purpose: Purpose::FlashCache,
                read_ops: flash.read_ops,
                read_bytes: flash.read_bytes,
                write_ops: flash.write_ops,
                write_bytes: flash.write_bytes,
            });
        }
        TierMetrics {
            path: tier.options.path.clone(),
            capacity: tier.capacity(),
            price_per_gb_month: tier.options.price_per_gb_month.or_else(|| {
                let kept = self.target.prices()?;
                kept.get(usize::from(tier.index)).copied()
            }),
            file_bytes: tier.file_bytes() + tier.copied_bytes(),
            reserved_bytes: tier.reserved_bytes(),
            table_bytes: self.all_trees().iter().map(on_tier).sum(),
            pinned_obsolete_bytes: self.graveyard.pinned(tier.index).0,
            copied_bytes: tier.copied_bytes(),
            io: io.to_vec(),
        }
    }

    fn level_metrics(&self, hits: &[u64; MAX_LEVELS]) -> Vec<LevelMetrics> {
        let mut levels: Vec<LevelMetrics> = hits
            .iter()
            .map(|&hits| LevelMetrics {
                hits,
                tier_bytes: vec![0; self.tiers.len()],
                ..LevelMetrics::default()
            })
            .collect();
        let rooms = self.fast_rooms();
        let mut targets = TargetSums::default();
        for tree in self.all_trees() {
            let pinned = tree.pin();
            let wanted = tree.targets_in(&rooms, self, &pinned.version);
            targets.add(&wanted.bytes, wanted.last_fast());
            for (number, level) in levels.iter_mut().enumerate() {
                let here = &pinned.version.levels[number];
                level.tables += here.tables.len() as u64;
                level.bytes += here.bytes;
                for table in here.tables.iter() {
                    level.raw_bytes = level.raw_bytes.saturating_add(table.raw_bytes());
                    level.tier_bytes[usize::from(table.meta.tier)] += table.meta.len;
                }
            }
        }
        for (level, bytes) in levels.iter_mut().zip(targets.capped(rooms.most())) {
            level.target_bytes = bytes;
        }
        levels
    }

    fn stall_metrics(&self) -> StallMetrics {
        let by_reason = Reason::ALL.iter().map(|reason| {
            (
                reason.name(),
                seconds(&self.stall.nanos_by_reason[*reason as usize]),
            )
        });
        StallMetrics {
            slowed_seconds: seconds(&self.stall.slowed_nanos),
            stopped_seconds: seconds(&self.stall.stopped_nanos),
            longest_seconds: seconds(&self.stall.longest_nanos),
            by_reason: by_reason.collect(),
            current: self.stall.reason().map(Reason::name),
            rate_limit: self.stall.rate(),
        }
    }

    fn latencies(&self) -> Vec<crate::metrics::LatencyMetrics> {
        let stats = &self.stats;
        [
            &stats.get_latency,
            &stats.multi_get_latency,
            &stats.write_latency,
            &stats.seek_latency,
        ]
        .map(|recorder| recorder.snapshot())
        .to_vec()
    }

    fn memory_metrics(&self) -> MemoryMetrics {
        // Read both before and after the present memtables are looked at: one that freezes or is
        // flushed in between is in only one of the two readings.
        let before = self.keyspaces.tally.retired_bytes();
        let (mut active, mut frozen) = (0, 0);
        for tree in self.all_trees() {
            let pinned = tree.pin();
            active += pinned.active.bytes();
            frozen += pinned.immutables.iter().map(|m| m.bytes()).sum::<u64>();
        }
        let retired = before.min(self.keyspaces.tally.retired_bytes());
        MemoryMetrics {
            budget: self.options.memory,
            memtables: active + frozen,
            pinned_memtables: retired.saturating_sub(frozen),
            block_cache: self.caches.blocks.used_bytes(),
            record_cache: self
                .caches
                .records
                .as_ref()
                .map_or(0, RecordCache::used_bytes),
            large_buffers: self.fast().large.bytes(),
            pinned: self.caches.pins.taken(),
            unpinned: self.caches.pins.refused(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::MEMTABLES;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::testing::scene::Scene;
    use crate::{Db, Options};

    /// Where a level was the last fast one of any keyspace, its whole target was cut to the room of
    /// the fast tier, including the targets of keyspaces that have this level on the slow tier.
    /// With one keyspace made before the capacity was raised and one made since, what the first one
    /// had there was far over the target that metrics reported.
    #[test]
    fn the_fast_tiers_room_is_no_bound_for_levels_that_are_slow() {
        let mut sums = TargetSums::default();
        sums.add(&[0, 1, 8, 60, 0, 0, u64::MAX], 2);
        sums.add(&[0, 1, 3, 9, 0, 0, u64::MAX], 3);
        assert_eq!(sums.capped(10), [0, 2, 8 + 3, 60 + 9, 0, 0, u64::MAX]);
        sums.add(&[0, 1, 3, 9, 0, 0, u64::MAX], 3);
        assert_eq!(sums.capped(10), [0, 3, 8 + 6, 60 + 10, 0, 0, u64::MAX]);
    }

    #[test]
    fn index_and_filter_blocks_without_room_are_counted() {
        let medium = Arc::new(Memory::new());
        let mut options = Options::one_tier("/db");
        options.memory = 8 << 20;
        options.memtable_size = Some(64 << 10);
        let open = |options: &Options| {
            let builder = Db::builder(options.clone()).medium(0, Arc::clone(&medium) as Arc<_>);
            builder.open().unwrap()
        };
        let db = open(&options);
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        let ample = db.metrics().memory;
        assert!(ample.pinned > 0 && ample.unpinned == 0, "{ample:?}");
        db.close().unwrap();

        // The block cache has all that memtables leave.
        options.block_cache = Some((8 << 20) - MEMTABLES * (64 << 10));
        let db = open(&options);
        assert!(db.get("key").unwrap().is_some());
        let short = db.metrics().memory;
        assert!(short.unpinned > 0, "{short:?}");
        // Top-level indexes are in memory, whether they have room or not.
        assert!(short.pinned > 0, "{short:?}");
        assert_eq!(short.pinned + short.unpinned, ample.pinned);
    }

    /// An iterator holds the memtables that were there when it began. Once they were flushed, no
    /// metric counted them. Ten iterators, kept for some minutes each, held as many memtables
    /// outside the budget, and nothing said who did.
    #[test]
    fn memtables_that_iterators_hold_are_counted_until_they_let_go() {
        let scene = Scene::new();
        let memory = || scene.db.metrics().memory;
        let pinned = || memory().pinned_memtables;
        scene.put("key", "1");
        let one = memory().memtables;
        let first = scene.db.iter();
        assert!(one > 0 && pinned() == 0, "it is present");
        scene.freeze();
        assert_eq!(pinned(), 0, "it waits for its flush");
        scene.drain();
        assert_eq!((memory().memtables, pinned()), (0, one));

        scene.put("key", "2");
        let second = scene.db.iter();
        scene.freeze();
        scene.drain();
        assert_eq!(pinned(), 2 * one);
        drop(first);
        assert_eq!(pinned(), one);
        drop(second);
        assert_eq!(pinned(), 0);
    }
}
