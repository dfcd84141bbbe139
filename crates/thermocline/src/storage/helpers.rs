//! A few threads of the process that help callers who would have to wait for I/O.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Helper threads of a group; about as many operations as a disk's queue gains from.
pub(super) const HELPERS: usize = 8;
/// Calls for help that may wait. Past this, a caller is told to work alone.
const QUEUED: usize = 8 * HELPERS;

type Call = Box<dyn FnOnce() + Send>;

/// A group of helper threads, which live as long as the process. A call may never be answered: if
/// no helper has begun the work, the caller does it alone.
pub(super) struct Helpers {
    calls: Sender<Call>,
}

impl Helpers {
    /// Starts the threads, whose names begin with `name`.
    pub(super) fn start(name: &str) -> Self {
        let (calls, inbox) = bounded::<Call>(QUEUED);
        for number in 0..HELPERS {
            let inbox = inbox.clone();
            // If a thread cannot be started, the others and the callers have more to do.
            let _ = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || help(&inbox));
        }
        Self { calls }
    }

    /// Calls for help with `work`; `false` when too many calls are waiting already.
    pub(super) fn call(&self, work: impl FnOnce() + Send + 'static) -> bool {
        self.calls.try_send(Box::new(work)).is_ok()
    }
}

fn help(inbox: &Receiver<Call>) {
    while let Ok(call) = inbox.recv() {
        // A helper serves every store of the process: a bug in one medium must not end it. The
        // caller who waits sees that the result is missing.
        let _ = catch_unwind(AssertUnwindSafe(call));
    }
}
