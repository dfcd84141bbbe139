//! The shape of a store: which tables it has, how that is recorded, and what readers pin.

mod current;
pub(crate) mod edit;
mod edit_codec;
mod files;
mod graveyard;
mod hot_estimate;
pub(crate) mod identity;
mod level_iter;
mod manifest;
mod past;
mod set;

pub(crate) use current::{
    CURRENT, TEMPORARY as CURRENT_TEMPORARY, manifest_file_name, manifest_number,
    read as current_manifest,
};
pub(crate) use edit_codec::BadEdit;
pub(crate) use files::FileGuard;
pub(crate) use graveyard::{AfterRemoval, Graveyard};
pub(crate) use hot_estimate::HotEstimate;
pub(crate) use level_iter::LevelIter;
pub(crate) use manifest::{Manifest, lacks_edits};
pub(crate) use past::PastVersions;
pub(crate) use set::{Level, MAX_LEVELS, TableHandle, Version};
