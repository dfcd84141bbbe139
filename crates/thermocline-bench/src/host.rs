//! The machine, so that results of two machines are not mixed.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::block_device;
use crate::settings::Dirs;

/// The machine. What the system does not tell is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Processors that this process may use.
    pub cores: usize,
    /// Operating system.
    pub os: &'static str,
    /// Processor architecture.
    pub arch: &'static str,
    /// Processor model.
    pub cpu: Option<String>,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// What the fast directory lies on.
    pub fast: Option<Disk>,
    /// What the slow directory lies on.
    pub slow: Option<Disk>,
    /// What directories of further tiers lie on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slower: Vec<Disk>,
}

/// What a directory lies on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Type of the file system.
    pub file_system: Option<String>,
    /// Name of the block device.
    pub device: Option<String>,
    /// Its size.
    pub device_bytes: Option<u64>,
    /// Whether the kernel takes the device for one with a rotating disk.
    pub rotational: Option<bool>,
}

impl Host {
    /// This machine, without its disks.
    pub(crate) fn new() -> Self {
        let field = |file: &str, name: &str| field(&fs::read_to_string(file).ok()?, name);
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            cpu: field("/proc/cpuinfo", "model name"),
            memory_bytes: field("/proc/meminfo", "MemTotal").and_then(|text| kib(&text)),
            kernel: line(Path::new("/proc/sys/kernel/osrelease")),
            fast: None,
            slow: None,
            slower: Vec::new(),
        }
    }

    /// This machine, with the disks that `dirs`, which exist, lie on.
    pub(crate) fn with_disks(dirs: &Dirs) -> Self {
        Self {
            fast: Some(Disk::below(&dirs.fast)),
            slow: Some(Disk::below(&dirs.slow)),
            slower: dirs.slower.iter().map(|dir| Disk::below(dir)).collect(),
            ..Self::new()
        }
    }
}

impl Disk {
    /// What `dir` lies on.
    pub(crate) fn below(dir: &Path) -> Self {
        let device = block_device::below(dir);
        let about = |file: &str| line(&device.as_ref()?.join(file));
        let name = device.as_ref().and_then(|device| device.file_name());
        // A partition has no queue, so that of its disk counts.
        let rotational = about("queue/rotational").or_else(|| about("../queue/rotational"));
        Self {
            file_system: file_system(dir),
            device: name.map(|name| name.to_string_lossy().into_owned()),
            // In sectors, of 512 bytes on every device.
            device_bytes: about("size")
                .and_then(|sectors| sectors.parse::<u64>().ok()?.checked_mul(512)),
            rotational: rotational.map(|flag| flag == "1"),
        }
    }
}

/// The type of the file system that `dir` lies on.
fn file_system(dir: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounted_at(&mounts, &dir.canonicalize().ok()?)
}

/// The type of the file system that was mounted last at the longest prefix of `dir`. Fields:
/// numbers, root, mount point, options, some optional ones, a dash, type, more.
fn mounted_at(mounts: &str, dir: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|mount| {
        let (place, what) = mount.split_once(" - ")?;
        let point = unescaped(place.split(' ').nth(4)?);
        let depth = Path::new(&point).components().count();
        dir.starts_with(&point).then_some((depth, what))
    });
    let (_, what) = mounts.max_by_key(|(depth, _)| *depth)?;
    Some(what.split(' ').next()?.to_owned())
}

/// The kernel writes blanks as `\040`.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

/// The value of the first line `name: value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn kib(text: &str) -> Option<u64> {
    let number: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

fn line(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_understood() {
        let info = "processor\t: 0\nmodel name\t: Some CPU: fast\nmodel name\t: Other\n";
        assert_eq!(field(info, "model name").as_deref(), Some("Some CPU: fast"));
        assert_eq!(field(info, "model"), None);
        assert_eq!(kib("24634420 kB"), Some(24_634_420 * 1024));
        assert_eq!(kib("24634420 MB"), None);
    }

    #[test]
    fn a_directory_is_on_the_file_system_of_the_longest_mount_point() {
        let mounts = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /dev/shm rw shared:4 - tmpfs tmpfs rw
24 22 7:0 / /mnt/slow\\040disk rw,noatime shared:5 master:1 - xfs /dev/loop0 rw
25 24 0:9 / /mnt/slow\\040disk rw - overlay none rw
";
        let at = |dir: &str| mounted_at(mounts, Path::new(dir));
        assert_eq!(at("/home/x").as_deref(), Some("ext4"));
        assert_eq!(at("/dev/shm").as_deref(), Some("tmpfs"));
        assert_eq!(at("/dev/shmem").as_deref(), Some("ext4"));
        assert_eq!(at("/mnt/slow disk/run").as_deref(), Some("overlay"));
        assert_eq!(mounted_at("nonsense", Path::new("/")), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = Dirs {
            slower: vec![dir.path().to_owned()],
            ..Dirs::two(dir.path().to_owned(), dir.path().join("missing"))
        };
        let host = Host::with_disks(&dirs);
        assert!(
            host.cores > 0 && host.memory_bytes > Some(1 << 20),
            "{host:?}"
        );
        assert!(host.kernel.is_some_and(|kernel| kernel.contains('.')));
        assert_eq!(host.slower, Vec::from_iter(host.fast.clone()));
        assert!(host.fast.unwrap().file_system.is_some());
        assert_eq!(host.slow.unwrap().file_system, None);
    }
}
