//! `thermocline plan`: what disks at given prices would buy, before anybody buys them.

mod args;
mod coverage;
mod measured;
mod model;
mod offer;
mod source;
mod text;

use anyhow::{Context, Result};
use serde::Serialize;
use thermocline::{Options, Placement};

pub use self::args::SizingArgs;
use self::measured::{Measured, Report};
use self::model::{IN_TABLES, MOST_TRACKED, Model, ON_FAST, Space, WITH_COPIES, one_disk};
use self::offer::{Disks, cheapest, points};
pub use self::offer::{Layout, Point};
use self::source::Source;
use crate::bad_arguments::BadArguments;

/// The smallest fast tier that is looked at.
const LEAST_CAPACITY: f64 = (1 << 20) as f64;

/// What each price buys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sizing {
    /// What is known of the data and its reads.
    pub source: String,
    /// Keys and values of all records, in bytes.
    pub data_bytes: f64,
    /// Dollars for a GB of the fast disk and of the slow one, and month.
    pub prices: [f64; 2],
    /// Time of a read of the fast disk and of the slow one, in microseconds.
    pub disk_read_us: [f64; 2],
    /// Ten prices with the hottest records on the fast disk. Empty if that is not known.
    pub by_records: Vec<Point>,
    /// The same with the tables that are read most. Empty if that is not known.
    pub by_tables: Vec<Point>,
    /// The same with the placement that a store has, as its curve says. Empty without a curve.
    pub by_store: Vec<Point>,
    /// What was assumed, in sentences.
    pub assumptions: Vec<String>,
    /// The cheapest for a wanted time of a read, if one was wanted.
    pub wanted: Option<Wanted>,
}

/// The cheapest for a wanted time of a read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wanted {
    /// The mean time of a read that was asked for, in microseconds.
    pub mean_read_us: f64,
    /// The cheapest that has it. None if none has.
    pub cheapest: Option<Point>,
    /// The fastest there is.
    pub fastest: Point,
}

/// Tells what each price buys.
///
/// # Errors
/// [`BadArguments`]: a file cannot be read or is not what it should be, or flags do not go
/// together.
pub fn sizing(args: &SizingArgs) -> Result<Sizing> {
    Ok(told(args).map_err(BadArguments::new)?)
}

fn told(args: &SizingArgs) -> Result<Sizing> {
    let reads = args.reads.map(|reads| reads as f64);
    let latencies = [args.latency_fast, args.latency_slow].map(|time| time.as_secs_f64());
    if let Some(path) = &args.curve {
        let report = Report::read(path)?;
        let prices = report.prices();
        let disks = Disks { prices, latencies };
        disks.check()?;
        let store = Measured {
            report: &report,
            disks,
            data: args.data_size.map_or(report.data(), |bytes| bytes as f64),
            reads,
        };
        let mut sizing = Sizing::new("a store, as it is read of late", store.data, disks);
        sizing.by_store = points(&store)?;
        sizing.assumptions = text::of_a_store();
        sizing.look_for(args, disks, reads, [Some(&store as _), None])?;
        return Ok(sizing);
    }
    let prices = args.price_fast.zip(args.price_slow);
    let (fast, slow) = prices.context("--price-fast and --price-slow: say what the disks cost")?;
    let disks = Disks {
        prices: [fast, slow],
        latencies,
    };
    disks.check()?;
    let source = Source::of(args)?;
    let data = source.records.data();
    let mut sizing = Sizing::new(&source.name, data, disks);
    let space = |capacity| space(capacity, Placement::default());
    let records = Model::new(disks, &source.records, reads, Some(source.tracked), &space)?;
    sizing.by_records = points(&records)?;
    let table_space = |capacity| self::space(capacity, Placement::ByTable);
    let tables = source.tables.as_ref();
    let tables = tables.map(|tables| Model::new(disks, tables, reads, None, &table_space));
    let tables = tables.transpose()?;
    if let Some(tables) = &tables {
        sizing.by_tables = points(tables)?;
    }
    sizing.assumptions = text::of_a_model(&source);
    let tables = tables.as_ref().map(|tables| tables as _);
    sizing.look_for(args, disks, reads, [Some(&records as _), tables])?;
    Ok(sizing)
}

impl Sizing {
    fn new(source: &str, data: f64, disks: Disks) -> Self {
        Self {
            source: source.to_owned(),
            data_bytes: data,
            prices: disks.prices,
            disk_read_us: disks.latencies.map(|seconds| seconds * 1e6),
            by_records: Vec::new(),
            by_tables: Vec::new(),
            by_store: Vec::new(),
            assumptions: Vec::new(),
            wanted: None,
        }
    }

    /// Looks for the cheapest that has the wanted time of a read.
    fn look_for(
        &mut self,
        args: &SizingArgs,
        disks: Disks,
        reads: Option<f64>,
        offers: [Option<&dyn offer::Offer>; 2],
    ) -> Result<()> {
        let Some(wanted) = args.latency else {
            return Ok(());
        };
        let micros = wanted.as_secs_f64() * 1e6;
        let fastest = one_disk(disks, self.data_bytes, reads);
        let mut found = Some(fastest).filter(|fastest| fastest.mean_read_us <= micros);
        for offer in offers.into_iter().flatten() {
            let both = [found, cheapest(offer, micros)?];
            found = both
                .into_iter()
                .flatten()
                .min_by(|a, b| a.cost.total_cmp(&b.cost));
        }
        self.wanted = Some(Wanted {
            mean_read_us: micros,
            cheapest: found,
            fastest,
        });
        Ok(())
    }
}

/// What a store with default settings takes of a fast tier of this capacity.
fn space(capacity: f64, placement: Placement) -> Result<Space> {
    let capacity = capacity.max(LEAST_CAPACITY) as u64;
    let mut options = Options::two_tiers("fast", capacity, "slow");
    options.placement = placement;
    let planned = options.planned_space()?;
    Ok(Space {
        fixed: (planned.log + planned.l0) as f64,
        job: planned.job as f64,
        hot_set: planned.hot_set.unwrap_or(capacity) as f64,
    })
}

#[cfg(test)]
mod tests;
