//! Levels: how a memtable becomes a table, which tables are merged next, and the merge itself.

mod averages;
mod below;
mod bypass;
mod cut;
mod filter;
mod flush;
mod fresh;
mod heirs;
mod job;
mod l0_places;
mod pass;
mod picker;
mod plan;
mod readahead;
mod sink;
mod spread;
mod table_size;
mod targets;
mod upper;

pub(crate) use averages::Averages;
pub(crate) use bypass::{Bypass, BypassWorth};
pub(crate) use filter::VersionFilter;
pub(crate) use flush::FlushJob;
pub(crate) use heirs::Densities;
pub(crate) use job::{CompactionJob, MOST_MET};
pub(crate) use l0_places::L0Places;
pub(crate) use pass::{Pass, Watch};
pub(crate) use picker::{Hotness, Looked, Manual, Meant, Picker};
pub(crate) use plan::{Cause, Plan, Running};
pub(crate) use sink::{Origin, Sink};
pub(crate) use spread::{Places, Spread};
pub(crate) use table_size::TableSizes;
pub(crate) use targets::{FastRoom, LevelTargets};
pub(crate) use upper::Upper;
