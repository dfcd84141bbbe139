//! The shape of a store: which tables it has, and how that is recorded.

pub(crate) mod edit;
