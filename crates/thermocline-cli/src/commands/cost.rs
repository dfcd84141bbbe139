//! `thermocline cost`.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use thermocline::metrics::CostReport;
use thermocline::{Db, Error, Target};

use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::size;
use crate::store::StoreArgs;

/// How often a store is asked whether its tables have come to rest.
const LOOK: Duration = Duration::from_millis(200);

/// For how long a store that does nothing may have something left to move.
const PATIENCE: Duration = Duration::from_secs(15);

/// For how long what holds a target up has to be said before it is believed. A store looks once a
/// second at what it costs, and may have begun nothing yet.
const BELIEF: Duration = Duration::from_secs(3);

/// By how much the bill may be above the target, as a part of it.
const ALLOWED: f64 = 1.02;

/// The most lines of the curve.
const CURVE_LINES: usize = 11;

/// Characters of the longest bar.
const BAR: usize = 30;

/// Show what a store costs and what else it could cost, and set a target for it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline cost --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB \\
      --price-fast 0.1 --price-slow 0.02
  thermocline cost --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB \\
      --price-fast 0.1 --price-slow 0.02 --set cost:0.05 --until-settled

Prices are dollars per GB (10^9 bytes) and month. A target stays with the store, and so do the prices that it
was set with: later commands need not name them.

The store must be closed. A program that has it open sets targets by `Db::set_target` and reads `Db::cost`.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Price of the fast tier in $/GB/month [default: as the target was set with]
    #[arg(
        long,
        value_name = "DOLLARS",
        requires = "price_slow",
        allow_negative_numbers = true
    )]
    price_fast: Option<f64>,

    /// Price of the slow tier in $/GB/month; of several, one for each --slow, as 0.1,0.02
    #[arg(
        long,
        value_name = "DOLLARS",
        value_delimiter = ',',
        requires = "price_fast",
        allow_negative_numbers = true
    )]
    price_slow: Vec<f64>,

    /// What the store may cost, cost:DOLLARS for a GB and month, or what it is to reach for the
    /// least money: hit-rate:PART of point reads without the slow tier, or latency:TIME of one on
    /// average; or none
    #[arg(long, value_name = "TARGET", value_parser = target)]
    set: Option<Target>,

    /// Keep the store open until nothing is left to move for a target in dollars
    #[arg(long)]
    until_settled: bool,

    /// Print JSON, with every point of the curve
    #[arg(long)]
    json: bool,
}

/// A target as it is written.
fn target(text: &str) -> Result<Target, String> {
    let (kind, amount) = text.split_once(':').unwrap_or((text, ""));
    let number = || {
        let amount = amount.parse::<f64>();
        amount.map_err(|_| format!("a number without a unit is wanted, as in {kind}:0.5"))
    };
    match (kind, amount) {
        ("none", "") => Ok(Target::None),
        ("cost", _) => Ok(Target::Cost(number()?)),
        ("hit-rate", _) => Ok(Target::HitRate(number()?)),
        ("latency", _) => humantime::parse_duration(amount)
            .map(Target::Latency)
            .map_err(|_| "a time with its unit is wanted, as in latency:2ms".to_owned()),
        _ => Err("write cost:0.05, latency:2ms, hit-rate:0.9 or none".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let prices = prices(args)?;
    if let (true, Some(target)) = (args.until_settled, args.set) {
        settles_at(target)?;
    }
    if args.set.is_some() && args.store.is_one_tier() {
        return Err(one_tier());
    }
    let db = match args.set.is_some() || args.until_settled {
        true => args.store.open_at(&prices)?,
        false => args.store.open_to_read_at(&prices)?,
    };
    if let Some(target) = args.set {
        db.set_target(target).map_err(explained)?;
    }
    if args.until_settled {
        let kept = db.cost().map_err(explained)?.target;
        settles_at(kept)?;
        settle(&db)?;
    }
    let report = db.cost().map_err(explained)?;
    output::say(args.json, &to_json(&report), to_text(&report))?;
    Ok(db.close()?)
}

/// Refuses to wait for what only reads can bring about.
fn settles_at(target: Target) -> Result<(), Failure> {
    match target {
        Target::None | Target::Cost(_) => Ok(()),
        _ => Err(Failure::usage(format!(
            "--until-settled waits for a target in dollars, and this one is {target}: how reads are, the \
             store finds out while a program reads it"
        ))),
    }
}

fn one_tier() -> Failure {
    Failure::usage("a store of one tier costs what that tier costs, and has nothing to choose")
}

/// The price of each tier, or none.
fn prices(args: &Args) -> Result<Vec<f64>, Failure> {
    let Some(fast) = args.price_fast else {
        return Ok(Vec::new());
    };
    if args.store.is_one_tier() {
        return Err(one_tier());
    }
    let slow = args.store.slow().len();
    if args.price_slow.len() != slow {
        return Err(Failure::usage(format!(
            "slow tiers: {slow}, prices that --price-slow names: {}; give one for each",
            args.price_slow.len()
        )));
    }
    let prices = [&[fast][..], &args.price_slow].concat();
    if let Some(bad) = prices
        .iter()
        .find(|price| !(0.0..f64::INFINITY).contains(*price))
    {
        return Err(Failure::usage(format!(
            "--price-fast and --price-slow: {bad} is no price; a number of at least 0 is wanted"
        )));
    }
    match prices.is_sorted_by(|faster, slower| faster > slower) {
        true => Ok(prices),
        false => Err(Failure::usage(format!(
            "prices are {prices:?}, the fastest tier's first; each tier has to be dearer than the next",
        ))),
    }
}

/// Says which flags name the prices that an engine misses.
fn explained(error: Error) -> Failure {
    match &error {
        Error::InvalidOption {
            option: "price_per_gb_month",
            ..
        } => Failure::Store {
            error,
            hint: Some("name the prices with --price-fast and --price-slow".to_owned()),
        },
        _ => error.into(),
    }
}

/// Waits until nothing is left to move.
fn settle(db: &Db) -> Result<(), Failure> {
    let bar = progress::spinner("moving tables");
    let (mut left, mut least, mut since) = (u64::MAX, f64::MAX, Instant::now());
    loop {
        // Where nothing finds room any more, the report says why.
        match db.wait_idle() {
            Err(Error::NoSpace { .. }) => break,
            idle => idle?,
        }
        let report = db.cost()?;
        if report.moving_bytes == 0 && is_met(&report) {
            break;
        }
        if report.moving_bytes < left || report.now < least {
            left = left.min(report.moving_bytes);
            (least, since) = (least.min(report.now), Instant::now());
        }
        // Nothing runs, and it costs no less: whoever waits would wait for ever.
        let patience = match report.held_up_by {
            Some(_) => BELIEF,
            None => PATIENCE,
        };
        if since.elapsed() > patience {
            break;
        }
        bar.set_message(format!(
            "{:.4} $/GB/month, {} to move",
            report.now,
            size::show(report.moving_bytes)
        ));
        thread::sleep(LOOK);
    }
    bar.finish_and_clear();
    Ok(())
}

fn is_met(report: &CostReport) -> bool {
    match report.target {
        Target::Cost(dollars) => report.now <= dollars * ALLOWED,
        _ => true,
    }
}

fn to_json(report: &CostReport) -> Json {
    let curve = report.curve.iter();
    let curve = curve.map(|point| json!({"cost": point.cost, "hit_rate": point.hit_rate}));
    let mut json = figures(report);
    json["curve"] = curve.collect();
    json
}

/// All but the curve.
pub(super) fn figures(report: &CostReport) -> Json {
    json!({
        "target": report.target.to_string(),
        "budget": report.budget,
        "hit_rate": report.hit_rate,
        "mean_latency_us": report.mean_latency.map(|mean| mean.as_secs_f64() * 1e6),
        "prices": report.prices,
        "now": report.now,
        "dollars_per_month": report.dollars_per_month,
        "data_bytes": report.data_bytes,
        "floor": report.floor,
        "ceiling": report.ceiling,
        "moving_bytes": report.moving_bytes,
        "held_up_by": report.held_up_by,
        "migrations": report.migrations,
        "migrated_up_bytes": report.migrated_up_bytes,
        "migrated_down_bytes": report.migrated_down_bytes,
        "migrations_by_compaction": report.migrations_by_compaction,
        "migrated_by_compaction_bytes": report.migrated_by_compaction_bytes,
    })
}

fn to_text(report: &CostReport) -> String {
    let mut lines = vec![
        format!("target   {}", report.target),
        format!(
            "now      {:.4} $/GB/month, {:.*} $ a month for {}",
            report.now,
            if report.dollars_per_month < 1.0 { 6 } else { 2 },
            report.dollars_per_month,
            size::show(report.data_bytes)
        ),
    ];
    // Without data, or where nothing can move, there are no bounds.
    if report.data_bytes > 0 && report.ceiling > 0.0 {
        lines.push(format!(
            "possible {:.4} to {:.4} $/GB/month",
            report.floor, report.ceiling
        ));
    }
    if let (Target::HitRate(_) | Target::Latency(_), Some(budget)) = (report.target, report.budget)
    {
        lines.push(format!(
            "allowed  {budget:.4} $/GB/month, as far as it is found"
        ));
    }
    if report.moving_bytes > 0 {
        lines.push(format!("to move  {}", size::show(report.moving_bytes)));
    }
    lines.extend(
        report
            .held_up_by
            .as_ref()
            .map(|why| format!("held up  {why}")),
    );
    lines.extend(moved(report));
    lines.extend(curve(report));
    lines.join("\n")
}

/// What has moved while the command had the store open.
fn moved(report: &CostReport) -> Option<String> {
    let others = report.migrations_by_compaction;
    (report.migrations + others > 0).then(|| {
        format!(
            "moved    {} tables, {} up, {} down; {others} by compactions, {}",
            report.migrations,
            size::show(report.migrated_up_bytes),
            size::show(report.migrated_down_bytes),
            size::show(report.migrated_by_compaction_bytes)
        )
    })
}

/// What other targets would buy, as tables are read of late.
fn curve(report: &CostReport) -> Vec<String> {
    if report.curve.iter().all(|point| point.hit_rate == 0.0) {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        "$/GB/month  reads without the slow tier".to_owned(),
    ];
    let step = report.curve.len().div_ceil(CURVE_LINES).max(1);
    lines.extend(report.curve.iter().step_by(step).map(|point| {
        let bar = "#".repeat((point.hit_rate * BAR as f64) as usize);
        format!(
            "{:>10.4}  {:>5.1} %  {bar}",
            point.cost,
            100.0 * point.hit_rate
        )
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_they_are_written() {
        for text in ["none", "cost:0.05", "latency:2ms", "hit-rate:0.9"] {
            assert_eq!(target(text).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "0.05",
            "cost",
            "cost:",
            "cost:cheap",
            "latency:2",
            "none:1",
            "speed:3",
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }
}
