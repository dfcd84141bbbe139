//! Copies of RALT, for checkpoints.

use super::super::sizes::LEVEL0_TABLES;
use super::*;

/// A copy in a directory of its own, opened; whether there was any is asserted.
fn copied(fixture: &Fixture, path: &Path) -> Fixture {
    let target = fixture.medium.log_store(path, true).unwrap();
    assert!(fixture.ralt.copy_to(&*target).unwrap());
    let (medium, options) = (Arc::clone(&fixture.medium), HotRapOptions::default());
    let copy = Fixture::open(RaltParts {
        path: path.to_owned(),
        ..parts(DATABASE, Some(PlacedBy::Hotness), medium, CAPACITY, options)
    });
    assert_eq!(copy.ralt.trouble(), None);
    copy
}

/// Each checkpoint left a table of level 0, and where these came before a buffer was full nothing ever merged them: at one
/// every five minutes they were hundreds a day, and every read asked all of them.
#[test]
fn what_copies_leave_in_level_0_is_merged() {
    let fixture = Fixture::new();
    for number in 0..50 {
        fixture.read(3, number, 200);
        let copy = copied(&fixture, &PathBuf::from(format!("copy{number}/ralt")));
        assert_eq!(copy.hot(3, 0..100).len() as u64, number + 1);
        if fixture.ralt.has_work() {
            fixture.work();
        }
        let waiting = fixture.ralt.shared.version.load().level(0).len();
        assert!(waiting <= LEVEL0_TABLES, "{waiting} after {number}");
    }
}
