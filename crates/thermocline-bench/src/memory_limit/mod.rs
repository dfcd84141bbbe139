//! A memory limit for engines that use the page cache: a memory cgroup for the length of a run. An
//! engine's settings limit what it caches by itself. Only a cgroup limits what the kernel caches
//! for it, because it counts the pages that a member brought in.

mod home;
mod own_group;
#[cfg(feature = "peers")]
mod page_cache;

use std::path::Path;
use std::{fs, process};

use anyhow::{Context, Result};

use home::{Home, Version};
pub(crate) use own_group::OwnGroup;
#[cfg(feature = "peers")]
pub(crate) use page_cache::drop_page_cache;

/// The names of our groups begin with this, and end with the number of the process.
const PREFIX: &str = "thermocline-bench-";

/// The names of groups of processes whose children are limited begin with this.
const OF_PARENT: &str = "thermocline-bench-parent-";

/// Limits this process, and the page cache of what it reads and writes from now on, to `bytes`,
/// until the group is dropped. What the process holds already does not count.
///
/// # Errors
/// No cgroups, or no permission: what to do about it.
pub(crate) fn limit(bytes: u64) -> Result<OwnGroup> {
    try_limit(bytes).context(
        "cannot limit the memory of an engine that uses the page cache (needs Linux, and a memory \
         cgroup that this user may divide); run as root, or measure it with all of the machine's \
         memory by --no-memory-limit",
    )
}

fn try_limit(bytes: u64) -> Result<OwnGroup> {
    let home = Home::find()?;
    let file = match home.version {
        Version::One => "memory.limit_in_bytes",
        Version::Two => "memory.max",
    };
    let process = process::id();
    let group = OwnGroup::enter(home, &format!("{PREFIX}{process}"), process)?;
    group.divide()?;
    write(&group.path().join(file), bytes)?;
    Ok(group)
}

/// Makes room for a limited child, where that is needed. A cgroup of version 2 either has processes
/// or divides a controller among its children, not both. So this process goes into a group beside
/// its child's, until that group is dropped.
///
/// # Errors
/// No cgroups, or no permission.
#[cfg(feature = "lab")]
pub(crate) fn make_room() -> Result<Option<OwnGroup>> {
    let home = Home::find()?;
    match home.version {
        Version::One => Ok(None),
        Version::Two => {
            let process = process::id();
            OwnGroup::enter(home, &format!("{OF_PARENT}{process}"), process).map(Some)
        }
    }
}

fn write(file: &Path, value: impl ToString) -> Result<()> {
    fs::write(file, value.to_string()).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Without permission, the error says what to do instead, and nothing is left behind.
    #[test]
    fn the_process_is_limited_as_long_as_the_limit_lives() {
        let group_of = || fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let before = group_of();
        match limit(1 << 30) {
            Ok(group) => {
                assert!(group_of().contains(PREFIX), "{}", group_of());
                let files = ["memory.limit_in_bytes", "memory.max"];
                let set = files.map(|file| fs::read_to_string(group.path().join(file)));
                let set = set.into_iter().find_map(Result::ok).unwrap();
                assert_eq!(set.trim(), (1u64 << 30).to_string());
                let path = group.path().to_owned();
                // Regression: a process that was started meanwhile kept the group.
                let mut started = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
                drop(group);
                assert!(!path.exists(), "{}", path.display());
                drop(started.stdin.take());
                started.wait().unwrap();
            }
            Err(error) => assert!(format!("{error:#}").contains("--no-memory-limit")),
        }
        assert_eq!(group_of(), before);
    }
}
