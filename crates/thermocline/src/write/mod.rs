//! The way of a write: a group of writers into the log, then into memtables; and what holds writers
//! back while the work behind them is not done.

mod commit;
mod fit;
mod freeze;
mod gathering;
mod group;
mod ingest;
mod refusals;
mod stall;

pub(crate) use commit::{Commit, Log};
pub(crate) use ingest::{IngestTables, Ingestions};
pub(crate) use refusals::Refusals;
pub(crate) use stall::{Reason, Stall};
