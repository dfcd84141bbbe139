//! The read path.

mod view;

pub(crate) use view::{PromotionView, Superversion, newest_below};
