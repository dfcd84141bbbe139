//! Memory that blocks share: the block cache, and the budget for what stays pinned.

mod block_cache;
mod pin_budget;

pub(crate) use block_cache::BlockCache;
pub(crate) use pin_budget::PinBudget;
