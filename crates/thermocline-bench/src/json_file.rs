//! The file that `--json` names. It is tried before a run of hours, and in the end is there whole
//! or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

/// Where a result goes in the end.
#[derive(Debug)]
pub(crate) struct JsonFile {
    path: PathBuf,
    /// Written first and then renamed; removed if nothing comes of it. None if `path` is a pipe, a
    /// device or a link, which a file must not replace.
    part: Option<PathBuf>,
}

impl JsonFile {
    /// Finds out whether `path` can be written. `path` stays as it is.
    ///
    /// # Errors
    /// It cannot: its directory is missing, for example.
    pub(crate) fn try_at(path: &Path) -> Result<Self> {
        ensure!(
            !path.is_dir(),
            "cannot write {}: it is a directory",
            path.display()
        );
        let is_special = path.symlink_metadata().is_ok_and(|there| !there.is_file());
        let part = (!is_special).then(|| {
            let mut part = path.as_os_str().to_owned();
            part.push(".part");
            PathBuf::from(part)
        });
        if let Some(part) = &part {
            File::create(part).with_context(|| format!("cannot write {}", part.display()))?;
        }
        Ok(Self {
            path: path.to_owned(),
            part,
        })
    }

    /// Writes `value`.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn write(self, value: &impl Serialize) -> Result<()> {
        let json = serde_json::to_vec(value)?;
        let written = match &self.part {
            None => fs::write(&self.path, json),
            Some(part) => fs::write(part, json).and_then(|()| fs::rename(part, &self.path)),
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Once it was renamed there is none. Nobody could be told of an error.
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_file_is_replaced_by_a_whole_one_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.part");
        fs::write(&path, "earlier").unwrap();
        drop(JsonFile::try_at(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        let file = JsonFile::try_at(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        file.write(&[1, 2]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[1,2]");
        assert_eq!(names(dir.path()), ["x.part"]);
        assert!(JsonFile::try_at(dir.path()).is_err());
        assert!(JsonFile::try_at(&path.join("y")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_written_to_and_stays_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("x"), dir.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        JsonFile::try_at(&link).unwrap().write(&7).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "7");
        assert!(link.is_symlink());
    }
}
