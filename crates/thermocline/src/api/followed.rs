//! What a follower takes over of another store's log.

use super::Db;
use crate::batch::Batch;
use crate::copies::{LoggedBatch, LoggedOp};
use crate::error::Result;
use crate::key::Kind;
use crate::sync::Arc;

impl LoggedBatch {
    /// The same writes for `db`, another store: keyspaces are matched by name, and created
    /// where they are missing. Writes into keyspaces that were dropped since are left out.
    ///
    /// The log does not tell of keyspaces that were created empty or dropped: compare
    /// [`Db::keyspaces`] for that. `db` gives the writes sequence numbers of its own.
    ///
    /// # Errors
    /// As [`Db::create_keyspace`].
    pub fn to_batch(&self, db: &Db) -> Result<Batch> {
        let bytes = |op: &LoggedOp| op.key.len() + op.value.len() + 16;
        let mut batch = Batch::with_capacity(self.ops.iter().map(bytes).sum());
        let mut current = None;
        for op in &self.ops {
            let Some(name) = &op.keyspace else { continue };
            let known = current.take().filter(|(known, _)| known == name);
            let keyspace = match known {
                Some((_, keyspace)) => keyspace,
                None => db.create_keyspace(name)?,
            };
            match op.kind {
                Kind::Put => batch.put_in(&keyspace, &op.key, &op.value),
                _ => batch.delete_in(&keyspace, &op.key),
            }
            current = Some((Arc::clone(name), keyspace));
        }
        Ok(batch)
    }
}
