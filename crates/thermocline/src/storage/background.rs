//! One piece of I/O that runs beside its caller's work.
//!
//! The work is done by whoever comes first: a helper thread, or the caller when it waits for the
//! result. So it gets done even when every helper is busy or none could be started, and then costs
//! what it would have cost without helpers.

// Real threads, outside any model checker's run: hence the standard lock.
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crossbeam_channel::{Receiver, bounded};

use super::helpers::Helpers;
use crate::thread_time;

/// A group of its own: a compaction that keeps these threads busy must not be in the way of a
/// user's reads.
static HELPERS: LazyLock<Helpers> = LazyLock::new(|| Helpers::start("thermocline-io"));

type Work<T> = Box<dyn FnOnce() -> T + Send>;

/// Work that has begun, or will begin when the caller waits for it. If this is dropped before the
/// work has begun, the work is never done.
pub(crate) struct Background<T> {
    work: Arc<Mutex<Option<Work<T>>>>,
    /// What the work returned, and the processor time that it took.
    result: Receiver<(T, u64)>,
}

impl<T> std::fmt::Debug for Background<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("under way")
    }
}

impl<T: Send + 'static> Background<T> {
    /// Has a helper do `work`, if one comes to it.
    pub(crate) fn begin(work: impl FnOnce() -> T + Send + 'static) -> Self {
        Self::with(&HELPERS, work)
    }

    fn with(helpers: &Helpers, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let work: Arc<Mutex<Option<Work<T>>>> = Arc::new(Mutex::new(Some(Box::new(work))));
        let (done, result) = bounded(1);
        let offered = Arc::clone(&work);
        // Without a helper, the work is done when the caller waits for it.
        let _ = helpers.call(move || {
            if let Some(work) = claim(&offered) {
                let before = thread_time::used();
                let outcome = work();
                // The caller may have gone.
                let _ = done.send((outcome, thread_time::used().saturating_sub(before)));
            }
        });
        Self { work, result }
    }

    /// The work's result; `None` if it panicked. A helper's processor time counts as the caller's.
    pub(crate) fn wait(self) -> Option<T> {
        if let Some(work) = claim(&self.work) {
            return Some(work());
        }
        let (outcome, nanos) = self.result.recv().ok()?;
        thread_time::add(nanos);
        Some(outcome)
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        drop(claim(&self.work));
    }
}

/// Takes the work, unless somebody has already taken it.
fn claim<T>(work: &Mutex<Option<T>>) -> Option<T> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::super::helpers;
    use super::*;

    fn helpers() -> Helpers {
        Helpers::start("test")
    }

    /// Keeps every helper busy until the returned end is dropped.
    fn keep_all_busy(helpers: &Helpers) -> mpsc::Sender<()> {
        let (release, until) = mpsc::channel::<()>();
        let until = Arc::new(Mutex::new(until));
        let (began, beginning) = mpsc::channel();
        for _ in 0..helpers::HELPERS {
            let (until, began) = (Arc::clone(&until), began.clone());
            assert!(helpers.call(move || {
                began.send(()).unwrap();
                // One of them waits for the end, the others for the lock that it holds.
                let _ = until.lock().unwrap().recv();
            }));
        }
        for _ in 0..helpers::HELPERS {
            beginning.recv().unwrap();
        }
        release
    }

    #[test]
    fn a_helper_works_before_anybody_waits() {
        let helpers = helpers();
        let (done, come) = mpsc::channel();
        let work = Background::with(&helpers, move || {
            done.send(()).unwrap();
            thread::current().id()
        });
        come.recv().unwrap();
        assert_ne!(work.wait(), Some(thread::current().id()));
    }

    #[test]
    fn without_a_free_helper_the_caller_does_it() {
        let helpers = helpers();
        let _busy = keep_all_busy(&helpers);
        let work = Background::with(&helpers, || thread::current().id());
        assert_eq!(work.wait(), Some(thread::current().id()));
    }

    #[test]
    fn what_nobody_waits_for_is_let_go() {
        let helpers = helpers();
        let _busy = keep_all_busy(&helpers);
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        drop(Background::with(&helpers, move || drop(kept)));
        // The call for help still waits in the queue, but holds nothing any more.
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn a_panic_is_a_missing_result_and_leaves_the_helpers_alive() {
        let helpers = helpers();
        for _ in 0..helpers::HELPERS {
            let (begun, begins) = mpsc::channel();
            let work: Background<()> = Background::with(&helpers, move || {
                begun.send(()).unwrap();
                panic!("planted")
            });
            begins.recv().unwrap();
            assert_eq!(work.wait(), None);
        }
        // Every helper still answers calls.
        drop(keep_all_busy(&helpers));
    }

    #[test]
    fn a_helpers_processor_time_is_the_callers() {
        const BURNT: u64 = 20_000_000;
        let helpers = helpers();
        let (begun, begins) = mpsc::channel();
        let work = Background::with(&helpers, move || {
            begun.send(()).unwrap();
            thread_time::burn(BURNT);
        });
        begins.recv().unwrap();
        let before = thread_time::used();
        work.wait().unwrap();
        assert!(thread_time::used() - before >= BURNT);
    }
}
