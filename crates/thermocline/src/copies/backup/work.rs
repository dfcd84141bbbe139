//! Who works on the files of a directory of backups, and whether what the files show can be relied
//! on.

use crate::error::{Error, Result};
use crate::sync::Arc;

/// Held by whoever works on the files: tables that are being copied are not named yet, and tables
/// that are being read must stay.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Why a sync of the files has failed, once one has.
    failed: Option<Arc<str>>,
}

impl Work {
    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed: what the device has is unknown, whatever later
    /// syncs say (I9).
    pub(super) fn check(&self) -> Result<()> {
        match &self.failed {
            Some(cause) => Err(Error::Poisoned {
                cause: Arc::clone(cause),
            }),
            None => Ok(()),
        }
    }

    /// Remembers the result of syncing the backup's files, and passes it on. A failed sync of the
    /// store is not passed here.
    pub(super) fn synced<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(Error::Poisoned { cause }) = &done {
            self.failed = Some(Arc::clone(cause));
        }
        done
    }
}
