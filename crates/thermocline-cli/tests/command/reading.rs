//! Commands that only read leave the store's files as they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::Store;

/// Every file of the store, byte by byte.
fn files(store: &Store) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                add(&path, files);
            } else {
                let bytes = fs::read(&path).expect("a file");
                files.insert(path, bytes);
            }
        }
    }
    let mut files = BTreeMap::new();
    add(&store.fast(), &mut files);
    add(&store.slow(), &mut files);
    files
}

/// Regression: each `get` began a manifest and a segment of the log, and wrote access records. In a
/// loop of a shell that was most of what a device had to do, and the records that were read became
/// hot.
#[test]
fn what_only_reads_changes_no_file() {
    let store = Store::filled(500, 200);
    let before = files(&store);
    assert!(store.run("get", &["key0007"]).ok().starts_with("vvv"));
    store.run("get", &["missing"]).fails(1, &[]);
    assert_eq!(store.run("scan", &[]).ok().lines().count(), 500);
    store.run("stats", &[]).ok();
    store.run("hot", &[]).ok();
    store.run("keyspaces", &[]).ok();
    store.run("verify", &[]).ok();
    let after = files(&store);
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "a file has another content");
    store.run("put", &["key0007", "new"]).ok();
    assert_eq!(store.run("get", &["key0007"]).ok(), "new\n");
}
