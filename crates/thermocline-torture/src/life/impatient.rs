//! One seeded thread that drives all background work, and gives up when work goes round in circles.

use std::sync::Arc;

use thermocline::executor::{Executor, Job, Lane, Stepped};

/// A wait of a small store ends in far fewer steps than this.
const TOO_MANY: usize = 20_000;

/// Runs jobs as [`Stepped`] does. It gives up a wait that does not end, and the store's error
/// [`thermocline::Error::Closed`] says so.
#[derive(Debug)]
pub(super) struct Impatient(pub(super) Arc<Stepped>);

impl Executor for Impatient {
    fn spawn(&self, lane: Lane, job: Box<dyn Job>) {
        self.0.spawn(lane, job);
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> bool) -> bool {
        for _ in 0..TOO_MANY {
            if ready() {
                return true;
            }
            if !self.0.step() {
                return ready();
            }
        }
        false
    }

    fn notify(&self) {}

    fn shutdown(&self) {
        self.0.shutdown();
    }
}

#[cfg(test)]
mod tests {
    use thermocline::executor::Step;

    use super::*;

    #[test]
    fn a_wait_for_work_that_never_ends_is_given_up() {
        let executor = Impatient(Arc::new(Stepped::new(1)));
        executor.spawn(Lane::Flush, Box::new(|| Step::Again));
        assert!(!executor.wait_until(&mut || false));
        assert!(executor.wait_until(&mut || true));
    }
}
