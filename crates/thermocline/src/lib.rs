//! Thermocline: one ordered key-value store over memory, a fast disk and a slow disk.

mod batch;
mod cache;
mod clock;
mod coding;
mod compaction;
mod db;
mod error;
pub mod executor;
mod iter;
mod key;
mod log_format;
mod memtable;
mod merge;
pub mod metrics;
mod options;
mod placement;
mod points;
pub mod storage;
mod sync;
mod table;
mod tier;
mod value;
mod version;
mod wal;

pub use batch::{Batch, Expect};
pub use bytes::Bytes;
pub use clock::{Clock, ManualClock, SystemClock};
pub use db::{
    Db, DbBuilder, Keyspace, Range, RecoveryReport, Snapshot, VerifyProgress, VerifyReport,
};
pub use error::{Error, Result};
pub use key::{MAX_KEY_LEN, MAX_VALUE_LEN, SeqNo};
pub use options::{Compression, Durability, FilterPolicy, Options, RecoveryMode, TierOptions};
pub use points::Points;
pub use tier::Purpose;
pub use value::Value;
pub use wal::LogReader;
