//! What placement by hotness did during a run.

use std::fmt;

use bytesize::ByteSize;
use serde::Serialize;

use crate::counters::Counters;

/// Placement by hotness: sizes as of the end, totals of the run. All `null` without it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Hotness {
    /// Keys and values that are hot.
    pub hot_set_bytes: Option<u64>,
    /// What they are limited to.
    pub hot_set_limit_bytes: Option<u64>,
    /// Keys and values of hot records that lie on the fast tier in their newest version, as counted
    /// after the run. At most what the fast tier holds, while `hot_set_bytes` are anywhere.
    pub hot_bytes_on_fast: Option<u64>,
    /// Access records on the fast tier.
    pub ralt_bytes: Option<u64>,
    /// What they are limited to.
    pub ralt_limit_bytes: Option<u64>,
    /// Memory for access records.
    pub ralt_memory_bytes: Option<u64>,
    /// Processor time of the work on access records.
    pub ralt_cpu_seconds: Option<f64>,
    /// Its share of the processor time of the run.
    pub ralt_cpu_share: Option<f64>,
    /// Bytes read for access records.
    pub ralt_read_bytes: Option<u64>,
    /// Bytes written for access records.
    pub ralt_write_bytes: Option<u64>,
    /// Their share of all bytes read from and written to both disks.
    pub ralt_io_share: Option<f64>,
    /// Bytes of records promoted as tables of L0.
    pub promoted_flush_bytes: Option<u64>,
    /// Bytes of records promoted by compactions.
    pub promoted_compaction_bytes: Option<u64>,
    /// Bytes of records that compactions kept on the fast tier.
    pub retained_bytes: Option<u64>,
    /// Records offered to the promotion cache.
    pub admission_attempts: Option<u64>,
    /// Records that it did not take.
    pub admission_refused: Option<u64>,
}

impl Hotness {
    /// What the `counters` of a run say, which took `cpu_seconds`.
    pub(super) fn new(counters: &Counters, cpu_seconds: f64) -> Self {
        let Some(hot) = counters.hotness else {
            return Self::default();
        };
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let io = counters.io_bytes();
        Self {
            hot_set_bytes: Some(hot.hot_set_bytes),
            hot_set_limit_bytes: Some(hot.hot_set_limit_bytes),
            // Is counted apart.
            hot_bytes_on_fast: None,
            ralt_bytes: Some(hot.ralt_bytes),
            ralt_limit_bytes: Some(hot.ralt_limit_bytes),
            ralt_memory_bytes: Some(hot.ralt_memory_bytes),
            ralt_cpu_seconds: Some(hot.ralt_cpu_seconds),
            ralt_cpu_share: share(hot.ralt_cpu_seconds, cpu_seconds),
            ralt_read_bytes: Some(hot.ralt_read_bytes),
            ralt_write_bytes: Some(hot.ralt_write_bytes),
            ralt_io_share: io.and_then(|all| share(hot.ralt_io_bytes() as f64, all as f64)),
            promoted_flush_bytes: Some(hot.promoted_flush_bytes),
            promoted_compaction_bytes: Some(hot.promoted_compaction_bytes),
            retained_bytes: Some(hot.retained_bytes),
            admission_attempts: Some(hot.admission_attempts),
            admission_refused: Some(hot.admission_refused),
        }
    }
}

impl fmt::Display for Hotness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: Option<u64>| ByteSize(bytes.unwrap_or(0));
        let percent = |share: Option<f64>| share.unwrap_or(0.0) * 100.0;
        if self.hot_set_limit_bytes.is_none() {
            return Ok(());
        }
        writeln!(
            f,
            "  hot           {} of {} allowed; access records {} of {}, {} of memory",
            size(self.hot_set_bytes),
            size(self.hot_set_limit_bytes),
            size(self.ralt_bytes),
            size(self.ralt_limit_bytes),
            size(self.ralt_memory_bytes)
        )?;
        writeln!(
            f,
            "  moved         {} promoted by flush, {} by compaction; {} kept; {} of {} refused",
            size(self.promoted_flush_bytes),
            size(self.promoted_compaction_bytes),
            size(self.retained_bytes),
            self.admission_refused.unwrap_or(0),
            self.admission_attempts.unwrap_or(0)
        )?;
        writeln!(
            f,
            "  tracking      {:.1} % of the processor time, {:.1} % of the bytes moved",
            percent(self.ralt_cpu_share),
            percent(self.ralt_io_share)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::HotCounters;

    #[test]
    fn shares_are_of_all_time_and_of_all_bytes() {
        let mut counters = Counters {
            fd_read_bytes: Some(100),
            fd_write_bytes: Some(200),
            sd_read_bytes: Some(300),
            sd_write_bytes: Some(400),
            hotness: Some(HotCounters {
                ralt_cpu_seconds: 0.5,
                ralt_read_bytes: 20,
                ralt_write_bytes: 30,
                ..HotCounters::default()
            }),
            ..Counters::default()
        };
        let hotness = Hotness::new(&counters, 10.0);
        assert_eq!(
            (hotness.ralt_cpu_share, hotness.ralt_io_share),
            (Some(0.05), Some(0.05))
        );
        assert!(hotness.to_string().contains("5.0 % of the processor time"));
        counters.hotness = None;
        assert_eq!(Hotness::new(&counters, 10.0), Hotness::default());
        assert_eq!(Hotness::default().to_string(), "");
    }

    #[test]
    fn each_number_has_its_own_name_in_the_json() {
        let counters = Counters {
            hotness: Some(HotCounters {
                hot_set_bytes: 1,
                hot_set_limit_bytes: 2,
                ralt_bytes: 3,
                ralt_limit_bytes: 4,
                ralt_memory_bytes: 5,
                ralt_cpu_seconds: 6.5,
                ralt_read_bytes: 7,
                ralt_write_bytes: 8,
                promoted_flush_bytes: 9,
                promoted_compaction_bytes: 10,
                retained_bytes: 11,
                admission_attempts: 12,
                admission_refused: 13,
            }),
            ..Counters::default()
        };
        let hotness = Hotness {
            hot_bytes_on_fast: Some(14),
            ..Hotness::new(&counters, 13.0)
        };
        let json = serde_json::to_value(hotness).unwrap();
        let wanted = serde_json::json!({
            "hot_set_bytes": 1,
            "hot_set_limit_bytes": 2,
            "hot_bytes_on_fast": 14,
            "ralt_bytes": 3,
            "ralt_limit_bytes": 4,
            "ralt_memory_bytes": 5,
            "ralt_cpu_seconds": 6.5,
            "ralt_cpu_share": 0.5,
            "ralt_read_bytes": 7,
            "ralt_write_bytes": 8,
            // It is not known what the disks did.
            "ralt_io_share": null,
            "promoted_flush_bytes": 9,
            "promoted_compaction_bytes": 10,
            "retained_bytes": 11,
            "admission_attempts": 12,
            "admission_refused": 13,
        });
        assert_eq!(json, wanted);
    }
}
