//! What is measured while a soak runs: memory, disk use against capacity, calls and their length.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use thermocline::metrics::Metrics;

use super::user::Done;
use super::weather::Sky;
use crate::verdict::{Promise, Violation};

/// A run that is shorter than this says nothing about the slope of memory.
const LONG: Duration = Duration::from_secs(600);

/// The part of a run, from its start, in which caches fill.
const WARM_UP: f64 = 0.25;

/// How much more memory a run may have at its end than after its warm-up and still count as flat,
/// in bytes.
const FLAT: f64 = (48u64 << 20) as f64;

/// Takes samples and writes the series.
pub(super) struct Watch {
    series: Option<File>,
    fast: PathBuf,
    begun: Instant,
    memory: Vec<(f64, f64)>,
    /// The most that the fast tier's files took, in bytes.
    pub(super) most_on_fast: u64,
}

impl Watch {
    pub(super) fn new(series: Option<&Path>, fast: &Path) -> io::Result<Self> {
        Ok(Self {
            series: series.map(File::create).transpose()?,
            fast: fast.to_owned(),
            begun: Instant::now(),
            memory: Vec::new(),
            most_on_fast: 0,
        })
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// More on the fast tier than its capacity (I8); what keeps the series from being written.
    pub(super) fn sample(
        &mut self,
        metrics: &Metrics,
        sky: &Sky,
        done: &Done,
        openings: u64,
    ) -> Result<(), Violation> {
        let second = self.begun.elapsed().as_secs_f64();
        let resident = resident().map_err(|error| format!("resident memory: {error}"))?;
        self.memory.push((second, resident as f64));
        let capacity = metrics.tiers.first().map_or(u64::MAX, |tier| tier.capacity);
        let on_fast = self.on_fast(capacity);
        self.most_on_fast = self.most_on_fast.max(on_fast);
        if let Some(series) = &mut self.series {
            let tiers = metrics.tiers.iter();
            let line = json!({
                "second": second,
                "resident_bytes": resident,
                "fast_files_bytes": on_fast,
                "tier_bytes": tiers.map(|tier| tier.file_bytes).collect::<Vec<_>>(),
                "reads": done.reads.load(Ordering::Relaxed),
                "writes": done.writes.load(Ordering::Relaxed),
                "scans": done.scans.load(Ordering::Relaxed),
                "refused": done.refused.load(Ordering::Relaxed),
                "longest_call_ms": done.longest.swap(0, Ordering::Relaxed) as f64 / 1000.0,
                "slow_calls": done.slow.load(Ordering::Relaxed),
                "stall": metrics.stalls.current,
                "stalled_seconds": metrics.stalls.slowed_seconds + metrics.stalls.stopped_seconds,
                "weather": sky.weather().name(),
                "faults": sky.planted(),
                "openings": openings,
            });
            writeln!(series, "{line}").map_err(|error| format!("the series: {error}"))?;
        }
        if on_fast > capacity {
            let message = format!("{on_fast} bytes on a fast tier of {capacity}");
            return Err(Violation::new(Promise::Orderly, message));
        }
        Ok(())
    }

    /// Bytes of the files on the fast tier. A listing is not of one moment. One that shows too much
    /// is repeated, since some files may have gone while others came.
    fn on_fast(&self, capacity: u64) -> u64 {
        let looks = (0..5).map(|_| bytes_below(&self.fast));
        let mut least = u64::MAX;
        for bytes in looks {
            least = least.min(bytes);
            if least <= capacity {
                break;
            }
        }
        least
    }

    /// Checks that memory did not grow after the warm-up, by the line that best fits its samples.
    ///
    /// # Errors
    /// Memory that grows.
    pub(super) fn check_memory(&self) -> Result<(), Violation> {
        let last = self.memory.last().map_or(0.0, |(second, _)| *second);
        if last < LONG.as_secs_f64() {
            return Ok(());
        }
        let warm = |(second, _): &&(f64, f64)| *second >= WARM_UP * last;
        let samples: Vec<_> = self.memory.iter().filter(warm).copied().collect();
        let growth = slope(&samples) * (1.0 - WARM_UP) * last;
        if growth > FLAT {
            let message = format!("memory grew by {:.0} MiB", growth / f64::from(1 << 20));
            return Err(Violation::new(Promise::Orderly, message));
        }
        Ok(())
    }
}

/// The slope of the line with the least squares.
fn slope(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|s| s.0), mean(|s| s.1));
    let spread: f64 = samples.iter().map(|s| (s.0 - x).powi(2)).sum();
    let along: f64 = samples.iter().map(|s| (s.0 - x) * (s.1 - y)).sum();
    if spread > 0.0 { along / spread } else { 0.0 }
}

/// Bytes of memory that the process has.
fn resident() -> io::Result<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages = pages
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Bytes of all files below `dir`. A file that is gone by the time it is looked at has none.
fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_is_told_from_memory_that_wavers() {
        let home = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(None, home.path()).unwrap();
        let flat = |second: u32| f64::from(second % 7) * 1e6 + 1e8;
        watch.memory = (0..3600).map(|s| (f64::from(s), flat(s))).collect();
        assert!(watch.check_memory().is_ok());
        for (second, bytes) in &mut watch.memory {
            *bytes += *second * 30_000.0;
        }
        assert!(watch.check_memory().is_err());
        watch.memory.truncate(60);
        assert!(watch.check_memory().is_ok());
    }
}
