//! What is kept of the tables in memory: the block cache (above a flash cache if there is one), the
//! record cache, and the budget for what stays pinned.

mod block_cache;
mod flash;
#[cfg(feature = "flash-cache")]
mod foyer;
mod large_buffers;
mod pin_budget;
mod record_cache;

pub(crate) use block_cache::BlockCache;
#[cfg(test)]
pub(crate) use block_cache::tests::Kept;
pub(crate) use flash::{Flash, FlashPlan, discard_flash, open_flash};
pub(crate) use large_buffers::{HeldBuffer, LARGE_BUFFER, LargeBuffers};
pub(crate) use pin_budget::{Pin, PinBudget};
pub(crate) use record_cache::{RecordCache, Sought};
