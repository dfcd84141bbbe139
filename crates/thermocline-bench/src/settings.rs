//! What all engines are given alike, so that numbers can be compared.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use thermocline::storage::Limits;

use crate::prices::Prices;

/// The most for a default memtable. Otherwise it is a sixth of the store's memory or a 128th of the
/// fast tier, whichever is less.
const MAX_MEMTABLE: u64 = 64 << 20;

/// The smallest memtable that the engine takes.
const MIN_MEMTABLE: u64 = 16 << 10;

/// Compression of tables on the slow tier. Tables on the fast tier are stored as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Compression {
    /// As written.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at a level of 1 to 19.
    Zstd(i32),
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => return Ok(Compression::None),
            "lz4" => return Ok(Compression::Lz4),
            "zstd" => return Ok(Compression::Zstd(3)),
            _ => {}
        }
        match text.strip_prefix("zstd:").map(str::parse) {
            Some(Ok(level @ 1..=19)) => Ok(Compression::Zstd(level)),
            _ => Err(format!(
                "`{text}` is no compression; there are none, lz4, zstd and zstd:1 to zstd:19"
            )),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl From<Compression> for String {
    fn from(compression: Compression) -> Self {
        compression.to_string()
    }
}

impl TryFrom<String> for Compression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Kept in the process.
    None,
    /// Handed to the operating system.
    Buffered,
    /// Synced to the device.
    Sync,
}

/// What the emulated slow device can do. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlowDevice {
    /// Operations per second, reads and writes each.
    pub iops: Option<u64>,
    /// Bytes per second, reads and writes each.
    pub bandwidth: Option<u64>,
    /// Added to every operation.
    pub latency: Option<Duration>,
}

/// A slow tier beyond the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlowTier {
    /// What the store may occupy there. None without a limit.
    pub capacity: Option<u64>,
    /// Emulation of a slower device.
    pub device: SlowDevice,
}

/// Flags of the emulation of slow disks. Each takes a value for each --slow, or one for all.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SlowDeviceArgs {
    /// Emulate a slow disk with so many operations per second; of several, one number for each
    /// --slow (0: no limit) or one for all, as in 5000,400 [default: no limit]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub slow_iops: Vec<u64>,

    /// Emulate a slow disk with so many bytes per second; of several, as with --slow-iops
    /// [default: no limit]
    #[arg(long, value_parser = crate::args::size, value_name = "SIZE", value_delimiter = ',')]
    pub slow_bandwidth: Vec<u64>,

    /// Emulate a slow disk that takes so much longer; of several, as with --slow-iops
    /// [default: none]
    #[arg(
        long,
        value_parser = humantime::parse_duration,
        value_name = "TIME",
        value_delimiter = ','
    )]
    pub slow_latency: Vec<Duration>,
}

impl SlowDeviceArgs {
    /// The devices of so many slow tiers, the fastest first.
    ///
    /// # Errors
    /// A flag with another number of values.
    pub(crate) fn devices(&self, tiers: usize) -> Result<Vec<SlowDevice>> {
        let iops = of_each_slow("--slow-iops", &self.slow_iops, tiers)?;
        let bandwidth = of_each_slow("--slow-bandwidth", &self.slow_bandwidth, tiers)?;
        let latency = of_each_slow("--slow-latency", &self.slow_latency, tiers)?;
        let each = iops.into_iter().zip(bandwidth).zip(latency);
        Ok(each
            .map(|((iops, bandwidth), latency)| SlowDevice {
                iops,
                bandwidth,
                latency,
            })
            .collect())
    }
}

/// What each of `tiers` slow tiers has of the values of `flag`: its own one, the only one, or none.
/// Zero counts as none too.
///
/// # Errors
/// There are several values, but not one for each tier.
pub(crate) fn of_each_slow<T: Copy + Default + PartialEq>(
    flag: &str,
    values: &[T],
    tiers: usize,
) -> Result<Vec<Option<T>>> {
    let each = match values {
        [] => vec![T::default(); tiers],
        [all] => vec![*all; tiers],
        each if each.len() == tiers => each.to_vec(),
        each => bail!(
            "{flag}: {} values for {tiers} slow tiers; give one for each --slow, or one for all",
            each.len()
        ),
    };
    let is_given = |value: &T| *value != T::default();
    Ok(each
        .into_iter()
        .map(|value| Some(value).filter(is_given))
        .collect())
}

impl SlowDevice {
    /// Whether anything is limited.
    pub(crate) fn is_limited(&self) -> bool {
        *self != Self::default()
    }

    /// The limits as the storage layer takes them.
    pub(crate) fn limits(&self) -> Limits {
        // 0 means no limit.
        let (iops, bandwidth) = (self.iops.unwrap_or(0), self.bandwidth.unwrap_or(0));
        Limits {
            read_iops: iops,
            write_iops: iops,
            read_bandwidth: bandwidth,
            write_bandwidth: bandwidth,
            latency: self.latency.unwrap_or_default(),
        }
    }
}

/// Settings of one store. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// What the store may occupy on the fast tier.
    pub fast_capacity: u64,
    /// All memory.
    pub memory: u64,
    /// Block cache.
    pub cache: u64,
    /// How much of that is a cache of single records.
    #[serde(default)]
    pub record_cache: u64,
    /// One memtable. Tables have this size too.
    pub memtable: u64,
    /// Data blocks on the fast tier.
    pub block_size_fast: u64,
    /// Data blocks on the slow tier.
    pub block_size_slow: u64,
    /// Compression on the slow tier.
    pub compression: Compression,
    /// Durability of every write.
    pub durability: Durability,
    /// Emulation of a slower device. Of several slow tiers, this is the first one's.
    pub slow_device: SlowDevice,
    /// What the store may occupy on that tier. None without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_capacity: Option<u64>,
    /// Further tiers, each slower than the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slower: Vec<SlowTier>,
    /// How many of RocksDB's levels lie on the fast tier. None if its capacity decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocksdb_fast_levels: Option<u32>,
    /// What each tier costs. None if nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Techniques that are turned off, and what is set for them.
    #[cfg(feature = "experiments")]
    #[serde(default)]
    pub experiments: crate::experiments::Experiments,
}

impl Settings {
    /// Every slow tier, the fastest first.
    pub(crate) fn slow_tiers(&self) -> impl Iterator<Item = SlowTier> {
        let first = SlowTier {
            capacity: self.slow_capacity,
            device: self.slow_device,
        };
        std::iter::once(first).chain(self.slower.iter().copied())
    }

    /// Whether any slow disk is emulated.
    pub(crate) fn emulates(&self) -> bool {
        self.slow_tiers().any(|tier| tier.device.is_limited())
    }

    /// Refuses more tiers than two, for an engine that knows no more.
    ///
    /// # Errors
    /// What to leave out.
    #[cfg(any(feature = "peers", feature = "flash-cache"))]
    pub(crate) fn refuse_more_tiers(&self, engine: &str) -> Result<()> {
        anyhow::ensure!(
            self.slower.is_empty(),
            "engine `{engine}`: has one slow tier at most; give one --slow, not {}",
            1 + self.slower.len()
        );
        Ok(())
    }

    /// Refuses what only our own engines have.
    ///
    /// # Errors
    /// What to leave out.
    #[cfg(feature = "peers")]
    pub(crate) fn refuse_what_is_ours(&self, engine: &str) -> Result<()> {
        self.refuse_more_tiers(engine)?;
        anyhow::ensure!(
            self.slow_capacity.is_none(),
            "engine `{engine}`: does not limit what it takes of the slow disk; leave out --slow-capacity"
        );
        anyhow::ensure!(
            self.record_cache == 0,
            "engine `{engine}`: has no record cache; leave out --record-cache"
        );
        Ok(())
    }

    /// The memtable size that follows from the memory and the fast tier's capacity.
    pub(crate) fn default_memtable(memory: u64, fast_capacity: u64) -> u64 {
        (memory / 6)
            .min(fast_capacity / 128)
            .clamp(MIN_MEMTABLE, MAX_MEMTABLE)
    }
}

/// What is wrong if two tiers would share a directory.
pub(crate) const TWO_DIRECTORIES: &str =
    "must be two directories, and one more for each further --slow";

/// One directory per tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dirs {
    /// On the fast disk.
    pub(crate) fast: PathBuf,
    /// On the slow disk, or the fastest of several.
    pub(crate) slow: PathBuf,
    /// On further disks, each slower than the one before.
    pub(crate) slower: Vec<PathBuf>,
}

impl Dirs {
    /// One on a fast disk and one on a slow one.
    pub(crate) fn two(fast: PathBuf, slow: PathBuf) -> Self {
        Self {
            fast,
            slow,
            slower: Vec::new(),
        }
    }

    /// The directory `name` in all of them.
    pub(crate) fn join(&self, name: &str) -> Self {
        Self {
            fast: self.fast.join(name),
            slow: self.slow.join(name),
            slower: self.slower.iter().map(|dir| dir.join(name)).collect(),
        }
    }

    /// All of them, the fastest first.
    pub(crate) fn each(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.fast).chain(self.each_slow())
    }

    /// Those of slow tiers.
    pub(crate) fn each_slow(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.slow).chain(&self.slower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_parse_and_print() {
        for text in ["none", "lz4", "zstd:7"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        assert_eq!("zstd".parse(), Ok(Compression::Zstd(3)));
        for text in ["zstd:0", "zstd:20", "snappy", "zstd:x"] {
            assert!(
                text.parse::<Compression>()
                    .unwrap_err()
                    .contains("there are none")
            );
        }
    }

    #[test]
    fn a_slow_tier_has_its_own_value_or_the_only_one() {
        let of = |values: &[u64]| of_each_slow("--flag", values, 3);
        assert_eq!(of(&[]).unwrap(), [None; 3]);
        assert_eq!(of(&[7]).unwrap(), [Some(7); 3]);
        assert_eq!(of(&[7, 0, 9]).unwrap(), [Some(7), None, Some(9)]);
        let error = of(&[7, 8]).unwrap_err().to_string();
        assert!(
            error.contains("--flag: 2 values for 3 slow tiers"),
            "{error}"
        );
    }

    #[test]
    fn the_memtable_follows_the_tighter_budget() {
        assert_eq!(Settings::default_memtable(60 << 20, 1 << 40), 10 << 20);
        assert_eq!(Settings::default_memtable(1 << 40, 256 << 20), 2 << 20);
        assert_eq!(Settings::default_memtable(1 << 40, 1 << 40), 64 << 20);
    }
}
