//! One session after another: what each of them leaves for the next.

use super::*;
use crate::placement::hotrap::ralt::limits::Limits;
use crate::placement::hotrap::ralt::sizes::LEVEL0_TABLES;
use crate::placement::hotrap::ralt::version::Version;

fn limits(fixture: &Fixture) -> Limits {
    fixture.ralt.shared.version.load().limits
}

/// Tables that wait in level 0.
fn level0(fixture: &Fixture) -> usize {
    fixture.ralt.shared.version.load().level(0).len()
}

/// Every session in which anything was read left a table of level 0, and only full buffers had them
/// merged. A command that reads one record never has one. After a thousand such commands all reads
/// asked a thousand tables, with a file open for each, until there were too many for the process,
/// and everything was forgotten.
#[test]
fn sessions_too_short_for_the_background_work_pile_up_no_tables() {
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let open = || Fixture::on(Arc::clone(&medium), CAPACITY, HotRapOptions::default());
    for session in 0..50 {
        let fixture = open();
        fixture.read(3, session % 20, 200);
        fixture.ralt.close();
        assert_eq!(fixture.ralt.trouble(), None);
        assert!(level0(&fixture) <= LEVEL0_TABLES, "session {session}");
        assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
    }
    let fixture = open();
    assert_eq!(fixture.hot(3, 0..100).len(), 20);
    let of_one = key(0).len() as u64 + 200;
    fixture.merge_all();
    assert_eq!(fixture.ralt.metrics().hot_set_bytes, 20 * of_one);
}

/// And if what was read had gone to a level below, whoever closes the store had to write all of
/// that again.
#[test]
fn closing_merges_level_0_with_nothing_below_it() {
    let fixture = Fixture::new();
    (0..200).for_each(|number| fixture.read(3, number, 200));
    fixture.flush();
    fixture.merge_all();
    let below = |fixture: &Fixture| -> Vec<u64> {
        let version = fixture.ralt.shared.version.load();
        let tables = version.levels.iter().skip(1);
        let tables = tables.flat_map(|level| &level.tables);
        tables.map(|table| table.meta.id).collect()
    };
    let before = below(&fixture);
    assert!(!before.is_empty());
    for number in 0..LEVEL0_TABLES as u64 {
        fixture.read(3, 190 + 2 * number, 300);
        fixture.flush();
    }
    fixture.ralt.close();
    assert_eq!((level0(&fixture), below(&fixture)), (1, before));
    assert_eq!(fixture.hot(3, 0..300).len(), 203);
    assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
}

/// An opening did not find them either, not before a buffer was full.
#[test]
fn a_full_level_0_is_due_from_the_opening_on() {
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let open = || Fixture::on(Arc::clone(&medium), CAPACITY, HotRapOptions::default());
    let killed = open();
    for number in 0..LEVEL0_TABLES as u64 {
        killed.read(3, number, 200);
        killed.flush();
    }
    drop(killed);
    let fixture = open();
    assert_eq!(level0(&fixture), LEVEL0_TABLES);
    assert!(fixture.ralt.has_work());
    fixture.work();
    assert_eq!(level0(&fixture), 0);
    assert_eq!(fixture.hot(3, 0..100).len(), LEVEL0_TABLES);
}

/// A state told by which settings accesses are scored, but not the bounds of the limits. A command
/// opened the store with the default bounds, and wrote the learnt limits cut to them. The program
/// then found more hot records than there may be, and threw a part of them away.
#[test]
fn a_command_leaves_the_limits_of_a_store_with_bounds_of_its_own() {
    let own = HotRapOptions {
        hot_set_min: 0.02,
        hot_set_max: 0.95,
        hot_set_initial: 0.9,
        ralt_initial: 0.5,
        ..HotRapOptions::default()
    };
    let share = |fraction: f64| (CAPACITY as f64 * fraction) as u64;
    let young = Limits {
        hot_set: share(0.9),
        physical: share(0.5),
        ..Limits::default()
    };
    let learnt = |hot_set, physical| Limits {
        hot_set: share(hot_set),
        physical: share(physical),
        generation: 1,
        ..Limits::default()
    };
    for limits_before in [young, learnt(0.93, 0.45), learnt(0.03, 0.1)] {
        let medium: Arc<dyn Medium> = Arc::new(Memory::new());
        let open = |options| Fixture::on(Arc::clone(&medium), CAPACITY, options);
        let fixture = open(own.clone());
        let shared = &fixture.ralt.shared;
        shared.put_in_force(Version {
            limits: limits_before,
            ..Version::clone(&shared.version.load())
        });
        fixture.ralt.close();
        drop(fixture);

        let found = Ralt::settings(&*medium, &dir()).unwrap().unwrap();
        assert_eq!(found.bounds(), own.bounds());
        assert!((found.slice - own.slice).abs() < 1e-9, "{found:?}");
        let command = open(found);
        assert_eq!(limits(&command), limits_before);
        command.ralt.close();
        drop(command);
        let program = open(own.clone());
        assert_eq!(program.ralt.trouble(), None);
        assert_eq!(limits(&program), limits_before);
    }
}

/// A state had the time slice, but not how much of it was over. If a store was opened for less than
/// a slice each time, the clock stood still: no score aged, and no counter.
#[test]
fn slices_pass_in_sessions_that_are_shorter() {
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let open = || Fixture::on(Arc::clone(&medium), CAPACITY, HotRapOptions::default());
    let slice = open().ralt.shared.sizes.slice;
    let read = slice * 3 / 10 + 1;
    for session in 0..10 {
        let fixture = open();
        fixture.read(3, session, read as usize - key(session).len());
        fixture.ralt.close();
        assert_eq!(fixture.ralt.metrics().tick, read * (session + 1) / slice);
    }
    assert_eq!(open().ralt.metrics().tick, 3);
}
