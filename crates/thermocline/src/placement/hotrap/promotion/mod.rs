//! Promotion: how records that are read from the slow tier come back to the fast one (HotRAP, §3.1,
//! §3.3, §3.4).
//!
//! A record that a read finds below level f is *admitted* to the keyspace's promotion cache, which
//! lies between the levels of the fast tier and those of the slow one. From there it goes up on
//! one of two ways: a compaction that crosses its key takes it along, or a full cache is frozen
//! and becomes a table of L0. What turns out not to be hot is dropped.

mod cache;
mod crossing;
mod flush;
mod frozen;
mod gate;
mod records;
mod stats;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use cache::PromotionCache;
pub(crate) use frozen::FrozenPromotion;
pub(crate) use gate::{PromotionGate, Taken};
pub(crate) use records::Joining;
pub(crate) use stats::PromotionStats;
