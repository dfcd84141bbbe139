//! What the table of recent accesses costs per access, by the size of the fast tier. It runs alone,
//! in memory.
//!
//! ```sh
//! cargo bench -p thermocline --features experiments --bench ralt -- --fast-tier 1,10,100,1000
//! ```
//!
//! A table for 1 TB does not fit into memory. So of a tier of N times `--part` GB, one of N parts
//! is measured: buffers, tables and slices of a merge are N times smaller, as if each record were N
//! times larger. There are as many levels, tables and merges as in the whole, and a byte of a table
//! is rewritten as often. What a table or a flush costs however many records it has (its end, a
//! sync) is divided by N times fewer accesses than in the whole, so that it looks N times dearer
//! than it is. The state is written as often as in the whole and is as long: its bytes are divided
//! by N. What a processor's caches cost where filters take gigabytes is not seen.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::Memory;
use thermocline::{RaltAlone, RaltWork};

const GB: u64 = 1 << 30;
/// Bytes of a key, and of a value.
const KEY: usize = 24;
const VALUE: usize = 200;
/// Data by the size of the fast tier, and the part of it that draws half of the accesses.
const DATA: u64 = 10;
const HOTSPOT: f64 = 0.05;
/// Questions at the end.
const QUESTIONS: u64 = 1_000_000;

struct Settings {
    fast_tiers: Vec<u64>,
    part: f64,
    turns: f64,
}

fn settings() -> Settings {
    let mut settings = Settings {
        fast_tiers: vec![1, 10, 100, 1000],
        part: 1.0,
        turns: 6.0,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_default();
        match &arg[..] {
            "--fast-tier" => {
                let sizes = value();
                let sizes = sizes.split(',').filter_map(|size| size.parse().ok());
                settings.fast_tiers = sizes.collect();
            }
            "--part" => settings.part = value().parse().unwrap_or(settings.part),
            "--turns" => settings.turns = value().parse().unwrap_or(settings.turns),
            // Cargo's own.
            "--bench" => {}
            _ => {
                eprintln!("--fast-tier GB,GB… --part GB --turns N: not {arg}");
                std::process::exit(2);
            }
        }
    }
    settings
}

/// The keys that are accessed: half of the time one of the hotspot's.
struct Accesses {
    rng: SmallRng,
    keys: u64,
    key: [u8; KEY],
}

impl Accesses {
    fn new(keys: u64, seed: u64) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            keys,
            key: *b"user00000000000000000000",
        }
    }

    fn next(&mut self) -> &[u8] {
        let hot = (self.keys as f64 * HOTSPOT) as u64;
        let number = match self.rng.random::<bool>() {
            true => self.rng.random_range(0..hot),
            false => self.rng.random_range(0..self.keys),
        };
        // The hotspot's keys lie among the others.
        let mut hasher = DefaultHasher::new();
        number.hash(&mut hasher);
        let mut rest = hasher.finish();
        for digit in &mut self.key[4..] {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.key
    }
}

fn cpu_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() {
    let settings = settings();
    println!(
        "fast tier GB | parts | accesses | tables' B | state's B | work ns | log ns | question ns | tables | evictions"
    );
    for fast_tier in &settings.fast_tiers {
        let parts = ((*fast_tier as f64 / settings.part) as u64).max(1);
        let capacity = fast_tier * GB;
        let keys = DATA * capacity / parts / (KEY + VALUE) as u64;
        let accesses = (settings.turns * capacity as f64) as u64 / parts / (KEY + VALUE) as u64;
        let medium = Arc::new(Memory::new());
        let ralt = RaltAlone::new(medium, Path::new("fast"), capacity, DATA * capacity, parts);
        let ralt = ralt.expect("memory has room");

        let mut source = Accesses::new(keys, 7);
        for _ in 0..accesses / 2 {
            ralt.log(source.next(), VALUE);
        }
        let (before, began) = (ralt.work(), cpu_nanos());
        for _ in 0..accesses / 2 {
            ralt.log(source.next(), VALUE);
        }
        let (after, took) = (ralt.work(), cpu_nanos() - began);
        // What making up the keys takes.
        let began = cpu_nanos();
        let mut source = Accesses::new(keys, 8);
        let mut sum = 0;
        for _ in 0..accesses / 2 {
            sum += u64::from(source.next()[KEY - 1]);
        }
        let idle = cpu_nanos() - began;
        let began = cpu_nanos();
        for _ in 0..QUESTIONS {
            sum += u64::from(ralt.is_hot(source.next()));
        }
        let asked = cpu_nanos() - began;
        std::hint::black_box(sum);

        let per_access = |of: fn(&RaltWork) -> u64| {
            (of(&after) - of(&before)) as f64 / (after.accesses - before.accesses) as f64
        };
        let work = per_access(|work| work.work_nanos);
        let all = took.saturating_sub(idle) as f64 / (after.accesses - before.accesses) as f64;
        let idle = idle as f64 / (accesses / 2) as f64;
        println!(
            "{fast_tier:12} | {parts:5} | {:8} | {:9.1} | {:9.2} | {work:7.0} | {:6.0} | {:11.0} | {:6} | {:9}",
            after.accesses,
            per_access(|work| work.table_bytes),
            per_access(|work| work.state_bytes) / parts as f64,
            all - work,
            asked as f64 / QUESTIONS as f64 - idle,
            after.tables,
            ralt.metrics().evictions,
        );
    }
}
