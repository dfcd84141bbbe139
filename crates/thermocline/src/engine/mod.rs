//! An open store: what its parts share, its keyspaces, and the scheduling of work behind the
//! writers.

mod background;
mod compactions;
mod core;
mod dropped;
mod job;
mod keyspaces;
mod large_values;
mod live_data;
mod maintenance;
mod make_room;
mod measure;
mod picking;
mod schedule;
mod stats;
mod tally;
mod tree;
mod verify;

pub(crate) use background::{Background, Work};
pub(crate) use compactions::Seen;
pub(crate) use job::said;
pub(crate) use stats::Found;
pub(crate) use tally::Tally;
pub(crate) use tree::Tree;
pub use verify::{VerifyProgress, VerifyReport};

pub(crate) use self::core::{Caches, Closing, Engine, Files, Identity, Keyspaces, Sequence};
