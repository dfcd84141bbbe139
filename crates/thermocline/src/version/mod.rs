//! The shape of a store: which tables it has, and how that is recorded.

mod current;
pub(crate) mod edit;
mod edit_codec;
pub(crate) mod identity;
pub(crate) mod manifest;

pub(crate) use current::{manifest_file_name, manifest_number};
