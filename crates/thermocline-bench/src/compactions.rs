//! Compactions by the levels that they move between. They show where a store's write amplification
//! comes from.

use serde::Serialize;

/// What the compactions from one level to another did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LevelCompactions {
    /// The level of their input.
    pub from: u8,
    /// The level of their output, though perhaps not of all of it: what is hot may stay.
    pub to: u8,
    /// Jobs.
    pub jobs: u64,
    /// How many of these gave tables another level without rewriting them.
    pub moves: u64,
    /// Bytes read, from all disks.
    pub read_bytes: u64,
    /// Bytes written, to all disks.
    pub write_bytes: u64,
    /// Time that they took, in seconds of all threads.
    pub seconds: f64,
}

impl LevelCompactions {
    fn since(&self, earlier: &Self) -> Self {
        let less = u64::saturating_sub;
        Self {
            jobs: less(self.jobs, earlier.jobs),
            moves: less(self.moves, earlier.moves),
            read_bytes: less(self.read_bytes, earlier.read_bytes),
            write_bytes: less(self.write_bytes, earlier.write_bytes),
            seconds: (self.seconds - earlier.seconds).max(0.0),
            ..*self
        }
    }
}

/// What was done between two counts, for those pairs of levels between which anything was done.
pub(crate) fn since(now: &[LevelCompactions], then: &[LevelCompactions]) -> Vec<LevelCompactions> {
    let since = |now: &LevelCompactions| {
        let alike = |then: &&LevelCompactions| (then.from, then.to) == (now.from, now.to);
        then.iter().find(alike).map_or(*now, |then| now.since(then))
    };
    let done = now.iter().map(since);
    done.filter(|levels| levels.jobs > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_by_both_levels() {
        let levels = |from, to, jobs: u64| LevelCompactions {
            from,
            to,
            jobs,
            moves: jobs / 2,
            read_bytes: 10 * jobs,
            write_bytes: 20 * jobs,
            seconds: jobs as f64,
        };
        let then = [levels(0, 1, 4), levels(1, 2, 6)];
        let now = [levels(0, 1, 10), levels(1, 2, 6), levels(1, 4, 2)];
        assert_eq!(since(&now, &then), [levels(0, 1, 6), levels(1, 4, 2)]);
    }
}
