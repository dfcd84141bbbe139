//! Plain threads, one queue per lane.

use std::collections::VecDeque;
use std::thread::JoinHandle;

use super::{Executor, Job, Lane, Step};
use crate::sync::{Arc, Condvar, Mutex};

/// Threads that run jobs: one for flushes, a few for compactions.
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
    stopped: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("flush", &self.flush.len())
            .field("compaction", &self.compaction.len())
            .field("stopped", &self.stopped)
            .finish()
    }
}

impl State {
    fn queue(&mut self, lane: Lane) -> &mut VecDeque<Box<dyn Job>> {
        match lane {
            Lane::Flush => &mut self.flush,
            Lane::Compaction => &mut self.compaction,
        }
    }
}

impl ThreadPool {
    /// Starts one flush thread and `compaction_threads` compaction threads.
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
        for number in 0..compaction_threads {
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
        match job.step() {
            Step::Again => current = Some(job),
            Step::Done => {
                drop(job);
                shared.changed();
            }
        }
    }
}

impl Shared {
    fn changed(&self) {
        // The lock makes sure that nobody is between looking and waiting.
        let _state = self.state.lock();
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
        let mut state = self.shared.state.lock();
        loop {
            if ready() {
                return true;
            }
            if state.stopped {
                return false;
            }
            state = self.shared.changed.wait(state);
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
            )
        };
        drop(dropped);
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A job that panicked has said so on standard error; there is no one to tell.
            let _ = thread.join();
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shutdown();
    }
}
