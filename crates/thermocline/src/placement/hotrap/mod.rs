//! Placement by hotness (HotRAP): records that are read often stay on the fast tier, or come back
//! to it.
//!
//! Every point read is logged to [`ralt`], the table of recent accesses, which knows the keys that
//! are hot. A compaction that crosses to the slow tier leaves hot records where they are
//! ([`choice`]), and a record that is read from below level f waits in a cache for its way up
//! ([`promotion`]). What is below level f may be spread over several slow tiers ([`below_f`]).

mod accesses;
mod backlog;
mod below_f;
mod between;
mod choice;
mod copies;
mod governor;
pub(crate) mod hot_room;
mod keeping;
mod metrics;
mod on_fast;
mod outlook;
mod picking;
mod policy;
pub(crate) mod promotion;
pub(crate) mod ralt;
mod settled;
mod trial;

use std::sync::Weak;

use self::between::Between;
use self::copies::Copying;
use self::governor::Governor;
pub(super) use self::keeping::discard;
use self::promotion::PromotionStats;
pub(super) use self::promotion::{FrozenPromotion, PromotionGate};
pub(crate) use self::promotion::{Joining, PromotionCache, Taken};
pub use self::ralt::AccessRecords;
use self::ralt::Ralt;
#[cfg(feature = "experiments")]
pub use self::ralt::{RaltAlone, RaltWork};
use self::settled::Settled;
use crate::options::Switches;
use crate::placement::copying::Copier;
use crate::placement::organizing::Migrations;
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;

/// Placement by hotness, of an open store.
pub(crate) struct HotRap {
    /// For jobs.
    me: Weak<HotRap>,
    /// Which keys are hot.
    pub(crate) ralt: Arc<Ralt>,
    /// Whether reads are logged to it.
    counts_accesses: bool,
    /// Which techniques are in use.
    switches: Switches,
    /// Whether RALT's background work is queued or runs.
    pub(crate) tracking: AtomicBool,
    pub(crate) promotions: PromotionStats,
    /// How large the hot set may be, in bytes.
    hot_room: Settled,
    /// The least room that the last fast levels had of late, in bytes.
    least_room: Settled,
    /// Whether the fast tier has room that nothing is due to fill.
    pub(crate) has_spare_room: AtomicBool,
    pub(crate) copying: Copying,
    copier: Arc<Copier>,
    governor: Governor,
    /// Of tables of the levels below f, if there are several slow tiers.
    below_f: Migrations,
    between: Between,
}

#[cfg(test)]
impl crate::engine::Engine {
    /// The store's placement, which is by hotness.
    pub(crate) fn hotrap(&self) -> &HotRap {
        self.placement.as_hotrap().expect("placement by hotness")
    }
}
