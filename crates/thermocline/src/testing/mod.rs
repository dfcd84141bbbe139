//! What tests of several modules share.

pub(crate) mod priced;
pub(crate) mod scene;
