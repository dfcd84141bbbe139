//! A memory limit for engines that use the page cache: a memory cgroup for the length of a run.
//! What an engine caches by itself its settings limit; what the kernel caches for it only a
//! cgroup does, as it counts the pages that a member brought in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result};

/// Groups of ours begin so, and end with the number of the process.
const PREFIX: &str = "thermocline-bench-";

/// The memory cgroup that the process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Home {
    V1(PathBuf),
    V2(PathBuf),
}

/// The process's own cgroup with a limit. Dropped, the process goes back to where it was.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    home: Home,
    group: PathBuf,
}

impl MemoryLimit {
    /// Limits this process and the page cache of what it reads and writes from now on to `bytes`.
    /// What it holds already does not count.
    ///
    /// # Errors
    /// No cgroups, or no permission: what to do about it.
    pub(crate) fn new(bytes: u64) -> Result<Self> {
        Self::try_new(bytes).context(
            "cannot limit the memory of an engine that uses the page cache (needs Linux, and a memory \
             cgroup that this user may divide); run as root, or measure it with all of the machine's \
             memory by --no-memory-limit",
        )
    }

    fn try_new(bytes: u64) -> Result<Self> {
        let read = |file| fs::read_to_string(file).with_context(|| format!("cannot read {file}"));
        let home = find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
            .context("no memory cgroup is mounted")?;
        remove_forgotten(home.path());
        let group = home.path().join(format!("{PREFIX}{}", process::id()));
        fs::create_dir(&group).with_context(|| format!("cannot create {}", group.display()))?;
        // From here on dropping undoes what was done.
        let limit = Self { home, group };
        match &limit.home {
            Home::V1(_) => {
                write(&limit.group.join("memory.limit_in_bytes"), bytes)?;
                limit.join()?;
            }
            Home::V2(home) => {
                // A group of version 2 has processes or divided controllers, not both: the
                // process leaves first. As a child it stays within all other limits.
                limit.join()?;
                write(&home.join("cgroup.subtree_control"), "+memory").context(
                    "other processes are in the same cgroup; start this one in its own, as by \
                     `systemd-run --scope`",
                )?;
                write(&limit.group.join("memory.max"), bytes)?;
            }
        }
        Ok(limit)
    }

    fn join(&self) -> Result<()> {
        write(&self.group.join("cgroup.procs"), process::id())
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        if let Home::V2(home) = &self.home {
            // The process cannot go back while it is on. Off already, if it never came to that.
            let _ = write(&home.join("cgroup.subtree_control"), "-memory");
        }
        // What fails here the next run removes, once this process has ended.
        let _ = write(&self.home.path().join("cgroup.procs"), process::id());
        let _ = fs::remove_dir(&self.group);
    }
}

impl Home {
    fn path(&self) -> &Path {
        match self {
            Home::V1(path) | Home::V2(path) => path,
        }
    }
}

fn write(file: &Path, value: impl ToString) -> Result<()> {
    fs::write(file, value.to_string()).with_context(|| format!("cannot write {}", file.display()))
}

/// Removes groups of runs that were killed. One that still has a process cannot be removed.
fn remove_forgotten(home: &Path) {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    for entry in entries.filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX)) {
        let _ = fs::remove_dir(entry.path());
    }
}

/// Finds the memory cgroup in what `/proc/self/cgroup` and `/proc/self/mountinfo` say.
fn find(cgroups: &str, mounts: &str) -> Option<Home> {
    // Number, controllers, path; of version 2 the controllers are empty.
    let group = |wanted: &dyn Fn(&str) -> bool| {
        cgroups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            wanted(fields.next()?).then(|| fields.next()).flatten()
        })
    };
    let is_memory = |controllers: &str| controllers.split(',').any(|name| name == "memory");
    if let Some(path) = group(&is_memory)
        && let Some(dir) = mounted(mounts, "cgroup", &is_memory, path)
    {
        return Some(Home::V1(dir));
    }
    let path = group(&str::is_empty)?;
    mounted(mounts, "cgroup2", &|_| true, path).map(Home::V2)
}

/// Where the group at `path` is seen in the file system.
fn mounted(mounts: &str, kind: &str, wanted: &dyn Fn(&str) -> bool, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        // Numbers, root, mount point, options; then type, source, options of the file system.
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (found, options) = (system.next()?, system.nth(1)?);
        if found != kind || !wanted(options) {
            return None;
        }
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

/// Sends the files below `dir` to the disk and out of the page cache, so that a run starts cold and
/// no page counts for another's cgroup.
///
/// # Errors
/// I/O errors.
#[cfg(all(feature = "peers", target_os = "linux"))]
pub(crate) fn drop_page_cache(dir: &Path) -> Result<()> {
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            drop_page_cache(&path)?;
            continue;
        }
        let failed = || format!("cannot drop {} from the page cache", path.display());
        let file = fs::File::open(&path).with_context(failed)?;
        file.sync_data().with_context(failed)?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).with_context(failed)?;
    }
    Ok(())
}

/// There is nothing to drop it with.
///
/// # Errors
/// Always.
#[cfg(all(feature = "peers", not(target_os = "linux")))]
pub(crate) fn drop_page_cache(_dir: &Path) -> Result<()> {
    anyhow::bail!("the page cache can be dropped on Linux only")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "4:memory:/a/b\n1:cpu:/\n0::/u\n";
    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
         32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
         41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn version_one_is_taken_where_memory_is_its() {
        let home = find(BOTH, MOUNTS);
        assert_eq!(home, Some(Home::V1("/sys/fs/cgroup/memory/a/b".into())));
    }

    #[test]
    fn version_two_is_taken_otherwise() {
        let home = find("1:cpu:/\n0::/user/me.scope\n", MOUNTS);
        let expected = "/sys/fs/cgroup/unified/user/me.scope";
        assert_eq!(home, Some(Home::V2(expected.into())));
        assert_eq!(find("", MOUNTS), None);
        assert_eq!(find(BOTH, "what is this\n"), None);
    }

    #[test]
    fn a_mount_of_a_part_shows_that_part_only() {
        let mounts = "35 31 0:32 /a /cgroup rw - cgroup cgroup rw,memory";
        let home = |group: &str| find(&format!("4:memory:{group}"), mounts);
        assert_eq!(home("/a/b"), Some(Home::V1("/cgroup/b".into())));
        assert_eq!(home("/elsewhere"), None);
    }

    /// Without permission it says what to do instead, and leaves nothing.
    #[test]
    fn the_process_is_limited_as_long_as_the_limit_lives() {
        let group_of = || fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let before = group_of();
        match MemoryLimit::new(1 << 30) {
            Ok(limit) => {
                assert!(group_of().contains(PREFIX), "{}", group_of());
                let file = match limit.home {
                    Home::V1(_) => "memory.limit_in_bytes",
                    Home::V2(_) => "memory.max",
                };
                let set = fs::read_to_string(limit.group.join(file)).unwrap();
                assert_eq!(set.trim(), (1u64 << 30).to_string());
                let group = limit.group.clone();
                drop(limit);
                assert!(!group.exists(), "{}", group.display());
            }
            Err(error) => assert!(format!("{error:#}").contains("--no-memory-limit")),
        }
        assert_eq!(group_of(), before);
    }
}
