//! Stores as released versions of the formats left them, in `tests/formats/{version}`: each opens,
//! and holds what was written. A file of a version to come is refused, and said to be one.
//!
//! A fixture is what a power failure leaves of a store that was opened four times: tables without
//! compression, with LZ4 and with Zstandard on both tiers, in two keyspaces, with access records
//! and a log that was not yet flushed.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod fixture;
mod future;

use std::collections::BTreeMap;

use fixture::{Contents, Fixture, expected};
use thermocline::{Compression, Db};

/// The releases whose formats differ from those before them.
const RELEASES: [&str; 1] = ["0.1.0"];

fn contents(db: &Db) -> Contents {
    let mut contents = BTreeMap::new();
    for name in db.keyspaces() {
        let keyspace = db.keyspace(&name).unwrap();
        for record in keyspace.iter() {
            let (key, value) = record.unwrap();
            contents.insert((name.clone(), key.to_vec()), value.to_vec());
        }
    }
    contents
}

#[test]
fn stores_of_every_release_open_with_all_they_held() {
    for release in RELEASES {
        let fixture = Fixture::of(release);
        let db = fixture.open(Compression::None).unwrap();
        assert!(db.recovery().replayed > 0, "{release}: a log is replayed");
        assert_eq!(db.recovery().hotness, None, "{release}");
        let hot = db.heat(100).unwrap().hottest;
        assert!(!hot.is_empty(), "{release}: access records are there");
        assert_eq!(contents(&db), expected(), "{release}");
        for ((keyspace, key), value) in expected() {
            let keyspace = db.keyspace(&keyspace).unwrap();
            assert_eq!(keyspace.get(&key).unwrap().as_deref(), Some(&value[..]));
        }
        assert_eq!(db.get("b000").unwrap().as_deref(), None, "it was deleted");
        let report = db.verify(&mut |_| {}).unwrap();
        assert_eq!(report.problems.len(), 0, "{:?}", report.problems);
        // What it is rewritten to, by this build, holds the same.
        db.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(contents(&db), expected(), "{release}, compacted");
        db.close().unwrap();
        let db = fixture.open(Compression::Lz4).unwrap();
        assert_eq!(contents(&db), expected(), "{release}, opened again");
    }
}

/// Else a fixture that lacks what is new in its release would go unnoticed.
#[test]
fn fixtures_hold_files_of_every_kind() {
    for release in RELEASES {
        let names = Fixture::of(release).names();
        for (prefix, suffix) in [
            ("fast/", ".sst"),
            ("slow/", ".sst"),
            ("fast/", ".wal"),
            ("fast/MANIFEST-", ""),
            ("fast/CURRENT", ""),
            ("fast/TIER", ""),
            ("slow/TIER", ""),
            ("fast/ralt/RALT", ""),
            ("fast/ralt/", ".sst"),
        ] {
            let found = |name: &&String| name.starts_with(prefix) && name.ends_with(suffix);
            assert!(
                names.iter().any(|name| found(&name)),
                "{release}: {names:?}"
            );
        }
    }
}

/// Writes the fixture of the present release: `cargo test --test formats -- --ignored`. Done once
/// for each release that changes a format; fixtures that are there are never written again.
#[test]
#[ignore = "writes the fixture of a new release"]
fn write_the_fixture_of_this_release() {
    fixture::write(env!("CARGO_PKG_VERSION"));
}
