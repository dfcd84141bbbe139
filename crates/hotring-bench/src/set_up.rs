//! The sizes, and what every experiment needs made: requests, tables, lines of the report.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hotring::{HotRing, Movement, Options};

use crate::contenders::Table;
use crate::contenders::chained::Chained;
use crate::keys;
use crate::run::{Contender, Entrant, Times, Turns, Work, compare};

/// The sizes of an experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SetUp {
    /// Keys in each table: a power of two, or buckets have fewer than is said. With 48 bytes an
    /// item the default takes some twenty times a last-level cache of 36 MiB.
    #[arg(long, default_value_t = 1 << 24)]
    pub(crate) keys: u32,
    /// Threads that make requests.
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: usize,
    /// How often each table has its turn.
    #[arg(long, default_value_t = 7)]
    pub(crate) repeats: usize,
    /// How long a turn takes.
    #[arg(long, default_value_t = 500)]
    pub(crate) millis: u64,
    /// How long each table works before its first turn, in milliseconds: some tens of requests a
    /// bucket.
    #[arg(long, default_value_t = 4000)]
    pub(crate) warm_up: u64,
    /// Lets no request begin before the one before it is answered, as where a request depends on
    /// what was read; else the processor overlaps them as far as it can.
    #[arg(long)]
    pub(crate) dependent: bool,
    /// Requests under one handle; 1 renews it for each.
    #[arg(long, default_value_t = 64)]
    pub(crate) batch: usize,
    /// Requests prepared for each thread.
    #[arg(long, default_value_t = 1 << 23)]
    pub(crate) requests: usize,
    /// The skew, where it is not what is varied.
    #[arg(long, default_value_t = 1.22)]
    pub(crate) theta: f64,
    /// Keys per bucket, where it is not what is varied.
    #[arg(long, default_value_t = 8)]
    pub(crate) ratio: u32,
    /// The paper's R.
    #[arg(long, default_value_t = 5)]
    pub(crate) period: u32,
}

pub(crate) type Ring = HotRing<u64, AtomicU64>;

impl SetUp {
    pub(crate) fn time(&self) -> Duration {
        Duration::from_millis(self.millis)
    }

    pub(crate) fn turns(&self) -> Turns {
        Turns {
            warm_up: Duration::from_millis(self.warm_up),
            repeats: self.repeats,
            time: self.time(),
        }
    }

    /// Streams of requests: `kind` makes a request of its number and a zipfian key.
    pub(crate) fn work(&self, theta: f64, kind: impl Fn(usize, u32) -> u32) -> Work {
        let streams = (0..self.threads)
            .map(|thread| {
                let mut stream =
                    keys::zipfian(self.keys, theta, self.requests, 100 + thread as u64);
                for (index, request) in stream.iter_mut().enumerate() {
                    *request = kind(index, *request);
                }
                stream
            })
            .collect();
        Work {
            streams,
            batch: self.batch,
            dependent: self.dependent,
        }
    }

    /// Reads only.
    pub(crate) fn reads(&self, theta: f64) -> Work {
        self.work(theta, |_, key| key)
    }

    /// Buckets for so many keys in each; a power of two.
    pub(crate) fn buckets(&self, ratio: u32) -> usize {
        (self.keys as usize)
            .div_ceil(ratio as usize)
            .next_power_of_two()
    }

    /// A ring that keeps its size.
    pub(crate) fn options(&self, ratio: u32, movement: Movement) -> Options {
        Options::default()
            .buckets(self.buckets(ratio))
            .movement(movement)
            .period(self.period)
            .grow_above(f64::INFINITY)
    }

    pub(crate) fn ring(&self, ratio: u32, movement: Movement) -> Entrant<Ring> {
        let name = match movement {
            Movement::Sampling => "hotring-s",
            Movement::Random => "hotring-r",
            _ => "hotring, heads off",
        };
        Entrant::new(name, ring(self.options(ratio, movement)))
    }

    pub(crate) fn chained(&self, ratio: u32) -> Entrant<Chained<AtomicU64>> {
        Entrant::new("chained", Chained::new(self.buckets(ratio)))
    }

    /// A chained table whose buckets have so many empty words.
    pub(crate) fn roomy<const ROOM: usize>(&self, ratio: u32) -> Entrant<Chained<AtomicU64, ROOM>> {
        let name = format!("chained, buckets of {} bytes", 8 * (1 + ROOM));
        Entrant::new(name, Chained::new(self.buckets(ratio)))
    }

    /// Compares and prints a line for each contender; ratios are to the first one.
    pub(crate) fn lines(&self, label: &str, contenders: &[&dyn Contender], work: &Work) {
        let times = compare(contenders, work, &self.turns());
        let first = times.first().map_or(f64::NAN, Times::median);
        for (contender, times) in contenders.iter().zip(&times) {
            let (least, most) = (times.0[0], times.0[times.0.len() - 1]);
            println!(
                "| {label} | {} | {:.1} | {least:.1}–{most:.1} | {:.2} |",
                contender.name(),
                times.median(),
                first / times.median(),
            );
        }
    }
}

/// A map of these options.
pub(crate) fn ring<V: Send + Sync + 'static>(options: Options) -> HotRing<u64, V>
where
    HotRing<u64, V>: Table,
{
    match HotRing::with_options(options) {
        Ok(ring) => ring,
        Err(error) => panic!("{error}"),
    }
}

/// The head of the table that [`SetUp::lines`] fills.
pub(crate) fn heading(title: &str, what: &str) {
    println!("\n## {title}\n");
    println!("| {what} | table | ns/request | least–most | speed |");
    println!("| --- | --- | ---: | ---: | ---: |");
}
