//! The disks that a suite is measured on, and what they can do.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::SuiteArgs;
use super::definition::SlowLimits;
use super::harness::Harness;
use super::record::replace;
use crate::host::Host;
use crate::probe::{Probe, ProbeArgs};
use crate::settings::{Dirs, SlowDeviceArgs};

/// The file in the directory of the results.
const NAME: &str = "probe.json";

/// The machine, with its disks if they are named.
///
/// # Errors
/// The directories cannot be made.
pub(super) fn host(args: &SuiteArgs) -> Result<Host> {
    let (Some(fast), Some(slow)) = (&args.fast, &args.slow) else {
        return Ok(Host::new());
    };
    // A missing directory lies on no disk, so an interrupted suite would later find another
    // machine.
    for dir in [fast, slow] {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    Ok(Host::with_disks(&Dirs::two(fast.clone(), slow.clone())))
}

/// When the suite begins, has `probe` measure what the named disks can do, the slow one under
/// `limits` if there is a way to set them, and leaves the figures with the results `out`. Once it
/// `has_results`, the figures stay. Before that, a run may have refused the disk, which has got its
/// limits since. Emulated disks, and temporary ones, are not worth a probe.
///
/// # Errors
/// The file systems', or of what sets the limits.
pub(super) fn probe_once(
    args: &SuiteArgs,
    out: &Path,
    limits: Option<SlowLimits>,
    has_results: bool,
    harness: &mut dyn Harness,
    probe: impl FnOnce(&ProbeArgs) -> Result<Probe>,
) -> Result<()> {
    let (Some(fast), Some(slow)) = (&args.fast, &args.slow) else {
        return Ok(());
    };
    let path = out.join(NAME);
    if has_results && path.exists() {
        return Ok(());
    }
    if let Some((command, limits)) = args.limit_slow.as_ref().zip(limits) {
        let line = format!("{command} {} {}", limits.iops, limits.bandwidth);
        harness.shell(&line).context("--limit-slow")?;
    }
    let probed = probe(&ProbeArgs {
        fast: fast.clone(),
        slow: vec![slow.clone()],
        slow_device: SlowDeviceArgs::default(),
    })?;
    replace(&path, &serde_json::to_vec_pretty(&probed)?)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::probe::DiskProbe;
    use crate::suite::cell::Cell;
    use crate::suite::harness::Ended;

    #[test]
    fn named_disks_are_part_of_the_machine_whether_their_directories_exist_or_not() {
        let home = tempfile::tempdir().unwrap();
        let args = SuiteArgs {
            fast: Some(home.path().join("fast")),
            slow: Some(home.path().join("slow")),
            suite: "smoke".to_owned(),
            out: None,
            only: Vec::new(),
            limit_slow: None,
            list: false,
        };
        let before = host(&args).unwrap();
        assert_eq!(before, host(&args).unwrap());
        assert!(before.fast.is_some() && before.slow.is_some());
        let without = SuiteArgs {
            fast: None,
            slow: None,
            ..args
        };
        assert_eq!(host(&without).unwrap(), Host::new());
    }

    /// A harness that is not asked for anything.
    struct Idle;

    impl Harness for Idle {
        fn is_loaded(&mut self, _cell: &Cell) -> Result<bool> {
            unreachable!()
        }

        fn bench(&mut self, _words: &[String], _tick: &mut dyn FnMut()) -> Result<Ended> {
            unreachable!()
        }

        fn shell(&mut self, _command: &str) -> Result<()> {
            unreachable!()
        }
    }

    fn named(limit_slow: Option<&str>) -> SuiteArgs {
        SuiteArgs {
            fast: Some("/missing/fast".into()),
            slow: Some("/missing/slow".into()),
            suite: "smoke".to_owned(),
            out: None,
            only: Vec::new(),
            limit_slow: limit_slow.map(str::to_owned),
            list: false,
        }
    }

    #[test]
    fn what_was_probed_stays_with_results() {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join(NAME), "{}").unwrap();
        let (args, limits) = (named(Some("limit")), Some(SlowLimits::NONE));
        let probe = |_: &ProbeArgs| panic!("the disks are not measured again");
        probe_once(&args, out.path(), limits, true, &mut Idle, probe).unwrap();
        assert_eq!(fs::read(out.path().join(NAME)).unwrap(), b"{}");
    }

    /// Regression: a disk without limits was probed, and the first run refused it. When the disk
    /// had its limits, the probe was still the old one: reports showed another disk, and results
    /// could not be compared.
    #[test]
    fn what_was_probed_before_any_result_is_probed_anew() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join(NAME);
        let probe_at = |has_results, speed| {
            let probe = |disks: &ProbeArgs| {
                assert_eq!(disks.slow, [Path::new("/missing/slow")]);
                let disk = DiskProbe {
                    sequential_read_bytes_s: Some(speed),
                    ..DiskProbe::default()
                };
                Ok(Probe {
                    fast: DiskProbe::default(),
                    slow: disk,
                    slower: Vec::new(),
                })
            };
            let args = named(None);
            probe_once(&args, out.path(), None, has_results, &mut Idle, probe).unwrap();
            let probed: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            probed["slow"]["sequential_read_bytes_s"].as_f64().unwrap()
        };
        assert_eq!(probe_at(false, 3e9), 3e9);
        assert_eq!(probe_at(false, 5e8), 5e8);
        assert_eq!(probe_at(true, 7e8), 5e8);
        // Results from before there were probes, or whose probe somebody has removed.
        fs::remove_file(&path).unwrap();
        assert_eq!(probe_at(true, 7e8), 7e8);
    }
}
