//! A few threads of the process that help whoever has I/O to wait for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Helping threads of a group; about what a disk's queue rewards.
pub(super) const HELPERS: usize = 8;
/// Calls for help that wait; past this the callers are told to do it alone.
const QUEUED: usize = 8 * HELPERS;

type Call = Box<dyn FnOnce() + Send>;

/// A group of helping threads, which live as long as the process. A call may never be answered:
/// whoever makes one does the work alone if nobody has begun it.
pub(super) struct Helpers {
    calls: Sender<Call>,
}

impl Helpers {
    /// Starts the threads, whose names begin with `name`.
    pub(super) fn start(name: &str) -> Self {
        let (calls, inbox) = bounded::<Call>(QUEUED);
        for number in 0..HELPERS {
            let inbox = inbox.clone();
            // A thread that cannot be started leaves more to the others and to the callers.
            let _ = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || help(&inbox));
        }
        Self { calls }
    }

    /// Calls for help with `work`; `false` when too many wait already.
    pub(super) fn call(&self, work: impl FnOnce() + Send + 'static) -> bool {
        self.calls.try_send(Box::new(work)).is_ok()
    }
}

fn help(inbox: &Receiver<Call>) {
    while let Ok(call) = inbox.recv() {
        // A helper serves every store of the process: one medium's bug must not end it.
        // Who waits sees that the result is missing.
        let _ = catch_unwind(AssertUnwindSafe(call));
    }
}
