//! When table files are removed: once the edit that drops them is durable, and the last reader that
//! could use them is gone (I4).

use super::graveyard::Graveyard;
use crate::ids::FileId;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::tier::Tier;

/// Keeps a table's file in place while a version names the table or a reader uses it.
#[derive(Debug)]
pub(crate) struct FileGuard {
    id: FileId,
    tier: Arc<Tier>,
    bytes: u64,
    obsolete: AtomicBool,
    graveyard: Arc<Graveyard>,
}

impl FileGuard {
    pub(crate) fn new(id: FileId, tier: Arc<Tier>, bytes: u64, graveyard: Arc<Graveyard>) -> Self {
        Self {
            id,
            tier,
            bytes,
            obsolete: AtomicBool::new(false),
            graveyard,
        }
    }

    /// Notes that the edit that drops the table is durable (I4).
    pub(crate) fn mark_obsolete(&self) {
        self.graveyard.pin(self.id, &self.tier, self.bytes);
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            self.graveyard.release(self.id);
        }
    }
}
