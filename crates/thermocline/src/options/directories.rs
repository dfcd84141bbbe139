//! Directories of a store's tiers, and what cannot be one.

use std::path::{Path, PathBuf};

/// RALT's directory, for a fast tier at `path`.
pub(crate) fn ralt_dir(path: &Path) -> PathBuf {
    path.join("ralt")
}

/// Why a tier cannot be at `path`, if it cannot, beside the tiers `before` it, the first one first.
/// `is_one` says whether two paths lead to one directory.
pub(crate) fn dir_conflict<'a>(
    path: &Path,
    before: impl IntoIterator<Item = &'a PathBuf>,
    is_one: fn(&Path, &Path) -> bool,
) -> Option<String> {
    for (index, other) in before.into_iter().enumerate() {
        if is_one(other, path) {
            return Some(format!("two tiers share the directory {}", path.display()));
        }
        // Access records are in tables, too, with names of the same form, and remove every table
        // there that they do not know.
        if index == 0 && is_one(&ralt_dir(other), path) {
            return Some(format!(
                "the directory {} is for the access records of the first tier; choose another",
                path.display()
            ));
        }
    }
    None
}
