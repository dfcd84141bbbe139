//! A part of the run that is not measured. After it the store knows what is hot when the measuring
//! begins.

use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::plan::End;

/// How long to warm up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUpLength {
    /// By time.
    Time(Duration),
    /// By operations.
    Ops(u64),
}

impl FromStr for WarmUpLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let explain = || format!("`{text}`: give operations or a time, like 1000000 or 60s");
        let length = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            WarmUpLength::Ops(text.parse().map_err(|_| explain())?)
        } else {
            WarmUpLength::Time(humantime::parse_duration(text).map_err(|_| explain())?)
        };
        match length {
            WarmUpLength::Ops(0) | WarmUpLength::Time(Duration::ZERO) => Err(explain()),
            _ => Ok(length),
        }
    }
}

/// Flags of the warm-up.
#[derive(Debug, Clone, clap::Args)]
pub struct WarmUpArgs {
    /// Run the workload so long, or so many operations, before measuring; of a distribution with
    /// stages the first
    #[arg(long, value_name = "TIME|OPS")]
    pub warm_up: Option<WarmUpLength>,

    /// Warm up without the limits of --slow-iops, --slow-bandwidth and --slow-latency
    #[arg(long, requires = "warm_up")]
    pub warm_up_unthrottled: bool,

    /// Run this by `sh -c` between warming up and measuring, for example to limit a real disk;
    /// the benchmark fails if it does
    #[arg(long, value_name = "COMMAND", requires = "warm_up")]
    pub after_warm_up: Option<String>,
}

/// A warm-up with everything decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WarmUp {
    pub(crate) end: End,
    pub(crate) unthrottled: bool,
    after: Option<String>,
}

impl WarmUpArgs {
    /// Checks the flags. `limited` says whether a slow disk is emulated.
    ///
    /// # Errors
    /// There are no limits to lift.
    pub(crate) fn plan(&self, limited: bool) -> Result<Option<WarmUp>> {
        ensure!(
            limited || !self.warm_up_unthrottled,
            "--warm-up-unthrottled: there is no limit to lift; it needs --slow-iops, \
             --slow-bandwidth or --slow-latency (limit a real disk with --after-warm-up)"
        );
        let Some(length) = self.warm_up else {
            return Ok(None);
        };
        let (ops, duration) = match length {
            WarmUpLength::Time(time) => (None, Some(time)),
            WarmUpLength::Ops(ops) => (Some(ops), None),
        };
        Ok(Some(WarmUp {
            end: End { ops, duration },
            unthrottled: self.warm_up_unthrottled,
            after: self.after_warm_up.clone(),
        }))
    }
}

impl WarmUp {
    /// Whether a command follows the warm-up. It may change what the disks can do.
    pub(crate) fn has_command(&self) -> bool {
        self.after.is_some()
    }

    /// Runs the command that follows the warm-up, if there is one.
    ///
    /// # Errors
    /// It cannot be run, or fails.
    pub(crate) fn finish(&self) -> Result<()> {
        let Some(command) = &self.after else {
            return Ok(());
        };
        let status = Command::new("sh").arg("-c").arg(command).status();
        let status = status.context("--after-warm-up: cannot run sh")?;
        ensure!(status.success(), "--after-warm-up: `{command}`: {status}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::parse;

    #[test]
    fn a_length_is_operations_or_a_time() {
        assert_eq!("5000".parse(), Ok(WarmUpLength::Ops(5000)));
        let minute = Duration::from_secs(60);
        assert_eq!("1m".parse(), Ok(WarmUpLength::Time(minute)));
        for bad in ["", "0", "0s", "soon", "99999999999999999999"] {
            let error = bad.parse::<WarmUpLength>().unwrap_err();
            assert!(error.contains("like 1000000 or 60s"), "{bad}: {error}");
        }
    }

    #[test]
    fn flags_that_mean_nothing_are_refused() {
        let error = parse("--after-warm-up true").unwrap_err();
        assert!(error.contains("--warm-up"), "{error}");
        for (flags, words) in [
            ("--warm-up 5 --warm-up-unthrottled", "no limit to lift"),
            ("--warm-up 5 --phase load", "--phase load runs nothing"),
        ] {
            let error = parse(flags).unwrap().plan().err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_command_that_fails_is_named() {
        let warm_up = |after: &str| WarmUp {
            end: End {
                ops: Some(1),
                duration: None,
            },
            unthrottled: false,
            after: Some(after.to_owned()),
        };
        warm_up("true").finish().unwrap();
        let error = warm_up("exit 3").finish().unwrap_err().to_string();
        assert!(error.contains("exit 3") && error.contains('3'), "{error}");
    }
}
