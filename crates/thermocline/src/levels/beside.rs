//! Work that goes on beside a job's own, where it would wait for a device.

use crate::error::{Error, Result};
use crate::storage::background::Background;

/// Work that a helper does, or that is done already.
#[derive(Debug)]
pub(super) enum Beside {
    Runs(Background<Result<()>>),
    Done,
}

impl Beside {
    /// Does `work`; beside the caller's, if it waits for a device.
    ///
    /// # Errors
    /// Those of work that is done at once.
    pub(super) fn begin(
        waits_for_a_device: bool,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        Ok(match waits_for_a_device {
            true => Self::Runs(Background::begin(work)),
            false => {
                work()?;
                Self::Done
            }
        })
    }

    /// Whether it may not be done yet.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Self::Runs(_))
    }

    /// Waits until it is done.
    ///
    /// # Errors
    /// Those of the work; [`Error::Poisoned`] if it panicked.
    pub(super) fn wait(self) -> Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Runs(work) => work.wait().unwrap_or_else(|| {
                Err(Error::Poisoned {
                    cause: "work beside a flush panicked".into(),
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Points;
    use crate::sync::Arc;
    use crate::sync::atomic::{AtomicBool, Ordering};
    use crate::{Db, Options};

    fn failure() -> Error {
        Error::NoSpace {
            operation: "go on with",
            path: "a test".into(),
        }
    }

    #[test]
    fn what_becomes_of_the_work_is_told_once() {
        let at_once = Beside::begin(false, || Err(failure()));
        assert!(at_once.unwrap_err().is_no_space());
        let waited_for = Beside::begin(true, || Err(failure())).unwrap().wait();
        assert!(waited_for.unwrap_err().is_no_space());
        let panics = || -> Result<()> { panic!("planted") };
        let begun = Beside::begin(true, panics).unwrap();
        // The helper's panic is an error here. Without a helper the caller's own tells more.
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| begun.wait()));
        assert!(matches!(waited, Err(_) | Ok(Err(Error::Poisoned { .. }))));
        for waits in [false, true] {
            assert!(Beside::begin(waits, || Ok(())).unwrap().wait().is_ok());
        }
    }

    /// On a disk the log is synced while the table is written. The edit has to wait for both (I5).
    #[test]
    fn a_flush_has_the_log_synced_before_its_edit() {
        let home = tempfile::tempdir().unwrap();
        let points = Points::default();
        let builder = Db::builder(Options::one_tier(home.path().join("fast")));
        let db = builder.points(points.clone()).open().unwrap();
        let goes_on = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&goes_on);
        points.set("flush.before_edit", move || {
            flag.store(true, Ordering::SeqCst);
            Ok(())
        });
        let is_ahead = Arc::new(AtomicBool::new(false));
        let ahead = Arc::clone(&is_ahead);
        points.set("wal.before_sync", move || {
            // Long enough for a flush that does not wait: it has one record to write.
            for _ in 0..20_000 {
                std::thread::yield_now();
                ahead.fetch_or(goes_on.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            Ok(())
        });
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        assert!(!is_ahead.load(Ordering::SeqCst));
    }
}
