//! Loads a store and runs a workload on it. Every answer is checked.

mod bill;
mod client;
mod hits;
mod ingest;
mod inserts;
mod load;
mod meter;
mod pace;
mod sampler;
mod shared;
mod timeline;
mod wrongs;

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use anyhow::{Result, anyhow};
use hdrhistogram::Histogram;

use crate::accounts::{Clock, Spent};
use crate::counters::Counters;
use crate::engine::Engine;
use crate::plan::{End, Plan};
use crate::probe::{DiskProbe, Expected};
use crate::targets::Targets;
use crate::workload::Operation;

pub use bill::{CostResult, CostSecond};
use client::Client;
pub(crate) use load::{Load, Loading, load, load_and_count};
pub(crate) use sampler::Watch;
use shared::{Shared, StopOnDrop, Tally, start};
use timeline::Timeline;
pub use timeline::{LastTenth, Second, StageResult};
pub(crate) use wrongs::Wrongs;

/// Latencies in nanoseconds, by operation in the order of [`Operation::ALL`].
pub(crate) type Latencies = Vec<Histogram<u64>>;

/// An empty histogram of nanoseconds with three significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    match Histogram::new(3) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("3 digits are supported: {error}"),
    }
}

fn no_latencies() -> Latencies {
    Operation::ALL.iter().map(|_| histogram()).collect()
}

/// What a run found.
pub(crate) struct Measured {
    pub(crate) ops: u64,
    /// Records that exist at the end. Records that a trace deletes and writes again are not
    /// followed, so then this is not known.
    pub(crate) records: Option<u64>,
    pub(crate) seconds: f64,
    /// The part before the run, if there was one.
    pub(crate) warm_up: Option<WarmedUp>,
    /// What each slow disk could do, if that was measured after the warm-up.
    pub(crate) slow_probes: Vec<Option<DiskProbe>>,
    pub(crate) cpu_seconds: f64,
    pub(crate) latencies: Latencies,
    pub(crate) series: Vec<Second>,
    /// What the run took by activity, and what each entry of `series` took.
    pub(crate) spent: Spent,
    pub(crate) spent_by_second: Vec<Spent>,
    pub(crate) stages: Vec<StageResult>,
    /// What the store cost in the last of them.
    pub(crate) cost: Option<CostResult>,
    pub(crate) last_tenth: LastTenth,
    pub(crate) seconds_to_90_percent: Option<f64>,
    pub(crate) counters: Counters,
    pub(crate) wrongs: Wrongs,
}

/// What the part before a run did.
pub(crate) struct WarmedUp {
    pub(crate) ops: u64,
    pub(crate) seconds: f64,
    pub(crate) series: Vec<Second>,
    /// What each entry of `series` took.
    pub(crate) spent_by_second: Vec<Spent>,
    pub(crate) counters: Counters,
}

impl WarmedUp {
    fn new(timeline: Timeline) -> Self {
        let end = timeline.end();
        Self {
            ops: end.ops,
            seconds: end.at,
            counters: timeline.counters(),
            spent_by_second: timeline.spent_by_second(),
            series: timeline.series,
        }
    }
}

/// Runs the plan's operations on a loaded store, and tells `watch` about it every second. What
/// comes before the measured part is recorded separately. Of that part, only wrong answers count in
/// the run's own figures.
pub(crate) fn measure(plan: &Plan, engine: &dyn Engine, watch: &mut dyn Watch) -> Result<Measured> {
    let mut shared = Shared::new(plan, engine);
    let mut warmed_up = None;
    let mut slow_probes = Vec::new();
    if let Some(warm_up) = &plan.warm_up {
        watch.part("warming up");
        engine.throttle(!warm_up.unthrottled);
        shared.is_warming = true;
        shared.max_ops = warm_up.end.ops;
        let timeline = operate(&shared, warm_up.end, &engine.counters()?, watch)?;
        warmed_up = Some(WarmedUp::new(timeline));
        warm_up.finish()?;
        if warm_up.has_command() {
            slow_probes = Expected::check_each(&plan.expected, true)?;
        }
        engine.throttle(true);
        shared = shared.measured(plan);
    }
    watch.part("running");
    let before = engine.counters()?;
    let timeline = operate(&shared, plan.end, &before, watch)?;
    Ok(Measured {
        ops: timeline.end().ops,
        records: (!plan.source.deletes()).then(|| shared.inserts.present()),
        seconds: timeline.end().at,
        warm_up: warmed_up,
        slow_probes,
        cpu_seconds: timeline.used().process,
        spent: timeline.spent(),
        spent_by_second: timeline.spent_by_second(),
        // Not asked for again: an engine may continue to work in the background, and the I/O by
        // purpose is from the last sample.
        counters: timeline.counters(),
        stages: timeline.stages(&shared),
        cost: timeline.last_cost(&shared),
        last_tenth: timeline.last_tenth(),
        seconds_to_90_percent: timeline.seconds_to_90_percent(),
        latencies: timeline.latencies,
        series: timeline.series,
        wrongs: shared.wrongs,
    })
}

/// Lets every client run until `end`.
fn operate(
    shared: &Shared<'_>,
    end: End,
    before: &Counters,
    watch: &mut dyn Watch,
) -> Result<Timeline> {
    let timeline = Timeline::new(before, Clock::of_process()?);
    let begin = Instant::now();
    let (ended, finished) = mpsc::channel::<()>();
    let (timeline, results) = std::thread::scope(|scope| -> Result<_> {
        let _stop = StopOnDrop(&shared.stop);
        let clients = (0u64..)
            .zip(&shared.tallies)
            .map(|(number, tally)| {
                let ended = ended.clone();
                start(scope, move || {
                    let result = Client::new(shared, number, tally, begin).run();
                    // A single client that fails ends the run.
                    if result.is_err() {
                        shared.stop.store(true, Ordering::Relaxed);
                    }
                    drop(ended);
                    result
                })
            })
            .collect::<Result<Vec<_>>>()?;
        drop(ended);
        let (stages, begun) = mpsc::channel();
        let setter = shared
            .changing_targets()
            .map(|targets| start(scope, move || set_targets(shared, targets, &begun)))
            .transpose()?;
        let timeline = sampler::watch(shared, end, begin, timeline, &finished, &stages, watch);
        // Then no further stage begins.
        drop(stages);
        let results: Vec<_> = clients
            .into_iter()
            .chain(setter)
            .map(|client| {
                client
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a client panicked")))
            })
            .collect();
        Ok((timeline, results))
    })?;
    let timeline = timeline?;
    results.into_iter().collect::<Result<()>>()?;
    Ok(timeline)
}

/// Sets the target of each stage that has begun. Neither clients nor samples wait for it.
fn set_targets(shared: &Shared<'_>, targets: &Targets, begun: &Receiver<usize>) -> Result<()> {
    for target in begun.iter().filter_map(|stage| targets.get(stage)) {
        if let Err(error) = shared.engine.set_target(target) {
            shared.stop.store(true, Ordering::Relaxed);
            return Err(error.context("cannot set the target"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineKind;
    use crate::engines::memory::{Lie, Memory};
    use crate::plan::tests::parse;
    use crate::report::micros;
    use crate::settings::Dirs;

    /// Names of the parts of a run, and seconds of each.
    #[derive(Default)]
    struct Parts(Vec<(&'static str, usize)>);

    impl Watch for Parts {
        fn part(&mut self, name: &'static str) {
            self.0.push((name, 0));
        }

        fn second(&mut self, _second: &Second, _progress: f64) {
            self.0.last_mut().unwrap().1 += 1;
        }
    }

    fn run(flags: &str, lie: Lie) -> Measured {
        run_watched(flags, lie, &mut ())
    }

    fn run_watched(flags: &str, lie: Lie, watch: &mut dyn Watch) -> Measured {
        let plan = parse(&format!(
            "--data-size 400KB --record-size 200 --threads 2 {flags}"
        ))
        .unwrap()
        .plan()
        .unwrap();
        on_new_store(&plan, lie, watch)
    }

    /// An empty store, in a directory that goes away.
    pub(super) fn store(plan: &Plan, lie: Lie) -> (tempfile::TempDir, Box<dyn Engine>) {
        let dir = tempfile::tempdir().unwrap();
        let dirs = Dirs::two(dir.path().join("fast"), dir.path().join("slow"));
        let engine = Memory(lie).open(&plan.settings, &dirs).unwrap();
        (dir, engine)
    }

    pub(super) fn on_new_store(plan: &Plan, lie: Lie, watch: &mut dyn Watch) -> Measured {
        let (_dir, engine) = store(plan, lie);
        load(plan, engine.as_ref(), &mut ()).unwrap();
        measure(plan, engine.as_ref(), watch).unwrap()
    }

    #[test]
    fn every_workload_gets_right_answers_from_a_right_engine() {
        for workload in [
            "ro", "rw", "wh", "uh", "a", "b", "d", "e", "f", "scan", "write",
        ] {
            let flags = format!("--workload {workload} --ops 2000 --scan-length 10");
            let measured = run(&flags, Lie::None);
            assert_eq!(measured.ops, 2000, "{workload}");
            assert_eq!(
                measured.wrongs.count(),
                0,
                "{workload}: {:?}",
                measured.wrongs
            );
            let recorded: u64 = measured.latencies.iter().map(Histogram::len).sum();
            assert_eq!(recorded, 2000, "{workload}");
        }
    }

    /// Regression: what a compaction wrote between the last sample and the end was in the one
    /// figure and not in the other.
    #[test]
    fn totals_and_their_parts_are_of_the_same_time() {
        let measured = run("--ops 1000", Lie::None);
        let total = measured.counters.fd_write_bytes;
        assert!(total > Some(0), "the engine writes in the background");
        let parts = measured.spent.io.map(|io| io.fast.sum().write_bytes);
        assert_eq!(parts, total);
    }

    /// The beginning of each stage takes a sample, with histograms that have held those of other
    /// clients before.
    #[test]
    fn an_operation_is_recorded_once_however_often_there_are_samples() {
        let flags = "--distribution uniform@200ms,hotspot-5@200ms,uniform@200ms";
        let measured = run(flags, Lie::None);
        assert!(measured.stages.len() > 1);
        let recorded: u64 = measured.latencies.iter().map(Histogram::len).sum();
        assert_eq!(recorded, measured.ops);
    }

    #[test]
    fn fitted_workloads_get_right_answers_and_do_not_grow() {
        for name in [
            "cluster:10",
            "cluster:29",
            "cluster:17",
            "ranks:quizup-reads",
        ] {
            let flags = format!("--distribution {name} --ops 4000 --warm-up 1000");
            let measured = run(&flags, Lie::None);
            assert_eq!(measured.wrongs.count(), 0, "{name}: {:?}", measured.wrongs);
            assert_eq!(measured.records, Some(2000), "{name}");
        }
        let measured = run("--distribution cluster:10 --ops 4000", Lie::None);
        let entered = measured.latencies[Operation::Insert as usize].len();
        assert!((1800..2200).contains(&entered), "half of them: {entered}");
        let measured = run("--distribution cluster:10 --ops 20000", Lie::Stale);
        assert!(measured.wrongs.count() > 0);
    }

    /// Reads and writes of 64 keys, of which every 16th is followed. Keys of the first half are
    /// deleted at times.
    fn trace_file() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |number: u64| {
            let operation = ["get", "set", "get", "get", "delete", "get", "add"];
            let operation = match operation[number as usize % 7] {
                "delete" if number % 64 >= 32 => "get",
                other => other,
            };
            let (key, size) = (number * 5 % 64, 30 + number * 5 % 64 * 10);
            format!("{number},key{key},5,{size},0,{operation},0\n")
        };
        let text: String = (0..700).map(line).collect();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    pub(super) fn replay(flags: &str, lie: Lie) -> Measured {
        let file = trace_file();
        let path = file.path().display();
        let flags = format!("--trace {path} --format twitter --threads 2 {flags}");
        let plan = parse(&flags).unwrap().plan().unwrap();
        on_new_store(&plan, lie, &mut ())
    }

    #[test]
    fn a_trace_with_writes_and_deletions_gets_right_answers() {
        let measured = replay("--trace-copies 3 --ops 20000", Lie::None);
        assert_eq!(measured.wrongs.count(), 0, "{:?}", measured.wrongs);
        let count = |operation| measured.latencies[operation as usize].len();
        assert!((12_500..13_300).contains(&count(Operation::Read)));
        assert!((5_500..6_000).contains(&count(Operation::Update)));
        assert!((1_200..1_650).contains(&count(Operation::Delete)));
        assert_eq!(measured.records, None, "some are deleted");
    }

    #[test]
    fn lost_deletions_and_lost_records_are_found_in_a_trace() {
        let measured = replay("--ops 20000", Lie::Stale);
        assert!(measured.wrongs.count() > 100);
        let first = measured.wrongs.examples().remove(0);
        assert!(first.contains("only writes"), "{first}");
        // A missing record is only an answer if the trace deletes it.
        let measured = replay("--ops 20000", Lie::Missing);
        assert!(measured.wrongs.count() > 20);
        assert!(measured.wrongs.examples()[0].contains("missing"));
    }

    #[test]
    fn lost_overwrites_are_found() {
        let measured = run("--workload uh --ops 20000", Lie::Stale);
        assert!(measured.wrongs.count() > 0);
        let first = measured.wrongs.examples().remove(0);
        assert!(first.contains("only writes"), "{first}");
    }

    #[test]
    fn missing_records_are_found() {
        let measured = run("--ops 1000", Lie::Missing);
        assert_eq!(measured.wrongs.count(), 10);
        assert!(measured.wrongs.examples()[0].contains("missing"));
    }

    #[test]
    fn gaps_in_scans_are_found() {
        let measured = run("--workload scan --ops 10", Lie::GapAtStart);
        assert_eq!(measured.wrongs.count(), 10);
    }

    #[test]
    fn a_warm_up_is_run_and_not_measured() {
        let mut parts = Parts::default();
        let flags = "--workload rw --ops 400 --distribution hotspot-5,uniform --warm-up 800";
        let measured = run_watched(flags, Lie::None, &mut parts);
        assert_eq!(
            parts.0.iter().map(|p| p.0).collect::<Vec<_>>(),
            ["warming up", "running"]
        );
        assert!(parts.0.iter().all(|(_, seconds)| *seconds > 0));
        let warm_up = measured.warm_up.as_ref().unwrap();
        assert!(warm_up.seconds > 0.0);
        assert_eq!((warm_up.ops, measured.ops), (800, 400));
        let recorded: u64 = measured.latencies.iter().map(Histogram::len).sum();
        assert_eq!(recorded, 400);
        let inserted = measured.records.unwrap() - 2000;
        assert!(
            (250..350).contains(&inserted),
            "{inserted} of 1200, in both parts"
        );
        assert_eq!(measured.wrongs.count(), 0, "{:?}", measured.wrongs);
    }

    #[test]
    fn wrong_answers_while_warming_up_count() {
        let measured = run("--ops 100 --warm-up 1000", Lie::Missing);
        assert_eq!(measured.wrongs.count(), 11);
    }

    /// A run on a store that reads as many bytes as it likes, with targets that change.
    fn with_targets(flags: &str, lie: Lie) -> (tempfile::TempDir, Result<Measured>) {
        let targets = "--cost-target 0.4@200ms,0.2@200ms,0.3@200ms";
        let plan = parse(&format!(
            "--engine cost --price-fast 0.5 --price-slow 0.1 --data-size 400KB --record-size 200 \
             --threads 2 {targets} {flags}"
        ));
        let plan = plan.unwrap().plan().unwrap();
        let (dir, engine) = store(&plan, lie);
        load(&plan, engine.as_ref(), &mut ()).unwrap();
        let measured = measure(&plan, engine.as_ref(), &mut ());
        (dir, measured)
    }

    fn set_in(dir: &tempfile::TempDir) -> String {
        let file = dir.path().join("fast/targets");
        std::fs::read_to_string(file).unwrap_or_default()
    }

    /// The point reads of each stage are its own.
    #[test]
    fn each_stage_has_the_latencies_of_its_reads() {
        let flags = "--workload uh --distribution hotspot-5@200ms,uniform@200ms";
        let measured = run(flags, Lie::None);
        let reads = measured.latencies[Operation::Read as usize].len();
        let [first, second] = &measured.stages[..] else {
            panic!("{:?}", measured.stages);
        };
        for stage in [first, second] {
            assert!(stage.read_p99_us >= stage.read_p50_us, "{stage:?}");
            assert!(stage.read_p50_us > Some(0.0) && stage.read_mean_us > Some(0.0));
        }
        let longest = |of: &StageResult| of.read_p99_us.unwrap_or_default();
        let all = micros(&measured.latencies[Operation::Read as usize], 0.99);
        let [least, most] = [
            longest(first).min(longest(second)),
            longest(first).max(longest(second)),
        ];
        assert!(reads > 100 && least <= all * 1.01 && all <= most * 1.01);
        assert_eq!(
            run("--workload write --ops 100", Lie::None).stages[0].read_p50_us,
            None
        );
    }

    /// This store sets a target only once clients have read and a sample was taken meanwhile.
    #[test]
    fn targets_are_set_one_after_the_other_and_nobody_waits_for_it() {
        let (dir, measured) = with_targets("--warm-up 50 --workload uh", Lie::None);
        let measured = measured.unwrap();
        assert_eq!(set_in(&dir), "cost:0.2\ncost:0.3\n", "not the first one");
        let stages = &measured.stages;
        let targets: Vec<_> = stages.iter().map(|stage| stage.target.as_deref()).collect();
        let expected = ["cost:0.4", "cost:0.2", "cost:0.3"].map(Some);
        assert_eq!(targets, expected);
        assert!(stages.iter().all(|stage| stage.distribution == "hotspot-5"));
        let begin = stages[2].begin_seconds;
        assert!((0.4..0.6).contains(&begin), "{begin}");
        let ops: u64 = stages.iter().map(|stage| stage.ops).sum();
        assert_eq!(ops, measured.ops);
        assert_eq!(measured.wrongs.count(), 0, "{:?}", measured.wrongs);
    }

    #[test]
    fn a_target_that_the_store_refuses_ends_the_run() {
        let (dir, measured) = with_targets("", Lie::NoTarget);
        let error = format!("{:#}", measured.err().unwrap());
        assert!(
            error.contains("target: cost:0.2 is not possible"),
            "{error}"
        );
        assert_eq!(set_in(&dir), "");
    }

    #[test]
    fn a_run_ends_by_time_and_passes_its_stages() {
        let flags = "--duration 600ms --distribution hotspot-5@50%,uniform@50%";
        let measured = run(flags, Lie::None);
        assert!(measured.ops > 1000);
        assert!(
            (0.6..2.0).contains(&measured.seconds),
            "{}",
            measured.seconds
        );
        assert_eq!(measured.series.last().map(|second| second.stage), Some(1));
        assert!(measured.last_tenth.ops_s > 0.0 && measured.last_tenth.mean_us > 0.0);
        let [first, second] = &measured.stages[..] else {
            panic!("{:?}", measured.stages);
        };
        assert_eq!(
            (&*first.distribution, &*second.distribution),
            ("hotspot-5", "uniform")
        );
        assert_eq!(first.ops + second.ops, measured.ops);
        assert!(
            (0.3..0.6).contains(&second.begin_seconds),
            "{}",
            second.begin_seconds
        );
        assert_eq!(second.hot_set_limit_bytes, Some(1000));
        assert_eq!(
            measured
                .counters
                .fd_hit_rate()
                .map(|rate| (rate * 10.0).round()),
            Some(5.0)
        );
    }
}
