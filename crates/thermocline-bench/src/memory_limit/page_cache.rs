//! The page cache of an engine that uses it.

use std::path::Path;

use anyhow::Result;

/// Sends the files below `dir` to the disk and out of the page cache. So a run starts cold, and no
/// page counts for another's cgroup.
///
/// # Errors
/// I/O errors.
#[cfg(target_os = "linux")]
pub(crate) fn drop_page_cache(dir: &Path) -> Result<()> {
    use std::fs;

    use anyhow::Context;
    use rustix::fs::{Advice, fadvise};

    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            drop_page_cache(&path)?;
            continue;
        }
        let failed = || format!("cannot drop {} from the page cache", path.display());
        let file = fs::File::open(&path).with_context(failed)?;
        file.sync_data().with_context(failed)?;
        fadvise(&file, 0, None, Advice::DontNeed).with_context(failed)?;
    }
    Ok(())
}

/// There is no way to drop it here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_page_cache(_dir: &Path) -> Result<()> {
    anyhow::bail!("the page cache can be dropped on Linux only")
}
