//! What all engines are given alike, so that numbers can be compared.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thermocline::storage::Limits;

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

/// Flags of the emulation of a slow disk.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct SlowDeviceArgs {
    /// Emulate a slow disk with so many operations per second [default: no limit]
    #[arg(long, value_name = "N")]
    pub slow_iops: Option<u64>,

    /// Emulate a slow disk with so many bytes per second [default: no limit]
    #[arg(long, value_parser = crate::args::size, value_name = "SIZE")]
    pub slow_bandwidth: Option<u64>,

    /// Emulate a slow disk that takes so much longer [default: none]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    pub slow_latency: Option<Duration>,
}

impl SlowDeviceArgs {
    /// What they describe.
    pub(crate) fn device(&self) -> SlowDevice {
        SlowDevice {
            iops: self.slow_iops,
            bandwidth: self.slow_bandwidth,
            latency: self.slow_latency,
        }
    }
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
    /// Emulation of a slower device.
    pub slow_device: SlowDevice,
    /// Techniques that are turned off, and what is set for them.
    #[cfg(feature = "experiments")]
    #[serde(default)]
    pub experiments: crate::experiments::Experiments,
}

impl Settings {
    /// Refuses a cache of single records, for an engine that has none.
    ///
    /// # Errors
    /// What to leave out.
    #[cfg(feature = "peers")]
    pub(crate) fn refuse_record_cache(&self, engine: &str) -> anyhow::Result<()> {
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

/// One directory per tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dirs {
    /// On the fast disk.
    pub(crate) fast: PathBuf,
    /// On the slow disk.
    pub(crate) slow: PathBuf,
}

impl Dirs {
    /// The directory `name` in both.
    pub(crate) fn join(&self, name: &str) -> Self {
        Self {
            fast: self.fast.join(name),
            slow: self.slow.join(name),
        }
    }

    /// Both directories, the fastest first.
    pub(crate) fn each(&self) -> [&PathBuf; 2] {
        [&self.fast, &self.slow]
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
    fn the_memtable_follows_the_tighter_budget() {
        assert_eq!(Settings::default_memtable(60 << 20, 1 << 40), 10 << 20);
        assert_eq!(Settings::default_memtable(1 << 40, 256 << 20), 2 << 20);
        assert_eq!(Settings::default_memtable(1 << 40, 1 << 40), 64 << 20);
    }
}
