//! Which keyspaces wait for a flush. One job takes several of them at a time: what a flush waits
//! for, such as syncs, costs about as much for many memtables as for one.

use std::collections::VecDeque;

use crate::engine::Tree;
use crate::memtable::Memtable;
use crate::sync::{Arc, Mutex};

/// Most memtables that are flushed together. Their tables are open and their buffers held at once.
const MOST: usize = 64;

/// The keyspaces that wait. All have their flag (`TreeState::flushing`) set, so that no memtable
/// is flushed twice, and a keyspace's memtables come one after the other (I2).
#[derive(Debug, Default)]
pub(crate) struct FlushQueue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    trees: VecDeque<Arc<Tree>>,
    /// Whether a job is queued or runs.
    has_job: bool,
}

/// The oldest frozen memtable of a keyspace, in the hands of a job.
#[derive(Debug, Clone)]
pub(super) struct Due {
    pub(super) tree: Arc<Tree>,
    pub(super) memtable: Arc<Memtable>,
}

impl Due {
    /// Whether the memtable still waits for its table.
    pub(super) fn waits(&self) -> bool {
        let pinned = self.tree.peek();
        let oldest = pinned.immutables.last();
        oldest.is_some_and(|oldest| Arc::ptr_eq(oldest, &self.memtable))
    }
}

impl FlushQueue {
    /// Has the memtables of `tree` wait for a job, unless they do, or there is none. Returns
    /// whether a job has to be begun.
    pub(crate) fn enter(&self, tree: &Arc<Tree>) -> bool {
        {
            let mut state = tree.state.lock();
            if state.flushing || tree.peek().immutables.is_empty() {
                return false;
            }
            state.flushing = true;
        }
        let mut waiting = self.0.lock();
        waiting.trees.push_back(Arc::clone(tree));
        !std::mem::replace(&mut waiting.has_job, true)
    }

    /// Takes memtables of different keyspaces: at least one, if any waits, and no more than `bytes`
    /// come to.
    pub(super) fn take(&self, bytes: u64) -> Vec<Due> {
        let (mut group, mut total) = (Vec::new(), 0);
        while group.len() < MOST {
            let mut waiting = self.0.lock();
            let Some(tree) = waiting.trees.front() else {
                break;
            };
            let oldest = tree.peek().immutables.last().cloned();
            total += oldest.as_ref().map_or(0, |memtable| memtable.bytes());
            if total > bytes && !group.is_empty() {
                break;
            }
            let tree = waiting.trees.pop_front();
            drop(waiting);
            let Some(tree) = tree else { break };
            match oldest {
                Some(memtable) => group.push(Due { tree, memtable }),
                // The keyspace was dropped.
                None => self.give_back(tree),
            }
        }
        group
    }

    /// Has `tree`, of which a job has flushed a memtable or has not, wait again if it has any left.
    pub(super) fn give_back(&self, tree: Arc<Tree>) {
        {
            let mut state = tree.state.lock();
            if tree.peek().immutables.is_empty() {
                // Whoever freezes one from here on finds the flag free.
                state.flushing = false;
                return;
            }
        }
        // The first in its turn: a memtable that found no room is the first to report it.
        self.0.lock().trees.push_front(tree);
    }

    /// Ends the job if nothing waits any more. Returns whether it has.
    pub(super) fn end_if_empty(&self) -> bool {
        let mut waiting = self.0.lock();
        let is_empty = waiting.trees.is_empty();
        waiting.has_job &= !is_empty;
        is_empty
    }

    /// Ends the job, and lets go of those that wait and of those that it holds: `group`.
    pub(super) fn give_up(&self, group: &[Due]) {
        let trees = {
            let mut waiting = self.0.lock();
            waiting.has_job = false;
            std::mem::take(&mut waiting.trees)
        };
        for tree in group.iter().map(|due| &due.tree).chain(&trees) {
            tree.state.lock().flushing = false;
        }
    }
}
