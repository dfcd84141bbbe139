//! Directories that cannot be tiers of one store.

use std::path::{Path, PathBuf};

/// Why a tier cannot be at `path` beside those `before` it, if it cannot. `is_one` says whether two paths lead to one directory.
pub(crate) fn dir_conflict<'a>(
    path: &Path,
    before: impl IntoIterator<Item = &'a PathBuf>,
    is_one: fn(&Path, &Path) -> bool,
) -> Option<String> {
    let mut before = before.into_iter();
    before
        .any(|other| is_one(other, path))
        .then(|| format!("two tiers share the directory {}", path.display()))
}
