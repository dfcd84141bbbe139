//! What a reader pins: memtables and version, consistent with each other.

use super::set::Version;
use crate::memtable::Memtable;
use crate::sync::Arc;

/// The state of a keyspace at one moment. A reader that holds it sees every write that was
/// published before it took it, wherever that write has moved since.
#[derive(Debug, Clone)]
pub(crate) struct Superversion {
    pub(crate) active: Arc<Memtable>,
    /// Frozen memtables, newest first (I1).
    pub(crate) immutables: Vec<Arc<Memtable>>,
    pub(crate) version: Arc<Version>,
}
