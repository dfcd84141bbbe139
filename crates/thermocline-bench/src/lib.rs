//! Workloads, traces, engines and reports behind `thermocline bench` and `thermocline demo`.
//!
//! [`bench()`] loads a store, runs a workload or replays a trace on it from many threads,
//! checks every answer, and returns a [`Report`]. [`demo`] shows on one screen what a
//! store over two disks does.

#![forbid(unsafe_code)]

mod accounts;
mod args;
mod bad_arguments;
mod bench;
mod block_device;
mod command;
mod compactions;
#[cfg(feature = "lab")]
mod compare;
mod counters;
mod demo;
mod distribution;
mod engine;
mod engines;
#[cfg(feature = "experiments")]
mod experiments;
mod freshness;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod json_file;
mod keys;
mod memory_limit;
#[cfg(feature = "lab")]
mod pages;
mod plan;
mod prices;
mod probe;
mod program;
mod progress;
mod record_sizes;
mod report;
#[cfg(feature = "lab")]
mod results;
mod run;
mod settings;
mod sizing;
mod state;
#[cfg(feature = "lab")]
mod suite;
mod targets;
mod temporary;
mod trace;
mod usage;
mod value;
mod warm_up;
mod workload;

pub use accounts::{Activity, ActivitySeries, Amount, ByActivity, ByDisk, Io, IoSeries};
pub use args::{BenchArgs, Phase};
pub use bad_arguments::BadArguments;
pub use bench::bench;
pub use command::{Answer, Command};
pub use compactions::LevelCompactions;
#[cfg(feature = "lab")]
pub use compare::{CompareArgs, Compared, Comparison, Side, Verdict, compare};
pub use counters::RecordCacheCounters;
pub use demo::{DemoArgs, NotShown, demo, demo_cost};
pub use distribution::{Cluster, Ranks, Shape, Stage, Stages};
#[cfg(feature = "experiments")]
pub use experiments::{Experiments, Scoring};
pub use host::{Disk, Host};
#[cfg(feature = "lab")]
pub use pages::{ReportArgs, report as report_page};
pub use prices::{PriceArgs, Prices};
pub use probe::{DiskProbe, ExpectArgs, Probe, ProbeArgs, RandomReads, probe};
pub use report::{Hotness, LoadingResult, OperationLatency, Report, WarmUpResult};
pub use run::{CostResult, CostSecond, LastTenth, Second, StageResult};
pub use settings::{Compression, Durability, Settings, SlowDevice, SlowDeviceArgs, SlowTier};
pub use sizing::{Layout, Point, Sizing, SizingArgs, Wanted, sizing};
#[cfg(feature = "lab")]
pub use suite::{SuiteArgs, suite};
pub use targets::{TargetArgs, Targets};
pub use trace::{Format, TraceStats, TraceStatsArgs, trace_stats};
pub use warm_up::{WarmUpArgs, WarmUpLength};
pub use workload::{Operation, Workload};
