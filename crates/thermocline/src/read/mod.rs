//! The way of a read: what a reader pins, the order in which it is searched, and who does.

mod cached;
mod get;
mod looks;
mod passed;
mod range;
mod snapshots;
mod view;

pub(crate) use cached::Moment;
pub(crate) use looks::OftenLooked;
pub(crate) use passed::{LastPassed, Passed};
pub use range::Range;
pub(crate) use range::{owned_bounds, prefix_end};
pub(crate) use snapshots::Snapshots;
pub(crate) use view::{Place, PromotionView, Run, Superversion};
