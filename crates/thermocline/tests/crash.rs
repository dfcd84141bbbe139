//! The power goes at every point and at every call of a store's life. What comes back is a
//! prefix of the writes across keyspaces with everything synced in it (I5), made of files that
//! the manifest names and nothing else (I4).
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::{Arc, Mutex};

use thermocline::storage::{CrashStyle, Fault, Faulty};
use thermocline_torture::life::{LIFE, Step, Trial, WARMING};

const STYLES: [CrashStyle; 3] = [CrashStyle::LoseAll, CrashStyle::KeepAll, CrashStyle::Random];

/// Calls of the life without a fault, which must itself be sound and use the slow tier.
fn calls_of_a_life(threads: bool) -> u64 {
    let mut trial = Trial::new(1);
    trial.threads = threads;
    trial.run(LIFE).unwrap();
    let calls = trial.disk.calls();
    let metrics = trial.db().unwrap().metrics();
    let on_slow = metrics.tiers[1].table_bytes;
    // With threads how far compactions have got is a matter of chance.
    assert!(threads || on_slow > 0, "the life reaches the slow tier");
    assert!(
        metrics
            .compactions
            .iter()
            .any(|pair| pair.jobs > pair.moves)
    );
    trial.survive(CrashStyle::LoseAll).unwrap();
    calls
}

#[test]
fn power_lost_at_any_call_leaves_a_prefix_of_the_writes() {
    let calls = calls_of_a_life(false);
    assert!(calls > 500, "{calls}");
    // Each style at every seventh call, the styles at different ones.
    let mut died = 0;
    for (index, how) in STYLES.into_iter().enumerate() {
        for n in (1 + index as u64..=calls).step_by(7) {
            let mut trial = Trial::new(n);
            trial.name = format!("{how:?} at call {n} of {calls}");
            trial.disk.fail_nth(n, Fault::PowerLoss);
            // Jobs run in another order for each seed, and a life may get by with fewer calls.
            died += usize::from(trial.run_until_it_fails(LIFE).unwrap().is_some());
            trial.survive(how).unwrap();
        }
    }
    assert!(died > 900, "{died} lives were cut short");
}

#[test]
fn power_lost_with_threads_at_work_leaves_a_prefix_of_the_writes() {
    let calls = calls_of_a_life(true);
    for n in (1..=calls).step_by(61) {
        let mut trial = Trial::new(n);
        trial.threads = true;
        trial.disk.fail_nth(n, Fault::PowerLoss);
        trial.run_until_it_fails(LIFE).unwrap();
        trial.name = format!("about call {n} of {calls}");
        trial.survive(CrashStyle::Random).unwrap();
    }
}

const POINTS: [&str; 19] = [
    "commit.published",
    "freeze.before_publish",
    "flush.start",
    "flush.before_edit",
    "flush.installed",
    "compaction.start",
    "compaction.table_written",
    "compaction.before_edit",
    "compaction.installed",
    "manifest.before_append",
    "manifest.before_sync",
    "manifest.after_sync",
    "manifest.before_current",
    "manifest.after_current",
    "wal.before_hand_over",
    "wal.after_hand_over",
    "wal.before_sync",
    "wal.after_sync",
    "wal.rotate.after_create",
];

/// Points on the ways between the tiers.
const CROSSING_POINTS: [&str; 11] = [
    "promotion.start",
    "promotion.frozen",
    "promotion.written",
    "promotion.before_edit",
    "promotion.installed",
    "compaction.claimed",
    "compaction.table_written",
    "compaction.before_edit",
    "compaction.installed",
    "move.before_edit",
    "manifest.before_sync",
];

/// Lives through `life` until `point` is reached for the `nth` time, when the power goes; `None` when it is
/// not reached so often.
fn die_at(
    life: &[Step],
    point: &'static str,
    nth: usize,
    seed: u64,
    how: CrashStyle,
) -> Option<Trial> {
    let mut trial = Trial::new(seed);
    let after: Arc<Mutex<(usize, Option<Faulty>)>> = Arc::default();
    let (disk, crashed) = (trial.disk.clone(), Arc::clone(&after));
    trial.points.set(point, move || {
        let mut crashed = crashed.lock().unwrap();
        crashed.0 += 1;
        if crashed.0 == nth {
            crashed.1 = Some(disk.crash(how));
        }
        Ok(())
    });
    let failed = trial.run_until_it_fails(life).unwrap();
    let rebooted = after.lock().unwrap().1.take()?;
    if failed.is_none() {
        trial.run(&[Step::Flush]).unwrap_err();
    }
    trial.wake(rebooted);
    trial.name = format!("{how:?} at {point}, time {nth}");
    Some(trial)
}

#[test]
fn power_lost_at_any_point_leaves_a_prefix_of_the_writes() {
    for point in POINTS
        .into_iter()
        .chain(["checkpoint.linked", "checkpoint.before_manifest"])
    {
        let mut reached = 0;
        for (seed, nth) in [1, 2, 3, 5, 9, 17, 40].into_iter().enumerate() {
            for how in STYLES {
                let Some(mut trial) = die_at(LIFE, point, nth, seed as u64, how) else {
                    continue;
                };
                reached += 1;
                trial.come_back().unwrap();
            }
        }
        assert!(reached > 0, "{point} is never reached");
    }
}

/// Records come up from the slow tier on each way there is.
fn calls_while_warming() -> u64 {
    let mut trial = Trial::new(1);
    let (mut by_flush, mut by_compaction, mut retained) = (0, 0, 0);
    for step in WARMING {
        trial.step(*step).unwrap();
        let hotrap = trial.db().unwrap().metrics().hotrap.unwrap();
        by_flush += hotrap.promoted_flush_bytes;
        by_compaction += hotrap.promoted_compaction_bytes;
        retained += hotrap.retained_bytes;
    }
    assert!(by_flush > 0 && by_compaction > 0 && retained > 0);
    let calls = trial.disk.calls();
    trial.survive(CrashStyle::LoseAll).unwrap();
    calls
}

/// Whatever a record is on its way from or to when the power goes, it is still on the one tier or
/// already on the other.
#[test]
fn power_lost_while_records_change_tiers_loses_none() {
    let calls = calls_while_warming();
    for (index, how) in STYLES.into_iter().enumerate() {
        for n in (1 + 30 * index as u64..=calls).step_by(211) {
            let mut trial = Trial::new(n);
            trial.name = format!("{how:?} at call {n} of {calls} while warming");
            trial.disk.fail_nth(n, Fault::PowerLoss);
            trial.run_until_it_fails(WARMING).unwrap();
            trial.survive(how).unwrap();
        }
    }
}

#[test]
fn power_lost_at_any_point_between_the_tiers_loses_no_record() {
    for point in CROSSING_POINTS {
        let mut reached = 0;
        for (seed, nth) in [1, 3, 9].into_iter().enumerate() {
            for how in STYLES {
                let Some(mut trial) = die_at(WARMING, point, nth, seed as u64, how) else {
                    continue;
                };
                reached += 1;
                trial.come_back().unwrap();
            }
        }
        assert!(reached > 0, "{point} is never reached");
    }
}
