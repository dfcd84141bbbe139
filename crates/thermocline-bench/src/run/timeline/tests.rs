use super::*;
use crate::accounts::{Activity, ByActivity};
use crate::counters::HotCounters;

fn counters(gets: u64, fast: u64) -> Counters {
    Counters {
        gets: Some(gets),
        gets_without_slow: Some(fast),
        hotness: Some(HotCounters {
            hot_set_bytes: gets,
            hot_set_limit_bytes: gets + 1,
            ..HotCounters::default()
        }),
        ..Counters::default()
    }
}

fn tick(at: f64, ops: u64) -> Tick {
    let nanos = ops * 2000;
    Tick { at, ops, nanos }
}

#[test]
fn the_last_tenth_is_cut_between_ticks() {
    // Slow at first. From 8 s to 9.5 s there are 100 a second, then 1000.
    let timeline = Timeline {
        ticks: [(0.0, 0), (8.0, 1350), (9.5, 1500), (10.0, 2000)]
            .map(|(at, ops)| tick(at, ops))
            .to_vec(),
        samples: vec![
            (0.0, counters(0, 0)),
            (8.0, counters(1350, 0)),
            (9.0, counters(1450, 0)),
            (10.0, counters(2000, 440)),
        ],
        ..Timeline::new(&Counters::default(), Clock::default())
    };
    let last = timeline.last_tenth();
    assert!((last.ops_s - 550.0).abs() < 1e-6, "{last:?}");
    assert!((last.mean_us - 2.0).abs() < 1e-6, "{last:?}");
    assert_eq!(last.fd_hit_rate, Some(0.8));
    assert_eq!(timeline.seconds_to_90_percent(), None);
}

/// Regression: the threads of a flash cache, which read for the clients too, counted as the
/// harness.
#[test]
fn an_engine_with_silent_threads_has_the_rest_of_the_time_as_background() {
    let used = Clock {
        process: 10.0,
        clients: 4.0,
        reads: 3.0,
        writes: 0.0,
    };
    let mut known = ByActivity::default();
    known.add(Activity::Compaction, 2.0);
    let of = |silent_threads| {
        let counters = Counters {
            cpu: Some(known),
            silent_threads,
            ..counters(0, 0)
        };
        // What was counted in one second: the difference to the second before.
        let cpu = spent(&used, &counters.since(&Counters::default())).cpu;
        [Activity::Background, Activity::Other].map(|activity| cpu.get(activity))
    };
    assert_eq!(of(false), [None, Some(5.0)]);
    assert_eq!(of(true), [Some(4.0), Some(1.0)]);
}

#[test]
fn a_stage_counts_between_its_begin_and_its_end() {
    let timeline = Timeline {
        samples: vec![
            (0.0, counters(0, 0)),
            (4.0, counters(400, 0)),
            (5.0, counters(500, 0)),
            (6.0, counters(600, 80)),
            (7.0, counters(700, 160)),
            (8.0, counters(800, 160)),
        ],
        ..Timeline::new(&Counters::default(), Clock::default())
    };
    let stage = timeline.stage(
        Named::default(),
        tick(4.0, 400),
        tick(7.0, 700),
        &histogram(),
    );
    assert_eq!((stage.seconds, stage.ops, stage.ops_s), (3.0, 300, 100.0));
    assert_eq!(stage.fd_hit_rate, Some(160.0 / 300.0));
    assert_eq!(stage.last_tenth_fd_hit_rate, Some(0.8));
    assert_eq!(stage.seconds_to_steady, None, "the window is not there yet");
    assert_eq!(
        (stage.hot_set_bytes, stage.hot_set_limit_bytes),
        (Some(700), Some(701))
    );
}
