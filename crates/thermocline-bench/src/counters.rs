//! What engines count, and what follows from two counts.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::accounts::{ByActivity, ByDisk, Io};
use crate::compactions::{self, LevelCompactions};

/// Seconds that writers were held back, of all threads, by reason.
pub(crate) type Reasons = BTreeMap<&'static str, f64>;

/// An engine's counters. `None` is what the engine cannot tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counters {
    /// Point reads.
    pub(crate) gets: Option<u64>,
    /// Point reads that touched no slow device.
    pub(crate) gets_without_slow: Option<u64>,
    /// Point reads that touched no device.
    pub(crate) gets_without_device: Option<u64>,
    /// Bytes on the fast tier now.
    pub(crate) fd_bytes: Option<u64>,
    /// Bytes on slow tiers now.
    pub(crate) sd_bytes: Option<u64>,
    /// Bytes read from the fast device.
    pub(crate) fd_read_bytes: Option<u64>,
    /// Bytes written to the fast device.
    pub(crate) fd_write_bytes: Option<u64>,
    /// Bytes read from slow devices.
    pub(crate) sd_read_bytes: Option<u64>,
    /// Read operations on slow devices.
    pub(crate) sd_read_ops: Option<u64>,
    /// Bytes written to slow devices.
    pub(crate) sd_write_bytes: Option<u64>,
    /// Bytes written to all devices, for engines that know only the sum.
    pub(crate) written_bytes: Option<u64>,
    /// Bytes of keys and values that writers handed in.
    pub(crate) user_write_bytes: Option<u64>,
    /// Bytes that compactions read.
    pub(crate) compaction_read_bytes: Option<u64>,
    /// Bytes that compactions wrote.
    pub(crate) compaction_write_bytes: Option<u64>,
    /// What compactions did, by level.
    pub(crate) compactions: Option<Vec<LevelCompactions>>,
    /// Time that writers were held back, in seconds of all threads.
    pub(crate) stall_seconds: Option<f64>,
    /// The stall time by reason.
    pub(crate) stall_by_reason: Option<Reasons>,
    /// Processor time of the engine's own threads, by what they did.
    pub(crate) cpu: Option<ByActivity<f64>>,
    /// Whether the engine has further threads, and does not know what they spend.
    pub(crate) silent_threads: bool,
    /// I/O by what it was for.
    pub(crate) io: Option<ByDisk<ByActivity<Io>>>,
    /// Each tier, the fastest first.
    pub(crate) tiers: Option<Vec<TierCounters>>,
    /// The record cache, where there is one.
    pub(crate) record_cache: Option<RecordCacheCounters>,
    /// Placement by hotness, where there is one.
    pub(crate) hotness: Option<HotCounters>,
    /// What the store costs by its own account, if it keeps one.
    pub(crate) cost: Option<CostCounters>,
}

/// Counters of one tier.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TierCounters {
    /// Bytes on it now.
    pub(crate) bytes: u64,
    /// Its I/O by what it was for.
    pub(crate) io: ByActivity<Io>,
}

impl TierCounters {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes: self.bytes,
            io: self.io.since(&earlier.io),
        }
    }
}

/// Counters of the cache of single records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RecordCacheCounters {
    /// What it may take.
    pub capacity_bytes: u64,
    /// What it takes now.
    pub bytes: u64,
    /// Records in it now.
    pub entries: u64,
    /// Point reads that it answered.
    pub hits: u64,
    /// Point reads that neither a memtable nor it answered.
    pub misses: u64,
    /// Records taken in.
    pub fills: u64,
    /// Records not taken in.
    pub refused_fills: u64,
    /// Records taken out to make room for others.
    pub evictions: u64,
    /// Records replaced by newer versions.
    pub refreshes: u64,
    /// Records taken out because newer versions were written.
    pub invalidations: u64,
}

impl RecordCacheCounters {
    fn since(&self, earlier: &Self) -> Self {
        let less = u64::saturating_sub;
        Self {
            hits: less(self.hits, earlier.hits),
            misses: less(self.misses, earlier.misses),
            fills: less(self.fills, earlier.fills),
            refused_fills: less(self.refused_fills, earlier.refused_fills),
            evictions: less(self.evictions, earlier.evictions),
            refreshes: less(self.refreshes, earlier.refreshes),
            invalidations: less(self.invalidations, earlier.invalidations),
            ..*self
        }
    }
}

/// Counters of placement by hotness.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct HotCounters {
    /// Keys and values that are hot now.
    pub(crate) hot_set_bytes: u64,
    /// What they are limited to now.
    pub(crate) hot_set_limit_bytes: u64,
    /// Access records on the fast tier now.
    pub(crate) ralt_bytes: u64,
    /// What they are limited to now.
    pub(crate) ralt_limit_bytes: u64,
    /// Memory for access records now.
    pub(crate) ralt_memory_bytes: u64,
    /// Processor time of the work on access records, in seconds.
    pub(crate) ralt_cpu_seconds: f64,
    /// Bytes read for access records.
    pub(crate) ralt_read_bytes: u64,
    /// Bytes written for access records.
    pub(crate) ralt_write_bytes: u64,
    /// Bytes of records promoted as tables of L0.
    pub(crate) promoted_flush_bytes: u64,
    /// Bytes of records promoted by compactions.
    pub(crate) promoted_compaction_bytes: u64,
    /// Bytes of records that compactions kept on the fast tier.
    pub(crate) retained_bytes: u64,
    /// Records offered to the promotion cache.
    pub(crate) admission_attempts: u64,
    /// Records that it did not take.
    pub(crate) admission_refused: u64,
}

impl HotCounters {
    fn since(&self, earlier: &HotCounters) -> HotCounters {
        let less = u64::saturating_sub;
        HotCounters {
            ralt_cpu_seconds: (self.ralt_cpu_seconds - earlier.ralt_cpu_seconds).max(0.0),
            ralt_read_bytes: less(self.ralt_read_bytes, earlier.ralt_read_bytes),
            ralt_write_bytes: less(self.ralt_write_bytes, earlier.ralt_write_bytes),
            promoted_flush_bytes: less(self.promoted_flush_bytes, earlier.promoted_flush_bytes),
            promoted_compaction_bytes: less(
                self.promoted_compaction_bytes,
                earlier.promoted_compaction_bytes,
            ),
            retained_bytes: less(self.retained_bytes, earlier.retained_bytes),
            admission_attempts: less(self.admission_attempts, earlier.admission_attempts),
            admission_refused: less(self.admission_refused, earlier.admission_refused),
            ..*self
        }
    }

    /// Bytes read and written for access records.
    pub(crate) fn ralt_io_bytes(&self) -> u64 {
        self.ralt_read_bytes + self.ralt_write_bytes
    }
}

/// What a store costs by its own account.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CostCounters {
    /// Dollars a month for all of it.
    pub(crate) dollars: f64,
    /// Dollars per GB (10⁹ bytes) of keys and values in live tables and month.
    pub(crate) by_tables: f64,
    /// The least that this could be. None if that is not known.
    pub(crate) floor: Option<f64>,
    /// The most.
    pub(crate) ceiling: Option<f64>,
    /// Bytes of tables that are to move to another tier.
    pub(crate) moving_bytes: u64,
    /// Tables that were written anew on another tier.
    pub(crate) migrations: u64,
    /// Bytes of them that came to a faster tier.
    pub(crate) up_bytes: u64,
    /// Bytes of them that went to a slower tier.
    pub(crate) down_bytes: u64,
    /// Tables that compactions wrote on another tier than all that they were made of.
    pub(crate) by_compaction: u64,
    /// Bytes of the first tier that placement by hotness has filled with files. None without it.
    pub(crate) records_bytes: Option<u64>,
    /// Bytes of it that hold copies of tables. None without it.
    pub(crate) copies_bytes: Option<u64>,
    /// Why it costs more than the target, if it does.
    pub(crate) held_up_by: Option<String>,
}

impl CostCounters {
    fn since(&self, earlier: &Self) -> Self {
        let less = u64::saturating_sub;
        Self {
            migrations: less(self.migrations, earlier.migrations),
            up_bytes: less(self.up_bytes, earlier.up_bytes),
            down_bytes: less(self.down_bytes, earlier.down_bytes),
            by_compaction: less(self.by_compaction, earlier.by_compaction),
            ..self.clone()
        }
    }
}

impl Counters {
    /// What was counted since `earlier`. Present sizes stay as they are.
    pub(crate) fn since(&self, earlier: &Counters) -> Counters {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Counters {
            gets: less(self.gets, earlier.gets),
            gets_without_slow: less(self.gets_without_slow, earlier.gets_without_slow),
            gets_without_device: less(self.gets_without_device, earlier.gets_without_device),
            fd_bytes: self.fd_bytes,
            sd_bytes: self.sd_bytes,
            fd_read_bytes: less(self.fd_read_bytes, earlier.fd_read_bytes),
            fd_write_bytes: less(self.fd_write_bytes, earlier.fd_write_bytes),
            sd_read_bytes: less(self.sd_read_bytes, earlier.sd_read_bytes),
            sd_read_ops: less(self.sd_read_ops, earlier.sd_read_ops),
            sd_write_bytes: less(self.sd_write_bytes, earlier.sd_write_bytes),
            written_bytes: less(self.written_bytes, earlier.written_bytes),
            user_write_bytes: less(self.user_write_bytes, earlier.user_write_bytes),
            compaction_read_bytes: less(self.compaction_read_bytes, earlier.compaction_read_bytes),
            compaction_write_bytes: less(
                self.compaction_write_bytes,
                earlier.compaction_write_bytes,
            ),
            compactions: self.compactions.as_ref().map(|now| {
                compactions::since(now, earlier.compactions.as_deref().unwrap_or_default())
            }),
            stall_seconds: self
                .stall_seconds
                .zip(earlier.stall_seconds)
                .map(|(now, then)| (now - then).max(0.0)),
            stall_by_reason: self
                .stall_by_reason
                .as_ref()
                .zip(earlier.stall_by_reason.as_ref())
                .map(|(now, then)| reasons_since(now, then)),
            cpu: self
                .cpu
                .map(|now| now.since(&earlier.cpu.unwrap_or_default())),
            silent_threads: self.silent_threads,
            io: self
                .io
                .map(|now| now.since(&earlier.io.unwrap_or_default())),
            tiers: self.tiers.as_ref().map(|now| {
                let then = earlier.tiers.iter().flatten().copied();
                let then = then.chain(std::iter::repeat(TierCounters::default()));
                now.iter()
                    .zip(then)
                    .map(|(now, then)| now.since(&then))
                    .collect()
            }),
            record_cache: self
                .record_cache
                .zip(earlier.record_cache)
                .map(|(now, then)| now.since(&then)),
            hotness: self
                .hotness
                .zip(earlier.hotness)
                .map(|(now, then)| now.since(&then)),
            cost: self
                .cost
                .as_ref()
                .zip(earlier.cost.as_ref())
                .map(|(now, then)| now.since(then)),
        }
    }

    /// Share of point reads that touched no slow device.
    pub(crate) fn fd_hit_rate(&self) -> Option<f64> {
        ratio(self.gets_without_slow?, self.gets?)
    }

    /// Share of point reads that touched no device.
    pub(crate) fn dram_hit_rate(&self) -> Option<f64> {
        ratio(self.gets_without_device?, self.gets?)
    }

    /// Bytes read from and written to both disks.
    pub(crate) fn io_bytes(&self) -> Option<u64> {
        let fast = self.fd_read_bytes? + self.fd_write_bytes?;
        Some(fast + self.sd_read_bytes? + self.sd_write_bytes?)
    }

    /// Bytes written to all devices per byte handed in.
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        ratio(self.written_bytes?, self.user_write_bytes?)
    }
}

fn reasons_since(now: &Reasons, then: &Reasons) -> Reasons {
    let since = |(reason, now): (&&'static str, &f64)| {
        let then = then.get(reason).unwrap_or(&0.0);
        (*reason, (now - then).max(0.0))
    };
    now.iter().map(since).collect()
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Activity;

    /// A tier with this many bytes on it, of which this many were read.
    fn tier(bytes: u64, read_bytes: u64) -> TierCounters {
        let mut io = ByActivity::default();
        let read = Io {
            read_bytes,
            ..Io::default()
        };
        io.add(Activity::Read, read);
        TierCounters { bytes, io }
    }

    #[test]
    fn differences_and_rates() {
        let before = Counters {
            gets: Some(10),
            gets_without_slow: Some(5),
            fd_bytes: Some(100),
            stall_by_reason: Some([("l0 tables", 2.0)].into()),
            record_cache: Some(RecordCacheCounters {
                entries: 9,
                hits: 5,
                ..RecordCacheCounters::default()
            }),
            tiers: Some([tier(100, 5), tier(200, 6)].into()),
            hotness: Some(HotCounters {
                hot_set_bytes: 20,
                retained_bytes: 4,
                ralt_cpu_seconds: 1.0,
                ..HotCounters::default()
            }),
            ..Counters::default()
        };
        let after = Counters {
            gets: Some(110),
            gets_without_slow: Some(80),
            fd_bytes: Some(70),
            stall_seconds: Some(1.0),
            stall_by_reason: Some([("l0 tables", 2.5), ("memtables", 0.25)].into()),
            record_cache: Some(RecordCacheCounters {
                entries: 8,
                hits: 25,
                ..RecordCacheCounters::default()
            }),
            tiers: Some([tier(70, 7), tier(300, 16)].into()),
            hotness: Some(HotCounters {
                hot_set_bytes: 7,
                retained_bytes: 9,
                ralt_cpu_seconds: 2.5,
                ..HotCounters::default()
            }),
            ..Counters::default()
        };
        let run = after.since(&before);
        assert_eq!(run.fd_hit_rate(), Some(0.75));
        assert_eq!(run.dram_hit_rate(), None);
        assert_eq!(run.fd_bytes, Some(70));
        assert_eq!(run.stall_seconds, None);
        let by_reason = [("l0 tables", 0.5), ("memtables", 0.25)];
        assert_eq!(run.stall_by_reason, Some(by_reason.into()));
        let cache = run.record_cache.unwrap();
        assert_eq!((cache.entries, cache.hits), (8, 20));
        assert_eq!(run.tiers, Some([tier(70, 2), tier(300, 10)].into()));
        let cost = |migrations, moving_bytes| {
            Some(CostCounters {
                migrations,
                up_bytes: migrations * 2,
                down_bytes: migrations * 3,
                by_compaction: migrations * 4,
                moving_bytes,
                ..CostCounters::default()
            })
        };
        let [then, now] = [cost(5, 9), cost(7, 8)].map(|cost| Counters {
            cost,
            ..Counters::default()
        });
        assert_eq!(now.since(&then).cost, cost(2, 8));
        let hotness = run.hotness.unwrap();
        assert_eq!((hotness.hot_set_bytes, hotness.retained_bytes), (7, 5));
        assert_eq!(hotness.ralt_cpu_seconds, 1.5);
        assert_eq!(
            Counters {
                gets: Some(0),
                ..before
            }
            .fd_hit_rate(),
            None
        );
    }
}
