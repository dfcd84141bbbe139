//! What was spent, second by second.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ByActivity, ByDisk, Io};

/// What a run, or one entry of its series, took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) cpu: ByActivity<f64>,
    pub(crate) io: Option<ByDisk<ByActivity<Io>>>,
}

impl Spent {
    /// What each period took. `until` gives the ends of the periods, each as what was spent since
    /// the beginning. An account that holds what is left over falls again once it is known which
    /// activity that was for: it never was its own. So each account is lowered to its least later
    /// value, and the parts add up to the last.
    pub(crate) fn parts(until: &[Self]) -> Vec<Self> {
        let mut least: Vec<Self> = Vec::with_capacity(until.len());
        for spent in until.iter().rev() {
            least.push(least.last().map_or(*spent, |later| spent.least(later)));
        }
        let mut before = Self::default();
        let parts = least.into_iter().rev().map(|now| {
            let part = now.since(&before);
            before = now;
            part
        });
        parts.collect()
    }

    fn least(&self, other: &Self) -> Self {
        let io = self.io.zip(other.io).map(|(one, other)| ByDisk {
            fast: one.fast.least(&other.fast),
            slow: one.slow.least(&other.slow),
        });
        Self {
            cpu: self.cpu.least(&other.cpu),
            io,
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        let before = earlier.io.unwrap_or_default();
        let io = self.io.map(|now| ByDisk {
            fast: now.fast.since(&before.fast),
            slow: now.slow.since(&before.slow),
        });
        Self {
            cpu: self.cpu.since(&earlier.cpu),
            io,
        }
    }
}

/// One number for each entry of the series, by activity and what is counted: "read_ops",
/// "read_bytes", "write_ops", "write_bytes".
pub type IoSeries = BTreeMap<&'static str, BTreeMap<&'static str, Vec<u64>>>;

/// What a run spent over time: arrays with one number for each entry of its series. Arrays of zeros
/// are left out, so that ten minutes stay well below a megabyte.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ActivitySeries {
    /// Processor time in seconds, by activity.
    pub cpu_seconds: BTreeMap<&'static str, Vec<f64>>,
    /// I/O of each disk.
    pub io: ByDisk<IoSeries>,
}

impl ActivitySeries {
    pub(crate) fn new(spent: &[Spent]) -> Self {
        let mut cpu_seconds = BTreeMap::new();
        for (at, second) in spent.iter().enumerate() {
            for (activity, seconds) in second.cpu.iter() {
                // To a tenth of a millisecond: more digits would be noise.
                let rounded = (seconds * 1e4).round() / 1e4;
                put(&mut cpu_seconds, activity.name(), at, spent.len(), rounded);
            }
        }
        let disk = |of: fn(&ByDisk<ByActivity<Io>>) -> &ByActivity<Io>| {
            let mut series = IoSeries::new();
            for (at, second) in spent.iter().enumerate() {
                for (activity, io) in second.io.iter().flat_map(|io| of(io).iter()) {
                    for (what, count) in named(&io) {
                        if count > 0 {
                            let columns = series.entry(activity.name()).or_default();
                            put(columns, what, at, spent.len(), count);
                        }
                    }
                }
            }
            series
        };
        Self {
            cpu_seconds,
            io: ByDisk {
                fast: disk(|io| &io.fast),
                slow: disk(|io| &io.slow),
            },
        }
    }
}

fn named(io: &Io) -> [(&'static str, u64); 4] {
    [
        ("read_ops", io.read_ops),
        ("read_bytes", io.read_bytes),
        ("write_ops", io.write_ops),
        ("write_bytes", io.write_bytes),
    ]
}

/// Puts a value into its place in a column of `len`. The first value begins the column.
fn put<T: Clone + Default + PartialEq>(
    columns: &mut BTreeMap<&'static str, Vec<T>>,
    name: &'static str,
    at: usize,
    len: usize,
    value: T,
) {
    if value == T::default() {
        return;
    }
    let column = columns
        .entry(name)
        .or_insert_with(|| vec![T::default(); len]);
    if let Some(place) = column.get_mut(at) {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Activity;
    use serde_json::json;

    fn spent(cpu: &[(Activity, f64)], slow: &[(Activity, Io)]) -> Spent {
        let mut spent = Spent {
            cpu: ByActivity::default(),
            io: Some(ByDisk::default()),
        };
        for (activity, seconds) in cpu {
            spent.cpu.add(*activity, *seconds);
        }
        for (activity, io) in slow {
            spent.io.as_mut().unwrap().slow.add(*activity, *io);
        }
        spent
    }

    #[test]
    fn ten_minutes_of_everything_stay_below_half_a_megabyte() {
        let io = Io {
            read_ops: 60_123,
            read_bytes: 1_234_567_890,
            write_ops: 1_234,
            write_bytes: 1_234_567_890,
        };
        let own = Activity::ALL
            .into_iter()
            .filter(|activity| !matches!(activity, Activity::Background | Activity::Unattributed));
        let mut second = spent(&[], &[]);
        for activity in own {
            second.cpu.add(activity, 1.234_56);
            let disks = second.io.as_mut().unwrap();
            disks.fast.add(activity, io);
            disks.slow.add(activity, io);
        }
        let series = ActivitySeries::new(&[second; 600]);
        let json = serde_json::to_vec(&series).unwrap();
        assert!(json.len() < 500_000, "{}", json.len());
    }

    /// Regression: by time, RocksDB's `other` had eleven times as many bytes as in all. Each rise
    /// of it counted, and no fall.
    #[test]
    fn what_is_spent_by_time_is_what_is_spent_in_all() {
        let read = |read_bytes| Io {
            read_bytes,
            ..Io::default()
        };
        let until =
            [(0, 0.5), (30, 0.25), (10, 1.0), (50, 1.5), (20, 1.25)].map(|(bytes, seconds)| {
                spent(
                    &[(Activity::Other, seconds)],
                    &[(Activity::Other, read(bytes))],
                )
            });
        let parts = Spent::parts(&until);
        let cpu = |part: &Spent| part.cpu.get(Activity::Other).unwrap();
        let bytes = |part: &Spent| {
            part.io
                .unwrap()
                .slow
                .get(Activity::Other)
                .unwrap()
                .read_bytes
        };
        assert_eq!(
            parts.iter().map(cpu).collect::<Vec<_>>(),
            [0.25, 0.0, 0.75, 0.25, 0.0]
        );
        assert_eq!(
            parts.iter().map(bytes).collect::<Vec<_>>(),
            [0, 10, 0, 10, 0]
        );
    }

    #[test]
    fn columns_are_as_long_as_the_series_and_zeros_are_left_out() {
        let io = Io {
            read_ops: 3,
            read_bytes: 4096,
            ..Io::default()
        };
        let series = ActivitySeries::new(&[
            spent(&[(Activity::Read, 0.25), (Activity::Flush, 0.0)], &[]),
            spent(&[(Activity::Read, 0.123_456)], &[(Activity::Read, io)]),
            spent(
                &[(Activity::Other, 0.5)],
                &[(Activity::Write, Io::default())],
            ),
        ]);
        let expected = json!({
            "cpu_seconds": {"read": [0.25, 0.1235, 0.0], "other": [0.0, 0.0, 0.5]},
            "io": {
                "fast": {},
                "slow": {"read": {"read_ops": [0, 3, 0], "read_bytes": [0, 4096, 0]}},
            },
        });
        assert_eq!(serde_json::to_value(&series).unwrap(), expected);
    }
}
