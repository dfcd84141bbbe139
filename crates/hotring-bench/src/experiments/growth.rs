//! Tables that grow.

use std::time::{Duration, Instant};

use hotring::{Movement, Options};

use crate::contenders::Table;
use crate::keys;
use crate::run::{Contender, Entrant, INSERT, READ, compare, load};
use crate::set_up::{Ring, SetUp, ring};

/// The paper's figure 17: half of the requests read, half bring new keys.
pub(crate) fn run(set_up: &SetUp) {
    let set_up = SetUp {
        keys: set_up.keys / 8,
        ..set_up.clone()
    };
    let buckets = set_up.buckets(set_up.ratio);
    println!(
        "\n## Growth: {} keys in {buckets} buckets, then as many new ones as reads, θ {}\n",
        set_up.keys, set_up.theta
    );
    println!("| seconds | entries | buckets | items visited | ns/request | without growth |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    let keys = keys::shuffled(set_up.keys);
    let options = Options::default().buckets(buckets);
    let grows: Entrant<Ring> = Entrant::new("grows", ring(options));
    let stays = set_up.ring(set_up.ratio, Movement::Sampling);
    load(&[&grows, &stays], &keys);
    let work = set_up.work(set_up.theta, |index, key| {
        key | if index % 2 == 0 { READ } else { INSERT }
    });
    let slice = Duration::from_millis(250);
    for turn in 1..=40 {
        let cost = grows.run(&work, slice);
        let without = stays.run(&work, slice);
        println!(
            "| {:.2} | {} | {} | {:.2} | {cost:.1} | {without:.1} |",
            (slice * turn).as_secs_f64(),
            grows.table.len(),
            grows.table.buckets(),
            grows.table.mean_visits(),
        );
    }
}

/// Which size a table reaches from 64 buckets, and how fast it is then, by the limit and the
/// window.
pub(crate) fn limits(set_up: &SetUp) {
    let set_up = SetUp {
        keys: set_up.keys / 4,
        ..set_up.clone()
    };
    println!(
        "\n## Growth from 64 buckets under reads, {} keys\n",
        set_up.keys
    );
    println!("| θ | grow_above | window | keys per bucket | seconds | ns/request |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    let keys = keys::shuffled(set_up.keys);
    for theta in [0.0, 0.99, 1.22] {
        let work = set_up.reads(theta);
        let mut made = Vec::new();
        for (limit, window) in [
            (1.25, 512),
            (1.5, 512),
            (2.0, 512),
            (3.0, 512),
            (4.0, 512),
            (2.0, 64),
            (2.0, 4096),
        ] {
            let options = Options::default()
                .grow_above(limit)
                .window(window)
                .period(set_up.period);
            let table: Entrant<Ring> = Entrant::new("", ring(options));
            load(&[&table], &keys);
            let begun = Instant::now();
            let mut last = (table.table.buckets(), Duration::ZERO);
            // Until a second brings no more buckets.
            while begun.elapsed() < last.1 + Duration::from_secs(1) {
                table.run(&work, Duration::from_millis(50));
                if table.table.buckets() != last.0 {
                    last = (table.table.buckets(), begun.elapsed());
                }
            }
            made.push((limit, window, last.1, table));
        }
        let all: Vec<&dyn Contender> = made.iter().map(|(.., table)| table as _).collect();
        let times = compare(&all, &work, &set_up.turns());
        for ((limit, window, grown, table), times) in made.iter().zip(times) {
            let per_bucket = f64::from(set_up.keys) / table.table.buckets() as f64;
            println!(
                "| {theta} | {limit} | {window} | {per_bucket:.2} | {:.2} | {:.1} |",
                grown.as_secs_f64(),
                times.median(),
            );
        }
        drop(made);
        // Frees what the dropped tables left to the epochs: it is due when those have moved on
        // twice.
        let idle = ring::<std::sync::atomic::AtomicU64>(Options::default());
        for _ in 0..3 {
            idle.handle().flush();
        }
    }
}
