//! A cgroup for one process, below the one that it was in.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::home::{Home, Version};
use super::{PREFIX, write};

/// A group that a process has to itself. When it is dropped, the process goes back to where it was.
#[derive(Debug)]
pub(crate) struct OwnGroup {
    home: Home,
    path: PathBuf,
    process: u32,
}

impl OwnGroup {
    /// Makes the group `name` in `home` and puts `process` into it.
    ///
    /// # Errors
    /// No permission.
    pub(super) fn enter(home: Home, name: &str, process: u32) -> Result<Self> {
        remove_forgotten(&home.dir);
        let path = home.dir.join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        // From here on dropping undoes what was done.
        let group = Self {
            home,
            path,
            process,
        };
        write(&group.path.join(PROCESSES), process)?;
        Ok(group)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the group have a limit of its own. With version 1 it has that already.
    ///
    /// # Errors
    /// Other processes are where it was made, or the limits are not this group's to divide: what to
    /// do about it.
    pub(super) fn divide(&self) -> Result<()> {
        let Home {
            version,
            dir,
            controller,
            ..
        } = &self.home;
        if *version == Version::One {
            return Ok(());
        }
        let file = dir.join("cgroup.controllers");
        let offered =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        ensure!(
            offered.split_whitespace().any(|name| name == *controller),
            "{}: no `{controller}`, so that this cgroup has none to divide; start this process by \
             `systemd-run --scope` or `scripts/slow-disk exec`",
            file.display()
        );
        // A group of version 2 has processes or divided controllers, not both. This process has
        // left the group. As it is now in a child group, it stays within all other limits.
        write(&dir.join(DIVIDED), format!("+{controller}")).context(
            "other processes are in the same cgroup; start this one in its own, as by \
             `systemd-run --scope` or `scripts/slow-disk exec`",
        )
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        let Home {
            version,
            dir,
            own,
            controller,
        } = &self.home;
        if *version == Version::Two {
            // The process cannot go back while the controller is on. It may be off already, if it
            // was never turned on, and may still be on, if a child was killed.
            let _ = write(&dir.join(DIVIDED), format!("-{controller}"));
        }
        // If something fails here, the next run removes the rest, once this process has ended.
        let _ = write(&own.join(PROCESSES), self.process);
        // A process that was started under the limit, and still runs, would keep the group.
        let started = fs::read_to_string(self.path.join(PROCESSES)).unwrap_or_default();
        for process in started.lines() {
            let _ = write(&own.join(PROCESSES), process);
        }
        let _ = fs::remove_dir(&self.path);
    }
}

const PROCESSES: &str = "cgroup.procs";
const DIVIDED: &str = "cgroup.subtree_control";

/// Removes groups of runs that were killed. One that still has a process cannot be removed.
fn remove_forgotten(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries.filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX)) {
        let _ = fs::remove_dir(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::super::OF_PARENT;
    use super::super::home::tests::root_of_version_two;
    use super::*;

    /// A group of version 2 with two processes in it, a parent and its child, that wait for their
    /// input.
    struct Scene {
        home: PathBuf,
        controller: &'static str,
        /// Whether the root was divided before.
        was_divided: bool,
        processes: [Child; 2],
    }

    impl Scene {
        /// None if this system has no such groups or offers none of the `controllers`, or if this
        /// user may not make any. The rule is the same for all of them.
        fn new() -> Option<Self> {
            let root = root_of_version_two()?;
            let controllers = ["memory", "hugetlb"];
            let offered = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
            let is_offered = |name: &&str| offered.split_whitespace().any(|other| other == *name);
            let controller = controllers.into_iter().find(is_offered)?;
            let was_divided = is_in(&root.join(DIVIDED), controller);
            fs::write(root.join(DIVIDED), format!("+{controller}")).ok()?;
            let home = root.join(format!("test-of-groups-{}", std::process::id()));
            fs::create_dir(&home).ok()?;
            let processes = [(); 2].map(|()| {
                let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
                write(&home.join(PROCESSES), child.id()).unwrap();
                child
            });
            Some(Self {
                home,
                controller,
                was_divided,
                processes,
            })
        }

        fn home(&self, own: PathBuf) -> Home {
            Home {
                controller: self.controller,
                ..Home::of_version_two(own)
            }
        }

        fn is_divided(&self) -> bool {
            is_in(&self.home.join(DIVIDED), self.controller)
        }
    }

    fn is_in(file: &Path, controller: &str) -> bool {
        let text = fs::read_to_string(file).unwrap();
        text.split_whitespace().any(|name| name == controller)
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            for process in &mut self.processes {
                drop(process.stdin.take());
                let _ = process.wait();
            }
            // A test that fails leaves groups in it.
            for entry in fs::read_dir(&self.home).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(entry.path());
            }
            let _ = fs::remove_dir(&self.home);
            if let Some(root) = self.home.parent().filter(|_| !self.was_divided) {
                let _ = write(&root.join(DIVIDED), format!("-{}", self.controller));
            }
        }
    }

    fn processes(group: &Path) -> Vec<u32> {
        let text = fs::read_to_string(group.join(PROCESSES)).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Regression: a suite stayed in the group that its cells were to divide. So with version 2
    /// none of fjall's cells could be measured.
    #[test]
    fn a_child_has_a_limit_once_its_parent_has_made_room() {
        let Some(scene) = Scene::new() else {
            eprintln!("needs permission to make cgroups of version 2");
            return;
        };
        let [parent, child] = [0, 1].map(|at| scene.processes[at].id());
        let limited = |own: &Path| {
            let group =
                OwnGroup::enter(scene.home(own.to_owned()), "thermocline-bench-test", child)?;
            group.divide().map(|()| group)
        };
        let refused = format!("{:#}", limited(&scene.home).unwrap_err());
        assert!(
            refused.contains("other processes are in the same cgroup"),
            "{refused}"
        );
        assert!(processes(&scene.home).contains(&child));

        let home = scene.home(scene.home.clone());
        let room = OwnGroup::enter(home, &format!("{OF_PARENT}test"), parent).unwrap();
        // A child begins where its parent is.
        write(&room.path().join(PROCESSES), child).unwrap();
        let group = limited(room.path()).unwrap();
        assert!(scene.is_divided());
        assert_eq!(processes(group.path()), [child]);
        assert_eq!(processes(room.path()), [parent]);
        drop(group);
        assert!(!scene.is_divided());
        assert!(processes(room.path()).contains(&child));
        // If a child is killed, its group stays divided.
        std::mem::forget(limited(room.path()).unwrap());
        write(
            &scene.home.join("thermocline-bench-test").join(PROCESSES),
            child,
        )
        .unwrap();
        assert!(scene.is_divided());
        drop(room);
        assert_eq!(processes(&scene.home), [parent]);
        let leftover = scene.home.join("thermocline-bench-test");
        write(&scene.home.join(PROCESSES), child).unwrap();
        fs::remove_dir(leftover).unwrap();
    }

    #[test]
    fn a_group_without_the_controller_is_told_from_one_with_other_processes() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cgroup.controllers"), "io pids\n").unwrap();
        let home = Home::of_version_two(dir.path().to_owned());
        let group = OwnGroup::enter(home, "a", 1).unwrap();
        let error = format!("{:#}", group.divide().unwrap_err());
        assert!(
            error.contains("no `memory`") && error.contains("scripts/slow-disk exec"),
            "{error}"
        );
    }
}
