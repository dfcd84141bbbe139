//! The calls that a disk sees.

use std::sync::{Arc, Mutex};

use thermocline::storage::{Fault, Faulty, Operation};

/// A list of calls that grows as they are made.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Vec<Operation>>>);

impl Calls {
    /// Those that `disk` sees from now on.
    pub(super) fn of(disk: &Faulty) -> Self {
        let calls = Self::default();
        let seen = calls.clone();
        let watch = move |operation, _: &str| {
            seen.0
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .push(operation);
            false
        };
        disk.fail_where(watch, Fault::Io);
        calls
    }

    /// Those made so far, in order.
    pub(super) fn so_far(&self) -> Vec<Operation> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

/// Whether a call leaves the disk as it is.
pub(super) fn reads(operation: Operation) -> bool {
    use Operation::{List, Open, Read};
    matches!(operation, List | Open | Read)
}
