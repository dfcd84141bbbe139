//! What the process has used.

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

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
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            max_rss_bytes: max_rss()?,
        })
    }
}

/// What Linux tells of it.
#[cfg(target_os = "linux")]
fn max_rss() -> Result<u64> {
    let file = "/proc/self/status";
    let status = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Ok(kib.with_context(|| format!("{file} has no VmHWM"))? * 1024)
}

/// Nothing tells it here: none.
#[cfg(not(target_os = "linux"))]
fn max_rss() -> Result<u64> {
    Ok(0)
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
