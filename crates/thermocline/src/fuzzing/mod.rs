//! Entry points for fuzzing: every decoder of bytes from disk, and whole runs of operations.
//!
//! Each takes any bytes and must return: damage is an answer, a panic or an endless loop is not.
//! The fuzz targets in `fuzz/` call them; their corpora run as tests on stable too.

#[cfg(test)]
mod corpus;
mod operations;
mod options;
mod store;

use bytes::Bytes;
pub use operations::operations;
pub use options::options;
use store::{DATABASE, TestTiers};

use crate::batch::Ops;
use crate::cache::{BlockCache, PinBudget};
use crate::ids::table_file_name;
use crate::iter::InternalIterator;
use crate::key::{InternalKey, KeyRange, MAX_SEQ};
use crate::log_format::{FileHeader, FileKind, put_record};
use crate::metrics::Purpose;
use crate::sync::Arc;
use crate::table::{HashedKey, ReadTrace, ScanOptions, Table, TableMeta};
use crate::version::edit::VersionEdit;
use crate::version::{identity, manifest_file_name};
use crate::wal::{log_store, segment_file_name};

/// What a target calls.
pub type Entry = fn(&[u8]);

/// Every entry point with the name of its target.
pub const TARGETS: [(&str, Entry); 12] = [
    ("batch_ops", batch_ops),
    ("manifest", manifest),
    ("manifest_edits", manifest_edits),
    ("operations", operations),
    ("options", options),
    ("ralt_records", ralt_records),
    ("ralt_state", ralt_state),
    ("table", table),
    ("table_block", table_block),
    ("tier_identity", tier_identity),
    ("wal_groups", wal_groups),
    ("wal_segment", wal_segment),
];

/// Number of the manifest and the log segment that the entry points put in place.
const NUMBER: u64 = 3;

/// The writes of an encoded batch.
pub fn batch_ops(bytes: &[u8]) {
    let batch = Bytes::copy_from_slice(bytes);
    if let Ok(ops) = Ops::new(batch) {
        let most = bytes.len() + 2;
        assert!(
            ops.take(most).count() < most,
            "a write takes at least a byte"
        );
    }
}

/// Opens a store whose manifest has these bytes.
pub fn manifest(bytes: &[u8]) {
    let _ = open_with_manifest(bytes);
}

fn open_with_manifest(bytes: &[u8]) -> crate::Result<()> {
    let tiers = TestTiers::with_manifest(NUMBER);
    tiers.put_log(&manifest_file_name(NUMBER), bytes);
    tiers.open_and_read()
}

/// Opens a store whose manifest has edits of these bytes, sealed as if they were right.
pub fn manifest_edits(bytes: &[u8]) {
    if let Ok(edit) = VersionEdit::decode(bytes) {
        let mut again = Vec::new();
        edit.encode(&mut again);
        assert_eq!(VersionEdit::decode(&again), Ok(edit), "an edit comes back");
    }
    manifest(&sealed(FileKind::Manifest, bytes));
}

/// Opens a store whose log is a segment of these bytes.
pub fn wal_segment(bytes: &[u8]) {
    let _ = open_with_segment(bytes);
}

fn open_with_segment(bytes: &[u8]) -> crate::Result<()> {
    let tiers = TestTiers::with_manifest(1);
    tiers.put_log(&segment_file_name(NUMBER), bytes);
    tiers.open_and_read()
}

/// Opens a store whose log has groups of these bytes, sealed as if they were right.
pub fn wal_groups(bytes: &[u8]) {
    wal_segment(&sealed(FileKind::Wal, bytes));
}

/// A log file whose records hold `bytes`, cut at each run of four bytes 0xee.
fn sealed(kind: FileKind, bytes: &[u8]) -> Vec<u8> {
    let header = FileHeader {
        kind,
        number: NUMBER,
        database: DATABASE,
        previous: None,
        base_seq: 0,
    };
    let mut out = header.encode();
    let mut rest = bytes;
    while !rest.is_empty() {
        let cut = rest.windows(4).position(|w| w == [0xee; 4]);
        let (payload, next) = match cut {
            Some(at) => (&rest[..at], &rest[at + 4..]),
            None => (rest, &[][..]),
        };
        rest = next;
        let offset = out.len() as u64;
        if !payload.is_empty() {
            let fill = |out: &mut Vec<u8>| out.extend_from_slice(payload);
            // What is too large for a record is no record.
            let _ = put_record(&mut out, NUMBER, offset, fill);
        }
    }
    out
}

/// What the manifest would say of a table of `len` bytes.
fn table_meta(len: u64) -> TableMeta {
    TableMeta {
        id: NUMBER,
        keyspace: 0,
        level: 1,
        tier: 0,
        epoch: 1,
        len,
        entries: 1,
        deletes: 0,
        min_seq: 1,
        max_seq: MAX_SEQ,
        ingested: false,
        range: KeyRange {
            first: Bytes::new(),
            last: Bytes::from_static(&[0xff; 8]),
        },
        content: None,
    }
}

/// Opens a table with these bytes, verifies it, searches it and scans it both ways.
pub fn table(bytes: &[u8]) {
    let tiers = TestTiers::new();
    tiers.put_table(&table_file_name(NUMBER), bytes);
    let Ok(table) = open_table(&tiers, bytes.len()) else {
        return;
    };
    let _ = table.verify();
    let mut trace = ReadTrace::default();
    for key in [&b""[..], b"k", b"key00007", &[0xff; 9]] {
        let _ = table.get(&HashedKey::new(key), MAX_SEQ, &mut trace);
    }
    let how = ScanOptions {
        purpose: Purpose::UserRead,
        readahead: 4096,
        fill_cache: false,
        to_end: false,
    };
    let mut iter = table.iter(how);
    let most = bytes.len() + 2;
    let mut steps = 0;
    let mut moved = iter.seek_to_first();
    while moved.is_ok() && iter.valid() && steps < most {
        let _ = iter.value_bytes();
        moved = iter.next();
        steps += 1;
    }
    moved = iter.seek_to_last();
    steps = 0;
    while moved.is_ok() && iter.valid() && steps < most {
        moved = iter.prev();
        steps += 1;
    }
    let _ = iter.seek(InternalKey::seek_to(b"key00007", 3));
}

fn open_table(tiers: &TestTiers, len: usize) -> crate::Result<Arc<Table>> {
    let cache = Arc::new(BlockCache::new(1 << 20));
    let pins = Arc::new(PinBudget::new(1 << 20));
    let meta = table_meta(len as u64);
    Table::open(tiers.fast(), meta, DATABASE, cache, pins).map(Arc::new)
}

/// The payload of every kind of block of a table.
pub fn table_block(bytes: &[u8]) {
    crate::table::fuzz::fuzz_block(bytes);
}

/// Opens and uses a table of RALT's with these records.
pub fn ralt_records(bytes: &[u8]) {
    crate::placement::ralt::fuzz::fuzz_records(bytes);
}

/// Opens and uses a state of RALT's with these bytes behind its header.
pub fn ralt_state(bytes: &[u8]) {
    crate::placement::ralt::fuzz::fuzz_state(bytes);
}

/// The file that says which tier a directory is.
pub fn tier_identity(bytes: &[u8]) {
    let tiers = TestTiers::new();
    tiers.put_table(identity::NAME, bytes);
    let checked = identity::check(tiers.fast(), DATABASE).is_ok();
    let claimed = log_store(tiers.fast())
        .and_then(|store| identity::claim(tiers.fast(), &*store, None, DATABASE));
    assert!(
        !checked || claimed.is_ok(),
        "what is intact is taken up again"
    );
}
