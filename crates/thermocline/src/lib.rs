//! One ordered key-value store over memory, a fast disk and a slow disk.
//!
//! A store is a list of *tiers*, fastest first, each a directory with a capacity and a price.
//! It is an LSM-tree: writes go to a log and to memory, from there to immutable sorted tables
//! in levels. The upper levels live on the fast tier, the lower ones on the slow tier, and the
//! fast tier's capacity is kept with everything on it counted. Records that are read often stay on
//! the fast tier, and come back to it ([`Placement`]). One tier makes an ordinary store.
//!
//! ```
//! # fn main() -> thermocline::Result<()> {
//! # let dir = tempfile::tempdir().expect("a temporary directory");
//! # let (fast, slow) = (dir.path().join("fast"), dir.path().join("slow"));
//! use thermocline::{Batch, Db, Durability, Options};
//!
//! // At most 64 MiB in `fast`, everything else in `slow`.
//! let db = Db::open(Options::two_tiers(&fast, 64 << 20, &slow))?;
//!
//! db.put("lake/geneva", "310 m")?;
//! db.put_with("lake/zurich", "136 m", Durability::Sync)?;
//! assert_eq!(db.get("lake/zurich")?.as_deref(), Some(&b"136 m"[..]));
//!
//! // Keyspaces are ordered sets of their own; a batch takes effect as a whole, across them.
//! let names = db.create_keyspace("names")?;
//! let before = db.snapshot();
//! let mut batch = Batch::new();
//! batch.put_in(&names, "lake/geneva", "Lac Léman");
//! batch.delete("lake/zurich");
//! db.write(batch)?;
//! assert!(before.get("lake/zurich")?.is_some(), "a snapshot stays as it was");
//! assert!(before.get_in(&names, "lake/geneva")?.is_none());
//!
//! // Ranges and prefixes, from both ends.
//! for record in db.prefix("lake/") {
//!     let (key, value) = record?;
//!     println!("{} is {} deep", key.escape_ascii(), value.escape_ascii());
//! }
//! assert!(db.range("lake/a".."lake/m").next_back().is_some());
//!
//! let metrics = db.metrics();
//! assert!(metrics.tiers[0].file_bytes <= 64 << 20);
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # The data's way
//!
//! | step | modules |
//! |---|---|
//! | A write joins a commit group | `write/commit`, [`Batch`], [`Durability`] |
//! | The group becomes one record of the log | `wal`, `log_format` |
//! | Its records enter the memtable and become visible | `memtable`, `engine/tree` |
//! | A full memtable is frozen and flushed to a table of L0 | `levels/flush`, `table` |
//! | An edit in the manifest makes the table part of the store | `version` |
//! | Compactions merge tables downwards, and across tiers | `levels`, `placement` |
//! | A read pins memtables and version and searches them in order | `read/get`, `read/range`, `cache` |
//! | A point read that finds a record is logged, which says what is hot | `placement/hotrap` |
//! | A record read from the slow tier comes back up | `placement/hotrap/promotion` |
//! | Bytes reach a device | `tier`, [`storage`] |
//! | Writers are slowed before anything is full | `write/stall` |
//! | A crash is made good when the store is opened | `opening/open`, `opening/recovery`, `wal` |
//!
//! [`metrics`] counts all of it, [`inspect`] shows the files of a store. `docs/` in the
//! repository has the architecture, the byte format and the crash argument of each step.
//!
//! # Seams
//!
//! Storage, clock and background executor are traits, given to [`Db::builder`]:
//! [`storage::Memory`] and [`executor::Stepped`] make a store that one thread drives
//! deterministically, [`storage::Faulty`] one that loses power, [`storage::Throttled`] one with
//! a slow device.

#![forbid(unsafe_code)]

mod api;
mod batch;
mod cache;
mod clock;
mod coding;
mod copies;
mod engine;
mod error;
pub mod executor;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod ids;
pub mod inspect;
mod iter;
mod key;
mod levels;
mod log_format;
mod memtable;
mod merge;
pub mod metrics;
mod opening;
mod options;
mod placement;
mod points;
mod read;
mod record;
pub mod storage;
mod sync;
mod table;
#[cfg(test)]
mod testing;
mod thread_time;
mod tier;
mod value;
mod version;
mod wal;
mod write;

pub use api::{Db, DbBuilder, Ingested, Ingestion, Keyspace, Snapshot};
pub use batch::{Batch, Expect};
pub use bytes::Bytes;
pub use clock::{Clock, ManualClock, SystemClock};
pub use copies::{BackupReport, Backups, GenerationInfo, LogReader, LoggedBatch, LoggedOp};
pub use engine::{VerifyProgress, VerifyReport};
pub use error::{Damaged, Error, ErrorKind, Result};
pub use key::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN, SeqNo};
pub use metrics::Purpose;
pub use opening::{Loss, RecoveryReport, RepairReport};
pub use options::{
    Compression, Durability, FilterPolicy, HotRapOptions, Options, Placement, RecoveryMode, Target,
    TierOptions,
};
#[cfg(feature = "experiments")]
pub use options::{Scoring, Switches, TableSwitches};
pub use placement::PlannedSpace;
#[cfg(feature = "experiments")]
pub use placement::{RaltAlone, RaltWork};
pub use points::Points;
pub use read::Range;
pub use value::Value;

/// The README's example, compiled and run with the other documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
