//! Watches a run: samples it, moves its stages on, and ends it.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Shared;
use super::timeline::{Second, Timeline, tick};
use crate::plan::End;

/// How often progress is looked at. A run's last tenth is cut out of these.
const TICK: Duration = Duration::from_millis(50);

/// Is told how a benchmark goes on.
pub(crate) trait Watch {
    /// So many of all records are loaded.
    fn loaded(&mut self, _records: u64, _of: u64) {}
    /// Loading waits for background work.
    fn settling(&mut self) {}
    /// From now on, seconds are of this part: "warming up" or "running".
    fn part(&mut self, _name: &'static str) {}
    /// A second has passed, `progress` (0 to 1) of the part in all.
    fn second(&mut self, _second: &Second, _progress: f64) {}
    /// Nobody is told any more: the run need not go on.
    fn is_gone(&self) -> bool {
        false
    }
}

impl Watch for () {}

/// Watches, `timeline` growing, until all clients have dropped their end of `finished`; tells them
/// to stop when time is up.
pub(super) fn watch(
    shared: &Shared<'_>,
    end: End,
    begin: Instant,
    mut timeline: Timeline,
    finished: &Receiver<()>,
    watch: &mut dyn Watch,
) -> Result<Timeline> {
    let mut failed = None;
    let mut stage = 0;
    loop {
        let over = finished.recv_timeout(TICK) == Err(RecvTimeoutError::Disconnected);
        let now = tick(shared, begin.elapsed().as_secs_f64());
        timeline.ticks.push(now);
        let by_time = end.duration.map_or(0.0, |all| now.at / all.as_secs_f64());
        let by_ops = end.ops.map_or(0.0, |all| now.ops as f64 / all as f64);
        let progress = by_time.max(by_ops).min(1.0);
        if by_time >= 1.0 || watch.is_gone() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        let next = shared.stages().map_or(0, |stages| stages.at(progress));
        // A sample at each change of the stage: no second belongs to two.
        if over || next != stage || now.at - timeline.sampled() >= 1.0 {
            match timeline.sample(shared, stage) {
                Ok(second) => watch.second(&second, progress),
                // The clients must end before this can be reported.
                Err(error) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            }
        }
        if next != stage && !over {
            stage = next;
            shared.stage.store(stage, Ordering::Relaxed);
            timeline.stages.push((stage, now));
        }
        if over {
            return failed.map_or(Ok(timeline), Err);
        }
    }
}
