//! What the kernel counts for a block device. This gives the I/O of an engine that does not count
//! its own by disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[cfg(feature = "peers")]
use crate::accounts::{Activity, ByActivity, Io};

/// Counters of one device since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceIo {
    /// Read operations.
    pub(crate) read_ops: u64,
    /// Bytes read.
    pub(crate) read_bytes: u64,
    /// Write operations.
    pub(crate) write_ops: u64,
    /// Bytes written.
    pub(crate) write_bytes: u64,
}

#[cfg(any(test, feature = "peers"))]
impl DeviceIo {
    /// What is left of this I/O without that of a device that lies on this one.
    fn without(self, upper: Self) -> Self {
        Self {
            read_ops: self.read_ops.saturating_sub(upper.read_ops),
            read_bytes: self.read_bytes.saturating_sub(upper.read_bytes),
            write_ops: self.write_ops.saturating_sub(upper.write_ops),
            write_bytes: self.write_bytes.saturating_sub(upper.write_bytes),
        }
    }
}

#[cfg(feature = "peers")]
impl DeviceIo {
    /// Counts it as the I/O of an engine that does not say what it is for.
    pub(crate) fn unattributed(self) -> ByActivity<Io> {
        let mut io = ByActivity::default();
        let all = Io {
            read_ops: self.read_ops,
            read_bytes: self.read_bytes,
            write_ops: self.write_ops,
            write_bytes: self.write_bytes,
        };
        io.add(Activity::Unattributed, all);
        io
    }
}

/// The counters of the devices below two directories. `None` when both lie on one device, or the
/// kernel does not tell: then nothing can be said about each. If the second is a loop device whose
/// file lies on the first, what it does is not counted for the first one too.
#[cfg(any(test, feature = "peers"))]
pub(crate) fn of_two(a: &Path, b: &Path) -> Option<[DeviceIo; 2]> {
    let (a, b) = (device(a)?, device(b)?);
    if a == b {
        return None;
    }
    // The upper device is read first, so that the lower one has counted at least as much.
    let upper = read(b)?;
    let lower = read(a)?;
    let lower = match lies_on(&directory(b), a) {
        true => lower.without(upper),
        false => lower,
    };
    Some([lower, upper])
}

/// The device below a directory, or below the nearest directory above it that exists: an engine
/// makes none on a disk that it does not use.
#[cfg(any(test, feature = "peers"))]
pub(crate) fn device(dir: &Path) -> Option<u64> {
    let nearest = dir.ancestors().find_map(|dir| fs::metadata(dir).ok())?;
    Some(nearest.dev())
}

/// Whether the kernel says in `upper` that this is a loop device, and its file lies on the device
/// `lower`.
#[cfg(any(test, feature = "peers"))]
fn lies_on(upper: &Path, lower: u64) -> bool {
    let file = fs::read_to_string(upper.join("loop/backing_file"));
    let file = file
        .ok()
        .and_then(|file| fs::metadata(file.trim_end()).ok());
    file.is_some_and(|file| file.dev() == lower)
}

/// The counters of the device below a directory. `None` when the kernel does not tell.
pub(crate) fn of(dir: &Path) -> Option<DeviceIo> {
    read(fs::metadata(dir).ok()?.dev())
}

fn read(device: u64) -> Option<DeviceIo> {
    parse(&fs::read_to_string(directory(device).join("stat")).ok()?)
}

/// Where the kernel says what it knows of the device below a directory, under the device's name.
pub(crate) fn below(dir: &Path) -> Option<PathBuf> {
    let device = fs::metadata(dir).ok()?.dev();
    directory(device).canonicalize().ok()
}

fn directory(device: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    format!("/sys/dev/block/{major}:{minor}").into()
}

/// Fields: reads, merged, sectors, time; writes, merged, sectors, time; more. A sector is 512
/// bytes on every device.
fn parse(stat: &str) -> Option<DeviceIo> {
    let mut fields = stat.split_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let read_ops = next()?;
    next()?;
    let read_sectors = next()?;
    next()?;
    let write_ops = next()?;
    next()?;
    Some(DeviceIo {
        read_ops,
        read_bytes: read_sectors * 512,
        write_ops,
        write_bytes: next()? * 512,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_understood() {
        let line = "  1031  26  49626  411  2084  1553  41664  1330  0  1484  1990  0 0 0 0";
        let expected = DeviceIo {
            read_ops: 1031,
            read_bytes: 49_626 * 512,
            write_ops: 2084,
            write_bytes: 41_664 * 512,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("1 2 3"), None);
        assert_eq!(parse("a b c d e f g"), None);
    }

    /// Regression: in the figures, a slow disk behind a loop device did all of its I/O on the fast
    /// disk too. RocksDB's fast disk had nine times the bytes that were read from it.
    #[test]
    fn what_a_loop_device_does_is_not_its_disks() {
        let io = |read_ops, read_bytes, write_ops, write_bytes| DeviceIo {
            read_ops,
            read_bytes,
            write_ops,
            write_bytes,
        };
        let lower = io(10, 100, 5, 50);
        assert_eq!(lower.without(io(4, 40, 5, 60)), io(6, 60, 0, 0));

        let home = tempfile::tempdir().unwrap();
        let (image, device) = (home.path().join("image"), home.path().join("7:0"));
        fs::create_dir_all(device.join("loop")).unwrap();
        fs::write(&image, "").unwrap();
        let lower = fs::metadata(&image).unwrap().dev();
        assert!(!lies_on(&device, lower), "no loop device");
        let backing = format!("{}\n", image.display());
        fs::write(device.join("loop/backing_file"), backing).unwrap();
        assert!(lies_on(&device, lower));
        assert!(!lies_on(&device, lower + 1), "of another disk");
    }

    #[test]
    fn one_device_cannot_be_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of_two(dir.path(), dir.path()), None);
    }

    /// Regression: fjall makes no directory on the fast disk. So the two disks could not be told
    /// apart, and no result of fjall had any I/O. Its latencies at the slow disk's limit were shown
    /// as if nothing had waited for that disk.
    #[test]
    fn a_directory_that_was_not_made_lies_where_its_parent_does() {
        let home = tempfile::tempdir().unwrap();
        let there = fs::metadata(home.path()).unwrap().dev();
        for dir in ["", "run", "run/tables"] {
            assert_eq!(device(&home.path().join(dir)), Some(there), "{dir}");
        }
    }
}
