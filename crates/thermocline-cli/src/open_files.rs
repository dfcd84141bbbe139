//! How many files the command may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit on open files that the process has to the one that it may have: a store has a
/// file open for each of its tables, and the usual limit is for programs that wait for many
/// descriptors at a time by `select`. Where that is refused the limit stays; whoever meets it is
/// told.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let current = maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}
