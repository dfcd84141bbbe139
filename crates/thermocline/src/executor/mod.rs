//! Where background work runs: a seam, so that one seeded thread can drive all of it.
//!
//! Flushes and compactions are [`Job`]s made of steps. [`ThreadPool`] runs them on plain
//! threads; [`Stepped`] runs them one step at a time on whichever thread waits, in an order
//! drawn from a seed. Every wait for background work goes through
//! [`Executor::wait_until`].

mod stepped;
mod thread_pool;

pub use stepped::Stepped;
pub use thread_pool::ThreadPool;

/// Whether a job wants to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Call again.
    Again,
    /// Finished; drop it.
    Done,
}

/// A piece of background work, run step by step. A step does bounded work, and never waits for
/// another job.
pub trait Job: Send {
    /// Does a part of the work.
    fn step(&mut self) -> Step;
}

impl<F: FnMut() -> Step + Send> Job for F {
    fn step(&mut self) -> Step {
        self()
    }
}

/// Which queue a job waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Writers wait for these: flushes and log syncs.
    Flush,
    /// Compactions.
    Compaction,
    /// Tracking of what is hot, bringing it up, and removal of files: nobody waits for these.
    Hotness,
}

/// Runs jobs and lets others wait for what they change.
pub trait Executor: Send + Sync + std::fmt::Debug {
    /// Queues `job`.
    fn spawn(&self, lane: Lane, job: Box<dyn Job>);

    /// Returns `true` once `ready` does. Asks again after each [`Executor::notify`].
    /// Returns `false` when no job is left that could make it so and none will come.
    fn wait_until(&self, ready: &mut dyn FnMut() -> bool) -> bool;

    /// Makes those who wait look again.
    fn notify(&self);

    /// Waits until running jobs have finished their step, drops the other jobs, and ends the
    /// threads.
    fn shutdown(&self);
}
