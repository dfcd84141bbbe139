//! Backups: generations that share tables. Each is a whole store as it was at one moment, whatever
//! else goes on and whatever is cut short.

mod pruning;
mod restoring;
mod support;
mod taking;
mod unfinished;
