//! `thermocline demo`: what a store over a fast and a slow disk does, in a minute.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::args::{End, Plan, Source};
use crate::distribution::Shape;
use crate::engine;
use crate::keys::KEY_LEN;
use crate::report::Report;
use crate::run::{self, Second, Watch};
use crate::settings::{Compression, Durability, Settings, SlowDevice};
use crate::state::Place;
use crate::workload::Workload;

const RECORD: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Without a terminal, a line every so many seconds.
const QUIET_SECONDS: usize = 3;

/// Shows a store over two disks at work. Needs nothing and leaves nothing behind.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// How long it takes, about; the data shrink with it
    #[arg(long, default_value_t = 60, hide = true, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
}

/// Loads a temporary store whose slow disk is emulated, reads from it with a skew, and
/// prints where reads are answered and how fast.
///
/// # Errors
/// The engine's and the file system's; wrong answers.
pub fn demo(args: &DemoArgs) -> Result<Report> {
    let begin = Instant::now();
    let all = Duration::from_secs(args.seconds);
    let mut plan = plan(args.seconds)?;
    let settings = &plan.settings;
    println!(
        "{} records of 1 KiB ({} MiB) in a store that may use {} MiB of a fast disk, the rest on\n\
         an emulated slow one: {} operations and {} MB a second, {} us each. Memory for blocks: {} KiB.\n",
        plan.records,
        plan.records * RECORD / MIB,
        settings.fast_capacity / MIB,
        settings.slow_device.iops.unwrap_or(0),
        settings.slow_device.bandwidth.unwrap_or(0) / 1_000_000,
        settings.slow_device.latency.unwrap_or_default().as_micros(),
        settings.cache >> 10,
    );
    let place = Place::temporary()?;
    let dirs = place.run();
    let mut screen = Screen::new();
    let engine = plan.engine.open(&plan.settings, &dirs)?;
    let load = run::load(&plan, engine.as_ref(), &mut screen)?;
    screen.loaded_in(load.seconds + load.settle_seconds);
    // A load that took long leaves at least a third of the time for reading.
    plan.end.duration = Some(all.saturating_sub(begin.elapsed()).max(all / 3));
    let measured = run::measure(&plan, engine.as_ref(), &mut screen)?;
    screen.finish();
    engine.close()?;
    let mut report = Report::new(&plan, false, Some(load))?;
    report.run(measured)?;
    println!("\n{report}\n\n{NEXT}");
    if report.wrong_answers > 0 {
        bail!("{} answers were wrong", report.wrong_answers);
    }
    Ok(report)
}

const NEXT: &str = "\
95 % of the reads went to 5 % of the records. What to try next:
  thermocline bench --workload rw --slow-iops 2000   the same with writes, on temporary disks
  thermocline bench --fast DIR --slow DIR            your own disks
  thermocline bench --help                           everything else";

fn plan(seconds: u64) -> Result<Plan> {
    // As much as loads in a quarter of the time, within what makes levels at all.
    let data = (seconds * 2 * MIB).clamp(16 * MIB, 128 * MIB);
    let fast_capacity = data / 4;
    let memory = data / 4;
    let settings = Settings {
        fast_capacity,
        memory,
        // Small, so that it is the disks that are seen and not the memory.
        cache: data / 128,
        memtable: Settings::default_memtable(memory, fast_capacity),
        block_size_fast: 4 << 10,
        block_size_slow: 16 << 10,
        compression: Compression::None,
        durability: Durability::Buffered,
        slow_device: SlowDevice {
            iops: Some(2000),
            bandwidth: Some(100_000_000),
            latency: Some(Duration::from_micros(500)),
        },
        #[cfg(feature = "experiments")]
        experiments: Default::default(),
    };
    let engine = engine::find("leveled")?;
    engine.check(&settings)?;
    Ok(Plan {
        engine,
        source: Source::Generated {
            workload: Workload::READ_ONLY,
            stages: crate::distribution::Stages::one(Shape::Hotspot {
                percent: 5.0,
                offset: 0.0,
            }),
        },
        records: data / RECORD,
        value_len: RECORD as usize - KEY_LEN,
        threads: 4,
        seed: 1,
        scan_length: 100,
        warm_up: None,
        end: End {
            ops: None,
            duration: Some(Duration::from_secs(seconds)),
        },
        settings,
    })
}

/// Shares of the reads of a second: memory, fast disk, slow disk.
fn shares(second: &Second) -> Option<[f64; 3]> {
    let (fast, memory) = (second.fd_hit_rate?, second.dram_hit_rate?);
    Some([memory, (fast - memory).max(0.0), (1.0 - fast).max(0.0)])
}

fn speed(second: &Second) -> String {
    format!(
        "{:.0} reads/s, half within {:.0} us, 99 % within {:.0} us",
        second.ops_s, second.p50_us, second.p99_us
    )
}

/// Bars on a terminal, lines elsewhere.
struct Screen {
    bars: Option<Bars>,
    seconds: usize,
}

struct Bars {
    all: MultiProgress,
    load: ProgressBar,
    places: Vec<ProgressBar>,
    speed: ProgressBar,
}

impl Screen {
    fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            bars: terminal.then(Bars::new),
            seconds: 0,
        }
    }

    fn loaded_in(&mut self, seconds: f64) {
        match &mut self.bars {
            Some(bars) => bars.show_reads(seconds),
            None => println!("loaded in {seconds:.1} s; now reading"),
        }
    }

    fn finish(&self) {
        if let Some(bars) = &self.bars {
            for bar in bars.places.iter().chain([&bars.speed]) {
                bar.abandon();
            }
        }
    }
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let load = all.add(bar("loading"));
        Self {
            all,
            load,
            places: Vec::new(),
            speed: ProgressBar::hidden(),
        }
    }

    fn show_reads(&mut self, seconds: f64) {
        self.load.abandon_with_message(format!("in {seconds:.1} s"));
        self.places = ["memory", "fast disk", "slow disk"]
            .map(|name| self.all.add(bar(name)))
            .into();
        let speed = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            speed.set_style(style);
        }
        self.speed = self.all.add(speed);
    }
}

fn bar(name: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(1000).with_prefix(name);
    if let Ok(style) = ProgressStyle::with_template("{prefix:<10} [{bar:50}] {percent:>3} % {msg}")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

impl Watch for Screen {
    fn loaded(&mut self, records: u64, of: u64) {
        if let Some(bars) = &self.bars {
            bars.load.set_position(1000 * records / of.max(1));
        }
    }

    fn settling(&mut self) {
        if let Some(bars) = &self.bars {
            bars.load.set_message("waiting for compactions");
        }
    }

    fn second(&mut self, second: &Second, progress: f64) {
        let shares = shares(second);
        if let Some(bars) = &self.bars {
            for (bar, share) in bars.places.iter().zip(shares.into_iter().flatten()) {
                bar.set_position((share * 1000.0).round() as u64);
            }
            bars.speed.set_message(speed(second));
        } else if self.seconds.is_multiple_of(QUIET_SECONDS) || progress >= 1.0 {
            let [memory, fast, slow] = shares.unwrap_or_default().map(|share| share * 100.0);
            println!(
                "{:>4.0} s  memory {memory:>5.1} %  fast disk {fast:>5.1} %  slow disk {slow:>5.1} %  {}",
                second.second,
                speed(second)
            );
        }
        self.seconds += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        let mut second = Second {
            second: 1.0,
            ops: 10,
            ops_s: 10.0,
            p50_us: 1.0,
            p99_us: 2.0,
            fd_hit_rate: Some(0.75),
            dram_hit_rate: Some(0.25),
            fd_bytes: None,
            sd_bytes: None,
            hot_set_bytes: None,
            hot_set_limit_bytes: None,
            stall_seconds: None,
            stage: 0,
        };
        assert_eq!(shares(&second), Some([0.25, 0.5, 0.25]));
        second.fd_hit_rate = None;
        assert_eq!(shares(&second), None);
    }

    #[test]
    fn every_length_makes_a_plan() {
        for seconds in [1, 5, 60, 3600] {
            let plan = plan(seconds).unwrap();
            assert!(plan.records >= 16 << 10, "{seconds}");
            assert!(plan.settings.cache < plan.settings.memory);
        }
    }
}
