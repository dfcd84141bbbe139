//! What a restart keeps, and what damage leaves (I7).

use super::*;
use crate::ids::table_number;
use crate::placement::hotrap::ralt::limits::Limits;
use crate::placement::hotrap::ralt::scoring::Model;
use crate::placement::hotrap::ralt::state::{Clock, State};
use crate::placement::hotrap::ralt::state_log::{NAME, TEMPORARY, encode};
use crate::storage::{CrashStyle, Fault, Faulty, Memory, Operation};

/// A store that was read from, evicted once, and closed.
pub(super) fn closed() -> (Memory, Fixture) {
    let memory = Memory::new();
    let fixture = Fixture::on(Arc::new(memory.clone()), CAPACITY, HotRapOptions::default());
    for _ in 0..2 {
        (0..100).for_each(|number| fixture.read(3, number, 200));
    }
    (1000..6000).for_each(|number| fixture.read(3, number, 200));
    fixture.ralt.close();
    assert_eq!(fixture.ralt.trouble(), None);
    (memory, fixture)
}

pub(super) fn reopen(memory: &Memory) -> Fixture {
    Fixture::on(Arc::new(memory.clone()), CAPACITY, HotRapOptions::default())
}

fn reopen_after(before: PlacedBy, memory: &Memory) -> Fixture {
    let (before, medium) = (Some(before), Arc::new(memory.clone()));
    Fixture::of(DATABASE, before, medium, CAPACITY, HotRapOptions::default())
}

/// Reopens what is known to have been there.
pub(super) fn reopen_expecting(memory: &Memory) -> Fixture {
    reopen_after(PlacedBy::Hotness, memory)
}

/// A copy of RALT's files, without those for which `change` gives nothing.
fn copy(from: &Memory, change: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>) -> Memory {
    let to = Memory::new();
    let (source, target) = (from.log_store(&dir(), true), to.log_store(&dir(), true));
    let (source, target) = (source.unwrap(), target.unwrap());
    for file in source.list().unwrap() {
        if let Some(content) = change(&file.name, source.read(&file.name).unwrap()) {
            target.create(&file.name).unwrap().append(&content).unwrap();
        }
    }
    to
}

fn names(memory: &Memory) -> Vec<String> {
    let files = memory.log_store(&dir(), true).unwrap().list().unwrap();
    files.into_iter().map(|file| file.name).collect()
}

/// Nothing is known, nothing is left over, and it works.
pub(super) fn assert_begun_anew(fixture: &Fixture, what: &str) {
    let trouble = fixture.ralt.trouble();
    assert!(
        trouble.is_some_and(|t| t.contains("ralt")),
        "{what}: the place is told"
    );
    assert!(!fixture.ralt.is_hot(3, &key(5)), "{what}");
    assert!(fixture.is_young(), "{what}");
    let files = fixture.medium.log_store(&dir(), true).unwrap().list();
    let files: Vec<String> = files.unwrap().into_iter().map(|f| f.name).collect();
    assert_eq!(files, [NAME], "{what}");
    assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk(), "{what}");
    (0..50).for_each(|number| fixture.read(3, number, 200));
    fixture.flush();
    assert_eq!(fixture.hot(3, 0..100).len(), 50, "{what}");
}

#[test]
fn a_restart_keeps_everything() {
    let (memory, before) = closed();
    let after = reopen(&memory);
    assert_eq!(after.ralt.trouble(), None);
    let (old, new) = (before.ralt.metrics(), after.ralt.metrics());
    assert!(old.evictions > 0 && !new.is_young);
    assert_eq!(
        (
            old.hot_set_bytes,
            old.hot_set_limit_bytes,
            old.physical_bytes,
            old.records,
            old.tick
        ),
        (
            new.hot_set_bytes,
            new.hot_set_limit_bytes,
            new.physical_bytes,
            new.records,
            new.tick
        ),
    );
    assert_eq!(old.hot_threshold, new.hot_threshold);
    assert_eq!(old.physical_limit_bytes, new.physical_limit_bytes);
    let hot = before.hot(3, 0..6000);
    assert!(hot.len() >= 100);
    assert_eq!(after.hot(3, 0..6000), hot);
    assert_eq!(after.fast.file_bytes(), after.bytes_on_disk());
    // Stable records are known to be: the histograms came along.
    (10_000..16_000).for_each(|number| after.read(3, number, 200));
    assert!(after.ralt.metrics().evictions > 0);
    assert_eq!(after.hot(3, 0..100).len(), 100);
}

/// Another store's tables are named as RALT's are, and were removed as files that no state names.
#[test]
fn what_another_store_has_in_the_directory_stays() {
    let (memory, _) = closed();
    let log = memory.log_store(&dir(), false).unwrap();
    for name in ["TIER", "99999999.sst"] {
        log.create(name).unwrap();
    }
    let there = names(&memory);
    for before in [None, Some(PlacedBy::Level), Some(PlacedBy::Hotness)] {
        let (medium, options) = (Arc::new(memory.clone()), HotRapOptions::default());
        let fixture = Fixture::of(DATABASE, before, medium, CAPACITY, options);
        let trouble = fixture.ralt.trouble().unwrap();
        assert!(trouble.contains("another store"), "{trouble}");
        (0..5000).for_each(|number| fixture.read(3, number, 200));
        fixture.ralt.close();
        assert!(!fixture.ralt.has_state(), "none is to be expected");
        crate::placement::hotrap::ralt::discard(&memory, &dir(), &fixture.fast).unwrap();
        assert_eq!(names(&memory), there, "{before:?}");
        assert_eq!(fixture.fast.file_bytes(), 0, "they are not the store's");
    }
}

#[test]
fn nothing_is_no_trouble_and_neither_is_a_store_that_read_nothing() {
    let memory = Memory::new();
    let fixture = reopen(&memory);
    fixture.ralt.close();
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(reopen(&memory).ralt.trouble(), None);
    // There is a state from the first opening on: whoever expects one finds it.
    assert_eq!(reopen_expecting(&memory).ralt.trouble(), None);
}

#[test]
fn where_everything_is_gone_that_is_told_if_something_is_expected() {
    let fixture = reopen_expecting(&Memory::new());
    let trouble = fixture.ralt.trouble().unwrap();
    assert!(trouble.contains("fast/ralt/RALT"), "{trouble}");
    assert_begun_anew(&fixture, "nothing is left");
    fixture.ralt.close();
}

/// Found by `recovery-crash`: a store was opened with placement by level, and the power went while
/// RALT's files were removed. The removal of a table had reached the disk, that of the state had
/// not, and the next opening with placement by hotness called that damage.
#[test]
fn what_a_crash_left_of_a_removal_is_no_trouble_and_not_used() {
    let (memory, _) = closed();
    for gone in names(&memory) {
        let left = copy(&memory, |name, content| (name != gone).then_some(content));
        let highest = names(&left)
            .iter()
            .filter_map(|name| table_number(name))
            .max();
        let after = reopen_after(PlacedBy::Level, &left);
        assert_eq!(after.ralt.trouble(), None, "{gone}");
        assert!(after.is_young() && !after.ralt.is_hot(3, &key(5)));
        assert_eq!(names(&left), [NAME], "{gone}");
        let next = after.ralt.shared.files.as_ref().unwrap().next_id();
        assert!(next > highest.unwrap_or(0), "{gone}");
        after.ralt.close();
        assert_eq!(reopen_expecting(&left).ralt.trouble(), None, "{gone}");
    }
}

#[test]
fn a_walk_cut_short_by_a_restart_loses_nothing() {
    let memory = Memory::new();
    let before = Fixture::on(Arc::new(memory.clone()), 8 << 20, HotRapOptions::default());
    let mut steps = 0;
    for number in 0..20_000u64 {
        let due = before.ralt.log(0, &key(number * 7919 % 20_000), 20, 1);
        // Until a merge stands in the middle of the key range.
        while due && before.ralt.work() && steps == 0 {
            let trimmed = |v: &super::super::version::Version| v.tables().any(|t| t.trim.is_some());
            steps += u64::from(trimmed(&before.ralt.shared.version.load()));
        }
        if steps > 0 {
            break;
        }
    }
    assert_eq!(steps, 1, "a walk of several steps");
    let hot = before.hot(0, 0..20_000);
    let after = Fixture::on(
        Arc::new(copy(&memory, |_, c| Some(c))),
        8 << 20,
        HotRapOptions::default(),
    );
    assert_eq!(after.ralt.trouble(), None);
    assert_eq!(after.hot(0, 0..20_000), hot);
    after.merge_all();
    assert_eq!(after.hot(0, 0..20_000), hot);
    assert_eq!(after.ralt.metrics().records, hot.len() as u64);
    assert!(
        after
            .ralt
            .shared
            .version
            .load()
            .tables()
            .all(|t| t.trim.is_none())
    );
}

#[test]
fn orphans_are_removed_and_their_numbers_not_used_again() {
    let (memory, _) = closed();
    let log = memory.log_store(&dir(), true).unwrap();
    log.create("00009999.sst")
        .unwrap()
        .append(b"orphan")
        .unwrap();
    log.create(TEMPORARY).unwrap().append(b"half").unwrap();
    let after = reopen(&memory);
    assert_eq!(after.ralt.trouble(), None);
    assert!(
        !names(&memory)
            .iter()
            .any(|name| name == "00009999.sst" || name == TEMPORARY)
    );
    assert!(after.ralt.shared.files.as_ref().unwrap().next_id() > 9999);
}

#[test]
fn a_missing_file_means_beginning_anew() {
    let (memory, _) = closed();
    let files = names(&memory);
    assert!(files.len() >= 2, "{files:?}");
    for missing in files {
        let left = copy(&memory, |name, content| {
            (name != missing).then_some(content)
        });
        assert_begun_anew(&reopen(&left), &missing);
    }
}

#[test]
fn a_file_cut_short_means_beginning_anew() {
    let (memory, _) = closed();
    for cut in names(&memory) {
        for len in [0, 1, 40, 300] {
            let left = copy(&memory, |name, mut content| {
                if name == cut {
                    content.truncate(len.min(content.len() - 1));
                }
                Some(content)
            });
            assert_begun_anew(&reopen(&left), &cut);
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_seen_and_survived() {
    let (memory, before) = closed();
    let hot = before.hot(3, 0..6000);
    for flipped in names(&memory) {
        let len = memory
            .log_store(&dir(), true)
            .unwrap()
            .read(&flipped)
            .unwrap()
            .len();
        for at in (0..len).step_by(len / 25 + 1) {
            let left = copy(&memory, |name, mut content| {
                if name == flipped {
                    content[at] ^= 1 << (at % 8);
                }
                Some(content)
            });
            let fixture = reopen(&left);
            if fixture.ralt.trouble().is_some() {
                assert_begun_anew(&fixture, &flipped);
                continue;
            }
            // In a data block: seen when it is read.
            assert!(fixture.ralt.is_hot(3, &key(5)));
            let found = fixture.hot(3, 0..6000);
            assert!(found.len() < hot.len(), "{flipped} at {at}");
            assert!(fixture.ralt.trouble().is_some());
            assert!(fixture.ralt.has_work());
            fixture.work();
            assert!(!fixture.ralt.is_hot(3, &key(5)), "begun anew");
            (0..50).for_each(|number| fixture.read(3, number, 200));
            fixture.flush();
            assert_eq!(fixture.hot(3, 0..100).len(), 50);
            assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
        }
    }
}

#[test]
fn another_database_or_other_scores_mean_beginning_anew() {
    let (memory, _) = closed();
    let copied = || Arc::new(copy(&memory, |_, content| Some(content)));
    let other = Fixture::of(1, None, copied(), CAPACITY, HotRapOptions::default());
    assert_begun_anew(&other, "another database");
    let options = HotRapOptions {
        decay: 0.9,
        ..HotRapOptions::default()
    };
    assert_begun_anew(&Fixture::on(copied(), CAPACITY, options), "another decay");
    let larger = Fixture::on(copied(), 2 * CAPACITY, HotRapOptions::default());
    assert_eq!(larger.ralt.trouble(), None, "another capacity is fine");
}

/// Reopens access records that have been through an eviction. The fast tier is so small that they
/// are `share` of its capacity, and other files take the rest. At first `initial` of the capacity
/// is theirs.
fn reopen_on_a_full_tier(share: f64, initial: f64) -> Fixture {
    let medium = Arc::new(Memory::new());
    let capacity = 4 * CAPACITY;
    let before = Fixture::on(medium.clone(), capacity, HotRapOptions::default());
    let mut read = 0;
    while before.is_young() {
        before.read(3, read, 8);
        read += 1;
        assert!(read < 100_000, "nothing was evicted");
    }
    before.work();
    before.ralt.close();
    let physical = before.ralt.metrics().physical_bytes;
    let options = HotRapOptions {
        ralt_initial: initial,
        ..HotRapOptions::default()
    };
    let after = Fixture::on(medium, (physical as f64 / share) as u64, options);
    assert_eq!(after.ralt.trouble(), None);
    assert_eq!(after.ralt.metrics().physical_bytes, physical);
    after.fast.add_file_bytes(after.fast.free_bytes());
    assert_eq!(after.fast.free_bytes(), 0);
    after
}

/// A limit outlived the capacity that it followed from. If the fast tier was smaller after a
/// restart than the access records on it, no merge of them found space. They never took twice their
/// limit, so they were not given up either: every write was refused for want of space, for good.
#[test]
fn access_records_that_leave_no_space_on_the_tier_of_now_are_given_up() {
    for (share, initial) in [(4.0, 0.15), (0.9, 0.5)] {
        let fixture = reopen_on_a_full_tier(share, initial);
        (0..2000).for_each(|number| fixture.read(3, number, 8));
        fixture.work();
        let (tier, free) = (&fixture.fast.options, fixture.fast.free_bytes());
        assert!(free > tier.capacity / 4, "{share}: {free} of {tier:?}");
        (50_000..50_050).for_each(|number| fixture.read(3, number, 8));
        fixture.flush();
        assert_eq!(fixture.hot(3, 50_000..50_050).len(), 50);
        assert_eq!(fixture.ralt.trouble(), None);
    }
}

/// And they were looked at only with a full buffer of accesses: a store that is only written to has
/// none.
#[test]
fn access_records_over_their_limit_are_due_from_the_opening_on() {
    let fixture = reopen_on_a_full_tier(4.0, 0.15);
    assert!(fixture.ralt.has_work());
    fixture.work();
    assert!(fixture.fast.file_bytes() < fixture.fast.options.capacity);
    assert!(!fixture.ralt.has_work());
}

/// Settings that give access records other scores make them begin anew. Settings that are read back
/// are the same but for rounding.
#[test]
fn settings_that_were_read_back_are_those_of_before() {
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let settings = HotRapOptions {
        decay: 0.97,
        slice: 0.013,
        hot_set_max: 0.31,
        hot_set_initial: 0.3,
        ..HotRapOptions::default()
    };
    let open = |options| Fixture::on(Arc::clone(&medium), CAPACITY, options);
    let fixture = open(settings);
    (0..500).for_each(|number| fixture.read(3, number, 200));
    fixture.ralt.close();
    drop(fixture);
    assert!(Ralt::settings(&Memory::new(), &dir()).unwrap().is_none());
    let found = Ralt::settings(&*medium, &dir()).unwrap().unwrap();
    assert!((found.decay - 0.97).abs() < 1e-9, "{found:?}");
    let fixture = open(found);
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.ralt.metrics().records, 500);
    fixture.ralt.close();
    let said = open(HotRapOptions::default()).ralt.trouble();
    assert!(said.is_some_and(|said| said.contains("of other settings")));
}

/// Once, a state of other settings was removed before there was a new one. A process that was
/// killed in between left none where one was expected, and the next opening called that damage.
#[test]
fn a_crash_while_other_settings_begin_anew_is_no_damage() {
    let other = HotRapOptions {
        decay: 0.9,
        ..HotRapOptions::default()
    };
    let closed = || {
        let disk = Faulty::new(1);
        let (medium, options) = (Arc::new(disk.clone()), HotRapOptions::default());
        let fixture = Fixture::on(medium, CAPACITY, options);
        (0..3000).for_each(|number| fixture.read(3, number, 200));
        fixture.ralt.close();
        drop(fixture);
        disk
    };
    let reopen = |disk: &Faulty| {
        let medium = Arc::new(disk.clone());
        Fixture::of(
            DATABASE,
            Some(PlacedBy::Hotness),
            medium,
            CAPACITY,
            other.clone(),
        )
    };
    let whole = closed();
    let before = whole.calls();
    reopen(&whole);
    let calls = whole.calls() - before;
    assert!(calls > 5);
    for call in 1..=calls {
        for style in [CrashStyle::KeepAll, CrashStyle::LoseAll] {
            let disk = closed();
            disk.fail_nth(call, Fault::PowerLoss);
            reopen(&disk);
            let after = reopen(&disk.crash(style));
            let said = after.ralt.trouble().unwrap_or_default();
            let is_told = said.is_empty() || said.contains("of other settings");
            assert!(is_told, "{style:?} at call {call}: {said}");
            assert_eq!(after.fast.file_bytes(), after.bytes_on_disk());
        }
    }
}

/// If a RALT could not write its first state, its files of before lay on the fast tier, up to a
/// quarter of it and more, and were not counted: their space was given away a second time (I8).
#[test]
fn files_that_are_there_when_opening_fails_are_counted() {
    let disk = Faulty::new(1);
    let open = |options| Fixture::on(Arc::new(disk.clone()), CAPACITY, options);
    let fixture = open(HotRapOptions::default());
    (0..3000).for_each(|number| fixture.read(3, number, 200));
    fixture.ralt.close();
    let of_before = fixture.bytes_on_disk();
    disk.fail_where(
        |operation, _| operation == Operation::Sync,
        Fault::SyncFails,
    );
    let other = open(HotRapOptions {
        decay: 0.9,
        ..HotRapOptions::default()
    });
    disk.heal();
    assert!(other.ralt.trouble().is_some());
    assert!(other.bytes_on_disk() > of_before, "and the new state");
    assert_eq!(other.fast.file_bytes(), other.bytes_on_disk());
}

/// After a state whose numbers are the largest that fit, and whose checksum is right, the next
/// access overflowed the count of slices. Such a state is damage like any other.
#[test]
fn a_state_of_numbers_that_nothing_can_be_added_to_means_beginning_anew() {
    let (memory, _) = closed();
    let model = Model::new(&HotRapOptions::default());
    let sound = State {
        next_id: 1000,
        ..State::default()
    };
    let limits = |generation| Limits {
        generation,
        ..Limits::default()
    };
    let states = [
        (
            "slices",
            State {
                clock: Clock {
                    tick: u64::MAX,
                    begun: 0.0,
                },
                ..sound.clone()
            },
        ),
        (
            "numbers of files",
            State {
                next_id: u64::MAX,
                ..sound.clone()
            },
        ),
        (
            "evictions",
            State {
                limits: limits(u64::MAX),
                ..sound.clone()
            },
        ),
    ];
    for (what, state) in states {
        let bytes = encode(DATABASE, 1, &model, state).unwrap();
        let left = copy(&memory, |name, content| match name {
            NAME => Some(bytes.clone()),
            _ => Some(content),
        });
        assert_begun_anew(&reopen(&left), what);
    }
}
