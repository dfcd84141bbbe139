//! Keyspaces that were dropped, for those who still hold one.

use std::collections::BTreeMap;
use std::sync::Weak;

use super::Tree;
use crate::ids::KeyspaceId;
use crate::sync::Arc;

/// Up to this many, it is not worth looking who still holds them.
const FEW: usize = 64;

/// Keyspaces dropped since the store was opened, each for as long as somebody has a handle of it.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    trees: BTreeMap<KeyspaceId, Weak<Tree>>,
    /// The number of entries at which to look again for those that nobody holds any more.
    due: usize,
}

impl Dropped {
    /// Adds `tree`. Whenever there are twice as many entries as were held at the last look, those
    /// that nobody holds go. Otherwise a store where keyspaces come and go would take memory
    /// without end, in nobody's count (I8).
    pub(crate) fn insert(&mut self, tree: &Arc<Tree>) {
        if self.trees.len() >= self.due.max(FEW) {
            self.trees.retain(|_, tree| tree.strong_count() > 0);
            self.due = 2 * self.trees.len();
        }
        self.trees.insert(tree.id, Arc::downgrade(tree));
    }

    /// The name of the keyspace numbered `id`, or its number if only a batch still knows of it.
    pub(crate) fn name_of(&self, id: KeyspaceId) -> String {
        match self.trees.get(&id).and_then(Weak::upgrade) {
            Some(tree) => String::from_utf8_lossy(&tree.name).into_owned(),
            None => id.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::error::Error;
    use crate::executor::Stepped;
    use crate::options::Options;
    use crate::storage::Memory;
    use crate::{Db, Keyspace};

    fn open() -> Db {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
    }

    /// Makes a keyspace and drops it.
    fn come_and_go(db: &Db, name: &str) -> Keyspace {
        let keyspace = db.create_keyspace(name).unwrap();
        db.drop_keyspace(name).unwrap();
        keyspace
    }

    /// The name of each keyspace that was dropped was kept until the store was closed: a program
    /// that made one for each of its tasks grew by a hundred bytes a task, in nobody's count (I8).
    #[test]
    fn keyspaces_that_come_and_go_leave_nothing_behind() {
        let db = open();
        let held = come_and_go(&db, "held");
        for n in 0..1000 {
            come_and_go(&db, &format!("task {n}"));
        }
        let known = db.engine().keyspaces.dropped.lock().trees.len();
        assert!(known <= FEW, "{known} keyspaces");
        let refused = held.put("key", "value");
        assert!(
            matches!(&refused, Err(Error::UnknownKeyspace { name }) if name == "held"),
            "{refused:?}"
        );
    }

    /// A program may keep the handles of many dropped keyspaces for long. Looking at all of them at
    /// each drop would be quadratic.
    #[test]
    fn those_that_are_held_are_looked_at_when_they_have_doubled() {
        let db = open();
        let held: Vec<_> = (0..3 * FEW)
            .map(|n| come_and_go(&db, &format!("task {n}")))
            .collect();
        let dropped = db.engine().keyspaces.dropped.lock();
        assert_eq!((dropped.trees.len(), dropped.due), (3 * FEW, 4 * FEW));
        drop((dropped, held));
        for n in 0..=FEW {
            come_and_go(&db, &format!("another {n}"));
        }
        let known = db.engine().keyspaces.dropped.lock().trees.len();
        assert_eq!(known, 1, "all but the last");
    }

    /// A batch holds only the numbers of keyspaces. Its records for a keyspace that is forgotten
    /// take no effect, as for any that was dropped.
    #[test]
    fn a_batch_may_name_a_keyspace_that_nobody_holds() {
        let db = open();
        let mut batch = Batch::new();
        let task = db.create_keyspace("task").unwrap();
        let number = task.tree().id.to_string();
        batch.put_in(&task, "key", "of the task");
        drop(task);
        db.drop_keyspace("task").unwrap();
        for n in 0..2 * FEW {
            come_and_go(&db, &format!("another {n}"));
        }
        let refused = db.write(batch.clone());
        assert!(
            matches!(&refused, Err(Error::UnknownKeyspace { name }) if *name == number),
            "{refused:?}"
        );
        batch.put("key", "value");
        db.write(batch).unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
