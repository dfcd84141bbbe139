//! One file per subcommand, each with its `Args` and its `run`.

pub(crate) mod backup;
pub(crate) mod backups;
pub(crate) mod bench;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod cost;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod destroy;
pub(crate) mod get;
pub(crate) mod hot;
pub(crate) mod inspect;
pub(crate) mod keyspaces;
pub(crate) mod load;
pub(crate) mod plan;
pub(crate) mod put;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod scan;
pub(crate) mod stats;
#[cfg(feature = "torture")]
pub(crate) mod torture;
pub(crate) mod trace;
pub(crate) mod verify;
