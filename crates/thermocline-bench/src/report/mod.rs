//! The results, as JSON for programs and as text for people.
//!
//! The names and meanings of the JSON fields are stable; later versions only add fields. What an
//! engine cannot tell is `null`.

mod hotness;
mod loading;
mod text;
mod warm_up;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::accounts::{ActivitySeries, ByActivity, ByDisk, Io};
use crate::compactions::LevelCompactions;
use crate::counters::{Counters, RecordCacheCounters, TierCounters};
use crate::host::Host;
use crate::plan::Plan;
use crate::probe::DiskProbe;
use crate::program;
use crate::run::{CostResult, LastTenth, Load, Measured, Second, StageResult, histogram};
use crate::settings::Settings;
use crate::usage::Usage;
use crate::workload::{Operation, WORKLOADS_DEFINITION};
pub use hotness::Hotness;
pub use loading::LoadingResult;
pub use warm_up::WarmUpResult;

/// Latencies of one kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationLatency {
    /// "read", "update", "insert", "scan", "read_modify_write", "delete".
    pub operation: &'static str,
    /// How many.
    pub count: u64,
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// 99.9th percentile in microseconds.
    pub p999_us: f64,
    /// Longest in microseconds.
    pub max_us: f64,
}

/// One tier of a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierResult {
    /// Bytes on it at the end.
    pub bytes: u64,
    /// I/O of the run on it, by what it was for. None after `--phase load`.
    pub io_by_activity: Option<ByActivity<Io>>,
}

/// Who made a loaded state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedBy {
    /// The engine. Several engines may share the state of one.
    pub engine: String,
    /// The commit of the program. None if it was not recorded.
    pub commit: Option<String>,
    /// Whether by its ingestion of sorted records.
    #[serde(default)]
    pub ingested: bool,
}

impl LoadedBy {
    /// This program, with the engine of `plan`.
    pub(crate) fn this(plan: &Plan) -> Self {
        Self {
            engine: plan.engine.name().to_owned(),
            commit: program::commit().map(str::to_owned),
            ingested: plan.ingest == Some(true),
        }
    }
}

/// The results of a benchmark. Run fields are `null` after `--phase load`. Load fields are `null`
/// if a state was used whose load ran under other conditions, or with a program of another commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this program.
    pub version: &'static str,
    /// The commit of the repository in which its sources lay when it was built, followed by
    /// "-modified" if files were modified. None outside of a repository.
    pub commit: Option<&'static str>,
    /// The command line of this process, without where the results go.
    pub command: String,
    /// The engine.
    pub engine: String,
    /// Which definition of workloads and distributions is meant. The number is raised when any of
    /// them comes to mean something else. Results from before it was recorded have 1.
    pub workloads: u32,
    /// The workload. "trace" for a replay.
    pub workload: String,
    /// The distribution. File and copies for a replay.
    pub distribution: String,
    /// Records loaded.
    pub records: u64,
    /// Key and value of one record.
    pub record_bytes: u64,
    /// Client threads.
    pub threads: usize,
    /// Operations per second that they offered together. None if each went on when it had its
    /// answer. Otherwise latencies are from when an operation was due.
    pub rate: Option<u64>,
    /// What the store aimed at, as in "cost:0.4@2m,cost:0.2@3m". None if at nothing.
    pub target: Option<String>,
    /// Seed of the run.
    pub seed: u64,
    /// Whether the loaded state was kept from an earlier benchmark.
    pub kept_state: bool,
    /// Who loaded it. Where records lie at first follows from that.
    pub loaded_by: LoadedBy,
    /// Records loaded per second, until the last was acknowledged.
    pub load_ops_s: Option<f64>,
    /// Time from the first record to the last acknowledgement.
    pub load_seconds: Option<f64>,
    /// Time from there until background work had ended.
    pub load_settle_seconds: Option<f64>,
    /// Bytes written to all devices while loading, per byte handed in.
    pub load_write_amplification: Option<f64>,
    /// What loading took.
    #[serde(flatten)]
    pub loading: LoadingResult,
    /// Duration of the unmeasured part before the run.
    pub warm_up_seconds: Option<f64>,
    /// What it did.
    #[serde(flatten)]
    pub warm_up: WarmUpResult,
    /// Operations of the run.
    pub ops: Option<u64>,
    /// Duration of the run.
    pub seconds: Option<f64>,
    /// Operations per second.
    pub ops_s: Option<f64>,
    /// Operations per second in the last tenth of the run.
    pub last_tenth_ops_s: Option<f64>,
    /// Median latency of all operations in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile in microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile in microseconds.
    pub p999_us: Option<f64>,
    /// Latencies by kind of operation.
    pub latencies: Vec<OperationLatency>,
    /// Share of the run's point reads answered without touching the slow disk.
    pub fd_hit_rate: Option<f64>,
    /// The same in the last tenth of the run, to the nearest second.
    pub last_tenth_fd_hit_rate: Option<f64>,
    /// The last tenth of the run.
    pub last_tenth: Option<LastTenth>,
    /// Time until the hit rate without the slow disk, over three seconds, first was 90 % of the
    /// last tenth's.
    pub seconds_to_90_percent: Option<f64>,
    /// Share of the run's point reads answered without touching any disk.
    pub dram_hit_rate: Option<f64>,
    /// Processor time of the whole process during the run.
    pub cpu_seconds: Option<f64>,
    /// The same per operation, in microseconds.
    pub cpu_us_per_op: Option<f64>,
    /// Most memory resident at any time, loading included.
    pub max_rss_bytes: u64,
    /// Bytes on the fast tier at the end.
    pub fd_bytes: Option<u64>,
    /// Bytes on slow tiers at the end.
    pub sd_bytes: Option<u64>,
    /// Bytes read from the fast disk during the run.
    pub fd_read_bytes: Option<u64>,
    /// Bytes written to the fast disk during the run.
    pub fd_write_bytes: Option<u64>,
    /// Bytes read from slow disks during the run.
    pub sd_read_bytes: Option<u64>,
    /// Read operations on slow disks during the run.
    pub sd_read_ops: Option<u64>,
    /// Bytes written to slow disks during the run.
    pub sd_write_bytes: Option<u64>,
    /// Each tier, the fastest first. None if the engine tells only what is above.
    pub tiers: Option<Vec<TierResult>>,
    /// Bytes that compactions read during the run.
    pub compaction_read_bytes: Option<u64>,
    /// Bytes that compactions wrote during the run.
    pub compaction_write_bytes: Option<u64>,
    /// The compactions of the run by their levels, if the engine tells.
    pub compactions: Option<Vec<LevelCompactions>>,
    /// Bytes written to all disks during the run, per byte handed in.
    pub write_amplification: Option<f64>,
    /// Bytes on all tiers at the end, per byte of the records that exist. If a trace deletes any,
    /// it is not known how many exist.
    pub space_amplification: Option<f64>,
    /// Time that writers were held back during the run, in seconds of all threads.
    pub stall_seconds: Option<f64>,
    /// The same by reason.
    pub stall_by_reason: Option<BTreeMap<&'static str, f64>>,
    /// The cache of single records. None if there is none.
    pub record_cache: Option<RecordCacheCounters>,
    /// Placement by hotness.
    #[serde(flatten)]
    pub hotness: Hotness,
    /// What the store cost in the last stage. Left out without prices.
    #[serde(flatten)]
    pub cost: Option<CostResult>,
    /// Answers that were missing, damaged, of another key, stale or out of order.
    pub wrong_answers: u64,
    /// The first of them in words.
    pub wrong_examples: Vec<String>,
    /// Settings of the engine.
    pub settings: Settings,
    /// Whether what the kernel cached for the engine was limited too. None if the kernel caches
    /// nothing for it, because its I/O is direct.
    pub memory_limited: Option<bool>,
    /// The machine.
    pub host: Host,
    /// What the slow disk can do, if something was expected of it. Of several, the first.
    pub slow_probe: Option<DiskProbe>,
    /// The same of further slow disks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slower_probes: Vec<Option<DiskProbe>>,
    /// Processor time of the run in seconds, by what it was spent on.
    pub cpu_by_activity: Option<ByActivity<f64>>,
    /// I/O of the run, by what it was for.
    pub io_by_activity: Option<ByDisk<ByActivity<Io>>>,
    /// The run, stage by stage of its distribution.
    pub stages: Vec<StageResult>,
    /// The run, second by second.
    pub series: Vec<Second>,
    /// What each entry of `series` took, by activity.
    pub activity_series: ActivitySeries,
    /// What failed after everything was measured. It is not a result, but the run's end.
    #[serde(skip)]
    pub failed_after: Option<String>,
}

impl Report {
    /// Takes note of what fails once everything is measured.
    pub(crate) fn note_failure(&mut self, done: anyhow::Result<()>) {
        if let Err(error) = done {
            self.failed_after.get_or_insert(format!("{error:#}"));
        }
    }

    pub(crate) fn new(plan: &Plan, kept_state: bool, load: Option<Load>) -> anyhow::Result<Self> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: program::commit(),
            command: program::command(),
            engine: plan.engine.name().to_owned(),
            workloads: WORKLOADS_DEFINITION,
            workload: plan.source.workload_name(),
            distribution: plan.source.distribution_name(),
            records: plan.records,
            record_bytes: plan.record_bytes(),
            threads: plan.threads,
            rate: plan.rate,
            target: plan.targets.as_ref().map(ToString::to_string),
            seed: plan.seed,
            kept_state,
            loaded_by: LoadedBy::this(plan),
            load_ops_s: load.map(|load| load.ops_s),
            load_seconds: load.map(|load| load.seconds),
            load_settle_seconds: load.map(|load| load.settle_seconds),
            load_write_amplification: load.and_then(|load| load.write_amplification),
            loading: LoadingResult::default(),
            warm_up_seconds: None,
            warm_up: WarmUpResult::default(),
            ops: None,
            seconds: None,
            ops_s: None,
            last_tenth_ops_s: None,
            p50_us: None,
            p99_us: None,
            p999_us: None,
            latencies: Vec::new(),
            fd_hit_rate: None,
            last_tenth_fd_hit_rate: None,
            last_tenth: None,
            seconds_to_90_percent: None,
            dram_hit_rate: None,
            cpu_seconds: None,
            cpu_us_per_op: None,
            max_rss_bytes: Usage::now()?.max_rss_bytes,
            fd_bytes: None,
            sd_bytes: None,
            fd_read_bytes: None,
            fd_write_bytes: None,
            sd_read_bytes: None,
            sd_read_ops: None,
            sd_write_bytes: None,
            tiers: None,
            compaction_read_bytes: None,
            compaction_write_bytes: None,
            compactions: None,
            write_amplification: None,
            space_amplification: None,
            stall_seconds: None,
            stall_by_reason: None,
            record_cache: None,
            hotness: Hotness::default(),
            cost: None,
            wrong_answers: 0,
            wrong_examples: Vec::new(),
            settings: plan.settings.clone(),
            memory_limited: plan.engine.uses_page_cache().then_some(plan.limits_memory),
            host: Host::new(),
            slow_probe: None,
            slower_probes: Vec::new(),
            cpu_by_activity: None,
            io_by_activity: None,
            stages: Vec::new(),
            series: Vec::new(),
            activity_series: ActivitySeries::default(),
            failed_after: None,
        })
    }

    /// Takes over the sizes of a store that holds `records` records, if that is known.
    pub(crate) fn sizes(&mut self, counters: &Counters, records: Option<u64>) {
        self.fd_bytes = counters.fd_bytes;
        self.sd_bytes = counters.sd_bytes;
        let size = |tier: &TierCounters| TierResult {
            bytes: tier.bytes,
            io_by_activity: None,
        };
        self.tiers = counters
            .tiers
            .as_ref()
            .map(|all| all.iter().map(size).collect());
        let live = records.map(|records| records * self.record_bytes);
        let sizes = counters.fd_bytes.zip(counters.sd_bytes).zip(live);
        self.space_amplification =
            sizes.map(|((fast, slow), live)| (fast + slow) as f64 / live as f64);
    }

    /// Takes over what slow disks can do.
    pub(crate) fn probes(&mut self, probes: Vec<Option<DiskProbe>>) {
        let mut probes = probes.into_iter();
        self.slow_probe = probes.next().flatten();
        self.slower_probes = probes.collect();
    }

    /// Takes over the results of a run.
    pub(crate) fn run(&mut self, measured: Measured) -> anyhow::Result<()> {
        let mut all = histogram();
        for part in &measured.latencies {
            all.add(part)?;
        }
        let counters = &measured.counters;
        self.sizes(counters, measured.records);
        let counted = counters.tiers.iter().flatten();
        for (tier, counted) in self.tiers.iter_mut().flatten().zip(counted) {
            tier.io_by_activity = Some(counted.io);
        }
        self.warm_up_seconds = measured.warm_up.as_ref().map(|warm_up| warm_up.seconds);
        self.warm_up = WarmUpResult::new(measured.warm_up);
        self.ops = Some(measured.ops);
        self.seconds = Some(measured.seconds);
        self.ops_s = Some(measured.ops as f64 / measured.seconds.max(1e-9));
        self.last_tenth_ops_s = Some(measured.last_tenth.ops_s);
        self.p50_us = Some(micros(&all, 0.5));
        self.p99_us = Some(micros(&all, 0.99));
        self.p999_us = Some(micros(&all, 0.999));
        self.latencies = latencies(&measured.latencies);
        self.fd_hit_rate = counters.fd_hit_rate();
        self.last_tenth_fd_hit_rate = measured.last_tenth.fd_hit_rate;
        self.last_tenth = Some(measured.last_tenth);
        self.seconds_to_90_percent = measured.seconds_to_90_percent;
        self.dram_hit_rate = counters.dram_hit_rate();
        self.cpu_seconds = Some(measured.cpu_seconds);
        self.cpu_us_per_op = Some(measured.cpu_seconds * 1e6 / measured.ops.max(1) as f64);
        self.max_rss_bytes = Usage::now()?.max_rss_bytes;
        self.fd_read_bytes = counters.fd_read_bytes;
        self.fd_write_bytes = counters.fd_write_bytes;
        self.sd_read_bytes = counters.sd_read_bytes;
        self.sd_read_ops = counters.sd_read_ops;
        self.sd_write_bytes = counters.sd_write_bytes;
        self.compaction_read_bytes = counters.compaction_read_bytes;
        self.compaction_write_bytes = counters.compaction_write_bytes;
        self.compactions.clone_from(&counters.compactions);
        self.record_cache = counters.record_cache;
        self.hotness = Hotness::new(counters, measured.cpu_seconds);
        self.write_amplification = counters.write_amplification();
        self.stall_seconds = counters.stall_seconds;
        self.stall_by_reason.clone_from(&counters.stall_by_reason);
        self.cost = measured.cost;
        self.wrong_answers = measured.wrongs.count();
        self.wrong_examples = measured.wrongs.examples();
        self.probes(measured.slow_probes);
        self.cpu_by_activity = Some(measured.spent.cpu);
        self.io_by_activity = measured.spent.io;
        self.activity_series = ActivitySeries::new(&measured.spent_by_second);
        self.stages = measured.stages;
        self.series = measured.series;
        Ok(())
    }
}

/// Latencies of each kind of operation that occurred, in the order of [`Operation::ALL`].
pub(crate) fn latencies(of: &[Histogram<u64>]) -> Vec<OperationLatency> {
    Operation::ALL
        .into_iter()
        .zip(of)
        .filter(|(_, histogram)| !histogram.is_empty())
        .map(|(operation, histogram)| OperationLatency {
            operation: operation.name(),
            count: histogram.len(),
            p50_us: micros(histogram, 0.5),
            p99_us: micros(histogram, 0.99),
            p999_us: micros(histogram, 0.999),
            max_us: micros(histogram, 1.0),
        })
        .collect()
}

/// A quantile of nanoseconds, in microseconds.
pub(crate) fn micros(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1000.0
}
