//! Where blocks and records lie in a file, found by docs/format.md alone: the code that is to
//! notice a swap must not choose what is swapped.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Header of a log or a manifest.
const FILE_HEADER: usize = 72;
/// Length, place check and checksum in front of a record's payload.
const RECORD_HEADER: usize = 16;
/// Compression byte and checksum behind a block's payload.
const ENVELOPE: usize = 9;

/// The parts of a file that its format reads as a whole: blocks of a table, records of a log or a
/// manifest.
pub(super) fn parts(name: &str, bytes: &[u8]) -> Vec<Range<usize>> {
    match name.strip_suffix(".sst").map(str::parse) {
        Some(Ok(table)) => blocks(table, bytes),
        _ if name.ends_with(".wal") || name.starts_with("MANIFEST") => records(bytes),
        _ => Vec::new(),
    }
}

/// Blocks are packed back to back from the beginning on: each ends where its checksum holds.
fn blocks(table: u64, bytes: &[u8]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut start = 0;
    let holds = |start: usize, end: usize| {
        let (covered, sum) = bytes[start..end].split_at(end - start - 8);
        let seed = table.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ start as u64;
        xxh3_64_with_seed(covered, seed).to_le_bytes() == *sum
    };
    while let Some(end) = (start + ENVELOPE..=bytes.len()).find(|end| holds(start, *end)) {
        blocks.push(start..end);
        start = end;
    }
    blocks
}

fn records(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut records = Vec::new();
    let mut start = FILE_HEADER;
    while let Some(len) = bytes.get(start..start + 4) {
        let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
        let end = start + RECORD_HEADER + len;
        if end > bytes.len() {
            break;
        }
        records.push(start..end);
        start = end;
    }
    records
}

#[cfg(test)]
mod tests {
    use super::super::scene::scenes;
    use super::*;

    #[test]
    fn the_parts_of_every_table_log_and_manifest_are_found() {
        for file in scenes().iter().flat_map(|scene| &scene.files) {
            let found = parts(&file.name, &file.bytes);
            let end = found.last().map_or(0, |last| last.end);
            if file.name.ends_with(".sst") {
                // Data, index and top-level index, properties, and then the footer of 64 bytes.
                assert!(found.len() >= 4, "{}: {found:?}", file.name);
                assert_eq!(end, file.bytes.len() - 64, "{}", file.name);
            } else if file.name.ends_with(".wal") || file.name.starts_with("MANIFEST") {
                assert_eq!(end.max(FILE_HEADER), file.bytes.len(), "{}", file.name);
            }
        }
    }
}
