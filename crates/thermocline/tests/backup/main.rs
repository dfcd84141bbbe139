//! Backups: generations that share tables, each a whole store as it was at one moment, whatever else goes
//! on and whatever is cut short.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod pruning;
mod restoring;
mod support;
mod taking;
mod unfinished;
