//! How accesses become scores and counters (HotRAP, §3.2 and §3.7), in forms that time does not
//! change, so that no record is ever rewritten because it aged.

use xxhash_rust::xxh3::xxh3_64;

use super::record::Record;
use crate::options::{HotRapOptions, Scoring};

/// Steps of a counter in one epoch.
pub(super) const UNIT: u64 = 64;

/// Records of nearly equal rank are told apart by their keys' hashes: by this much of a rank, which
/// is a thousandth of a score. Otherwise an eviction could not take a part of those that were read
/// once in one slice.
const SPREAD: f64 = 1e-3;

/// When an access was.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Moment {
    /// The time slice.
    pub(super) tick: u64,
    /// How much of the slice was over.
    pub(super) fraction: f32,
    /// Evictions so far.
    pub(super) generation: u64,
}

/// Scores and counters as the options define them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Model {
    pub(super) scoring: Scoring,
    /// −ln α: what a slice takes from the logarithm of every score.
    pub(super) decay: f64,
    /// γ by R: an epoch is what takes 1 from every counter.
    pub(super) epochs_per_tick: f64,
    /// Δc and c_max.
    step: u64,
    cap: u64,
}

impl Model {
    pub(super) fn new(options: &HotRapOptions) -> Self {
        let fixed = |counter: f64| (counter * UNIT as f64).round() as u64;
        Self {
            scoring: options.switches().scoring,
            decay: -options.decay.ln(),
            epochs_per_tick: options.slice / options.hot_set_max,
            step: fixed(options.counter_step),
            cap: fixed(options.counter_max),
        }
    }

    /// Scores as a state on disk has them. The state does not tell what its counters are.
    pub(super) fn of_scores(scoring: Scoring, decay: f64, epochs_per_tick: f64) -> Self {
        Self {
            scoring,
            decay,
            epochs_per_tick,
            ..Self::new(&HotRapOptions::default())
        }
    }

    /// The counters' epoch in a time slice. It follows from the slice, since bytes accessed drive
    /// both: so a record's slice tells when its counter was set.
    pub(super) fn epoch(&self, tick: u64) -> u64 {
        (tick as f64 * self.epochs_per_tick) as u64
    }

    /// The record of `times` accesses at one moment to a key that was not tracked.
    pub(super) fn first(&self, now: Moment, value_len: u32, times: u32) -> Record {
        let counter = self.step.saturating_mul(u64::from(times)).min(self.cap);
        Record {
            value_len,
            tick: now.tick,
            score: match self.scoring {
                // Accesses in one slice count once.
                Scoring::Smoothing => 1.0,
                Scoring::Clock => now.generation as f32,
                Scoring::Lru => now.fraction,
            },
            stable_until: self
                .epoch(now.tick)
                .saturating_mul(UNIT)
                .saturating_add(counter),
            again: times > 1,
        }
    }

    /// What an older and a newer record of one key say together.
    pub(super) fn merge(&self, older: Record, newer: Record) -> Record {
        // Buffers fill side by side, so the slices say which record is newer.
        let (older, newer) = match older.tick > newer.tick {
            true => (newer, older),
            false => (older, newer),
        };
        let score = match self.scoring {
            Scoring::Smoothing => {
                let slices = (newer.tick - older.tick) as f64;
                let aged = f64::from(older.score) * (-self.decay * slices).exp();
                let twice = if slices == 0.0 { 1.0 } else { 0.0 };
                (aged + f64::from(newer.score) - twice) as f32
            }
            Scoring::Clock => older.score.max(newer.score),
            Scoring::Lru if older.tick == newer.tick => older.score.max(newer.score),
            Scoring::Lru => newer.score,
        };
        let epoch = self.epoch(newer.tick).saturating_mul(UNIT);
        let left = older.stable_until.saturating_sub(epoch);
        let gained = newer.stable_until.saturating_sub(epoch);
        Record {
            value_len: newer.value_len,
            tick: newer.tick,
            score: score.max(0.0),
            stable_until: epoch.saturating_add(left.saturating_add(gained).min(self.cap)),
            again: true,
        }
    }

    /// Whether the counter is above 0 and the tag set.
    pub(super) fn is_stable(&self, record: &Record, epoch: u64) -> bool {
        self.stable_before(record) > epoch
    }

    /// The epoch in which the record is no longer stable; 0 if it never was.
    pub(super) fn stable_before(&self, record: &Record) -> u64 {
        match record.again {
            true => record.stable_until.div_ceil(UNIT),
            false => 0,
        }
    }

    /// What records are ordered by. It does not change with time. With smoothing it is ln(score) −
    /// tick·ln α: the logarithm of the real score, except for a term that all have in common.
    pub(super) fn rank(&self, record: &Record, key: &[u8]) -> f64 {
        let spread = (xxh3_64(key) >> 11) as f64 / (1u64 << 53) as f64;
        self.bare_rank(record) + SPREAD * spread
    }

    fn bare_rank(&self, record: &Record) -> f64 {
        let score = f64::from(record.score);
        match self.scoring {
            // A score of 0 would be one that no access ever made.
            Scoring::Smoothing => {
                score.max(f64::MIN_POSITIVE).ln() + record.tick as f64 * self.decay
            }
            Scoring::Clock => score,
            Scoring::Lru => record.tick as f64 + score,
        }
    }

    /// The real score, as of now, of a record of this rank. With smoothing it is the paper's.
    /// Otherwise it is minus the number of evictions or slices since its last access.
    pub(super) fn score_at(&self, rank: f64, now: Moment) -> f64 {
        match self.scoring {
            Scoring::Smoothing => (rank - now.tick as f64 * self.decay).exp(),
            Scoring::Clock => rank - now.generation as f64,
            Scoring::Lru => rank - now.tick as f64 - f64::from(now.fraction),
        }
    }

    /// The real score of a record, as of now.
    pub(super) fn score(&self, record: &Record, now: Moment) -> f64 {
        self.score_at(self.bare_rank(record), now)
    }
}
