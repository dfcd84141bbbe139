//! The command as a user runs it. One process starts all of these. A test that measures time or
//! disk, or holds a store open itself, has a file of its own beside this.

mod cost;
mod deleting;
mod interrupt;
mod kill;
mod loading;
mod maintenance;
mod mistakes;
mod open_files;
mod output;
mod plan;
mod reading;
mod records;
mod rescue;
mod suite;
mod trace;

#[path = "../common/mod.rs"]
mod common;
