//! The read path.

mod view;

pub(crate) use view::{Place, PromotionView, Run, Superversion};
