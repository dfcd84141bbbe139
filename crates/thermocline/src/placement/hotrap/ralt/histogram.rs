//! How much of a table scores how high. Thresholds are computed from this, without a scan.

use crate::coding::{Decoder, put_varint};

/// The most bins for records that cease to be stable in one epoch.
pub(super) const BINS: usize = 16;

/// Records of about one rank.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bin {
    /// Their mean rank.
    pub(super) rank: f64,
    /// The epoch in which they cease to be stable, or that of their table if they had ceased
    /// before; 0 if they never were.
    pub(super) stable_before: u64,
    pub(super) records: u64,
    /// Their HotRAP size, hot or not.
    pub(super) hot_rap: u64,
    /// Their part of the table's file.
    pub(super) physical: u64,
}

/// A record as a histogram takes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) rank: f64,
    pub(super) stable_before: u64,
    pub(super) hot_rap: u64,
    pub(super) stored: u64,
}

/// The bins of one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram {
    pub(super) bins: Vec<Bin>,
}

impl Histogram {
    /// The histogram of a table of `file_len` bytes, which its records share by their stored size.
    pub(super) fn new(samples: &mut [Sample], file_len: u64) -> Self {
        samples.sort_unstable_by(|a, b| {
            let class = a.stable_before.cmp(&b.stable_before);
            class.then(a.rank.total_cmp(&b.rank))
        });
        let stored: u64 = samples.iter().map(|sample| sample.stored).sum();
        let mut bins = Vec::new();
        let mut given = 0;
        let mut seen = 0;
        for class in samples.chunk_by(|a, b| a.stable_before == b.stable_before) {
            for part in class.chunks(class.len().div_ceil(BINS).max(1)) {
                let Some(first) = part.first() else { continue };
                seen += part.iter().map(|sample| sample.stored).sum::<u64>();
                // Cumulative, so that the parts add up to the file.
                let share = u128::from(file_len) * u128::from(seen) / u128::from(stored.max(1));
                let until = u64::try_from(share).unwrap_or(file_len);
                bins.push(Bin {
                    rank: part.iter().map(|s| s.rank).sum::<f64>() / part.len() as f64,
                    stable_before: first.stable_before,
                    records: part.len() as u64,
                    hot_rap: part.iter().map(|sample| sample.hot_rap).sum(),
                    physical: until - given,
                });
                given = until;
            }
        }
        Self { bins }
    }

    /// HotRAP size of all records.
    pub(super) fn hot_rap(&self) -> u64 {
        self.bins.iter().map(|bin| bin.hot_rap).sum()
    }

    /// Appends the stored form.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.bins.len() as u64);
        for bin in &self.bins {
            out.extend_from_slice(&bin.rank.to_bits().to_le_bytes());
            for number in [bin.stable_before, bin.records, bin.hot_rap, bin.physical] {
                put_varint(out, number);
            }
        }
    }

    /// Reads the stored form; `None` when it is damaged, or a bin holds more than `most` records
    /// or bytes.
    pub(super) fn decode(from: &mut Decoder<'_>, most: u64) -> Option<Self> {
        let sound = |number: u64| (number <= most).then_some(number);
        let count = from.varint()?;
        let mut bins = Vec::new();
        for _ in 0..count {
            let rank = f64::from_bits(from.u64()?);
            if !rank.is_finite() {
                return None;
            }
            bins.push(Bin {
                rank,
                stable_before: from.varint()?,
                records: sound(from.varint()?)?,
                hot_rap: sound(from.varint()?)?,
                physical: sound(from.varint()?)?,
            });
        }
        Some(Self { bins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64) -> Vec<Sample> {
        let sample = |i: u64| Sample {
            rank: (i * 7919 % count) as f64,
            stable_before: i % 3,
            hot_rap: 100 + i % 5,
            stored: 30 + i % 7,
        };
        (0..count).map(sample).collect()
    }

    #[test]
    fn nothing_is_lost_and_bins_are_few() {
        for count in [1, 10, 1000] {
            let mut all = samples(count);
            let histogram = Histogram::new(&mut all, 50_021);
            let sum = |of: fn(&Bin) -> u64| histogram.bins.iter().map(of).sum::<u64>();
            assert_eq!(sum(|bin| bin.records), count);
            assert_eq!(sum(|bin| bin.physical), 50_021);
            assert_eq!(
                histogram.hot_rap(),
                all.iter().map(|s| s.hot_rap).sum::<u64>()
            );
            assert!(histogram.bins.len() <= 3 * BINS);
            let mut bytes = Vec::new();
            histogram.encode(&mut bytes);
            let decoded = Histogram::decode(&mut Decoder::new(&bytes), 50_021 * 104);
            assert_eq!(decoded, Some(histogram));
        }
    }

    #[test]
    fn bins_hold_neighbours_by_rank() {
        let histogram = Histogram::new(&mut samples(999), 1000);
        let class: Vec<_> = histogram
            .bins
            .iter()
            .filter(|b| b.stable_before == 1)
            .collect();
        assert!(class.is_sorted_by(|a, b| a.rank < b.rank));
        assert!(class.iter().all(|bin| bin.records <= 21));
    }
}
