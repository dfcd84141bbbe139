//! Limits that the operating system puts on a process, and that are lifted again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource as Limited, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;

use super::Resource;

/// A limit in force. To lift it is to drop it.
#[derive(Debug)]
pub(super) enum Limit {
    /// A limit of the process.
    Process { limited: Limited, before: Rlimit },
    /// A file that fills the disk.
    Ballast(PathBuf),
}

impl Limit {
    /// Leaves this much of `resource`: open files, or bytes. `disk` is where the store lies.
    ///
    /// # Errors
    /// What keeps the limit from being set.
    pub(super) fn leave(resource: Resource, rest: u64, disk: &Path) -> Result<Self, String> {
        match resource {
            Resource::OpenFiles => Self::of_process(Limited::Nofile, open_files()? + rest),
            Resource::FileSize => {
                // The signal that comes with the error ends the process unless somebody listens.
                signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
                    .map_err(|error| error.to_string())?;
                Self::of_process(Limited::Fsize, rest)
            }
            Resource::Disk => fill(disk, rest).map_err(|error| format!("fill the disk: {error}")),
        }
    }

    fn of_process(limited: Limited, most: u64) -> Result<Self, String> {
        let before = getrlimit(limited);
        let limit = Rlimit {
            current: Some(most),
            ..before
        };
        setrlimit(limited, limit).map_err(|error| format!("set a limit: {error}"))?;
        Ok(Limit::Process { limited, before })
    }

    /// Lifts the limit.
    ///
    /// # Errors
    /// What keeps it in force.
    pub(super) fn lift(self) -> Result<(), String> {
        let lifted = match self {
            Limit::Process { limited, before } => {
                setrlimit(limited, before).map_err(std::io::Error::from)
            }
            Limit::Ballast(path) => std::fs::remove_file(path),
        };
        lifted.map_err(|error| format!("lift a limit: {error}"))
    }
}

/// Leaves this many bytes of address space beyond what the process has.
///
/// # Errors
/// What keeps the limit from being set.
pub(in crate::harness) fn leave_memory(bytes: u64) -> Result<(), String> {
    let pages = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages = pages
        .split(' ')
        .next()
        .and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or("the size of the process is not known")?;
    let taken = pages * rustix::param::page_size() as u64;
    let limit = Rlimit {
        current: Some(taken + bytes),
        ..getrlimit(Limited::As)
    };
    setrlimit(Limited::As, limit).map_err(|error| format!("limit the memory: {error}"))
}

fn open_files() -> Result<u64, String> {
    let files = std::fs::read_dir("/proc/self/fd").map_err(|error| error.to_string())?;
    // The listing itself is one of them.
    Ok(files.count() as u64 - 1)
}

/// Writes a file until the disk is full, and gives `rest` bytes of it back.
fn fill(disk: &Path, rest: u64) -> std::io::Result<Limit> {
    let path = disk.join("ballast");
    let mut file = File::create(&path)?;
    while file.write_all(&[0; 4096]).is_ok() {}
    let len = file.metadata()?.len();
    file.set_len(len.saturating_sub(rest))?;
    Ok(Limit::Ballast(path))
}
