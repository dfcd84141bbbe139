//! Compaction: which tables are merged next, where the result goes, and the merge itself.

mod below;
mod bypass;
mod cut;
mod filter;
mod fresh;
mod job;
mod picker;
mod plan;
mod readahead;
mod table_size;
mod targets;

pub(crate) use bypass::{Bypass, BypassWorth};
pub(crate) use filter::VersionFilter;
pub(crate) use job::{CompactionJob, MOST_MET};
pub(crate) use picker::{Hotness, Manual, Meant, Picker};
pub(crate) use plan::{Plan, Running};
pub(crate) use table_size::TableSizes;
pub(crate) use targets::{FastRoom, LevelTargets};
