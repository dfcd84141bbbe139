//! Memory for buckets.

use std::alloc::Layout;

use crate::buckets::{LARGE, Memory};

fn of(bytes: usize) -> Memory {
    let layout = Layout::from_size_align(bytes, 32).expect("a small size");
    Memory::allocate(layout).expect("as much memory")
}

#[test]
fn all_of_it_can_be_written_on_either_side_of_large() {
    for bytes in [32, LARGE - 32, LARGE, LARGE + 32] {
        let memory = of(bytes);
        assert_eq!(memory.len(), bytes);
        let start = memory.start();
        assert_eq!(start.addr().get() % 32, 0);
        for at in [0, bytes / 2, bytes - 1] {
            // SAFETY: within the memory, which is ours.
            unsafe { start.add(at).write(7) };
        }
    }
}

/// What the kernel says of the mapping that `address` is in.
#[cfg(target_os = "linux")]
fn flags_of_mapping(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("the list of mappings");
    let mut is_it = false;
    for line in maps.lines() {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let ends =
            range.map(|(first, last)| [first, last].map(|end| usize::from_str_radix(end, 16)));
        if let Some([Ok(first), Ok(last)]) = ends {
            is_it = (first..last).contains(&address);
        } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_it) {
            return flags.to_owned();
        }
    }
    panic!("no mapping has {address:x}");
}

#[test]
#[cfg(target_os = "linux")]
fn huge_pages_are_asked_for_where_there_are_any() {
    let large = of(LARGE);
    let flags = flags_of_mapping(large.start().addr().get());
    let has_any = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    assert_eq!(
        flags.split(' ').any(|flag| flag == "hg"),
        has_any,
        "{flags}"
    );
}
