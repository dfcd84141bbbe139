//! Measures `hotring` beside a chained table of the same parts and beside other crates.
//!
//! ```sh
//! cargo run --release -p hotring-bench -- all
//! cargo run --release -p hotring-bench -- ratios skew --keys 4000000
//! ```
//!
//! Tables that are compared are in memory together and take turns, so that what disturbs the
//! machine disturbs all of them. Times are processor time, as medians over the turns. Keys are
//! drawn beforehand.

mod contenders;
mod experiments;
mod keys;
mod run;
mod set_up;

use clap::Parser;
use experiments::Experiment;
use set_up::SetUp;

#[derive(Parser)]
#[command(
    about = "Measures hotring beside a chained table of the same parts and beside other crates"
)]
struct Arguments {
    /// What to measure.
    #[arg(required = true, value_enum)]
    experiments: Vec<Experiment>,
    #[command(flatten)]
    set_up: SetUp,
}

fn main() {
    let arguments = Arguments::parse();
    let set_up = arguments.set_up;
    println!(
        "{} keys, {} threads, {} turns of {} ms after {} ms, handles renewed every {} requests, requests {}",
        set_up.keys,
        set_up.threads,
        set_up.repeats,
        set_up.millis,
        set_up.warm_up,
        set_up.batch,
        if set_up.dependent {
            "wait for one another"
        } else {
            "overlap"
        },
    );
    let mut wanted = arguments.experiments;
    if wanted.contains(&Experiment::All) {
        wanted = Experiment::each();
    }
    for experiment in wanted {
        experiment.run(&set_up);
    }
}
