//! What the kernel counts for a block device: the I/O of an engine that does not count its
//! own by disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Counters of one device since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceIo {
    pub(super) read_ops: u64,
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
}

/// The counters of the devices below two directories. `None` when both lie on one device, or
/// the kernel does not tell: then nothing can be said about each.
pub(super) fn of_two(a: &Path, b: &Path) -> Option<[DeviceIo; 2]> {
    let (a, b) = (fs::metadata(a).ok()?.dev(), fs::metadata(b).ok()?.dev());
    if a == b {
        return None;
    }
    Some([read(a)?, read(b)?])
}

fn read(device: u64) -> Option<DeviceIo> {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    parse(&fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
}

/// Fields: reads, merged, sectors, time; writes, merged, sectors, time; more. A sector is 512
/// bytes on every device.
fn parse(stat: &str) -> Option<DeviceIo> {
    let mut fields = stat.split_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let read_ops = next()?;
    next()?;
    let read_sectors = next()?;
    for _ in 0..3 {
        next()?;
    }
    Some(DeviceIo {
        read_ops,
        read_bytes: read_sectors * 512,
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
            write_bytes: 41_664 * 512,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("1 2 3"), None);
        assert_eq!(parse("a b c d e f g"), None);
    }

    #[test]
    fn one_device_cannot_be_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of_two(dir.path(), dir.path()), None);
    }
}
