//! Copies of a store: checkpoints, backups, and the log for those who follow.

mod backup;
mod checkpoint;
mod follow;

pub use backup::{BackupReport, Backups, GenerationInfo};
pub use follow::{LogReader, LoggedBatch, LoggedOp};
