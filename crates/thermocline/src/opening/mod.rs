//! From files to an open store and back: founding, recovery, closing, removing, repairing.

mod begin;
mod close;
pub(crate) mod destroy;
mod file_numbers;
mod founding;
pub(crate) mod more_tiers;
pub(crate) mod open;
mod orphans;
mod read_only;
mod recovery;
pub(crate) mod repair;
pub(crate) mod request;
mod set_aside;
mod shape;
pub(crate) mod unfinished;

pub use recovery::RecoveryReport;
pub use repair::{Loss, RepairReport};
pub(crate) use shape::Shape;
