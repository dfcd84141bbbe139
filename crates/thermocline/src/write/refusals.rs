//! Why writers were last refused, until writes are accepted again: for the metrics.
//!
//! Background work forgets its failures when it tries again (`engine/background.rs`), and only its
//! writers hear why the log fails. Whoever watches the store has to see both for as long as they
//! hold.

use crate::engine::Engine;
use crate::error::Error;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The last refusal that nothing has ended yet.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Whether there is one: writers look at this alone.
    holds: AtomicBool,
    last: Mutex<Option<Refusal>>,
}

#[derive(Debug, Clone)]
struct Refusal {
    error: Error,
    /// Bytes for which no room could be made; none if it was the log that failed.
    wanted: Option<u64>,
}

impl Refusals {
    /// Remembers that a write was refused with `error`, and how many bytes it `wanted` if that was
    /// for lack of room. An error that concerns only that write, or a store that takes no writes
    /// any more, does not count.
    pub(crate) fn note(&self, error: &Error, wanted: Option<u64>) {
        if error.may_pass() || matches!(error, Error::Io { .. }) {
            let error = error.clone();
            *self.last.lock() = Some(Refusal { error, wanted });
            self.holds.store(true, Ordering::Release);
        }
    }

    /// Forgets it: a write was accepted.
    pub(crate) fn clear(&self) {
        if self.holds.load(Ordering::Relaxed) {
            let mut last = self.last.lock();
            self.holds.store(false, Ordering::Relaxed);
            *last = None;
        }
    }
}

impl Engine {
    /// Why writes are refused or background work is held up, if so.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.background.error().or_else(|| self.refusal())
    }

    /// Why the last write was refused, if the next one would be too, as far as is known without
    /// trying.
    fn refusal(&self) -> Option<Error> {
        let refusal = self.refusals.last.lock().clone()?;
        match refusal.wanted {
            Some(bytes) if self.must_stop(bytes).is_none() => {
                self.refusals.clear();
                None
            }
            _ => Some(refusal.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::executor::Stepped;
    use crate::storage::{Fault, Faulty, Operation};
    use crate::sync::Arc;
    use crate::sync::atomic::{AtomicBool, Ordering};
    use crate::testing::scene::Scene;
    use crate::{Db, Options};

    /// Every write was refused for lack of room, and the metrics knew of no trouble.
    #[test]
    fn want_of_room_is_trouble_until_there_is_some() {
        let scene = Scene::new();
        let trouble = || scene.db.metrics().background_error;
        scene.put("key", "1");
        assert_eq!(trouble(), None);
        let fast = Arc::clone(scene.engine().fast());
        let room = fast.reserve(fast.free_for_jobs()).unwrap();
        let refused = scene.db.put("key", vec![0; 200 << 10]).unwrap_err();
        assert_eq!(trouble(), Some(refused.to_string()));
        assert!(trouble().is_some(), "nothing has changed");
        #[cfg(feature = "prometheus")]
        {
            let exposition = scene.db.metrics().to_prometheus();
            assert!(exposition.contains("\nthermocline_background_error 1\n"));
        }
        drop(room);
        assert_eq!(trouble(), None, "whoever writes next is accepted");
        scene.put("key", "2");
        assert_eq!(trouble(), None);
    }

    /// Only the writers heard why the log failed. For lack of open files each write was refused,
    /// and the metrics knew of no trouble.
    #[test]
    fn a_log_that_fails_is_trouble_until_a_write_is_accepted() {
        let disk = Faulty::new(1);
        let mut options = Options::one_tier("/fast");
        options.memory = 1 << 20;
        let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        let trouble = || db.metrics().background_error;
        let fails = Arc::new(AtomicBool::new(true));
        let as_said = Arc::clone(&fails);
        let is_segment = move |operation, name: &str| {
            let is_new = operation == Operation::Create && name.ends_with(".wal");
            is_new && as_said.load(Ordering::Relaxed)
        };
        disk.fail_where(is_segment, Fault::NoSpace);
        let put = |n: u32| db.put(n.to_string(), [0; 4000]);
        assert!((0..1000).any(|n| put(n).is_err()), "a full memtable");
        for _ in 0..3 {
            assert!(trouble().is_some());
            let refused = put(0).unwrap_err();
            assert_eq!(trouble(), Some(refused.to_string()));
        }
        assert!(db.put(vec![0; 1 << 20], "too long a key").is_err());
        assert!(
            trouble().is_some_and(|why| why.contains("no space")),
            "it is still so"
        );
        fails.store(false, Ordering::Relaxed);
        put(0).unwrap();
        assert_eq!(trouble(), None);
    }
}
