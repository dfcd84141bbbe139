//! How many files the command may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's limit on open files to the most that it may have. A store has a file open
/// for each of its tables, and the usual limit is for programs that wait for many descriptors at a
/// time by `select`. If that is refused the limit stays, and whoever meets it is told.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let current = maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}
