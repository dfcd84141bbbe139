//! What inspection says of a state on disk.

use super::eviction::{VALUE, of};
use super::*;
use crate::inspect::beside::Beside;
use crate::inspect::report;
use crate::placement::hotrap::ralt::state_log::NAME;
use crate::storage::LogStore;
use crate::sync::Mutex;

/// Thresholds come from the histograms in the state, and from no table.
#[test]
fn a_state_says_what_the_next_opening_goes_by() {
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let open = || Fixture::on(Arc::clone(&medium), CAPACITY, HotRapOptions::default());
    let fixture = open();
    let mut next = 0;
    while fixture.is_young() {
        fixture.read(0, next, VALUE);
        next += 1;
        assert!(next < of(4.0), "nothing was evicted");
    }
    fixture.ralt.close();
    drop(fixture);
    let report = report(&*medium, &dir(), true).unwrap().unwrap();
    assert_eq!(report.damaged(), 0);
    let said = report.contents.valid().unwrap();
    let found = open().ralt.metrics();
    assert_eq!(said.database, DATABASE);
    assert_eq!(said.hot_set_limit_bytes, found.hot_set_limit_bytes);
    assert_eq!(said.physical_limit_bytes, found.physical_limit_bytes);
    assert_eq!(said.physical_bytes, found.physical_bytes);
    assert_eq!(said.records, found.records);
    assert_eq!(said.hot_threshold, found.hot_threshold);
    assert_eq!(said.evicted_threshold, found.evicted_threshold);
    assert_eq!(said.tick, found.tick);
    assert!(said.evictions > 0 && said.hot_threshold > 0.0, "{said:?}");
}

#[test]
fn where_no_state_is_expected_none_is_no_damage() {
    let medium = Memory::new();
    let found = |expected| report(&medium, &dir(), expected).unwrap();
    assert_eq!(found(false), None);
    assert_eq!(found(true).unwrap().damaged(), 1);
}

/// If records were rewritten between the look at the state and the one at the directory, the tables
/// that the new state does without were called missing.
#[test]
fn tables_that_a_new_state_does_without_are_not_missing() {
    let fixture = |medium: &Arc<dyn Medium>| {
        Fixture::on(Arc::clone(medium), CAPACITY, HotRapOptions::default())
    };
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let other: Arc<dyn Medium> = Arc::new(Memory::new());
    let read = fixture(&medium);
    read.read(0, 1, VALUE);
    read.ralt.close();
    fixture(&other).ralt.close();
    let logs = |medium: &Arc<dyn Medium>| medium.log_store(&dir(), false).unwrap();
    let is_table = |name: &str| name.ends_with(".sst");
    let names = move |store: &dyn LogStore| {
        let files = store.list().unwrap().into_iter().map(|file| file.name);
        files.filter(|name| is_table(name)).collect::<Vec<_>>()
    };
    let (store, newer) = (logs(&medium), logs(&other).read(NAME).unwrap());
    assert_eq!(names(&*store).len(), 1);
    let replaced = Mutex::new(false);
    let beside = Beside::new(Arc::clone(&medium), move |name| {
        if name.is_empty() && !std::mem::replace(&mut *replaced.lock(), true) {
            store.create("NEW").unwrap().append(&newer).unwrap();
            store.rename("NEW", NAME).unwrap();
            for name in names(&*store) {
                store.remove(&name).unwrap();
            }
        }
    });
    let report = report(&beside, &dir(), true).unwrap().unwrap();
    assert_eq!(report.damaged(), 0, "{report:?}");
    assert_eq!(report.contents.valid().unwrap().tables, 0);
}
