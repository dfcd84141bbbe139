//! Who lives where: the one place that knows which policies there are.
//!
//! [`PlacementPolicy`] is the seam: the engine asks it which tier a level's tables belong on, tells
//! it of reads, and asks it for a
//! choice of records in each compaction that crosses to the slow tier. The
//! user names a policy by [`Placement`]; [`open`] makes it.

mod brought;
mod by_level;
mod copying;
mod crossing;
mod epochs;
mod fast_levels;
mod flash_cache;
mod hotrap;
mod keyspace;
mod most_of_late;
mod opening;
mod organizing;
mod past_f;
mod policy;
mod price;
mod rooms;
mod router;
mod shares;
mod space_plan;
mod tables;
#[cfg(test)]
mod toy;

pub(crate) use brought::Brought;
pub(crate) use by_level::NoChoice;
pub(crate) use crossing::{Choice, router_of};
pub(crate) use fast_levels::last_fast_level;
pub(crate) use flash_cache::{check_flash_cache, open_flash_cache};
pub use hotrap::AccessRecords;
#[cfg(test)]
pub(crate) use hotrap::HotRap;
pub(crate) use hotrap::{Joining, PromotionCache, Taken, ralt};
#[cfg(feature = "experiments")]
pub use hotrap::{RaltAlone, RaltWork};
pub(crate) use keyspace::{Installed, OfKeyspace};
pub(crate) use opening::{Opening, check_not_alone, discard, open};
use past_f::PastF;
pub(crate) use policy::{PlacementPolicy, Read, Spilled, Stayers};
pub(crate) use price::Targeting;
pub(crate) use rooms::FastRooms;
use router::DOWN;
pub(crate) use router::{Moved, Output, Router, Source, UP};
pub(crate) use shares::Shares;
pub use space_plan::PlannedSpace;
pub(crate) use space_plan::{SpacePlan, planned_log};
