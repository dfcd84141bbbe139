//! Ingestion: sorted records become tables without going through log and memtables.
//!
//! | file | what it does |
//! |---|---|
//! | `tables` | writes the tables, and removes those that come to nothing |
//! | `levels` | finds the level of each |
//! | `install` | gives the records their number and makes them visible, all at once |
//!
//! The number that the records get is one of the sequence, and is not known before they are
//! installed: with an older one they would appear in snapshots that were taken meanwhile. So they
//! are written without, and the manifest has the number ([`crate::table::TableMeta::ingested`]).

mod install;
mod levels;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use install::Request;
pub(crate) use tables::{IngestTables, Ingestions};
