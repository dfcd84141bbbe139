//! What the process has used.

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};

/// Processor time and memory of this process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    /// Processor time of all threads, in user mode and in the kernel.
    pub(crate) cpu_seconds: f64,
    /// Most memory resident at any time.
    pub(crate) max_rss_bytes: u64,
}

impl Usage {
    pub(crate) fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).context("cannot read the resource usage")?;
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        // Linux counts in KiB, Apple's systems in bytes.
        let unit = if cfg!(target_vendor = "apple") {
            1
        } else {
            1024
        };
        Ok(Self {
            cpu_seconds: seconds(usage.user_time()) + seconds(usage.system_time()),
            max_rss_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * unit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_grows_with_work() {
        let before = Usage::now().unwrap();
        let mut x = 1u64;
        while Usage::now().unwrap().cpu_seconds <= before.cpu_seconds {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(before.max_rss_bytes > 1 << 20);
    }
}
