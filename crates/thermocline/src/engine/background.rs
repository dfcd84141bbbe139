//! Background work that has failed, and what follows from it.

use std::sync::{OnceLock, Weak};

use super::compactions::Compactions;
use crate::error::{Error, Result};
use crate::levels::Compaction;
use crate::sync::{Arc, Mutex};

/// Background work whose failure may pass. Each kind has failures of its own: a full slow tier
/// refuses crossings, which is no failure of a flush that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Compaction,
}

/// Failures and counts of background work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// Whether the store is open for reading only.
    reads_only: bool,
    /// The sync failure that ended writing (I9). Never cleared.
    poison: OnceLock<Arc<str>>,
    /// For each [`Work`], the last failure that may pass, until such work succeeds or is tried
    /// again.
    failures: [Mutex<Option<Error>>; 2],
    pub(crate) compactions: Compactions,
    /// Running compactions that more threads may work on.
    pub(crate) divided: Mutex<Vec<Weak<Compaction>>>,
}

impl Background {
    pub(crate) fn new(reads_only: bool) -> Self {
        Self {
            reads_only,
            ..Self::default()
        }
    }

    /// Whether the store is open for reading only.
    pub(crate) fn reads_only(&self) -> bool {
        self.reads_only
    }

    /// Whether nothing is to be written: a sync has failed, or the store is open for reading only.
    pub(crate) fn writes_nothing(&self) -> bool {
        self.reads_only || self.is_poisoned()
    }

    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed; [`Error::ReadOnly`] if the store is open for
    /// reading only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.reads_only {
            true => Err(Error::ReadOnly),
            false => self.check_poison(),
        }
    }

    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed.
    fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::Poisoned {
                cause: Arc::clone(cause),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Remembers a failure of `work`: a failed sync for good (I9), others until such work succeeds
    /// again.
    pub(crate) fn note(&self, work: Work, error: &Error) {
        match error {
            Error::Closed | Error::UnknownKeyspace { .. } => {}
            Error::Poisoned { .. } => self.note_poison(error),
            passing => *self.failures[work as usize].lock() = Some(passing.clone()),
        }
    }

    /// Remembers a failed sync (I9), and no other error: for work whose caller is told of the
    /// others.
    pub(crate) fn note_poison(&self, error: &Error) {
        if let Error::Poisoned { cause } = error {
            let _ = self.poison.set(Arc::clone(cause));
        }
    }

    /// Forgets a passing failure of `work`: it has succeeded, or is about to be tried again.
    pub(crate) fn clear(&self, work: Work) {
        *self.failures[work as usize].lock() = None;
    }

    /// Forgets all passing failures: everything that is due is about to be tried again.
    pub(crate) fn clear_all(&self) {
        self.clear(Work::Flush);
        self.clear(Work::Compaction);
    }

    /// The failure that keeps `work` from being done now.
    pub(crate) fn failure(&self, work: Work) -> Option<Error> {
        let passing = || self.failures[work as usize].lock().clone();
        self.check_writable().err().or_else(passing)
    }

    /// A failure that holds now, of any work.
    pub(crate) fn error(&self) -> Option<Error> {
        if self.reads_only {
            // There is no work that could fail.
            return None;
        }
        let failure = self.failure(Work::Flush);
        failure.or_else(|| self.failure(Work::Compaction))
    }
}
