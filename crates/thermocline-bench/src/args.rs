//! The flags of `thermocline bench`.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;

use crate::distribution::Stages;
use crate::prices::PriceArgs;
use crate::probe::ExpectArgs;
use crate::settings::{Compression, Durability, SlowDeviceArgs};
use crate::targets::TargetArgs;
use crate::trace::Format;
use crate::warm_up::WarmUpArgs;
use crate::workload::Workload;

/// Data of a store when nothing says how much.
pub(crate) const DEFAULT_DATA_SIZE: u64 = 256 << 20;

/// Length of a run when nothing ends it.
pub(crate) const DEFAULT_DURATION: Duration = Duration::from_secs(30);

/// Records of a scan when nothing says how many.
pub(crate) const DEFAULT_SCAN_LENGTH: usize = 100;

/// What part of a benchmark to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Phase {
    /// Fill the store.
    Load,
    /// Run the workload on a store kept earlier.
    Run,
    /// Both, one after the other.
    Both,
}

/// Measures an engine under a workload, and checks every answer.
///
/// Values do not compress. Sizes are bytes, or take a unit (64MiB, 1GB); durations take one
/// (30s, 500us).
#[derive(Debug, Clone, clap::Args)]
pub struct BenchArgs {
    /// Engine: hotrap, leveled (placement by level), tables (tables by heat), cost (hotrap, to be
    /// used with a target), fast-only; with the feature `flash-cache` also flash-cache (all tables
    /// on the slow disk, the fast one a cache of blocks); with `peers` rocksdb, rocksdb-fast-only,
    /// rocksdb-slow-only, fjall
    #[arg(long, default_value = "hotrap")]
    pub engine: String,

    /// Workload: ro, rw, wh, uh (HotRAP), a to f (YCSB), scan, write [default: ro; cluster:NAME:
    /// its own mix]
    #[arg(long)]
    pub workload: Option<Workload>,

    /// Distribution: hotspot-N[+OFFSET], zipfian:THETA, uniform, latest; shifting-zipfian:THETA/N
    /// (N percent of the ranks move in a million operations, insertions not counted); fitted to
    /// recorded traffic: ranks:FILE (lines of rank and count; also quizup-reads, quizup-writes) and
    /// cluster:NAME or cluster:FILE:NAME (a cluster of Twitter's caches). Stages separated by
    /// commas, each with an optional share, as in hotspot-5@30%,uniform@70%, or each with its time,
    /// as in uniform@60s,hotspot-5@2m; dynamic and dynamic@TIME: the HotRAP paper's seven stages
    /// [default: hotspot-5; YCSB: zipfian:0.99, d: latest]
    #[arg(long)]
    pub distribution: Option<Stages>,

    /// Key and value of one record together; keys have 24 bytes [default: 1KiB; cluster:NAME:
    /// an average record of it, at least 48]. Of a trace: of keys whose sizes it does not tell
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub record_size: Option<u64>,

    /// Keys and values of all records together [default: 256MiB]
    #[arg(long, value_parser = size, value_name = "SIZE", conflicts_with = "trace")]
    pub data_size: Option<u64>,

    /// What the store may occupy on the fast tier [default: a quarter of the data,
    /// at least 2MiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub fast_capacity: Option<u64>,

    /// How many of RocksDB's levels lie on the fast disk, from L0 on (engine rocksdb only). Its L1
    /// stays a twelfth of --fast-capacity, which limits nothing then [default: as many as the
    /// capacity holds: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=6))]
    pub rocksdb_fast_levels: Option<u32>,

    /// Directory on the fast disk [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub fast: Option<PathBuf>,

    /// Directory on the slow disk; can be repeated, for tiers each slower than the one before
    /// [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub slow: Vec<PathBuf>,

    /// What the store may occupy on each --slow, from the first on (0: no limit) [default: no
    /// limit]
    #[arg(long, value_parser = size, value_name = "SIZE", value_delimiter = ',')]
    pub slow_capacity: Vec<u64>,

    /// Client threads [default: one per core]
    #[arg(long)]
    pub threads: Option<usize>,

    /// Operations after which the run ends [default: no limit; a trace: its length]
    #[arg(long)]
    pub ops: Option<u64>,

    /// Time after which the run ends [default: 30s, unless --ops or --trace is given, or targets
    /// have times]
    #[arg(long, value_parser = humantime::parse_duration)]
    pub duration: Option<Duration>,

    /// Operations a second that all client threads offer together, by a schedule of their own. One
    /// that comes late is begun at once, and its latency counts from when it was due. Holds for the
    /// warm-up too [default: each thread goes on when it has its answer]
    #[arg(long, value_name = "N")]
    pub rate: Option<u64>,

    /// What comes before the measured run
    #[command(flatten)]
    pub warm_up: WarmUpArgs,

    /// What to do
    #[arg(long, value_enum, default_value = "both")]
    pub phase: Phase,

    /// Load sorted records by the engine's ingestion, past its log and memtables, from one thread
    /// (not engine rocksdb). Sorting is not measured
    #[arg(long)]
    pub ingest: bool,

    /// Keep the loaded state in the directory `loaded` of each tier, and run on a copy of it made
    /// of hard links; later runs with the same settings use it again, and with others are refused
    /// until --phase load replaces it. hotrap, leveled and cost have the same files and share a
    /// state
    #[arg(long)]
    pub keep: bool,

    /// Seed of everything random in the run
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Memory of the engine [default: a quarter of the data, at least 16MiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub memory: Option<u64>,

    /// Let an engine that uses the page cache have all of the machine's memory. Without this it
    /// runs in a memory cgroup of --memory and what the harness itself needs (Linux, usually as
    /// root)
    #[arg(long)]
    pub no_memory_limit: bool,

    /// Block cache [default: an eighth of the memory]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub cache: Option<u64>,

    /// Bytes of the block cache's that a cache of single records takes instead (thermocline's
    /// engines only) [default: half of them]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub record_cache: Option<u64>,

    /// Memtable, and table [default: the least of a sixth of the memory, a 128th of the
    /// fast capacity, and 64MiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub memtable: Option<u64>,

    /// Data blocks on the fast tier
    #[arg(long, value_parser = size, default_value = "4KiB", value_name = "SIZE")]
    pub block_size_fast: u64,

    /// Data blocks on slow tiers
    #[arg(long, value_parser = size, default_value = "16KiB", value_name = "SIZE")]
    pub block_size_slow: u64,

    /// Compression on slow tiers: none, lz4, zstd, zstd:LEVEL
    #[arg(long, default_value = "none")]
    pub compression: Compression,

    /// What acknowledged writes survive
    #[arg(long, value_enum, default_value = "buffered")]
    pub durability: Durability,

    /// Records of one scan (YCSB e: at most)
    #[arg(long, default_value_t = DEFAULT_SCAN_LENGTH)]
    pub scan_length: usize,

    /// Emulation of slow disks
    #[command(flatten)]
    pub slow_device: SlowDeviceArgs,

    /// What disks cost
    #[command(flatten)]
    pub prices: PriceArgs,

    /// What the store is to aim at
    #[command(flatten)]
    pub targets: TargetArgs,

    /// What slow disks should be able to do
    #[command(flatten)]
    pub expect: ExpectArgs,

    /// Replay the accesses of this file instead of a workload, after loading all of its keys
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "distribution"])]
    pub trace: Option<PathBuf>,

    /// Format of the trace
    #[arg(long, value_enum, default_value = "cache2k", requires = "trace")]
    pub format: Format,

    /// Replay each access of the trace under so many prefixes
    #[arg(long, default_value_t = 1, requires = "trace")]
    pub trace_copies: u64,

    /// Write the results there as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Techniques to do without
    #[cfg(feature = "experiments")]
    #[command(flatten)]
    pub experiments: crate::experiments::Experiments,
}

/// A number of bytes, with a unit or without.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let size: ByteSize = text.parse()?;
    Ok(size.as_u64())
}
