//! Files of a format that is yet to come: what is otherwise whole is refused by the file's name.

use std::fs;

use thermocline::{Compression, Error};
use xxhash_rust::xxh3::xxh3_64;

use crate::RELEASES;
use crate::fixture::Fixture;

/// Where a file of this name says its version, and which bytes the checksum after them covers.
struct Place {
    version: usize,
    covered: std::ops::Range<usize>,
}

fn place(name: &str, len: usize) -> Option<Place> {
    let header = |covered| Place {
        version: 8,
        covered: 0..covered,
    };
    let file = name.rsplit('/').next()?;
    match file {
        "TIER" | "RALT" => Some(header(len - 8)),
        _ if file.ends_with(".wal") || file.starts_with("MANIFEST") => Some(header(64)),
        _ if file.ends_with(".sst") => Some(Place {
            version: len - 20,
            covered: len - 64..len - 16,
        }),
        _ => None,
    }
}

/// Makes the file one of the next version, which comes back, its checksum right.
fn raise(bytes: &mut [u8], place: &Place) -> u32 {
    let version = &mut bytes[place.version..place.version + 4];
    let next = u32::from_le_bytes(version.try_into().unwrap()) + 1;
    version.copy_from_slice(&next.to_le_bytes());
    let end = place.covered.end;
    let sum = xxh3_64(&bytes[place.covered.clone()]);
    bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
    next
}

#[test]
fn a_file_of_a_later_version_is_refused_by_name() {
    let newest = RELEASES[RELEASES.len() - 1];
    let mut raised = 0;
    for name in Fixture::of(newest).names() {
        let fixture = Fixture::of(newest);
        let path = fixture.path().join(&name);
        let mut bytes = fs::read(&path).unwrap();
        let Some(place) = place(&name, bytes.len()) else {
            continue;
        };
        raised += 1;
        let next = raise(&mut bytes, &place);
        fs::write(&path, bytes).unwrap();
        let opened = fixture.open(Compression::None);
        let says = if name.contains("/ralt/") {
            // I7: what is known of hotness is begun anew, and the reason told.
            let db = opened.unwrap();
            let trouble = &db.recovery().hotness;
            trouble.clone().unwrap_or_else(|| panic!("{name}: taken"))
        } else {
            let error = opened.unwrap_err();
            let newer = matches!(error, Error::FormatVersion { found, .. } if found == next);
            assert!(newer, "{name}: {error:?}");
            let says = error.to_string();
            assert!(says.contains("use the release that wrote it"), "{says}");
            says
        };
        let file = path.display().to_string();
        assert!(says.contains(&file), "{name}: {says}");
        let version = format!("format version {next}");
        assert!(says.contains(&version), "{name}: {says}");
    }
    assert!(raised >= 10, "{raised} files");
}
