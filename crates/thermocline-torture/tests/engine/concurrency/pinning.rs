//! Readers hold a superversion while flushes and compactions put another in its place.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use thermocline::executor::{Executor, Stepped};
use thermocline::{Bytes, Db, Error, ManualClock, Options, Points, Range};
use thermocline_torture::stores::{memory, small_options};

use super::support::Slot;

const KEYS: u32 = 1500;

/// Places at which the superversion is about to change, or just has.
const CHANGES: [&str; 5] = [
    "freeze.before_publish",
    "flush.before_edit",
    "flush.installed",
    "compaction.before_edit",
    "compaction.installed",
];

fn key(n: u32) -> String {
    format!("key{n:06}")
}

fn value(n: u32) -> Vec<u8> {
    n.to_le_bytes().repeat(75)
}

/// A store whose background work runs on whichever thread waits. Returned with its points.
fn stepped() -> (Db, Points, Arc<Stepped>) {
    let (points, executor) = (Points::default(), Arc::new(Stepped::new(7)));
    let run_by = Arc::clone(&executor) as _;
    (open(&small_options(), &points, run_by), points, executor)
}

fn open(options: &Options, points: &Points, executor: Arc<dyn Executor>) -> Db {
    let medium = memory();
    let mut builder = Db::builder(options.clone());
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(&medium));
    }
    builder
        .points(points.clone())
        .executor(executor)
        .clock(Arc::new(ManualClock::default()))
        .open()
        .unwrap()
}

fn check_all_ways(db: &Db, around: u32) {
    let near: Vec<String> = (around..around + 20).map(|n| key(n % KEYS)).collect();
    let values = db.multi_get(&near).unwrap();
    for (n, found) in (around..around + 20).zip(values) {
        let wanted = value(n % KEYS);
        assert_eq!(found.as_deref(), Some(&wanted[..]));
        assert_eq!(db.get(key(n % KEYS)).unwrap().as_deref(), Some(&wanted[..]));
    }
    let keys = db.iter().map(|record| record.unwrap().0);
    assert!(keys.eq((0..KEYS).map(key)), "a scan misses or repeats keys");
}

#[test]
fn reads_are_right_at_every_change_of_the_superversion() {
    let (db, points, _executor) = stepped();
    for n in 0..KEYS {
        db.put(key(n), value(n)).unwrap();
    }
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let reached: [Arc<AtomicUsize>; 5] = Default::default();
    for (name, count) in CHANGES.into_iter().zip(&reached) {
        let (slot, count) = (Arc::clone(&slot), Arc::clone(count));
        points.set(name, move || {
            let n = count.fetch_add(1, Ordering::SeqCst) as u32;
            check_all_ways(slot.get().unwrap(), n * 37 % KEYS);
            Ok(())
        });
    }
    for round in 0..3 {
        // The same contents again: what a read should find never changes.
        for n in (round..KEYS).step_by(3) {
            db.put(key(n), value(n)).unwrap();
        }
        db.flush().unwrap();
        db.compact_range::<&str>(..).unwrap();
    }
    for (name, count) in CHANGES.into_iter().zip(&reached) {
        assert!(count.load(Ordering::SeqCst) > 0, "{name} was never reached");
        points.clear(name);
    }
}

fn pinned(db: &Db) -> u64 {
    let tiers = db.metrics().tiers;
    tiers.iter().map(|tier| tier.pinned_obsolete_bytes).sum()
}

/// Iterators opened before a change go on over what they opened.
#[test]
fn iterators_outlive_the_tables_they_read_and_let_them_go_at_their_end() {
    let (db, points, executor) = stepped();
    for n in 0..KEYS {
        db.put(key(n), value(n)).unwrap();
    }
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let opened: Arc<Mutex<Vec<(Range, u32)>>> = Arc::default();
    let deleting = Arc::new(AtomicBool::new(false));
    for name in CHANGES {
        let (slot, opened) = (Arc::clone(&slot), Arc::clone(&opened));
        let deleting = Arc::clone(&deleting);
        points.set(name, move || {
            let mut opened = opened.lock().unwrap();
            if opened.len() < 12 {
                let mut range = slot.get().unwrap().iter();
                let whole = !deleting.load(Ordering::SeqCst);
                let taken = if whole { 100 * opened.len() as u32 } else { 0 };
                for n in 0..taken {
                    assert_eq!(range.next().unwrap().unwrap().0, key(n));
                }
                opened.push((range, taken));
            }
            Ok(())
        });
    }
    db.flush().unwrap();
    // Everything is deleted and compacted away under the iterators.
    deleting.store(true, Ordering::SeqCst);
    for n in 0..KEYS {
        db.delete(key(n)).unwrap();
    }
    db.compact_range::<&str>(..).unwrap();
    db.wait_idle().unwrap();
    CHANGES.iter().for_each(|name| points.clear(name));
    assert_eq!(db.iter().count(), 0);
    assert!(pinned(&db) > 0, "the iterators hold tables");
    let opened = std::mem::take(&mut *opened.lock().unwrap());
    let mut whole = 0;
    for (range, taken) in opened {
        let found: Vec<Bytes> = range.map(|record| record.unwrap().0).collect();
        // Those opened before the first delete see all keys, later ones a suffix.
        let wanted: Vec<String> = (taken..KEYS).map(key).collect();
        whole += usize::from(found.len() == wanted.len());
        assert!(found.iter().eq(&wanted[wanted.len() - found.len()..]));
    }
    assert!(
        whole > 0,
        "an iterator from before the deletes was among them"
    );
    executor.drain();
    assert_eq!(pinned(&db), 0, "nobody holds them any more");
}

/// Files that a reader holds take up the tier's space until it lets them go, and not longer (I8).
#[test]
fn space_that_iterators_held_is_there_as_soon_as_they_are_gone() {
    let mut options = small_options();
    // There is one tier, because with another below, output would go there.
    options.tiers.truncate(1);
    options.tiers[0].capacity = 24 * (32 << 10);
    let db = open(&options, &Points::default(), Arc::new(Stepped::new(3)));
    let round = |round: u32| -> thermocline::Result<Range> {
        for n in 0..60 {
            db.put(key(n * 25), value(round))?;
        }
        db.flush()?;
        db.compact_range::<&str>(..)?;
        Ok(db.iter())
    };
    let mut pins = Vec::new();
    let refused = loop {
        match round(pins.len() as u32) {
            Ok(range) => pins.push(range),
            Err(error) => break error,
        }
        assert!(pins.len() < 500, "pinned files fill no tier");
    };
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    // Only the pinned files are in the way, for writes too.
    let refused = (0..KEYS).find_map(|n| db.put(key(n), value(n)).err());
    assert!(
        matches!(refused, Some(Error::NoSpace { .. })),
        "{refused:?}"
    );
    drop(pins);
    db.put("more", "v").unwrap();
    assert_eq!(db.get("more").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Regression: `compact_range` held the version that it had found until it returned. No file that
/// it replaced went away before. So it needed room for the whole store twice, and a store that was
/// closed meanwhile left those files behind.
#[test]
fn a_whole_compaction_does_not_hold_what_it_has_replaced() {
    let (db, points, _executor) = stepped();
    for round in 0..3 {
        for n in (round..KEYS).step_by(3) {
            db.put(key(n), value(n)).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    assert_eq!(pinned(&db), 0);
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let held: Arc<Mutex<Vec<u64>>> = Arc::default();
    let seen = Arc::clone(&held);
    points.set("compaction.start", move || {
        seen.lock().unwrap().push(pinned(slot.get().unwrap()));
        Ok(())
    });
    db.put(key(0), value(0)).unwrap();
    db.compact_range::<&str>(..).unwrap();
    points.clear("compaction.start");
    let held = held.lock().unwrap();
    let later = held.get(1..).unwrap_or_default();
    assert!(later.contains(&0), "{held:?}");
}
