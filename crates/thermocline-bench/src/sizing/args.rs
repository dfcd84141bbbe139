//! The flags of `thermocline plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;

use crate::distribution::Shape;
use crate::prices::dollars;
use crate::trace::Format;

/// What is known of the data and its reads, and what disks cost.
#[derive(Debug, Clone, clap::Args)]
#[command(group(ArgGroup::new("source").required(true).args(["curve", "trace", "keys"])))]
pub struct SizingArgs {
    /// What a store says of itself: a file with the JSON of `thermocline cost --json`, or - for
    /// standard input. Its prices are in it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["price_fast", "price_slow"])]
    pub curve: Option<PathBuf>,

    /// Recorded accesses; .zst files are unpacked
    #[arg(long, value_name = "FILE", requires = "format")]
    pub trace: Option<PathBuf>,

    /// Format of the trace
    #[arg(long, value_enum, requires = "trace")]
    pub format: Option<Format>,

    /// How many records there are, with --value-size and --distribution
    #[arg(
        long,
        value_name = "N",
        requires_all = ["value_size", "distribution"],
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub keys: Option<u64>,

    /// Mean size of a value, with --keys. Of a trace: of those whose sizes it does not tell
    /// [default: 1000]
    #[arg(long, value_name = "SIZE", value_parser = some_size, conflicts_with = "curve")]
    pub value_size: Option<u64>,

    /// Mean size of a key. Keys of a trace count 24 bytes
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = some_size,
        default_value = "24",
        conflicts_with_all = ["trace", "curve"]
    )]
    pub key_size: u64,

    /// Which records are read: hotspot-N (95 % of the reads go to N % of the records),
    /// zipfian:THETA, uniform, latest, ranks:FILE (lines of rank and count)
    #[arg(long, conflicts_with_all = ["trace", "curve"])]
    pub distribution: Option<Shape>,

    /// Keys and values of all records, with reads spread as in the trace or the store [default: as
    /// many as there]
    #[arg(long, value_name = "SIZE", value_parser = some_size, conflicts_with = "keys")]
    pub data_size: Option<u64>,

    /// What a GB (10⁹ bytes) on the fast disk costs in a month, in dollars
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, required_unless_present = "curve")]
    pub price_fast: Option<f64>,

    /// The same of the slow disk
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, required_unless_present = "curve")]
    pub price_slow: Option<f64>,

    /// How long the fast disk takes for a read
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "100us")]
    pub latency_fast: Duration,

    /// How long the slow disk takes for a read
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "10ms")]
    pub latency_slow: Duration,

    /// Point reads a second, to tell how many of them the slow disk gets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: Option<u64>,

    /// The mean time of a read that is wanted, like 2ms: tells the cheapest that has it
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub latency: Option<Duration>,
}

fn some_size(text: &str) -> Result<u64, String> {
    match crate::args::size(text)? {
        0 => Err("must be more than 0".to_owned()),
        size => Ok(size),
    }
}

fn some_time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(format!(
            "`{text}`: a time above 0 is wanted, as in 100us or 2ms"
        )),
    }
}
