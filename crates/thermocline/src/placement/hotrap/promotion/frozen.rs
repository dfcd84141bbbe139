//! A promotion cache on its way to L0.

use super::cache::PromotionCache;
use crate::engine::Tree;
use crate::read::Superversion;
use crate::sync::Arc;

/// A frozen promotion cache.
#[derive(Debug)]
pub(crate) struct FrozenPromotion {
    pub(crate) cache: Arc<PromotionCache>,
    /// The epoch reserved for its table (I2).
    pub(crate) epoch: u64,
    /// The state at the moment of the freeze.
    pub(crate) pinned: Arc<Superversion>,
}

impl FrozenPromotion {
    /// Freezes the cache of `tree`, and reserves a place in L0 for what is in it.
    pub(super) fn freeze(tree: &Tree) -> Self {
        let (cache, epoch, pinned) = tree.reserve_place(|publish| tree.placed.gate.freeze(publish));
        Self {
            cache,
            epoch,
            pinned,
        }
    }

    /// Lets go of the cache, whose promotion came to nothing, and of its place.
    pub(super) fn abandon(&self, tree: &Tree) {
        tree.give_up_place(self.epoch, || {
            tree.placed.gate.drop_frozen(&self.cache);
            tree.placed.view()
        });
    }
}
