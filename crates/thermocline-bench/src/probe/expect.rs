//! Refusing a slow disk that is not as slow as it was said to be, or slower.

use std::path::PathBuf;

use anyhow::{Result, bail};
use bytesize::ByteSize;

use super::{DiskProbe, Effort};
use crate::args::size;
use crate::bench::BadArguments;
use crate::settings::SlowDevice;

/// How far what is measured may be off.
const TOLERANCE: f64 = 0.25;

/// Flags that say what the slow disk should be able to do.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ExpectArgs {
    /// Measure before the run that the slow disk does so many reads per second, and refuse to run
    /// when it is off by more than a quarter
    #[arg(long, value_name = "N")]
    pub expect_slow_iops: Option<u64>,

    /// Measure before the run that the slow disk reads so many bytes per second, and refuse to
    /// run when it is off by more than a quarter
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub expect_slow_bandwidth: Option<u64>,
}

/// What the slow disk should be able to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    /// A directory on it.
    dir: PathBuf,
    /// Its emulation.
    emulated: SlowDevice,
    iops: Option<u64>,
    bandwidth: Option<u64>,
}

impl ExpectArgs {
    /// What is expected, if anything is, of the disk that `slow` lies on (where temporary files do,
    /// if it is not given) and of its emulation.
    pub(crate) fn plan(&self, slow: Option<PathBuf>, emulated: SlowDevice) -> Option<Expected> {
        let expected = Expected {
            dir: slow.unwrap_or_else(std::env::temp_dir),
            emulated,
            iops: self.expect_slow_iops,
            bandwidth: self.expect_slow_bandwidth,
        };
        (expected.iops.is_some() || expected.bandwidth.is_some()).then_some(expected)
    }
}

impl Expected {
    /// Measures the slow disk, which takes some seconds. While a store `is_busy` on it, that it is too
    /// slow means nothing.
    ///
    /// # Errors
    /// The disk cannot be measured; [`BadArguments`] if it is not as expected.
    pub(crate) fn check(&self, is_busy: bool) -> Result<DiskProbe> {
        let probe = DiskProbe::of(&self.dir, &self.emulated, Effort::WHOLE)?;
        self.compare(&probe, is_busy).map_err(BadArguments::new)?;
        Ok(probe)
    }

    fn compare(&self, probe: &DiskProbe, is_busy: bool) -> Result<()> {
        if let Some(why) = &probe.refused {
            bail!(
                "--expect-slow-iops, --expect-slow-bandwidth: the slow disk cannot be measured: {why}"
            );
        }
        let iops = probe.random_read_4k.map(|reads| reads.iops);
        let number = |value: f64| format!("{value:.0}");
        check("--expect-slow-iops", self.iops, iops, is_busy, number)?;
        let bytes = |value: f64| ByteSize(value as u64).to_string();
        let bandwidth = probe.sequential_read_bytes_s;
        let flag = "--expect-slow-bandwidth";
        check(flag, self.bandwidth, bandwidth, is_busy, bytes)
    }
}

fn check(
    flag: &str,
    expected: Option<u64>,
    measured: Option<f64>,
    is_busy: bool,
    show: impl Fn(f64) -> String,
) -> Result<()> {
    let Some((expected, measured)) = expected.zip(measured) else {
        return Ok(());
    };
    let expected = expected as f64;
    let (least, most) = (expected * (1.0 - TOLERANCE), expected * (1.0 + TOLERANCE));
    let wrong = match measured {
        _ if measured > most => "faster",
        _ if measured < least && !is_busy => "slower",
        _ => return Ok(()),
    };
    bail!(
        "{flag} {}: the slow disk is {wrong}, {} a second were measured \
         (limit a block device with scripts/slow-disk, or emulate one with --slow-iops)",
        show(expected),
        show(measured)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::RandomReads;

    fn expected(iops: Option<u64>, bandwidth: Option<u64>) -> Expected {
        let args = ExpectArgs {
            expect_slow_iops: iops,
            expect_slow_bandwidth: bandwidth,
        };
        args.plan(None, SlowDevice::default()).unwrap()
    }

    fn compare(iops: Option<u64>, bandwidth: Option<u64>, is_busy: bool) -> Result<(), String> {
        let probe = DiskProbe {
            random_read_4k: Some(RandomReads {
                iops: 5000.0,
                bytes_s: 0.0,
                mean_us: 0.0,
            }),
            sequential_read_bytes_s: Some(500e6),
            ..DiskProbe::default()
        };
        let expected = expected(iops, bandwidth);
        let compared = expected.compare(&probe, is_busy);
        compared.map_err(|error| error.to_string())
    }

    #[test]
    fn a_quarter_off_is_refused_with_both_figures() {
        assert_eq!(compare(Some(5000), Some(500_000_000), false), Ok(()));
        assert_eq!(compare(Some(4001), Some(660_000_000), false), Ok(()));
        let error = compare(Some(400), None, false).unwrap_err();
        assert!(
            error.contains("--expect-slow-iops 400") && error.contains("faster, 5000 a second"),
            "{error}"
        );
        let error = compare(None, Some(1_000_000_000), false).unwrap_err();
        assert!(
            error.contains("--expect-slow-bandwidth") && error.contains("slower"),
            "{error}"
        );
    }

    #[test]
    fn a_disk_in_use_may_be_slower_and_not_faster() {
        assert_eq!(compare(Some(50_000), Some(5_000_000_000), true), Ok(()));
        assert!(compare(Some(400), None, true).is_err());
    }

    #[test]
    fn what_cannot_be_measured_meets_no_expectation() {
        let expected = expected(Some(5000), None);
        let probe = DiskProbe::refused("it is a tmpfs".to_owned());
        let error = expected.compare(&probe, false).unwrap_err().to_string();
        assert!(error.contains("it is a tmpfs"), "{error}");
    }
}
