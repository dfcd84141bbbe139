//! What is measured, behind one trait, and the list of it.

use anyhow::{Result, bail};

use crate::engines;
use crate::settings::{Dirs, Settings};

/// An open store. Methods are called from many threads at once.
pub(crate) trait Engine: Send + Sync {
    /// Reads `key` and hands what it found to `found`, uncopied where the engine allows it.
    ///
    /// # Errors
    /// The engine's own.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Option<&[u8]>)) -> Result<()>;

    /// Writes a record with the durability of the settings.
    ///
    /// # Errors
    /// The engine's own.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Hands at most `limit` records from `start` on to `each`, in key order.
    ///
    /// # Errors
    /// The engine's own.
    fn scan(&self, start: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;

    /// Flushes, and returns once no background work is left.
    ///
    /// # Errors
    /// The engine's own.
    fn settle(&self) -> Result<()>;

    /// The counters now.
    ///
    /// # Errors
    /// The engine's own.
    fn counters(&self) -> Result<Counters>;

    /// Closes the store so that it can be opened or copied.
    ///
    /// # Errors
    /// The engine's own.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A way to open stores.
pub(crate) trait EngineKind: Sync {
    /// What `--engine` calls it.
    fn name(&self) -> &'static str;

    /// Refuses settings that this engine cannot honour.
    ///
    /// # Errors
    /// Which, and what to do instead.
    fn check(&self, settings: &Settings) -> Result<()>;

    /// Opens the store at `dirs`, creating it when there is none.
    ///
    /// # Errors
    /// The engine's own.
    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>>;

    /// Copies the closed store at `from` to `to`, by hard links where files never change.
    /// The directories at `to` do not exist yet, their parents do.
    ///
    /// # Errors
    /// The engine's own, or the file system's.
    fn copy(&self, settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()>;
}

/// An engine's counters. `None` is what the engine cannot tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counters {
    /// Point reads.
    pub(crate) gets: Option<u64>,
    /// Point reads that touched no slow device.
    pub(crate) gets_without_slow: Option<u64>,
    /// Point reads that touched no device.
    pub(crate) gets_without_device: Option<u64>,
    /// Bytes on the fast tier now.
    pub(crate) fd_bytes: Option<u64>,
    /// Bytes on the slow tier now.
    pub(crate) sd_bytes: Option<u64>,
    /// Bytes read from the fast device.
    pub(crate) fd_read_bytes: Option<u64>,
    /// Bytes written to the fast device.
    pub(crate) fd_write_bytes: Option<u64>,
    /// Bytes read from the slow device.
    pub(crate) sd_read_bytes: Option<u64>,
    /// Read operations on the slow device.
    pub(crate) sd_read_ops: Option<u64>,
    /// Bytes written to the slow device.
    pub(crate) sd_write_bytes: Option<u64>,
    /// Bytes written to all devices, where that is known without knowing to which.
    pub(crate) written_bytes: Option<u64>,
    /// Bytes of keys and values that writers handed in.
    pub(crate) user_write_bytes: Option<u64>,
    /// Time that writers were held back, in seconds of all threads.
    pub(crate) stall_seconds: Option<f64>,
}

impl Counters {
    /// What was counted since `earlier`; present sizes stay as they are.
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
            stall_seconds: self
                .stall_seconds
                .zip(earlier.stall_seconds)
                .map(|(now, then)| (now - then).max(0.0)),
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

    /// Bytes written to all devices per byte handed in.
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        ratio(self.written_bytes?, self.user_write_bytes?)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Engines that exist, built in or not.
#[cfg(not(feature = "peers"))]
const PEERS: [&str; 2] = ["rocksdb", "rocksdb-fast-only"];

/// The engine called `name`.
///
/// # Errors
/// There is none of that name, or this build lacks it.
pub(crate) fn find(name: &str) -> Result<&'static dyn EngineKind> {
    if let Some(kind) = engines::ALL.iter().find(|kind| kind.name() == name) {
        return Ok(*kind);
    }
    #[cfg(not(feature = "peers"))]
    if PEERS.contains(&name) {
        bail!("engine `{name}`: built without feature `peers`; build with `--features peers`");
    }
    let names: Vec<&str> = engines::ALL.iter().map(|kind| kind.name()).collect();
    bail!("`{name}` is no engine; there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_engine_is_told_what_exists() {
        let error = find("leveldb").err().unwrap().to_string();
        assert!(
            error.contains("leveled") && error.contains("fast-only"),
            "{error}"
        );
    }

    #[cfg(not(feature = "peers"))]
    #[test]
    fn a_peer_that_was_not_built_says_how_to_build_it() {
        let error = find("rocksdb").err().unwrap().to_string();
        assert!(error.contains("built without feature `peers`"), "{error}");
    }

    #[test]
    fn differences_and_rates() {
        let before = Counters {
            gets: Some(10),
            gets_without_slow: Some(5),
            fd_bytes: Some(100),
            ..Counters::default()
        };
        let after = Counters {
            gets: Some(110),
            gets_without_slow: Some(80),
            fd_bytes: Some(70),
            stall_seconds: Some(1.0),
            ..Counters::default()
        };
        let run = after.since(&before);
        assert_eq!(run.fd_hit_rate(), Some(0.75));
        assert_eq!(run.dram_hit_rate(), None);
        assert_eq!(run.fd_bytes, Some(70));
        assert_eq!(run.stall_seconds, None);
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
