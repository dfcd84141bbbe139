//! A short probe of a disk. It shows what the disk can do, so that results can be read against it.

mod expect;
mod measure;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use thermocline::SystemClock;
use thermocline::storage::{Disk as DiskMedium, Throttled};

pub use expect::ExpectArgs;
pub(crate) use expect::Expected;
use measure::Effort;

use crate::bad_arguments::BadArguments;
use crate::block_device;
use crate::host::Disk;
use crate::settings::{SlowDevice, SlowDeviceArgs};

/// Measures what the disks can do, which takes about ten seconds each.
#[derive(Debug, Clone, clap::Args)]
pub struct ProbeArgs {
    /// Directory on the fast disk
    #[arg(long, value_name = "DIR")]
    pub fast: PathBuf,

    /// Directory on the slow disk; can be repeated
    #[arg(long, value_name = "DIR", required = true)]
    pub slow: Vec<PathBuf>,

    /// Emulation of slow disks
    #[command(flatten)]
    pub slow_device: SlowDeviceArgs,
}

/// What the disks can do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// The fast one.
    pub fast: DiskProbe,
    /// The slow one, or the first of several.
    pub slow: DiskProbe,
    /// Further ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slower: Vec<DiskProbe>,
}

/// What a disk can do, read and written around the page cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DiskProbe {
    /// Whether it was probed through the emulation of a slower one.
    pub emulated: bool,
    /// Why there are no figures.
    pub refused: Option<String>,
    /// 16 threads, each of which reads 4 KiB anywhere.
    pub random_read_4k: Option<RandomReads>,
    /// 16 threads, each of which reads 16 KiB anywhere.
    pub random_read_16k: Option<RandomReads>,
    /// Bytes read per second, in pieces of 1 MiB by four threads.
    pub sequential_read_bytes_s: Option<f64>,
    /// Bytes written per second, in pieces of 1 MiB by one thread, synced at the end.
    pub sequential_write_bytes_s: Option<f64>,
}

/// Random reads of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RandomReads {
    /// Reads per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_s: f64,
    /// Mean latency in microseconds.
    pub mean_us: f64,
}

/// Probes the disks, which takes about ten seconds each. Directories that are missing are created.
/// What is written there is removed.
///
/// # Errors
/// The file systems'; [`BadArguments`] for a flag that has not one value for each slow disk.
pub fn probe(args: &ProbeArgs) -> Result<Probe> {
    probe_with(args, Effort::WHOLE)
}

fn probe_with(args: &ProbeArgs, effort: Effort) -> Result<Probe> {
    let emulated = args.slow_device.devices(args.slow.len());
    let emulated = emulated.map_err(BadArguments::new)?;
    let fast = DiskProbe::of(&args.fast, &SlowDevice::default(), effort)?;
    let each = args.slow.iter().zip(&emulated);
    let mut slow = each.map(|(dir, emulated)| DiskProbe::of(dir, emulated, effort));
    Ok(Probe {
        fast,
        slow: slow.next().context("--slow: name a directory")??,
        slower: slow.collect::<Result<_>>()?,
    })
}

impl DiskProbe {
    /// Probes the disk that `dir` lies on. It is slowed down to `emulated` if that has limits.
    fn of(dir: &Path, emulated: &SlowDevice, effort: Effort) -> Result<Self> {
        let probed = || format!("cannot probe the disk of {}", dir.display());
        std::fs::create_dir_all(dir).with_context(probed)?;
        let home = tempfile::Builder::new().prefix("probe").tempdir_in(dir);
        let home = home.with_context(probed)?;
        if emulated.is_limited() {
            let disk = Arc::new(DiskMedium::default());
            let clock = Arc::new(SystemClock::default());
            let slowed = Throttled::new(disk, emulated.limits(), clock);
            let mut probe = measure::all(&slowed, home.path(), effort).with_context(probed)?;
            probe.emulated = true;
            return Ok(probe);
        }
        if let Some(why) = in_memory(dir) {
            return Ok(Self::refused(why));
        }
        let medium = DiskMedium::default();
        if !measure::is_direct(&medium, home.path()).with_context(probed)? {
            let why = "its file system has no direct I/O: what is read would come from memory";
            return Ok(Self::refused(why.to_owned()));
        }
        let before = block_device::of(dir);
        let probe = measure::all(&medium, home.path(), effort).with_context(probed)?;
        let from_device = block_device::of(dir).zip(before).map(|(now, then)| {
            let bytes = now.read_bytes.saturating_sub(then.read_bytes);
            bytes as f64
        });
        Ok(match from_device {
            Some(bytes) if bytes < probe.bytes_read(effort.each) / 2.0 => Self::refused(format!(
                "of {:.0} MB read, {:.0} MB came from the device: the rest came from memory",
                probe.bytes_read(effort.each) / 1e6,
                bytes / 1e6
            )),
            _ => probe,
        })
    }

    fn refused(why: String) -> Self {
        Self {
            refused: Some(why),
            ..Self::default()
        }
    }

    /// About how many bytes were read, if each kind of reading took this long.
    fn bytes_read(&self, each: Duration) -> f64 {
        let random = [self.random_read_4k, self.random_read_16k];
        let random = random.iter().flatten().map(|reads| reads.bytes_s);
        random.chain(self.sequential_read_bytes_s).sum::<f64>() * each.as_secs_f64()
    }
}

/// Why `dir` lies on no disk. Some of these file systems take direct I/O all the same.
fn in_memory(dir: &Path) -> Option<String> {
    let file_system = Disk::below(dir).file_system?;
    ["tmpfs", "ramfs", "devtmpfs"]
        .contains(&file_system.as_str())
        .then(|| format!("it is a {file_system}, which lies in memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_disk_gives_figures_or_says_why_not() {
        let dir = tempfile::tempdir().unwrap();
        let probe = DiskProbe::of(dir.path(), &SlowDevice::default(), Effort::SHORT).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let figures = [
            probe.random_read_4k.map(|reads| reads.iops),
            probe.random_read_16k.map(|reads| reads.iops),
            probe.random_read_4k.map(|reads| reads.mean_us),
            probe.sequential_read_bytes_s,
            probe.sequential_write_bytes_s,
        ];
        match &probe.refused {
            Some(why) => assert!(why.contains("memory") && figures == [None; 5], "{probe:?}"),
            None => assert!(
                figures.iter().all(|figure| *figure > Some(0.0)),
                "{probe:?}"
            ),
        }
    }

    #[test]
    fn a_file_system_in_memory_is_no_disk() {
        let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
            return;
        };
        if Disk::below(dir.path()).file_system.as_deref() != Some("tmpfs") {
            return;
        }
        let probe = DiskProbe::of(dir.path(), &SlowDevice::default(), Effort::SHORT).unwrap();
        assert!(probe.refused.unwrap().contains("tmpfs"));
        assert_eq!(probe.random_read_4k, None);
    }

    #[test]
    fn each_slow_disk_is_probed_as_it_is_emulated() {
        let dir = tempfile::tempdir().unwrap();
        let args = |iops: &[u64]| ProbeArgs {
            fast: dir.path().join("a"),
            slow: vec![dir.path().join("b"), dir.path().join("c")],
            slow_device: SlowDeviceArgs {
                slow_iops: iops.to_vec(),
                ..SlowDeviceArgs::default()
            },
        };
        let probe = probe_with(&args(&[0, 100]), Effort::SHORT).unwrap();
        let emulated = probe.slower.iter().map(|disk| disk.emulated);
        assert!(!probe.slow.emulated && emulated.eq([true]));
        let text = probe.to_string();
        assert!(text.contains("\nslow disk 2, emulated\n"), "{text}");
        let error = probe_with(&args(&[1, 2, 3]), Effort::SHORT).unwrap_err();
        assert!(error.is::<BadArguments>(), "{error}");
    }

    #[test]
    fn an_emulated_disk_is_probed_through_its_limits() {
        let dir = tempfile::tempdir().unwrap();
        let slow = SlowDevice {
            iops: Some(2000),
            bandwidth: Some(64 << 20),
            latency: None,
        };
        let probe = DiskProbe::of(dir.path(), &slow, Effort::SHORT).unwrap();
        assert!(probe.emulated && probe.refused.is_none());
        // There is a burst at the beginning, and the machine may be busy.
        let iops = probe.random_read_4k.unwrap().iops;
        assert!((500.0..2400.0).contains(&iops), "{iops}");
        let mib_s = probe.sequential_read_bytes_s.unwrap() / f64::from(1 << 20);
        assert!((16.0..80.0).contains(&mib_s), "{mib_s}");
    }
}
