//! What programs hold: the store, its keyspaces and snapshots, and what opens it.

mod backups;
mod builder;
mod db;
mod debug;
mod followed;
mod ingestion;
mod keyspace;
mod snapshot;

pub use builder::DbBuilder;
pub use db::Db;
pub(crate) use db::Handle;
pub use ingestion::{Ingested, Ingestion};
pub use keyspace::Keyspace;
pub use snapshot::Snapshot;
