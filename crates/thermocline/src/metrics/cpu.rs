//! Processor time of background work, by what it was spent on.

use crate::executor::{Job, Step};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::thread_time;

/// What background work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Activity {
    /// Memtables that become tables of L0.
    Flush,
    /// Merging levels, and removing what a merge made obsolete.
    Compaction,
    /// Checking what waits in promotion caches, and making tables of it; copying slow tables into
    /// room that nothing uses.
    Promotion,
    /// Keeping the access records.
    Ralt,
    /// Working out where tables belong by their heat.
    Placement,
}

impl Activity {
    /// Every activity, in the order of the counters.
    pub const ALL: &[Activity] = &[
        Activity::Flush,
        Activity::Compaction,
        Activity::Promotion,
        Activity::Ralt,
        Activity::Placement,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Flush => "flush",
            Activity::Compaction => "compaction",
            Activity::Promotion => "promotion",
            Activity::Ralt => "ralt",
            Activity::Placement => "placement",
        }
    }
}

/// Processor time of one activity.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CpuMetrics {
    /// What it was spent on.
    pub activity: Activity,
    /// Of all threads, in user mode and in the kernel.
    pub seconds: f64,
}

/// Adds up processor time by activity.
#[derive(Debug, Default)]
pub(crate) struct CpuTimes {
    nanos: [AtomicU64; Activity::ALL.len()],
}

impl CpuTimes {
    /// Does `work` for `activity`, and counts the processor time of this thread and of those that
    /// help it. A call inside of `work` would count twice, so only whole pieces of background work
    /// are measured.
    pub(crate) fn measured<T>(&self, activity: Activity, work: impl FnOnce() -> T) -> T {
        let before = thread_time::used();
        let outcome = work();
        let took = thread_time::used().saturating_sub(before);
        self.nanos[activity as usize].fetch_add(took, Ordering::Relaxed);
        outcome
    }

    /// Time spent on `activity`, in seconds.
    pub(crate) fn seconds(&self, activity: Activity) -> f64 {
        self.nanos[activity as usize].load(Ordering::Relaxed) as f64 / 1e9
    }

    /// All that was counted.
    pub(crate) fn metrics(&self) -> Vec<CpuMetrics> {
        let each = Activity::ALL.iter().map(|&activity| CpuMetrics {
            activity,
            seconds: self.seconds(activity),
        });
        each.collect()
    }
}

/// A job whose steps count for an activity.
pub(crate) struct Counted<J> {
    job: J,
    activity: Activity,
    times: Arc<CpuTimes>,
}

impl<J: Job> Counted<J> {
    /// `job`, its steps counted in `times`.
    pub(crate) fn new(job: J, activity: Activity, times: Arc<CpuTimes>) -> Self {
        Self {
            job,
            activity,
            times,
        }
    }
}

impl<J: Job> Job for Counted<J> {
    fn step(&mut self) -> Step {
        self.times.measured(self.activity, || self.job.step())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread_time::burn;

    #[test]
    fn the_steps_of_a_job_count_for_its_activity_and_waiting_does_not() {
        let times = Arc::new(CpuTimes::default());
        let mut steps = 0;
        let job = move || {
            burn(1_000_000);
            steps += 1;
            if steps < 3 { Step::Again } else { Step::Done }
        };
        let mut job = Counted::new(job, Activity::Promotion, Arc::clone(&times));
        assert_eq!(job.step(), Step::Again);
        // What the thread does for others is not counted.
        burn(50_000_000);
        assert_eq!((job.step(), job.step()), (Step::Again, Step::Done));
        for cpu in times.metrics() {
            let expected = match cpu.activity {
                Activity::Promotion => 0.003..0.030,
                _ => 0.0..f64::MIN_POSITIVE,
            };
            assert!(expected.contains(&cpu.seconds), "{cpu:?}");
        }
    }
}
