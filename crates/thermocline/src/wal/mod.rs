//! The write-ahead log: every write of every keyspace, in commit order.
//!
//! The log is a chain of segments `{number:08}.wal` on the first tier. Each segment names the
//! one before it and that one's exact length, and each record says what was known to be
//! durable when it was written. From these a reader tells what a crash may have taken (never
//! acknowledged as synced) from what can only be damage (I5). The byte format and the crash
//! argument are in `docs/format.md`.

mod bounds;
mod evidence;
mod found;
mod ingestion;
mod large;
mod log;
mod reader;
pub(crate) mod record;
mod recover;
mod replay;
mod segment;
mod settle;
mod survey;
mod sync;
#[cfg(test)]
pub(crate) mod test_store;
#[cfg(test)]
mod tests;

pub(crate) use bounds::{Bounds, remove_others};
pub(crate) use found::FoundLog;
pub(crate) use ingestion::Ingestion;
pub(crate) use log::Wal;
pub(crate) use reader::LogReader;
#[cfg(test)]
pub(crate) use record::encode_group;
pub(crate) use recover::{Cut, Recovered, Surveyed, recover, survey};
pub(crate) use segment::{begin_file, log_store, segment_file_name, segment_number};
pub(crate) use settle::is_temporary;
pub(crate) use survey::{first_header, last_readable};
pub(crate) use sync::WalSync;
