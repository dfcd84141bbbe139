//! `UNSAFE.md` lists all unsafe code of the crate.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Unsafe blocks and implementations by file, tests left out.
fn in_source(root: &Path, dir: &Path, found: &mut BTreeMap<String, usize>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                in_source(root, &path, found)?;
            }
            continue;
        }
        let source = fs::read_to_string(&path)?;
        let code = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let blocks = code
            .map(|line| line.matches("unsafe {").count() + line.matches("unsafe impl").count())
            .sum();
        if blocks > 0 {
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            found.insert(name.to_string(), blocks);
        }
    }
    Ok(())
}

#[test]
fn the_list_of_unsafe_code_is_that_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    in_source(root, &root.join("src"), &mut found).unwrap();
    let page = fs::read_to_string(root.join("UNSAFE.md")).unwrap();
    let listed: BTreeMap<_, _> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| {
            let (file, rest) = row.split_once('`').unwrap();
            let blocks = rest.split('|').nth(1).unwrap().trim().parse().unwrap();
            (file.to_owned(), blocks)
        })
        .collect();
    assert_eq!(listed, found);
}
