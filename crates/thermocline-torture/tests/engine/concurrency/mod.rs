//! Writers, readers, background work and closing, at the same time.

mod checkpoint;
mod closing;
mod freezing;
mod group_commit;
mod pinning;
mod support;
