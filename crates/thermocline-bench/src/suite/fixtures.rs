//! Files that come with the binary for suites to use.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const FILES: [(&str, &[u8]); 1] = [(
    "fixture.trace.xz",
    include_bytes!("../trace/fixtures/cache2k.trace.xz"),
)];

/// Puts the files into `dir`.
///
/// # Errors
/// The file system's.
pub(crate) fn unpack(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for (name, bytes) in FILES {
        let path = dir.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
