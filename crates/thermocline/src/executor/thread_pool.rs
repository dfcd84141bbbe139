//! Plain threads, one queue per lane.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use super::{Executor, Job, Lane, Step};
use crate::sync::{Arc, Condvar, Mutex};

/// Threads that run jobs: one for flushes, a few for compactions, one for hotness.
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    flush: VecDeque<Box<dyn Job>>,
    compaction: VecDeque<Box<dyn Job>>,
    hotness: VecDeque<Box<dyn Job>>,
    stopped: bool,
    /// Counts the changes that waiters should look at.
    changes: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("flush", &self.flush.len())
            .field("compaction", &self.compaction.len())
            .field("hotness", &self.hotness.len())
            .field("stopped", &self.stopped)
            .finish()
    }
}

impl State {
    fn queue(&mut self, lane: Lane) -> &mut VecDeque<Box<dyn Job>> {
        match lane {
            Lane::Flush => &mut self.flush,
            Lane::Compaction => &mut self.compaction,
            Lane::Hotness => &mut self.hotness,
        }
    }
}

impl ThreadPool {
    /// Starts one flush thread, `compaction_threads` compaction threads, at least one, and one for
    /// hotness.
    ///
    /// # Errors
    /// The system's error when a thread cannot be started.
    pub fn new(compaction_threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let pool = Self {
            shared,
            threads: Mutex::new(Vec::new()),
        };
        pool.start(Lane::Flush, "flush".to_owned())?;
        pool.start(Lane::Hotness, "hotness".to_owned())?;
        for number in 0..compaction_threads.max(1) {
            pool.start(Lane::Compaction, format!("compaction-{number}"))?;
        }
        Ok(pool)
    }

    fn start(&self, lane: Lane, name: String) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(format!("thermocline-{name}"))
            .spawn(move || run(&shared, lane))?;
        self.threads.lock().push(thread);
        Ok(())
    }
}

fn run(shared: &Shared, lane: Lane) {
    let mut current: Option<Box<dyn Job>> = None;
    loop {
        let mut state = shared.state.lock();
        let mut job = loop {
            if state.stopped {
                return;
            }
            // Between steps a job goes to the back, so that a short one is not stuck
            // behind a long one.
            if let Some(job) = current.take() {
                state.queue(lane).push_back(job);
            }
            match state.queue(lane).pop_front() {
                Some(job) => break job,
                None => state = shared.work.wait(state),
            }
        };
        drop(state);
        // A job that panicked has said so on standard error. Other jobs still need this thread, and
        // waiters have to look.
        match catch_unwind(AssertUnwindSafe(|| job.step())) {
            Ok(Step::Again) => current = Some(job),
            Ok(Step::Done) | Err(_) => {
                drop(job);
                shared.changed();
            }
        }
    }
}

impl Shared {
    fn changed(&self) {
        // Counted under the lock, so that a waiter that looked before the change does not sleep
        // through it.
        self.state.lock().changes += 1;
        self.changed.notify_all();
    }
}

impl Executor for ThreadPool {
    fn spawn(&self, lane: Lane, job: Box<dyn Job>) {
        let mut state = self.shared.state.lock();
        if !state.stopped {
            state.queue(lane).push_back(job);
            self.shared.work.notify_all();
        }
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> bool) -> bool {
        loop {
            let (seen, stopped) = {
                let state = self.shared.state.lock();
                (state.changes, state.stopped)
            };
            // Without the lock: looking may let go of the last hold on a superversion, whose
            // obsolete files are then removed by a job that is spawned here.
            if ready() {
                return true;
            }
            if stopped {
                return false;
            }
            let mut state = self.shared.state.lock();
            while state.changes == seen && !state.stopped {
                state = self.shared.changed.wait(state);
            }
        }
    }

    fn notify(&self) {
        self.shared.changed();
    }

    fn shutdown(&self) {
        let dropped = {
            let mut state = self.shared.state.lock();
            state.stopped = true;
            self.shared.work.notify_all();
            self.shared.changed.notify_all();
            (
                std::mem::take(&mut state.flush),
                std::mem::take(&mut state.compaction),
                std::mem::take(&mut state.hotness),
            )
        };
        drop(dropped);
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // Only a bug of this file makes the thread panic, and it has said so on standard error.
            let _ = thread.join();
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shutdown();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Waiters once looked while they held the executor's lock. Looking at a tree may drop the last
    /// hold on a superversion with obsolete tables, and their removal is a job: the waiter stood
    /// still for ever at the lock that it held itself.
    #[test]
    fn looking_may_spawn_a_job() {
        let pool = Arc::new(ThreadPool::new(1).unwrap());
        let (done, finished) = mpsc::channel();
        let waiter = Arc::clone(&pool);
        std::thread::spawn(move || {
            let (ran, has_run) = mpsc::channel();
            let mut ran = Some(ran);
            let ended = waiter.wait_until(&mut || {
                if let Some(ran) = ran.take() {
                    let job = move || {
                        ran.send(()).unwrap();
                        Step::Done
                    };
                    waiter.spawn(Lane::Flush, Box::new(job));
                }
                has_run.try_recv().is_ok()
            });
            done.send(ended).unwrap();
        });
        let ended = finished.recv_timeout(Duration::from_secs(20));
        assert_eq!(ended, Ok(true), "the waiter stands still");
        pool.shutdown();
    }
}
