//! Where a process finds the memory cgroup that it may divide.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::OF_PARENT;

/// Versions of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// The memory cgroup that a process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) version: Version,
    /// Groups with limits are made here.
    pub(super) dir: PathBuf,
    /// The process is here.
    pub(super) own: PathBuf,
    /// What is limited.
    pub(super) controller: &'static str,
}

impl Home {
    /// Of this process.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn find() -> Result<Self> {
        let read = |file| fs::read_to_string(file).with_context(|| format!("cannot read {file}"));
        find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
            .context("no memory cgroup is mounted")
    }

    /// The home of a process in the group `own` of version 2.
    pub(super) fn of_version_two(own: PathBuf) -> Self {
        // A parent has left the group above to be divided for this process, and has a group of its
        // own, where its children begin.
        let is_parents = own
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(OF_PARENT));
        let above = own.parent().filter(|_| is_parents);
        Self {
            version: Version::Two,
            dir: above.unwrap_or(&own).to_owned(),
            own,
            controller: "memory",
        }
    }
}

/// Finds the memory cgroup in what `/proc/self/cgroup` and `/proc/self/mountinfo` say.
fn find(cgroups: &str, mounts: &str) -> Option<Home> {
    // Number, controllers, path. For version 2 the controllers are empty.
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
        return Some(Home {
            version: Version::One,
            own: dir.clone(),
            dir,
            controller: "memory",
        });
    }
    let path = group(&str::is_empty)?;
    mounted(mounts, "cgroup2", &|_| true, path).map(Home::of_version_two)
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const BOTH: &str = "4:memory:/a/b\n1:cpu:/\n0::/u\n";
    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
         32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
         41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

    /// Where groups of version 2 are. None if they are not mounted.
    pub(in super::super) fn root_of_version_two() -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        mounted(&mounts, "cgroup2", &|_| true, "/")
    }

    fn place(cgroups: &str, mounts: &str) -> Option<(Version, PathBuf, PathBuf)> {
        find(cgroups, mounts).map(|home| (home.version, home.dir, home.own))
    }

    #[test]
    fn version_one_is_taken_where_memory_is_its() {
        let dir = PathBuf::from("/sys/fs/cgroup/memory/a/b");
        let expected = (Version::One, dir.clone(), dir);
        assert_eq!(place(BOTH, MOUNTS), Some(expected));
    }

    #[test]
    fn version_two_is_taken_otherwise() {
        let dir = PathBuf::from("/sys/fs/cgroup/unified/user/me.scope");
        let expected = (Version::Two, dir.clone(), dir);
        assert_eq!(
            place("1:cpu:/\n0::/user/me.scope\n", MOUNTS),
            Some(expected)
        );
        assert_eq!(place("", MOUNTS), None);
        assert_eq!(place(BOTH, "what is this\n"), None);
    }

    #[test]
    fn a_child_divides_the_group_that_its_parent_has_left() {
        let own = PathBuf::from("/sys/fs/cgroup/unified/me.scope/thermocline-bench-parent-7");
        let expected = (Version::Two, "/sys/fs/cgroup/unified/me.scope".into(), own);
        let found = place("0::/me.scope/thermocline-bench-parent-7\n", MOUNTS);
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_mount_of_a_part_shows_that_part_only() {
        let mounts = "35 31 0:32 /a /cgroup rw - cgroup cgroup rw,memory";
        let home = |group: &str| find(&format!("4:memory:{group}"), mounts).map(|home| home.dir);
        assert_eq!(home("/a/b"), Some("/cgroup/b".into()));
        assert_eq!(home("/elsewhere"), None);
    }
}
