//! `thermocline demo --cost`: how the bill and the hit rate follow a target that changes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytesize::ByteSize;
use thermocline::Target;

use super::lines::Lines;
use super::{DemoArgs, MIB, RECORD, plan_of};
use crate::distribution::{Shape, Stages};
use crate::plan::{Plan, Source};
use crate::prices::Prices;
use crate::report::Report;
use crate::run::{self, Second, StageResult, Watch};
use crate::state::Place;
use crate::targets::Targets;
use crate::workload::Workload;

/// What a GB of data may cost in a month, one after the other.
const TARGETS: [f64; 3] = [0.4, 0.15, 0.3];

const PRICES: [f64; 2] = [0.528, 0.045];

/// Percent of the records that get nearly all reads. With the second target not all of them have
/// room on the fast disk, with the others they have.
const HOT_PERCENT: f64 = 20.0;

/// Operations a second of the emulated slow disk.
const SLOW_IOPS: u64 = 4000;

/// A part of the time is for reading at least, however long loading takes.
const LEAST_READING: u32 = 2;

/// A part of the time is for closing the store and removing it.
const END: u32 = 12;

/// Loads a temporary store, reads from it in a loop while what it may cost changes, and prints what
/// it costs and how many reads need no slow disk. That is emulated.
///
/// # Errors
/// As of [`demo`](super::demo()).
pub fn demo_cost(args: &DemoArgs) -> Result<Report> {
    let begin = Instant::now();
    let all = Duration::from_secs(args.seconds);
    let mut plan = plan(args.seconds)?;
    let mut lines = Lines::default();
    lines.say(&introduction(&plan));
    lines.shown()?;
    let place = Place::temporary()?;
    let engine = plan.engine.open(&plan.settings, &place.loaded())?;
    engine.set_target(Target::Cost(TARGETS[0]))?;
    engine.throttle(false);
    run::load(&plan, engine.as_ref(), &mut ())?;
    engine.throttle(true);
    lines.say(&format!("loaded in {:.1} s", begin.elapsed().as_secs_f64()));
    lines.shown()?;
    let left = (all - all / END).saturating_sub(begin.elapsed());
    let targets = targets(left.max(all / LEAST_READING));
    plan.end.duration = targets.duration();
    plan.targets = Some(targets);
    let mut seconds = Seconds(lines);
    let measured = run::measure(&plan, engine.as_ref(), &mut seconds)?;
    engine.close()?;
    let mut lines = seconds.0;
    lines.shown()?;
    let mut report = Report::new(&plan, false, None)?;
    report.run(measured)?;
    lines.say(&summary(&report));
    lines.shown()?;
    if report.wrong_answers > 0 {
        bail!("{} answers were wrong", report.wrong_answers);
    }
    Ok(report)
}

fn plan(seconds: u64) -> Result<Plan> {
    // Half of what the other demo has: all that is hot has to come up within a target's time.
    let data = (seconds * MIB / 2).clamp(8 * MIB, 32 * MIB);
    let mut plan = plan_of("cost", data, seconds)?;
    plan.source = Source::Generated {
        workload: Workload::READ_ONLY,
        stages: Stages::one(Shape::Hotspot {
            percent: HOT_PERCENT,
            offset: 0.0,
        }),
    };
    let settings = &mut plan.settings;
    // Room for every target. Small memtables, or the log would be most of the least target.
    settings.fast_capacity = data;
    settings.memtable = data / 256;
    settings.slow_device.iops = Some(SLOW_IOPS);
    settings.prices = Some(Prices {
        fast: PRICES[0],
        slow: vec![PRICES[1]],
    });
    plan.targets = Some(targets(Duration::from_secs(seconds)));
    plan.engine.check(&plan.settings)?;
    Ok(plan)
}

/// Each holds for the same time.
fn targets(all: Duration) -> Targets {
    let each = all / TARGETS.len() as u32;
    Targets::timed(TARGETS.map(|dollars| (Target::Cost(dollars), each)))
}

fn introduction(plan: &Plan) -> String {
    let device = &plan.settings.slow_device;
    let [first, second, third] = TARGETS;
    let [fast, slow] = PRICES;
    format!(
        "One store with {} records of 1 KiB ({} MiB). A GB on the fast disk costs ${fast} a month, on the slow\n\
         one ${slow}. The slow disk is emulated: {} operations and {} MB a second, {} us each. 95 % of the\n\
         reads go to {HOT_PERCENT} % of the records. Meanwhile, what a GB of data may cost in a month changes: first\n\
         ${first:.2}, then ${second:.2}, then ${third:.2}.\n",
        plan.records,
        plan.records * RECORD / MIB,
        device.iops.unwrap_or(0),
        device.bandwidth.unwrap_or(0) / 1_000_000,
        device.latency.unwrap_or_default().as_micros(),
    )
}

/// Prints a line for each second.
struct Seconds(Lines);

impl Watch for Seconds {
    fn second(&mut self, second: &Second, _progress: f64) {
        self.0.say(&line(second));
    }

    fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
}

fn line(second: &Second) -> String {
    let cost = second.cost.unwrap_or_default();
    format!(
        "{:>4.0} s  may cost ${:.2}, costs ${:.3}; {:>5.1} % of the reads without the slow disk; {} on the fast one",
        second.second,
        cost.target_cost.unwrap_or(0.0),
        cost.bill_by_tables.unwrap_or(0.0),
        second.fd_hit_rate.unwrap_or(0.0) * 100.0,
        ByteSize(second.fd_bytes.unwrap_or(0)),
    )
}

/// What came of each target, in plain words.
fn summary(report: &Report) -> String {
    let lines: Vec<String> = report.stages.iter().map(of_stage).collect();
    format!(
        "\nWhat each price bought, for a GB and month:\n{}\n\
         In a store of this size one compaction is a good part of the bill: above is more than 2 % above.\n\
         {} wrong answers in {} reads.\n\n{NEXT}",
        lines.join("\n"),
        report.wrong_answers,
        report.ops.unwrap_or(0)
    )
}

fn of_stage(stage: &StageResult) -> String {
    let cost = stage.cost.clone().unwrap_or_default();
    let bill = cost.bill_by_tables.unwrap_or(0.0);
    let bytes = [cost.fast_room_records_bytes, cost.fast_room_tables_bytes];
    let kept = match (cost.seconds_to_target, cost.held_up_by) {
        (Some(seconds), _) => {
            let above = cost.seconds_above_target.unwrap_or(0.0);
            let rest = stage.seconds - seconds;
            format!(
                "reached after {seconds:.0} s, then ${bill:.3} on average, and above it for {above:.0} of {rest:.0} s"
            )
        }
        (None, None) => format!(
            "not reached in {:.0} s, ${bill:.3} on average",
            stage.seconds
        ),
        (None, Some(why)) => format!("not reached, ${bill:.3} on average: {why}"),
    };
    format!(
        "  ${:.2}: {kept}; at the end {:.1} % of the reads without the slow disk, {} on the fast one",
        cost.target_cost.unwrap_or(0.0),
        stage.last_tenth_fd_hit_rate.unwrap_or(0.0) * 100.0,
        ByteSize(bytes.into_iter().flatten().sum())
    )
}

const NEXT: &str = "\
What to try next:
  thermocline plan --help   what your own data would cost, before you buy disks
  thermocline cost --help   a target for a store of yours";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CostResult, CostSecond};

    #[test]
    fn every_length_has_room_for_each_target() {
        for seconds in [3, 12, 60, 3600] {
            let plan = plan(seconds).unwrap();
            let targets = plan.targets.unwrap();
            assert_eq!(targets.duration(), Some(Duration::from_secs(seconds)));
            assert_eq!(targets.get(1), Some(Target::Cost(0.15)));
            // Were all of 0.4 $/GB/month spent on the fast disk, it would still be below the
            // capacity.
            assert!(plan.records * RECORD * 4 / 5 <= plan.settings.fast_capacity);
        }
    }

    #[test]
    fn a_line_has_target_bill_hit_rate_and_bytes() {
        let second = Second {
            second: 7.0,
            fd_hit_rate: Some(0.755),
            fd_bytes: Some(6 << 20),
            cost: Some(CostSecond {
                bill_by_tables: Some(0.1487),
                target_cost: Some(0.15),
                ..CostSecond::default()
            }),
            ..Second::default()
        };
        assert_eq!(
            line(&second),
            "   7 s  may cost $0.15, costs $0.149;  75.5 % of the reads without the slow disk; 6.0 MiB on the fast one"
        );
    }

    #[test]
    fn a_target_that_was_not_kept_is_told_with_the_reason() {
        let stage = |seconds_to_target, held_up_by: Option<&str>| StageResult {
            distribution: "hotspot-20".to_owned(),
            target: None,
            begin_seconds: 0.0,
            seconds: 20.0,
            ops: 1,
            ops_s: 1.0,
            fd_hit_rate: None,
            last_tenth_fd_hit_rate: Some(0.5),
            read_mean_us: None,
            read_p50_us: None,
            read_p99_us: None,
            cost: Some(CostResult {
                bill_by_tables: Some(0.2),
                target_cost: Some(0.15),
                seconds_to_target,
                seconds_above_target: Some(2.0),
                fast_room_records_bytes: Some(1 << 20),
                fast_room_tables_bytes: Some(1 << 20),
                held_up_by: held_up_by.map(str::to_owned),
                ..CostResult::default()
            }),
            seconds_to_steady: None,
            hot_set_bytes: None,
            hot_set_limit_bytes: None,
        };
        let end = "; at the end 50.0 % of the reads without the slow disk, 2.0 MiB on the fast one";
        for (of, says) in [
            (
                stage(Some(3.2), None),
                "reached after 3 s, then $0.200 on average, and above it for 2 of 17 s",
            ),
            (stage(None, None), "not reached in 20 s, $0.200 on average"),
            (
                stage(None, Some("a reader")),
                "not reached, $0.200 on average: a reader",
            ),
        ] {
            assert_eq!(of_stage(&of), format!("  $0.15: {says}{end}"));
        }
    }
}
