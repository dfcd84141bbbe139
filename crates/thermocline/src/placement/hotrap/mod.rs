//! Placement by hotness (HotRAP): records that are read often stay on the fast tier, or come back to it.

pub(crate) mod accesses;
mod backlog;
mod bypass;
pub(crate) mod copies;
pub(crate) mod keeping;
pub(crate) mod promotion;
pub(crate) mod ralt;
mod router;

pub(crate) use bypass::BypassRouter;
pub(crate) use router::HotRouter;
