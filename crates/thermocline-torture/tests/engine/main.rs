//! The engine from outside, on the stores, disks and lives of the harnesses. All tests share one
//! process, because each has stores and named points of its own. A test that changes the process,
//! or measures it, is a program of its own, among the tests of `thermocline`.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod accounting;
mod backup;
mod bad_input;
mod concurrency;
mod copies;
mod damaged_filter;
mod failed_sync;
mod fast_tier;
mod fault_regressions;
#[cfg(feature = "flash-cache")]
mod flash_cache;
mod follow;
mod founding;
mod levels;
mod lost_log;
mod more_tiers;
mod no_space;
mod smoke;
mod space;
mod tracking;
