//! One run as it was written to JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::prices::Prices;
use crate::report::LoadedBy;
use crate::workload;

/// The parts of a benchmark's JSON that are shown or compared.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Run {
    /// The commit that the program was built from, if it was recorded.
    pub(crate) commit: Option<String>,
    /// The command line that measured it, if it was recorded.
    pub(crate) command: Option<String>,
    /// The engine.
    pub(crate) engine: String,
    /// The definition by which workload and distribution are meant.
    #[serde(default = "workload::unrecorded")]
    pub(crate) workloads: u32,
    /// The workload. "trace" for a replay.
    pub(crate) workload: String,
    /// The distribution, or the trace.
    pub(crate) distribution: String,
    /// Who loaded the state that it ran on, if that was recorded. Where records lay at first
    /// follows from that.
    pub(crate) loaded_by: Option<LoadedBy>,
    /// Records loaded.
    pub(crate) records: u64,
    /// Key and value of one record.
    pub(crate) record_bytes: u64,
    /// Client threads.
    pub(crate) threads: u64,
    /// Operations per second that these offered, if they did not wait for answers.
    pub(crate) rate: Option<u64>,
    /// What the store aimed at, if at anything.
    pub(crate) target: Option<String>,
    /// Duration of the run.
    pub(crate) seconds: Option<f64>,
    /// Duration of the warm-up.
    pub(crate) warm_up_seconds: Option<f64>,
    /// Operations of the warm-up, if it was recorded what the warm-up did.
    pub(crate) warm_up_ops: Option<u64>,
    /// Bytes that compactions read in it.
    pub(crate) warm_up_compaction_read_bytes: Option<u64>,
    /// Bytes that compactions wrote in it.
    pub(crate) warm_up_compaction_write_bytes: Option<u64>,
    /// Bytes promoted as tables of L0 in it.
    pub(crate) warm_up_promoted_flush_bytes: Option<u64>,
    /// Bytes promoted by compactions in it.
    pub(crate) warm_up_promoted_compaction_bytes: Option<u64>,
    /// Bytes that compactions kept on the fast tier in it.
    pub(crate) warm_up_retained_bytes: Option<u64>,
    /// Operations of the run.
    pub(crate) ops: Option<u64>,
    /// Operations per second.
    pub(crate) ops_s: Option<f64>,
    /// Records loaded per second.
    pub(crate) load_ops_s: Option<f64>,
    /// The last tenth of the run.
    pub(crate) last_tenth: Option<LastTenth>,
    /// Latencies by kind of operation.
    #[serde(default)]
    pub(crate) latencies: Vec<Latency>,
    /// Share of point reads without the slow disk.
    pub(crate) fd_hit_rate: Option<f64>,
    /// Share of point reads without any disk.
    pub(crate) dram_hit_rate: Option<f64>,
    /// Processor time of an operation in microseconds.
    pub(crate) cpu_us_per_op: Option<f64>,
    /// Processor time of the run.
    pub(crate) cpu_seconds: Option<f64>,
    /// Most memory resident.
    pub(crate) max_rss_bytes: Option<u64>,
    /// Read operations on the slow disk.
    pub(crate) sd_read_ops: Option<u64>,
    /// Bytes read from the slow disk.
    pub(crate) sd_read_bytes: Option<u64>,
    /// Bytes that compactions read.
    pub(crate) compaction_read_bytes: Option<u64>,
    /// Bytes that compactions wrote.
    pub(crate) compaction_write_bytes: Option<u64>,
    /// Bytes promoted as tables of L0.
    pub(crate) promoted_flush_bytes: Option<u64>,
    /// Bytes promoted by compactions.
    pub(crate) promoted_compaction_bytes: Option<u64>,
    /// Bytes that compactions kept on the fast tier.
    pub(crate) retained_bytes: Option<u64>,
    /// Bytes written to disks per byte handed in.
    pub(crate) write_amplification: Option<f64>,
    /// Processor time of the run by activity, in seconds.
    pub(crate) cpu_by_activity: Option<BTreeMap<String, f64>>,
    /// What was read from and written to each tier, by activity.
    pub(crate) io_by_activity: Option<BTreeMap<String, BTreeMap<String, Io>>>,
    /// The same by time.
    pub(crate) activity_series: Option<ActivitySeries>,
    /// Answers that were wrong.
    #[serde(default)]
    pub(crate) wrong_answers: u64,
    /// Whether an engine that uses the page cache had its memory limited. None for the other
    /// engines.
    #[serde(default)]
    pub(crate) memory_limited: Option<bool>,
    /// Settings of the engine.
    pub(crate) settings: Settings,
    /// The machine, as far as it was recorded.
    #[serde(default)]
    pub(crate) host: Value,
    /// What the slow disk could do right before the run, if it was measured.
    pub(crate) slow_probe: Option<Value>,
    /// Stages of the distribution, or of the target.
    #[serde(default)]
    pub(crate) stages: Vec<Stage>,
    /// The run, second by second.
    #[serde(default)]
    pub(crate) series: Vec<Second>,
    /// The warm-up, second by second since it began.
    #[serde(default)]
    pub(crate) warm_up_series: Vec<Second>,
    /// What its entries took.
    pub(crate) warm_up_activity_series: Option<ActivitySeries>,
}

/// The last tenth of a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct LastTenth {
    /// Operations per second.
    pub(crate) ops_s: f64,
    /// Share of point reads without the slow disk.
    pub(crate) fd_hit_rate: Option<f64>,
    /// Latencies by kind of operation, if they were recorded apart.
    #[serde(default)]
    pub(crate) latencies: Vec<Latency>,
}

/// Latencies of one kind of operation in microseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Latency {
    /// "read", "update" and so on.
    pub(crate) operation: String,
    /// Median.
    pub(crate) p50_us: f64,
    /// 99th percentile.
    pub(crate) p99_us: f64,
    /// 99.9th percentile.
    pub(crate) p999_us: f64,
}

/// Reads and writes of one activity on one tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Io {
    /// Read operations.
    pub(crate) read_ops: u64,
    /// Bytes read.
    pub(crate) read_bytes: u64,
    /// Write operations.
    pub(crate) write_ops: u64,
    /// Bytes written.
    pub(crate) write_bytes: u64,
}

/// What was spent in each entry of the series. Arrays of zeros are left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct ActivitySeries {
    /// By tier, activity and kind ("read_bytes" and so on).
    #[serde(default)]
    pub(crate) io: BTreeMap<String, BTreeMap<String, BTreeMap<String, Vec<f64>>>>,
}

/// Settings of one store. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Settings {
    /// What the store may occupy on the fast tier.
    pub(crate) fast_capacity: u64,
    /// All memory.
    pub(crate) memory: u64,
    /// Block cache.
    pub(crate) cache: u64,
    /// How much of that is a cache of single records.
    #[serde(default)]
    pub(crate) record_cache: u64,
    /// One memtable.
    pub(crate) memtable: u64,
    /// Data blocks on the fast tier.
    pub(crate) block_size_fast: u64,
    /// Data blocks on the slow tier.
    pub(crate) block_size_slow: u64,
    /// What acknowledged writes survive.
    pub(crate) durability: String,
    /// Compression on the slow tier.
    pub(crate) compression: String,
    /// Emulation of a slower device.
    #[serde(default)]
    pub(crate) slow_device: SlowDevice,
    /// What the store may occupy on the slow tier. None without a limit.
    pub(crate) slow_capacity: Option<u64>,
    /// Further tiers, each slower than the one before.
    #[serde(default)]
    pub(crate) slower: Vec<SlowTier>,
    /// How many of RocksDB's levels lie on the fast tier. None if its capacity decides.
    pub(crate) rocksdb_fast_levels: Option<u32>,
    /// What each tier costs. None if nobody said.
    pub(crate) prices: Option<Prices>,
    /// Techniques that are turned off, by the name of their flag: `true`, or a choice or a number
    /// other than the usual one.
    #[serde(default)]
    pub(crate) experiments: BTreeMap<String, Value>,
}

impl Settings {
    /// Whether the store was given the same, whatever technique was turned off. A build that can
    /// turn techniques off lists all of them in each result; one that cannot lists none.
    pub(crate) fn are_alike(&self, other: &Self) -> bool {
        let given = |settings: &Self| Self {
            experiments: BTreeMap::new(),
            ..settings.clone()
        };
        given(self) == given(other)
    }
}

/// What an emulated slow device can do. `None` means no limit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct SlowDevice {
    /// Operations per second.
    pub(crate) iops: Option<u64>,
    /// Bytes per second.
    pub(crate) bandwidth: Option<u64>,
    /// Added to every operation.
    pub(crate) latency: Option<Duration>,
}

/// A slow tier beyond the first.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct SlowTier {
    /// What the store may occupy there. None without a limit.
    pub(crate) capacity: Option<u64>,
    /// Emulation of a slower device.
    pub(crate) device: SlowDevice,
}

/// One stage of a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Stage {
    /// What it touched.
    pub(crate) distribution: String,
    /// What the store aimed at, if at anything.
    pub(crate) target: Option<String>,
    /// When it began.
    pub(crate) begin_seconds: f64,
    /// Its length.
    pub(crate) seconds: f64,
    /// Operations per second.
    pub(crate) ops_s: f64,
    /// Share of point reads without the slow disk in its last tenth.
    pub(crate) last_tenth_fd_hit_rate: Option<f64>,
    /// Share of point reads without the slow disk.
    pub(crate) fd_hit_rate: Option<f64>,
    /// Mean latency of its point reads in microseconds.
    pub(crate) read_mean_us: Option<f64>,
    /// Their median.
    pub(crate) read_p50_us: Option<f64>,
    /// Their 99th percentile.
    pub(crate) read_p99_us: Option<f64>,
    /// Dollars per GB of records and month once settled, on average.
    pub(crate) bill_mean: Option<f64>,
    /// At most.
    pub(crate) bill_max: Option<f64>,
    /// Dollars per GB of keys and values in live tables and month, on average.
    pub(crate) bill_by_tables: Option<f64>,
    /// What that was to be at most.
    pub(crate) target_cost: Option<f64>,
    /// Time until it was.
    pub(crate) seconds_to_target: Option<f64>,
    /// Time above it after that.
    pub(crate) seconds_above_target: Option<f64>,
    /// Bytes of tables that came to a faster tier.
    pub(crate) tables_up_bytes: Option<u64>,
    /// Bytes of tables that went to a slower tier.
    pub(crate) tables_down_bytes: Option<u64>,
    /// Time until the hit rate was steady.
    pub(crate) seconds_to_steady: Option<f64>,
    /// Hot bytes at its end.
    pub(crate) hot_set_bytes: Option<u64>,
    /// What they were limited to at its end.
    pub(crate) hot_set_limit_bytes: Option<u64>,
}

/// One second of a run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Second {
    /// Time since the run began, at its end.
    pub(crate) second: f64,
    /// Operations per second.
    pub(crate) ops_s: f64,
    /// Share of point reads without the slow disk.
    pub(crate) fd_hit_rate: Option<f64>,
    /// Hot bytes at its end.
    pub(crate) hot_set_bytes: Option<u64>,
    /// What they were limited to at its end.
    pub(crate) hot_set_limit_bytes: Option<u64>,
    /// What the store cost at its end, if there are prices.
    pub(crate) cost: Option<CostSecond>,
}

/// What a store cost at a moment, in dollars per GB and month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(crate) struct CostSecond {
    /// Of records.
    pub(crate) bill: Option<f64>,
    /// Of keys and values in live tables.
    pub(crate) bill_by_tables: Option<f64>,
}

fn of_reads(latencies: &[Latency]) -> Option<&Latency> {
    let reads = latencies.iter().find(|l| l.operation == "read");
    reads.or(latencies.first())
}

impl Run {
    /// Reads the run in the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not what `bench --json` writes.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{}: not the JSON of a `thermocline bench`", path.display()))
    }

    /// Operations per second at the end of the run, when everything has found its place.
    pub(crate) fn final_ops_s(&self) -> Option<f64> {
        self.last_tenth.as_ref().map(|last| last.ops_s)
    }

    /// Share of point reads without the slow disk at the end of the run.
    pub(crate) fn final_hit_rate(&self) -> Option<f64> {
        self.last_tenth.as_ref()?.fd_hit_rate
    }

    /// Latencies of reads, or of the first kind of operation if nothing is read.
    pub(crate) fn of_reads(&self) -> Option<&Latency> {
        of_reads(&self.latencies)
    }

    /// The same in the last tenth of the run.
    pub(crate) fn final_of_reads(&self) -> Option<&Latency> {
        of_reads(&self.last_tenth.as_ref()?.latencies)
    }

    /// Whether its engine was held to the memory of its settings. RocksDB is not given that memory:
    /// its filters and indexes come on top of the caches and memtables that all engines have.
    pub(crate) fn is_held_to_memory(&self) -> bool {
        self.memory_limited != Some(false) && !self.engine.starts_with("rocksdb")
    }

    /// Whether everything that it did since its store was opened is recorded. Runs from before
    /// warm-ups were recorded only have their own part.
    pub(crate) fn is_recorded_whole(&self) -> bool {
        self.warm_up_seconds.is_none() || self.warm_up_ops.is_some()
    }

    /// The techniques that were turned off or set, in words. Empty for a usual run.
    pub(crate) fn without(&self) -> String {
        let mut off = Vec::new();
        for (name, value) in &self.settings.experiments {
            match value {
                Value::Bool(true) => off.push(name.replace('_', " ")),
                Value::String(choice) if name == "scoring" && choice != "smoothing" => {
                    off.push(format!("{choice} scoring"));
                }
                Value::Number(share) if name == "hot_set" => {
                    off.push(format!("a hot set of {share}"));
                }
                Value::Number(part) if name == "resistance" => {
                    off.push(format!("a resistance of {part}"));
                }
                _ => {}
            }
        }
        off.join(", ")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// A run of `engine` at this many operations a second, ten seconds long.
    pub(crate) fn value(engine: &str, distribution: &str, ops_s: f64) -> Value {
        let series: Vec<Value> = (1..=10)
            .map(|second| {
                json!({"second": f64::from(second), "ops_s": ops_s, "fd_hit_rate": 0.9,
                       "hot_set_bytes": 1000 * second, "hot_set_limit_bytes": 20_000})
            })
            .collect();
        json!({
            "engine": engine, "workload": "ro", "distribution": distribution,
            "records": 1000, "record_bytes": 1024, "threads": 4,
            "seconds": 10.0, "ops": (ops_s * 10.0) as u64, "ops_s": ops_s,
            "last_tenth": {"ops_s": ops_s, "fd_hit_rate": 0.95},
            "latencies": [{"operation": "read", "p50_us": 10.0, "p99_us": 90.0, "p999_us": 120.0}],
            "fd_hit_rate": 0.9, "dram_hit_rate": 0.1, "cpu_us_per_op": 12.5, "cpu_seconds": 3.0,
            "max_rss_bytes": 1_000_000, "sd_read_ops": 10, "wrong_answers": 0,
            "settings": {"fast_capacity": 1 << 20, "memory": 1 << 24, "cache": 1 << 20,
                "memtable": 1 << 16, "block_size_fast": 4096, "block_size_slow": 16384,
                "durability": "buffered", "compression": "none",
                "slow_device": {"iops": 5000, "bandwidth": null, "latency": null}},
            "host": {"cores": 2, "os": "linux", "arch": "x86_64"},
            "stages": [{"distribution": distribution, "begin_seconds": 0.0, "seconds": 10.0,
                "ops_s": ops_s, "last_tenth_fd_hit_rate": 0.95, "seconds_to_steady": 1.0}],
            "series": series,
        })
    }

    #[test]
    fn what_is_written_is_read() {
        let run: Run = serde_json::from_value(value("hotrap", "uniform", 500.0)).unwrap();
        assert_eq!(run.final_ops_s(), Some(500.0));
        assert_eq!(run.final_hit_rate(), Some(0.95));
        assert_eq!(run.settings.slow_device.iops, Some(5000));
        assert_eq!(run.series.len(), 10);
        assert_eq!(run.without(), "");
    }

    #[test]
    fn techniques_turned_off_are_named() {
        let mut value = value("hotrap", "uniform", 500.0);
        value["settings"]["experiments"] = json!({"no_retention": true, "no_auto_tuning": false, "scoring": "lru", "hot_set": null});
        let run: Run = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(run.without(), "no retention, lru scoring");
        value["settings"]["experiments"]["hot_set"] = json!(0.55);
        let run: Run = serde_json::from_value(value).unwrap();
        assert_eq!(
            run.without(),
            "a hot set of 0.55, no retention, lru scoring"
        );
    }

    #[test]
    fn a_run_with_fewer_fields_is_read_and_one_without_an_engine_refused() {
        let mut old = value("hotrap", "uniform", 500.0);
        let fields = old.as_object_mut().unwrap();
        for field in [
            "series",
            "stages",
            "latencies",
            "last_tenth",
            "host",
            "cpu_seconds",
        ] {
            fields.remove(field);
        }
        let run: Run = serde_json::from_value(old).unwrap();
        assert_eq!(run.final_ops_s(), None);
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.json");
        fs::write(&path, "{\"ops_s\": 1}").unwrap();
        let error = format!("{:#}", Run::read(&path).unwrap_err());
        assert!(
            error.contains("x.json") && error.contains("engine"),
            "{error}"
        );
    }
}
