//! Which part of the reads the hottest records draw, for the curve of what a target buys.

use super::Ralt;

/// What records of about the same hotness take and draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mass {
    /// Bytes of keys and values.
    pub(crate) bytes: f64,
    /// Their scores together: about as many reads, of late.
    pub(crate) reads: f64,
}

impl Ralt {
    /// The part of all accesses of late that go to a record, for each point of its score now. A
    /// record of one access a slice has gathered as many points as slices have passed, but for what
    /// has decayed of them.
    pub(crate) fn accesses_of_score(&self) -> f64 {
        let shared = &self.shared;
        let (version, now) = (shared.version.load(), shared.now());
        let (mut records, mut bytes) = (0, 0);
        for bin in version.bins() {
            records += bin.records;
            bytes += bin.hot_rap;
        }
        let slices = now.tick as f64 + f64::from(now.fraction).max(0.1);
        let decay = shared.model.decay;
        let gathered = match decay > 0.0 {
            true => (1.0 - (-decay * slices).exp()) / (1.0 - (-decay).exp()),
            false => slices,
        };
        let mean = bytes as f64 / f64::from(u32::try_from(records).unwrap_or(u32::MAX).max(1));
        mean / shared.sizes.slice as f64 / gathered.max(0.1)
    }

    /// All tracked records, the hottest first, by what the tables' histograms say.
    pub(crate) fn masses(&self) -> Vec<Mass> {
        let shared = &self.shared;
        let (version, now) = (shared.version.load(), shared.now());
        // A key may be in several tables. Its reads add up, its bytes do not.
        let (lowest, above) = version.sums();
        let hot = lowest.hot + above.hot;
        let once = match hot {
            0 => 1.0,
            hot => version.hot_set() as f64 / hot as f64,
        };
        let mut bins: Vec<_> = version.bins().copied().collect();
        bins.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        let mass = |bin: super::histogram::Bin| Mass {
            bytes: bin.hot_rap as f64 * once,
            reads: shared.model.score_at(bin.rank, now).max(0.0) * bin.records as f64,
        };
        bins.into_iter().map(mass).collect()
    }
}
