//! Failures while RALT runs: they cost hotness, and nothing else (I7, I9).

use super::*;
use crate::error::Error;
use crate::placement::hotrap::ralt::reuse::Reuse;
use crate::storage::{CrashStyle, Fault, Faulty, Operation};
use crate::sync::atomic::{AtomicU64, Ordering};

fn fixture(disk: &Faulty) -> Fixture {
    Fixture::on(Arc::new(disk.clone()), CAPACITY, HotRapOptions::default())
}

fn no_space() -> Error {
    Error::NoSpace {
        operation: "write",
        path: dir(),
    }
}

/// Reads, works and closes; asks everything on the way.
fn use_it(fixture: &Fixture) {
    for round in 0..3u64 {
        (0..80).for_each(|number| fixture.read(0, number, 300));
        (0..600).for_each(|number| fixture.read(0, 1000 * (round + 1) + number, 300));
        fixture.hot(0, 0..4000);
        fixture.ralt.hot_bytes(0, &range(&key(0), &key(4000)));
        fixture.ralt.metrics();
        let _ = fixture.ralt.heat(5, &|_| None);
    }
    fixture.ralt.close();
}

#[test]
fn any_call_may_fail() {
    let disk = Faulty::new(1);
    use_it(&fixture(&disk));
    let calls = disk.calls();
    assert!(calls > 100);
    for fault in [
        Fault::Io,
        Fault::NoSpace,
        Fault::SyncFails,
        Fault::ShortWrite,
    ] {
        for n in (1..calls).step_by(9) {
            let disk = Faulty::new(n);
            disk.fail_nth(n, fault);
            let fixture = fixture(&disk);
            use_it(&fixture);
            assert!(fixture.fast.reserved_bytes() == 0);
            let told = fixture.ralt.trouble().is_some();
            assert!(told || disk.triggered() == 0 || fault != Fault::SyncFails);
            // What a restart finds is good, or is begun anew.
            drop(fixture);
            disk.heal();
            let after = self::fixture(&disk.crash(CrashStyle::LoseAll));
            (0..50).for_each(|number| after.read(0, number, 300));
            after.flush();
            assert!(after.hot(0, 0..50).len() == 50, "{fault:?} {n}");
        }
    }
}

/// A young RALT that had stopped counted everything that was read as hot for the rest of the
/// process's life, since it would never evict: every record read from the slow tier was promoted.
#[test]
fn after_a_failed_sync_nothing_is_written_and_what_is_known_stays_in_use() {
    let disk = Faulty::new(1);
    let fixture = fixture(&disk);
    (0..100).for_each(|number| fixture.read(0, number, 10));
    fixture.flush();
    assert!(fixture.ralt.is_generous());
    disk.fail_where(
        |operation, _| operation == Operation::Sync,
        Fault::SyncFails,
    );
    let mut number = 100;
    while fixture.ralt.trouble().is_none() {
        fixture.read(0, number, 10);
        number += 1;
        assert!(number < 10_000);
    }
    disk.heal();
    let calls = disk.calls();
    (0..5000).for_each(|number| fixture.read(0, number, 10));
    fixture.ralt.close();
    assert_eq!(disk.calls(), calls, "not a call to the disk");
    assert!(!fixture.ralt.has_work());
    assert!(!fixture.ralt.is_generous());
    assert!((0..100).all(|number| fixture.ralt.is_hot(0, &key(number))));
    let metrics = fixture.ralt.metrics();
    assert!(metrics.dropped_accesses >= 5000, "{metrics:?}");
}

#[test]
fn a_state_that_finds_no_space_leaves_everything_as_it_was() {
    let fixture = Fixture::new();
    for start in [0, 100] {
        (start..start + 100).for_each(|number| fixture.read(0, number, 10));
        fixture.flush();
    }
    let before = fixture.bytes_on_disk();
    fixture.points.set("ralt.before_state", || Err(no_space()));
    fixture.merge_all();
    assert_eq!(
        fixture.bytes_on_disk(),
        before,
        "the merge's output is removed"
    );
    assert_eq!(fixture.hot(0, 0..200).len(), 200);
    fixture.points.clear("ralt.before_state");
    fixture.merge_all();
    assert!(
        fixture.bytes_on_disk() < before,
        "one table instead of two or more"
    );
    assert_eq!(fixture.hot(0, 0..200).len(), 200);
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
    assert_eq!(fixture.fast.reserved_bytes(), 0);
}

#[test]
fn want_of_space_passes() {
    let fixture = Fixture::new();
    (0..100).for_each(|number| fixture.read(0, number, 10));
    fixture.flush();
    let free = fixture.fast.free_bytes();
    fixture.fast.add_file_bytes(free);
    // No flush finds space: accesses wait, and those past the backlog are dropped.
    (100..200).for_each(|number| fixture.read(0, number, 10));
    assert_eq!(fixture.ralt.metrics().dropped_accesses, 0);
    (0..5000).for_each(|_| fixture.read(0, 5000, 10));
    assert!(fixture.ralt.metrics().dropped_accesses > 0);
    assert_eq!(fixture.hot(0, 0..200).len(), 100);
    fixture.fast.remove_file_bytes(free);
    fixture.work();
    fixture.flush();
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.hot(0, 0..200).len(), 200);
    assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
}

/// A flush that found no space brought back what it had taken, together with what readers had
/// logged meanwhile, and nothing shortened the queue again. It grew with each try, until no flush
/// found space for it even on a tier in good order.
#[test]
fn accesses_that_come_in_during_flushes_without_space_do_not_pile_up() {
    let fixture = Fixture::new();
    let shared = &fixture.ralt.shared;
    let mut first = 0;
    while !shared.buffers.push(0, &key(first), 10, 1) {
        first += 1;
    }
    let readers = Arc::clone(shared);
    fixture.points.set("ralt.flush", move || {
        for number in 10_000..15_000 {
            readers.buffers.push(0, &key(number), 10, 1);
        }
        Err(no_space())
    });
    for _ in 0..50 {
        assert!(!fixture.ralt.work(), "not before there may be space");
    }
    fixture.points.clear("ralt.flush");
    let most = shared.sizes.backlog + 2 * shared.sizes.chunk as u64;
    let waits = shared.buffers.memory();
    assert!(waits <= most, "{waits} of {most}");
    fixture.work();
    assert!(!shared.buffers.is_flush_due());
    assert_eq!(fixture.hot(0, 0..first).len() as u64, first);
    assert_eq!(fixture.ralt.trouble(), None);
}

/// Such a RALT was young for good, too, and so everything that was read counted as hot.
#[test]
fn a_directory_that_cannot_be_had_leaves_a_ralt_that_knows_nothing() {
    let disk = Faulty::new(1);
    let gone = disk.crash(CrashStyle::LoseAll);
    let fixture = fixture(&disk);
    assert!(fixture.ralt.trouble().is_some());
    (0..1000).for_each(|number| fixture.read(0, number, 10));
    fixture.ralt.close();
    assert!(!fixture.ralt.is_hot(0, &key(1)) && !fixture.ralt.work());
    assert!(!fixture.ralt.is_generous());
    let metrics = fixture.ralt.metrics();
    assert_eq!((metrics.accesses, metrics.dropped_accesses), (1000, 1000));
    assert_eq!(self::fixture(&gone).ralt.trouble(), None);
}

/// What was measured on records that are gone says nothing about the next ones. A RALT that was
/// begun anew in the midst of learning went on promoting whatever was read once.
#[test]
fn damage_takes_with_it_what_was_measured() {
    let fixture = Fixture::new();
    let shared = &fixture.ralt.shared;
    for round in 0..6u64 {
        (0..80).for_each(|number| fixture.read(0, number, 300));
        (0..600).for_each(|number| fixture.read(0, 1000 * (round + 1) + number, 300));
    }
    assert_ne!(shared.worker.lock().reuse, Reuse::default());
    shared.learning.store(true, Ordering::Relaxed);
    shared.flat.store(true, Ordering::Relaxed);
    shared.damaged.store(true, Ordering::Relaxed);
    fixture.work();
    assert_eq!(shared.worker.lock().reuse, Reuse::default());
    assert!(!shared.learning.load(Ordering::Relaxed) && !shared.flat.load(Ordering::Relaxed));
    assert!(fixture.hot(0, 0..80).is_empty());
}

/// The mark of damage was gone with the first try to begin anew. If that found no space, what is
/// damaged stayed in force until a reader met it again.
#[test]
fn damage_that_could_not_be_cleared_for_want_of_space_is_cleared_later() {
    let fixture = Fixture::new();
    (0..80).for_each(|number| fixture.read(0, number, 300));
    fixture.flush();
    fixture.points.set("ralt.before_state", || Err(no_space()));
    fixture.ralt.shared.damaged.store(true, Ordering::Relaxed);
    assert!(!fixture.ralt.work(), "not before there may be space");
    assert_eq!(fixture.hot(0, 0..80).len(), 80);
    fixture.points.clear("ralt.before_state");
    fixture.work();
    assert!(fixture.hot(0, 0..80).is_empty());
    assert!(!fixture.ralt.shared.damaged.load(Ordering::Relaxed));
}

/// A sector that could not be read was an error like a failed sync, after which nothing is written.
/// The next opening does not read it and found all in order, and the first merge stopped again:
/// from there on nothing was ever learnt. And crossings, which do not stop, took all keys behind
/// the sector for cold, each time.
#[test]
fn what_cannot_be_read_is_lost_and_learnt_anew() {
    for is_merged in [true, false] {
        let disk = Faulty::new(1);
        let fixture = fixture(&disk);
        for start in [0, 100] {
            (start..start + 100).for_each(|number| fixture.read(0, number, 10));
            fixture.flush();
        }
        disk.fail_where(
            |operation, name| operation == Operation::Read && name.ends_with(".sst"),
            Fault::Io,
        );
        if is_merged {
            fixture.merge_all();
        } else {
            assert!(fixture.hot(0, 0..200).is_empty());
            assert!(fixture.ralt.has_work());
            fixture.work();
        }
        assert!(disk.triggered() > 0);
        disk.heal();
        let trouble = fixture.ralt.trouble().unwrap();
        assert!(trouble.contains(".sst is damaged"), "{trouble}");
        assert!(!fixture.ralt.metrics().has_stopped);
        assert!(fixture.hot(0, 0..200).is_empty());
        (200..250).for_each(|number| fixture.read(0, number, 300));
        fixture.flush();
        assert_eq!(fixture.hot(0, 0..300).len(), 50);
        assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
    }
}

/// Work that had found no space was due again only with a full buffer of accesses, or with less
/// room. A store that is only written to has neither: it stayed over its limits, however much space
/// its compactions gave back.
#[test]
fn an_eviction_that_found_no_space_is_due_again_when_there_may_be_some() {
    let fixture = Fixture::new();
    (0..100).for_each(|number| fixture.read(0, number, 300));
    fixture.flush();
    fixture.merge_all();
    let room = fixture.ralt.metrics().hot_set_bytes / 2;
    let free = fixture.fast.free_bytes();
    fixture.fast.add_file_bytes(free);
    fixture.ralt.set_room(room);
    fixture.work();
    assert_eq!(fixture.ralt.metrics().evictions, 0);
    assert!(!fixture.ralt.has_work(), "not before there may be space");
    // As the end of a compaction does.
    fixture.fast.remove_file_bytes(free);
    fixture.ralt.set_room(room + 1);
    assert!(fixture.ralt.has_work());
    fixture.work();
    let metrics = fixture.ralt.metrics();
    assert_eq!(metrics.evictions, 1);
    assert!(metrics.hot_set_bytes <= room, "{metrics:?}");
}

/// The limits of such an eviction came into force, and into the state with the next flush: a RALT
/// that had never evicted anything was no longer young, and each try counted as an eviction.
#[test]
fn an_eviction_that_finds_no_space_leaves_everything_as_it_was() {
    let fixture = Fixture::new();
    (0..100).for_each(|number| fixture.read(0, number, 300));
    fixture.flush();
    fixture.merge_all();
    let limits = || fixture.ralt.shared.version.load().limits;
    let (before, hot) = (limits(), fixture.ralt.metrics().hot_set_bytes);
    let free = fixture.fast.free_bytes();
    fixture.fast.add_file_bytes(free);
    for _ in 0..3 {
        fixture.ralt.set_room(hot / 2);
        assert!(fixture.ralt.has_work());
        fixture.work();
    }
    assert_eq!(limits(), before);
    assert!(fixture.is_young() && fixture.ralt.is_generous());
    assert_eq!(fixture.hot(0, 0..100).len(), 100);
    fixture.fast.remove_file_bytes(free);
    fixture.ralt.set_room(hot / 2);
    fixture.work();
    assert_eq!(limits().generation, 1);
}

/// The last thing that work did was to say whether more was due. What a compaction's thread had
/// found due meanwhile was forgotten with that.
#[test]
fn room_that_falls_while_work_ends_is_not_overlooked() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        (0..100).for_each(|number| fixture.read(0, number, 300));
        fixture.flush();
    }
    let room = fixture.ralt.metrics().hot_set_bytes / 4;
    let other = Ralt {
        shared: Arc::clone(&fixture.ralt.shared),
    };
    fixture.points.set("ralt.before_remove", move || {
        other.set_room(room);
        Ok(())
    });
    fixture.merge_all();
    fixture.points.clear("ralt.before_remove");
    let metrics = fixture.ralt.metrics();
    assert!(metrics.hot_set_bytes <= room, "{metrics:?}");
}

/// A run of many tables, and above it tables of level 0 with as much again and a half, each over
/// the whole range and of the same keys: as when none was merged for a while.
fn with_many_waiting() -> Fixture {
    let fixture = merged();
    let shared = &fixture.ralt.shared;
    let keys = shared.sizes.table;
    for number in (0..).map(|read| read * 7919 % keys) {
        if fixture.ralt.log(0, &key(number), 10, 1) {
            fixture.flush();
        }
        if waiting(&fixture) > 4 * shared.sizes.step {
            break;
        }
    }
    fixture
}

/// As many keys as a table has bytes, in one run.
fn merged() -> Fixture {
    let fixture = Fixture::on(Arc::new(Memory::new()), 16 << 20, HotRapOptions::default());
    (0..fixture.ralt.shared.sizes.table).for_each(|number| fixture.read(0, number, 10));
    fixture.flush();
    fixture.merge_all();
    fixture
}

fn waiting(fixture: &Fixture) -> u64 {
    fixture.ralt.shared.version.load().level_bytes(0)
}

/// Each step of a merge asked for as much space as all tables of level 0 have, though it takes a
/// slice of each. With less free space on the tier no merge began, while flushes went on: there
/// were more tables each time, and the hot set gave way to them.
#[test]
fn tables_of_level_0_are_merged_with_less_space_than_they_have() {
    let fixture = with_many_waiting();
    let (before, waited) = (fixture.ralt.metrics().physical_bytes, waiting(&fixture));
    let others = fixture.fast.free_bytes() - fixture.ralt.shared.sizes.step;
    fixture.fast.add_file_bytes(others);
    fixture.work();
    let left = waiting(&fixture);
    assert!(left < waited / 8, "{left} of {waited} wait");
    assert!(fixture.ralt.metrics().physical_bytes < before - waited / 2);
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.fast.reserved_bytes(), 0);
}

/// Each step began with the flush that was due, and ended there if it found no space. Merges and
/// evictions, which take less and make room, waited for it.
#[test]
fn tables_are_merged_while_a_flush_finds_no_space() {
    let fixture = merged();
    let shared = &fixture.ralt.shared;
    // Few large tables: a slice has a block of each at least.
    let mut numbers = (0..).map(|read| read * 7919 % shared.sizes.table);
    while waiting(&fixture) < 4 * shared.sizes.step {
        for number in numbers.by_ref().take(2000) {
            shared.buffers.push(0, &key(number), 10, 1);
        }
        fixture.flush();
    }
    let waited = waiting(&fixture);
    // As many accesses as may wait, which take more space than a slice of the merge.
    for number in 0.. {
        shared.buffers.push(0, &key(number), 10, 1);
        if shared.buffers.counts().1 > 0 {
            break;
        }
    }
    let left = shared.sizes.backlog + shared.sizes.backlog / 8;
    let others = fixture.fast.free_bytes() - left;
    fixture.fast.add_file_bytes(others);
    fixture.work();
    let waits = waiting(&fixture);
    assert!(waits < waited / 2, "{waits} of {waited} wait");
    assert!(!shared.buffers.is_flush_due(), "there is space now");
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.fast.reserved_bytes(), 0);
}

#[test]
fn a_step_is_no_longer_for_the_tables_of_level_0_that_wait() {
    let fixture = with_many_waiting();
    let (fast, most) = (Arc::clone(&fixture.fast), Arc::new(AtomicU64::new(0)));
    let seen = Arc::clone(&most);
    fixture.points.set("ralt.before_state", move || {
        seen.fetch_max(fast.in_flight(), Ordering::Relaxed);
        Ok(())
    });
    fixture.work();
    // A step ends with the table that makes it long enough, and counts the blocks that it shares
    // with the next.
    let most = most.load(Ordering::Relaxed);
    let sizes = &fixture.ralt.shared.sizes;
    assert!(
        most > sizes.step && most < 2 * sizes.step,
        "{most} {sizes:?}"
    );
    assert!(waiting(&fixture) < sizes.step);
}
