//! Watches a run. It samples the run, moves its stages on, and ends it.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Shared;
use super::timeline::{Second, Timeline, tick};
use crate::plan::End;

/// How often progress is looked at. A run's last tenth is cut out of these looks.
const TICK: Duration = Duration::from_millis(50);

/// Is told how a benchmark goes on.
pub(crate) trait Watch {
    /// This many of all records are loaded.
    fn loaded(&mut self, _records: u64, _of: u64) {}
    /// Loading waits for background work.
    fn settling(&mut self) {}
    /// From now on, seconds belong to this part: "warming up" or "running".
    fn part(&mut self, _name: &'static str) {}
    /// A second has passed. `progress` (0 to 1) is that of the whole part.
    fn second(&mut self, _second: &Second, _progress: f64) {}
    /// Nobody is told any more, so the run need not go on.
    fn is_gone(&self) -> bool {
        false
    }
}

impl Watch for () {}

/// Watches, extending `timeline`, until all clients have dropped their end of `finished`. Tells
/// them to stop when time is up. Where targets make the stages, `targets` is told of each stage.
pub(super) fn watch(
    shared: &Shared<'_>,
    end: End,
    begin: Instant,
    mut timeline: Timeline,
    finished: &Receiver<()>,
    targets: &Sender<usize>,
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
        if progress >= 0.9
            && !over
            && let Err(error) = timeline.begin_last_tenth(shared)
        {
            shared.stop.store(true, Ordering::Relaxed);
            failed.get_or_insert(error);
        }
        let next = shared.stage_at(progress, now.at);
        // A sample is taken at each change of the stage, so that no second belongs to two stages.
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
            match shared.changing_targets() {
                // If nobody is there any more, it has failed, and the run ends.
                Some(_) => _ = targets.send(stage),
                None => shared.stage.store(stage, Ordering::Relaxed),
            }
            timeline.begin_stage(stage, now);
        }
        if over {
            return failed.map_or(Ok(timeline), Err);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::tests::store;
    use super::*;
    use crate::accounts::Clock;
    use crate::engines::memory::Lie;
    use crate::plan::tests::parse;
    use crate::report::micros;
    use crate::workload::Operation;

    /// Regression: latencies were those of the whole run. The paper's figure 8 is of the last
    /// tenth, while our figures included what an engine was like before it knew what is hot.
    #[test]
    fn latencies_of_the_last_tenth_are_recorded_apart_too() {
        let flags = "--data-size 400KB --record-size 200 --threads 1 --ops 100";
        let plan = parse(flags).unwrap().plan().unwrap();
        let (_dir, engine) = store(&plan, Lie::None);
        let shared = &Shared::new(&plan, engine.as_ref());
        let (tally, read) = (&shared.tallies[0], Operation::Read as usize);
        let done = |ops: u64, nanos: u64| {
            for _ in 0..ops {
                tally.latencies()[read].record(nanos).unwrap();
            }
            tally.done.fetch_add(ops, Ordering::Relaxed);
        };
        let timeline = Timeline::new(&engine.counters().unwrap(), Clock::default());
        let (running, finished) = mpsc::channel::<()>();
        // Slow at first.
        done(90, 5_000_000);
        let timeline = std::thread::scope(|scope| {
            let (end, begin) = (plan.end, Instant::now());
            let (targets, _) = mpsc::channel();
            let watching = scope
                .spawn(move || watch(shared, end, begin, timeline, &finished, &targets, &mut ()));
            // The watcher takes what there is once nine tenths are done.
            while !tally.latencies()[read].is_empty() {
                std::thread::yield_now();
            }
            done(10, 1000);
            drop(running);
            watching.join().unwrap().unwrap()
        });
        let last = timeline.last_tenth().latencies;
        let counts: Vec<u64> = last.iter().map(|latency| latency.count).collect();
        assert_eq!(counts, [10]);
        assert_eq!(last[0].p99_us, 1.0);
        let whole = &timeline.latencies[read];
        assert_eq!(whole.len(), 100);
        assert!(micros(whole, 0.5) > 4000.0);
    }
}
