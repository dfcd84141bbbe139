//! What a run did over time: its warm-up and what was measured, on one axis.

use crate::results::{ActivitySeries, Run, Second};

/// A run, or its warm-up.
pub(super) struct Part<'a> {
    /// When it began, in seconds since measuring began.
    pub(super) begin: f64,
    /// Its samples, by the time since the part began.
    pub(super) series: &'a [Second],
    /// What each of them took.
    pub(super) spent: Option<&'a ActivitySeries>,
}

impl<'a> Part<'a> {
    /// The measured part of `run`.
    pub(super) fn measured(run: &'a Run) -> Self {
        Self {
            begin: 0.0,
            series: &run.series,
            spent: run.activity_series.as_ref(),
        }
    }

    /// The warm-up of `run`, if that was recorded, and the measured part.
    pub(super) fn with_warm_up(run: &'a Run) -> Vec<Self> {
        let mut warm_up = Self {
            begin: 0.0,
            series: &run.warm_up_series,
            spent: run.warm_up_activity_series.as_ref(),
        };
        warm_up.begin = -warm_up.seconds();
        let recorded = (!warm_up.series.is_empty()).then_some(warm_up);
        recorded.into_iter().chain([Self::measured(run)]).collect()
    }

    /// Its length.
    pub(super) fn seconds(&self) -> f64 {
        self.series.last().map_or(0.0, |last| last.second)
    }

    /// Bytes a second of `kinds` in entry `at` of the series.
    pub(super) fn rate(
        &self,
        at: usize,
        tier: &str,
        activity: &str,
        kinds: &[&str],
    ) -> Option<f64> {
        let before = at.checked_sub(1).and_then(|at| self.series.get(at));
        let length = self.series.get(at)?.second - before.map_or(0.0, |before| before.second);
        // What took nothing is left out.
        let columns = self.spent?.io.get(tier).and_then(|io| io.get(activity));
        let bytes: f64 = kinds
            .iter()
            .filter_map(|kind| columns?.get(*kind)?.get(at))
            .fold(0.0, |sum, bytes| sum + bytes);
        (length > 0.0).then(|| bytes / length)
    }
}
