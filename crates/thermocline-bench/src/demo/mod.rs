//! `thermocline demo`: placement by hotness beside placement by level, in a minute.

mod cost;
mod lines;
mod screen;
mod verdict;

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

pub use self::cost::demo_cost;
pub use self::lines::NotShown;
use self::screen::{Lane, Screen};
use crate::distribution::{Shape, Stages};
use crate::engine::{self, Engine};
use crate::keys::KEY_LEN;
use crate::plan::{End, Plan, Source};
use crate::record_sizes::ValueLens;
use crate::report::Report;
use crate::run;
use crate::settings::{Compression, Dirs, Durability, Settings, SlowDevice};
use crate::state::Place;
use crate::workload::Workload;

const RECORD: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The engines that are shown, and what they are called in the demo.
const LANES: [(&str, &str); 2] = [("hotrap", "by hotness"), ("leveled", "by level")];

/// Shows two stores over a fast and a slow disk at work. Needs nothing and leaves nothing behind.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Show instead how the bill of one store, and its reads, follow what it may cost
    #[arg(long)]
    pub cost: bool,

    /// How long it takes, about; the data shrink with it
    #[arg(long, default_value_t = 60, hide = true, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
}

/// Loads a temporary store and gives a copy of it to each placement. Then reads from both at once,
/// with the same skew, and prints where reads are answered and how fast. The slow disks are
/// emulated, one for each store.
///
/// # Errors
/// The engine's and the file system's; wrong answers; [`NotShown`] when nobody reads what it
/// prints.
pub fn demo(args: &DemoArgs) -> Result<[Report; 2]> {
    let begin = Instant::now();
    let all = Duration::from_secs(args.seconds);
    let mut plans = [
        plan(LANES[0].0, args.seconds)?,
        plan(LANES[1].0, args.seconds)?,
    ];
    let screen = Mutex::new(Screen::new(LANES.map(|(_, name)| name)));
    let shown = || screen::lock(&screen).shown();
    screen::lock(&screen).say(&introduction(&plans[0]));
    shown()?;
    let place = Place::temporary()?;
    let copies = load(&plans, &place, &screen)?;
    screen::lock(&screen).loaded_in(begin.elapsed().as_secs_f64());
    shown()?;
    for plan in &mut plans {
        // A load that took long leaves at least a third of the time for reading.
        plan.end.duration = Some(all.saturating_sub(begin.elapsed()).max(all / 3));
    }
    let reports = read(&plans, &copies, &screen)?;
    screen::lock(&screen).finish();
    shown()?;
    screen::lock(&screen).say(&format!("\n{}\n\n{NEXT}", verdict::verdict(&reports)));
    shown()?;
    let wrong: u64 = reports.iter().map(|report| report.wrong_answers).sum();
    if wrong > 0 {
        bail!("{wrong} answers were wrong");
    }
    Ok(reports)
}

const NEXT: &str = "\
What to try next:
  thermocline bench --workload rw --slow-iops 2000   one store, with writes, on temporary disks
  thermocline bench --fast DIR --slow DIR2           your own disks
  thermocline bench --help                           everything else";

fn introduction(plan: &Plan) -> String {
    let settings = &plan.settings;
    let device = &settings.slow_device;
    format!(
        "Two stores with the same {} records of 1 KiB ({} MiB). Each may use {:.1} MiB of a fast disk; the\n\
         rest is on an emulated slow one: {} operations and {} MB a second, {} us each. Both are read at\n\
         once, alike: 95 % of the reads go to 5 % of the records. One keeps on the fast disk what is read\n\
         often, the other what was written last.\n",
        plan.records,
        plan.records * RECORD / MIB,
        settings.fast_capacity as f64 / MIB as f64,
        device.iops.unwrap_or(0),
        device.bandwidth.unwrap_or(0) / 1_000_000,
        device.latency.unwrap_or_default().as_micros(),
    )
}

fn plan(engine: &str, seconds: u64) -> Result<Plan> {
    // As much as can be loaded in a small part of the time, but enough to make levels at all.
    plan_of(
        engine,
        (seconds * 2 * MIB).clamp(16 * MIB, 64 * MIB),
        seconds,
    )
}

/// A run on so many bytes of `data`.
fn plan_of(engine: &str, data: u64, seconds: u64) -> Result<Plan> {
    let fast_capacity = data / 10;
    let memory = data / 4;
    let settings = Settings {
        fast_capacity,
        memory,
        // Small, so that the disks are seen and not the memory.
        cache: data / 128,
        record_cache: 0,
        // Larger than by default: with so little data, loading mostly means syncing tables.
        memtable: fast_capacity / 32,
        block_size_fast: 4 << 10,
        block_size_slow: 16 << 10,
        compression: Compression::None,
        durability: Durability::Buffered,
        slow_device: SlowDevice {
            iops: Some(2000),
            bandwidth: Some(100_000_000),
            latency: Some(Duration::from_micros(500)),
        },
        slow_capacity: None,
        slower: Vec::new(),
        rocksdb_fast_levels: None,
        prices: None,
        #[cfg(feature = "experiments")]
        experiments: Default::default(),
    };
    let engine = engine::find(engine)?;
    engine.check(&settings)?;
    Ok(Plan {
        engine,
        source: Source::Generated {
            workload: Workload::READ_ONLY,
            stages: Stages::one(Shape::Hotspot {
                percent: 5.0,
                offset: 0.0,
            }),
        },
        records: data / RECORD,
        value_lens: ValueLens::all(RECORD as usize - KEY_LEN),
        threads: 4,
        seed: 1,
        scan_length: 100,
        warm_up: None,
        expected: Vec::new(),
        end: End {
            ops: None,
            duration: Some(Duration::from_secs(seconds)),
        },
        rate: None,
        targets: None,
        settings,
        limits_memory: true,
        ingest: Some(false),
    })
}

/// Loads one store, without the limits of the slow disk, and copies it for each plan.
fn load(plans: &[Plan; 2], place: &Place, screen: &Mutex<Screen>) -> Result<[Dirs; 2]> {
    let [plan, _] = plans;
    let engine = plan.engine.open(&plan.settings, &place.loaded())?;
    engine.throttle(false);
    run::load(plan, engine.as_ref(), &mut Lane::new(0, screen))?;
    engine.close()?;
    for dir in place.run().each() {
        fs::create_dir(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    let copies = LANES.map(|(engine, _)| place.run().join(engine));
    for (plan, copy) in plans.iter().zip(&copies) {
        plan.engine.copy(&plan.settings, &place.loaded(), copy)?;
    }
    Ok(copies)
}

/// Reads from both copies at once.
fn read(plans: &[Plan; 2], copies: &[Dirs; 2], screen: &Mutex<Screen>) -> Result<[Report; 2]> {
    let lane = |index: usize| -> Result<Report> {
        let (plan, dirs) = (&plans[index], &copies[index]);
        let engine: Box<dyn Engine> = plan.engine.open(&plan.settings, dirs)?;
        let measured = run::measure(plan, engine.as_ref(), &mut Lane::new(index, screen))?;
        engine.close()?;
        let mut report = Report::new(plan, false, None)?;
        report.run(measured)?;
        Ok(report)
    };
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|index| scope.spawn(move || lane(index)));
        let [first, second] = threads.map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(anyhow!("a store's thread panicked")))
        });
        Ok([first?, second?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_makes_two_plans_that_differ_in_the_engine_only() {
        for seconds in [1, 5, 60, 3600] {
            let [hotrap, leveled] = LANES.map(|(engine, _)| plan(engine, seconds).unwrap());
            assert!(hotrap.records >= 16 << 10, "{seconds}");
            assert_eq!(
                (&hotrap.settings, hotrap.seed, &hotrap.source),
                (&leveled.settings, leveled.seed, &leveled.source)
            );
            assert_ne!(hotrap.engine.name(), leveled.engine.name());
            assert_eq!(hotrap.engine.files(), leveled.engine.files());
        }
    }
}
