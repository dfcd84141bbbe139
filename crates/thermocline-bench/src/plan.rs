//! What follows from the flags of `thermocline bench`: a run with everything decided.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::args::{BenchArgs, DEFAULT_DATA_SIZE, DEFAULT_DURATION, Phase};
use crate::distribution::{Cluster, Shape, Stages};
use crate::engine::{self, EngineKind};
use crate::keys::{KEY_LEN, KeySpace};
use crate::probe::Expected;
use crate::record_sizes::{LEAST_RECORD, MOST_RECORD, ValueLens};
use crate::settings::{Settings, SlowTier, TWO_DIRECTORIES};
use crate::targets::Targets;
use crate::trace::Trace;
use crate::warm_up::WarmUp;
use crate::workload::Workload;

/// What operations come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Generated {
        workload: Workload,
        stages: Stages,
    },
    Trace {
        trace: Trace,
        copies: u64,
        name: String,
    },
}

impl Source {
    pub(crate) fn workload_name(&self) -> String {
        match self {
            Source::Generated { workload, .. } => workload.to_string(),
            Source::Trace { .. } => "trace".to_owned(),
        }
    }

    pub(crate) fn distribution_name(&self) -> String {
        match self {
            Source::Generated { stages, .. } => stages.to_string(),
            Source::Trace { copies, name, .. } => format!("{name} x{copies}"),
        }
    }

    /// Whether records are deleted.
    pub(crate) fn deletes(&self) -> bool {
        match self {
            Source::Generated { .. } => false,
            Source::Trace { trace, .. } => trace.deletes_any(),
        }
    }

    pub(crate) fn key_space(&self) -> KeySpace {
        match self {
            Source::Generated { .. } => KeySpace::Ycsb,
            Source::Trace { trace, .. } => trace.key_space(),
        }
    }
}

/// When a run ends: when the first of these is reached. At least one is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) ops: Option<u64>,
    pub(crate) duration: Option<Duration>,
}

/// A benchmark with everything decided.
pub(crate) struct Plan {
    pub(crate) engine: &'static dyn EngineKind,
    pub(crate) source: Source,
    pub(crate) records: u64,
    pub(crate) value_lens: ValueLens,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
    pub(crate) scan_length: usize,
    pub(crate) warm_up: Option<WarmUp>,
    pub(crate) end: End,
    /// Operations a second that are offered, warming up too.
    pub(crate) rate: Option<u64>,
    pub(crate) settings: Settings,
    /// What the store is to aim at. The first is in force before the run.
    pub(crate) targets: Option<Targets>,
    /// Whether an engine that uses the page cache runs in a memory cgroup.
    pub(crate) limits_memory: bool,
    /// Whether the store is filled by the engine's ingestion. None if it is not filled, but found.
    pub(crate) ingest: Option<bool>,
    /// What each slow disk should be able to do.
    pub(crate) expected: Vec<Option<Expected>>,
}

impl Plan {
    /// Whether a command between warm-up and run may change what the disks can do.
    pub(crate) fn commands_after_warm_up(&self) -> bool {
        self.warm_up.as_ref().is_some_and(WarmUp::has_command)
    }

    /// Key and value of an average record.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.value_lens.record_bytes()
    }
}

impl BenchArgs {
    /// Checks the flags against each other and fills in the defaults.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let engine = engine::find(&self.engine)?;
        self.check_directories()?;
        let record_size = match (self.record_size, self.cluster()?) {
            (Some(size), _) => size,
            (None, Some(cluster)) => cluster.record_size.max(LEAST_RECORD),
            (None, None) => 1 << 10,
        };
        ensure!(
            (LEAST_RECORD..=MOST_RECORD).contains(&record_size),
            "--record-size {record_size}: must be {LEAST_RECORD} bytes to 16 MiB"
        );
        ensure!(self.scan_length > 0, "--scan-length: must be at least 1");
        ensure!(self.ops != Some(0), "--ops: must be at least 1");
        ensure!(
            self.duration.is_none_or(|duration| !duration.is_zero()),
            "--duration: must be longer than nothing"
        );
        ensure!(self.rate != Some(0), "--rate: must be at least 1");
        let source = self.source()?;
        let records = match &source {
            Source::Generated { .. } => self.data_size.unwrap_or(DEFAULT_DATA_SIZE) / record_size,
            Source::Trace { trace, copies, .. } => trace.distinct() * copies,
        };
        ensure!(records > 0, "--data-size: must hold at least one record");
        let threads = match self.threads {
            Some(0) => bail!("--threads: must be at least 1"),
            Some(threads) => threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let usual = record_size as usize - KEY_LEN;
        let value_lens = match &source {
            Source::Generated { .. } => ValueLens::all(usual),
            Source::Trace { trace, .. } => trace.value_lens(usual),
        };
        let settings = self.settings(engine, records * value_lens.record_bytes())?;
        engine.check(&settings)?;
        ensure!(
            !self.ingest || self.phase != Phase::Run,
            "--ingest: --phase run loads nothing; it takes a kept state however it was loaded"
        );
        if self.ingest {
            engine.check_ingestion()?;
        }
        ensure!(
            settings.rocksdb_fast_levels.is_none() || engine.name() == "rocksdb",
            "--rocksdb-fast-levels: is for engine rocksdb only"
        );
        #[cfg(feature = "experiments")]
        ensure!(
            engine.name() == "hotrap" && !self.experiments.has_of_tables()
                || self.experiments == Default::default()
                || engine.name() == "tables" && self.experiments.are_of_tables(),
            "flags of experiments are for engine hotrap only, or for tables if they say so"
        );
        let shapes = match &source {
            Source::Generated { stages, .. } => stages.stages().len(),
            Source::Trace { .. } => 1,
        };
        let targets = self
            .targets
            .plan(engine, settings.prices.as_ref(), shapes)?;
        let warm_up = self.warm_up.plan(settings.emulates())?;
        ensure!(
            warm_up.is_none() || self.phase != Phase::Load,
            "--warm-up: --phase load runs nothing"
        );
        Ok(Plan {
            engine,
            warm_up,
            end: self.end(&source)?,
            rate: self.rate,
            source,
            records,
            value_lens,
            threads,
            seed: self.seed,
            scan_length: self.scan_length,
            expected: self.expect.plan(&self.slow, &settings)?,
            settings,
            targets,
            limits_memory: !self.no_memory_limit,
            ingest: (self.phase != Phase::Run).then_some(self.ingest),
        })
    }

    fn check_directories(&self) -> Result<()> {
        ensure!(
            self.fast.is_none() == self.slow.is_empty(),
            "--fast and --slow: name both directories, or neither for temporary ones"
        );
        let mut dirs: Vec<_> = self.fast.iter().chain(&self.slow).collect();
        dirs.sort_unstable();
        dirs.dedup();
        ensure!(
            self.fast.is_none() || dirs.len() == 1 + self.slow.len(),
            "--fast and --slow: {TWO_DIRECTORIES}"
        );
        ensure!(
            !self.keep || self.fast.is_some(),
            "--keep: name the directories with --fast and --slow; temporary ones are removed"
        );
        ensure!(
            self.phase != Phase::Run || self.keep,
            "--phase run: needs --keep and the directories of an earlier --phase load --keep"
        );
        Ok(())
    }

    /// The cluster that the run is fitted to, if there is one.
    fn cluster(&self) -> Result<Option<&Cluster>> {
        let stages = self.distribution.as_ref().map_or(&[][..], Stages::stages);
        let mut clusters = stages.iter().filter_map(|stage| match &stage.shape {
            Shape::Cluster(cluster) => Some(&**cluster),
            _ => None,
        });
        let Some(cluster) = clusters.next() else {
            return Ok(None);
        };
        ensure!(
            stages.len() == 1,
            "--distribution: cluster:{} has sizes and a mix of its own, so it cannot be one of several stages",
            cluster.name
        );
        ensure!(
            self.workload.is_none(),
            "--workload: cluster:{} has a mix of its own; leave out --workload",
            cluster.name
        );
        Ok(Some(cluster))
    }

    /// Where operations come from. Reads the trace, if there is one.
    pub(crate) fn source(&self) -> Result<Source> {
        let Some(path) = &self.trace else {
            let workload = match self.cluster()? {
                Some(cluster) => Workload::fitted(cluster),
                None => self.workload.unwrap_or(Workload::READ_ONLY),
            };
            let stages = self.distribution.clone();
            return Ok(Source::Generated {
                workload,
                stages: stages.unwrap_or_else(|| workload.default_distribution()),
            });
        };
        // Eight digits of the key are for the copy.
        ensure!(
            (1..100_000_000).contains(&self.trace_copies),
            "--trace-copies: must be 1 to 99999999"
        );
        let name = path.file_name().context("--trace: names no file")?;
        Ok(Source::Trace {
            trace: Trace::read(path, self.format)?,
            copies: self.trace_copies,
            name: name.to_string_lossy().into_owned(),
        })
    }

    fn end(&self, source: &Source) -> Result<End> {
        let (whole, timed) = match source {
            Source::Generated { stages, .. } => (None, stages.duration()),
            Source::Trace { trace, copies, .. } => (Some(trace.accesses() * copies), None),
        };
        ensure!(
            timed.is_none() || (self.ops.is_none() && self.duration.is_none()),
            "--distribution: its stages say how long the run is; leave out --ops and --duration"
        );
        // Whoever wants a trace to begin again says so with `--ops`.
        let durations = [self.duration.or(timed), self.targets.duration()];
        let duration = durations.into_iter().flatten().min();
        let (ops, duration) = match (self.ops.or(whole), duration) {
            (None, None) => (None, Some(DEFAULT_DURATION)),
            given => given,
        };
        Ok(End { ops, duration })
    }

    /// Every slow tier: its capacity, and the emulation of its device.
    fn slow_tiers(&self) -> Result<Vec<SlowTier>> {
        let tiers = self.slow.len().max(1);
        let given = self.slow_capacity.len();
        ensure!(
            given <= tiers,
            "--slow-capacity: {given} values for {tiers} slow tiers; give one for each --slow at most"
        );
        let capacities = self.slow_capacity.iter().copied();
        let capacities = capacities.chain(std::iter::repeat(0));
        let devices = self.slow_device.devices(tiers)?.into_iter();
        Ok(devices
            .zip(capacities)
            .map(|(device, capacity)| SlowTier {
                capacity: Some(capacity).filter(|bytes| *bytes > 0),
                device,
            })
            .collect())
    }

    fn settings(&self, engine: &dyn EngineKind, data: u64) -> Result<Settings> {
        let mut slow = self.slow_tiers()?.into_iter();
        let first = slow.next().unwrap_or_default();
        let fast_capacity = self.fast_capacity.unwrap_or((data / 4).max(2 << 20));
        let memory = self.memory.unwrap_or((data / 4).max(16 << 20));
        let cache = self.cache.unwrap_or(memory / 8);
        Ok(Settings {
            fast_capacity,
            memory,
            cache,
            record_cache: self
                .record_cache
                .unwrap_or_else(|| engine.usual_record_cache(cache)),
            memtable: self
                .memtable
                .unwrap_or_else(|| Settings::default_memtable(memory, fast_capacity)),
            block_size_fast: self.block_size_fast,
            block_size_slow: self.block_size_slow,
            compression: self.compression,
            durability: self.durability,
            slow_device: first.device,
            slow_capacity: first.capacity,
            slower: slow.collect(),
            rocksdb_fast_levels: self.rocksdb_fast_levels,
            prices: self.prices.prices(self.slow.len().max(1))?,
            #[cfg(feature = "experiments")]
            experiments: self.experiments,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        bench: BenchArgs,
    }

    pub(crate) fn parse(flags: &str) -> Result<BenchArgs, String> {
        let words = std::iter::once("bench").chain(flags.split_whitespace());
        Cli::try_parse_from(words)
            .map(|cli| cli.bench)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_make_a_plan() {
        let plan = parse("").unwrap().plan().unwrap();
        assert_eq!((plan.records, plan.value_lens.of(0)), (262_144, 1000));
        assert_eq!(plan.end.duration, Some(Duration::from_secs(30)));
        assert_eq!(plan.source.distribution_name(), "hotspot-5");
        assert_eq!(plan.settings.fast_capacity, 64 << 20);
        assert_eq!(plan.settings.memtable, (64 << 20) / 128);
    }

    #[test]
    fn units_and_limits_are_taken() {
        let args = parse(
            "--data-size 10MiB --record-size 200 --ops 5 --slow-latency 500us --slow-bandwidth 30MB \
             --workload d --compression zstd:5",
        );
        let plan = args.unwrap().plan().unwrap();
        assert_eq!(plan.records, (10 << 20) / 200);
        assert_eq!(
            plan.end,
            End {
                ops: Some(5),
                duration: None
            }
        );
        assert_eq!(plan.source.distribution_name(), "latest");
        let slow = plan.settings.slow_device;
        assert_eq!(slow.latency, Some(Duration::from_micros(500)));
        assert_eq!(slow.bandwidth, Some(30_000_000));
    }

    #[test]
    fn each_slow_tier_has_its_limits() {
        let flags = "--fast a --slow b --slow c --slow d --slow-iops 9 --slow-iops 0,8 \
             --slow-latency 1ms --slow-capacity 1GB";
        let settings = parse(flags).unwrap().plan().unwrap().settings;
        let tiers: Vec<_> = settings.slow_tiers().collect();
        let iops: Vec<_> = tiers.iter().map(|tier| tier.device.iops).collect();
        assert_eq!(iops, [Some(9), None, Some(8)]);
        let latencies = tiers.iter().map(|tier| tier.device.latency);
        assert!(latencies.eq([Some(Duration::from_millis(1)); 3]));
        let capacities = tiers.iter().map(|tier| tier.capacity);
        assert!(capacities.eq([Some(1_000_000_000), None, None]));
    }

    /// Regression: with a time, a trace began again as often as that allowed, though it is said to
    /// end at its length.
    #[test]
    fn a_trace_ends_at_its_length_whatever_time_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("three.trace");
        std::fs::write(&path, [1, 2, 1].map(u32::to_le_bytes).concat()).unwrap();
        let end = |flags: &str| {
            let line = format!("--trace {} --format cache2k {flags}", path.display());
            let end = parse(&line).unwrap().plan().unwrap().end;
            (end.ops, end.duration)
        };
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(end(""), (Some(3), None));
        assert_eq!(end("--duration 1h --trace-copies 2"), (Some(6), hour));
        assert_eq!(end("--duration 1h --ops 50"), (Some(50), hour));
    }

    #[test]
    fn a_cluster_brings_its_mix_and_its_sizes() {
        let plan = parse("--distribution cluster:17").unwrap().plan().unwrap();
        assert_eq!(plan.record_bytes(), 19 + 212);
        assert_eq!(plan.source.workload_name(), "trace-fitted");
        assert_eq!(plan.source.distribution_name(), "cluster:17 (trace-fitted)");
        let small = parse("--distribution cluster:21").unwrap().plan().unwrap();
        assert_eq!(
            small.record_bytes(),
            48,
            "25 + 1 is too small to be checked"
        );
        let given = parse("--distribution cluster:17 --record-size 500");
        assert_eq!(given.unwrap().plan().unwrap().record_bytes(), 500);
    }

    #[test]
    fn stages_with_a_time_end_the_run() {
        let plan = parse("--distribution uniform@10s,hotspot-5@1m").unwrap();
        let end = plan.plan().unwrap().end;
        assert_eq!(
            (end.ops, end.duration),
            (None, Some(Duration::from_secs(70)))
        );
    }

    #[test]
    fn wrong_flags_are_explained() {
        for (flags, expected) in [
            ("--workload g", "there are ro, rw"),
            ("--distribution normal", "there are hotspot-N"),
            ("--record-size ten", "invalid value"),
            ("--phase half", "possible values: load, run, both"),
            ("--trace x --workload ro", "cannot be used with"),
            ("--trace-copies 2", "--trace"),
            ("--rocksdb-fast-levels 0", "not in 1..=6"),
            ("--rocksdb-fast-levels 7", "not in 1..=6"),
            ("--duration 5", "invalid value"),
        ] {
            let error = parse(flags).unwrap_err();
            assert!(error.contains(expected), "{flags}: {error}");
        }
        for (flags, expected) in [
            ("--engine leveldb", "is no engine"),
            ("--record-size 47", "must be 48 bytes"),
            ("--threads 0", "--threads"),
            ("--ops 0", "--ops"),
            ("--rate 0", "--rate: must be"),
            ("--data-size 10", "at least one record"),
            ("--keep", "--keep: name the directories"),
            ("--fast a", "name both"),
            ("--rocksdb-fast-levels 2", "engine rocksdb only"),
            ("--fast a --slow a", "two directories"),
            ("--fast a --slow b --slow b", "two directories"),
            (
                "--fast a --slow b --slow c --slow-latency 1ms,2ms,3ms",
                "--slow-latency: 3 values for 2 slow tiers",
            ),
            (
                "--slow-capacity 1GB --slow-capacity 2GB",
                "--slow-capacity: 2 values for 1 slow tiers",
            ),
            ("--phase run", "needs --keep"),
            (
                "--ingest --phase run --keep --fast a --slow b",
                "--ingest: --phase run loads nothing",
            ),
            ("--trace /no/such", "/no/such"),
            (
                "--distribution cluster:17 --workload ro",
                "a mix of its own",
            ),
            (
                "--distribution cluster:17,uniform",
                "cannot be one of several stages",
            ),
            (
                "--distribution uniform@1s,latest@1s --ops 5",
                "leave out --ops",
            ),
        ] {
            let error = format!("{:#}", parse(flags).unwrap().plan().err().unwrap());
            assert!(error.contains(expected), "{flags}: {error}");
        }
    }
}
