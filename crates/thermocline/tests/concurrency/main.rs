//! Writers, readers, background work and closing, at the same time.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod checkpoint;
mod closing;
mod freezing;
mod group_commit;
mod pinning;
mod support;
