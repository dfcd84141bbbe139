//! Which calls fail, and how.

use std::path::Path;
use std::{fmt, io};

use crate::error::Error;

/// A fallible storage call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Creating a log or a table.
    Create,
    /// Appending to a log or a table.
    Append,
    /// Cutting a log.
    Truncate,
    /// Syncing a log, or a table when it is finished.
    Sync,
    /// Opening a table.
    Open,
    /// Reading a log or a range of a table.
    Read,
    /// Listing a directory.
    List,
    /// Renaming a file.
    Rename,
    /// Removing a file.
    Remove,
    /// Linking a table into another directory.
    Link,
    /// Syncing a directory, which finishing a table does too.
    SyncDir,
}

/// A way for a call to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Any call: an I/O error, and nothing was done. As with [`Fault::SyncFails`], a sync loses
    /// what it should have made durable.
    Io,
    /// Create, append, rename and link: no space left, and nothing was done.
    NoSpace,
    /// Both syncs: the error that stops all writing (I9). What the call should have made durable
    /// never will be durable.
    SyncFails,
    /// Append: half of the bytes reach the file, then an I/O error.
    ShortWrite,
    /// Read: fewer bytes come than are there. The error is the one that a disk gives: for a table,
    /// damage, because the table ends too early; for a log, an I/O error.
    ShortRead,
    /// Any call: the power goes before the call does anything, and stays away until
    /// [`super::Faulty::crash`]. Unlike after a failed sync, all unsynced changes may still
    /// survive.
    PowerLoss,
}

impl Operation {
    /// As an infinitive, for messages.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Append => "append to",
            Operation::Truncate => "truncate",
            Operation::Sync => "sync",
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::List => "list",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::Link => "link",
            Operation::SyncDir => "sync directory",
        }
    }

    fn is_sync(self) -> bool {
        matches!(self, Operation::Sync | Operation::SyncDir)
    }
}

impl Fault {
    /// Whether it makes a call of `operation` fail.
    pub fn applies_to(self, operation: Operation) -> bool {
        use Operation::*;
        match self {
            Fault::Io | Fault::PowerLoss => true,
            Fault::NoSpace => matches!(operation, Create | Append | Rename | Link),
            Fault::SyncFails => operation.is_sync(),
            Fault::ShortWrite => operation == Append,
            Fault::ShortRead => operation == Read,
        }
    }

    /// The error that the caller of `operation` sees.
    pub(super) fn error(self, operation: Operation, path: &Path) -> Error {
        if operation.is_sync() {
            return Error::Poisoned {
                cause: format!("sync of {} failed: planted fault", path.display()).into(),
            };
        }
        let source = match self {
            Fault::NoSpace => io::Error::from(io::ErrorKind::StorageFull),
            Fault::ShortRead => io::Error::from(io::ErrorKind::UnexpectedEof),
            _ => io::Error::other("planted fault"),
        };
        Error::io(operation.verb(), path, source)
    }
}

type Predicate = Box<dyn Fn(Operation, &str) -> bool + Send + Sync>;

/// The planned faults, and the calls so far.
#[derive(Default)]
pub(super) struct Plan {
    calls: u64,
    triggered: u64,
    counted: Vec<Counted>,
    matching: Vec<(Predicate, Fault)>,
}

/// A fault at a position in the sequence of all calls.
#[derive(Debug)]
struct Counted {
    first: u64,
    last: u64,
    fault: Fault,
}

impl Plan {
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn triggered(&self) -> u64 {
        self.triggered
    }

    pub(super) fn fail_nth(&mut self, n: u64, fault: Fault) {
        let first = self.calls.saturating_add(n);
        let last = first;
        self.counted.push(Counted { first, last, fault });
    }

    pub(super) fn fail_from(&mut self, n: u64, fault: Fault) {
        let first = self.calls.saturating_add(n);
        let last = u64::MAX;
        self.counted.push(Counted { first, last, fault });
    }

    pub(super) fn fail_where(&mut self, matches: Predicate, fault: Fault) {
        self.matching.push((matches, fault));
    }

    pub(super) fn heal(&mut self) {
        self.counted.clear();
        self.matching.clear();
    }

    /// Counts a call; returns the fault that hits it.
    pub(super) fn next(&mut self, operation: Operation, name: &str) -> Option<Fault> {
        self.calls += 1;
        let now = self.calls;
        let counted = self
            .counted
            .iter()
            .filter(|c| (c.first..=c.last).contains(&now))
            .map(|c| c.fault);
        let matching = self
            .matching
            .iter()
            .filter(|(matches, _)| matches(operation, name))
            .map(|(_, fault)| *fault);
        let hit = counted.chain(matching).find(|f| f.applies_to(operation));
        self.triggered += u64::from(hit.is_some());
        hit
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("calls", &self.calls)
            .field("triggered", &self.triggered)
            .field("counted", &self.counted)
            .field("matching", &self.matching.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use Operation::*;

    use super::*;

    #[test]
    fn the_nth_call_is_hit_once_and_from_the_nth_all_are() {
        let mut plan = Plan::default();
        plan.next(Append, "a");
        plan.fail_nth(2, Fault::Io);
        let hits: Vec<_> = (0..4).map(|_| plan.next(Append, "a")).collect();
        assert_eq!(hits, [None, Some(Fault::Io), None, None]);
        plan.fail_from(2, Fault::NoSpace);
        let hits: Vec<_> = (0..3).map(|_| plan.next(Append, "a")).collect();
        assert_eq!(hits, [None, Some(Fault::NoSpace), Some(Fault::NoSpace)]);
        plan.heal();
        assert_eq!(plan.next(Append, "a"), None);
        assert_eq!((plan.calls(), plan.triggered()), (9, 3));
    }

    #[test]
    fn a_fault_hits_only_calls_it_applies_to() {
        let cases = [
            (
                Fault::Io,
                vec![Create, Append, Sync, Open, Read, List, SyncDir],
            ),
            (Fault::NoSpace, vec![Create, Append, Rename, Link]),
            (Fault::SyncFails, vec![Sync, SyncDir]),
            (Fault::ShortWrite, vec![Append]),
            (Fault::ShortRead, vec![Read]),
        ];
        let all = [
            Create, Append, Truncate, Sync, Open, Read, List, Rename, Remove, Link, SyncDir,
        ];
        for (fault, hit) in cases {
            let mut plan = Plan::default();
            plan.fail_from(1, fault);
            for operation in all {
                let expected = fault == Fault::Io || hit.contains(&operation);
                let found = plan.next(operation, "f").is_some();
                assert_eq!(found, expected, "{fault:?} on {operation:?}");
            }
        }
    }

    #[test]
    fn a_predicate_sees_operation_and_name() {
        let mut plan = Plan::default();
        let syncs = |operation, name: &str| operation == Sync && name.ends_with(".wal");
        plan.fail_where(Box::new(syncs), Fault::SyncFails);
        assert_eq!(plan.next(Sync, "1.sst"), None);
        assert_eq!(plan.next(Append, "1.wal"), None);
        assert_eq!(plan.next(Sync, "1.wal"), Some(Fault::SyncFails));
    }

    #[test]
    fn every_failed_sync_is_the_error_that_stops_writing() {
        for fault in [Fault::Io, Fault::SyncFails] {
            let error = fault.error(SyncDir, Path::new("fast"));
            assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        }
        assert!(Fault::NoSpace.error(Append, Path::new("f")).is_no_space());
        assert!(matches!(
            Fault::ShortWrite.error(Append, Path::new("f")),
            Error::Io { .. }
        ));
    }
}
