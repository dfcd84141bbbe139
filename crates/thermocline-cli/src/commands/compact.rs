//! `thermocline compact`.

use serde_json::{Value as Json, json};
use thermocline::metrics::Metrics;

use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::selection::RangeArgs;
use crate::size;
use crate::store::DataArgs;
use crate::text::ESCAPES;

/// Flush and compact now, so that deleted records give back their space: tombstones, and records
/// that hide much, are taken down to what they hide, on the slow tier too. Small tables are merged
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  thermocline compact --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB
  thermocline compact --one-tier --fast /nvme/db --from log:2023 --to log:2024

{ESCAPES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    range: RangeArgs,

    /// Print the table bytes of each tier before and after as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let range = args.range.bounds(&args.data)?;
    let session = args.data.open()?;
    let before = table_bytes(&session.db.metrics());
    let bar = progress::spinner("compacting");
    let result = session
        .keyspace
        .compact_range(range)
        .and_then(|()| session.db.wait_idle());
    bar.finish_and_clear();
    result?;
    let after = table_bytes(&session.db.metrics());
    let lines: Vec<String> = before
        .iter()
        .zip(&after)
        .enumerate()
        .map(|(tier, (&before, &after))| {
            format!(
                "tier {tier}: {} -> {}",
                size::show(before),
                size::show(after)
            )
        })
        .collect();
    let tiers: Vec<Json> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| json!({"bytes_before": before, "bytes_after": after}))
        .collect();
    output::say(args.json, &json!({"tiers": tiers}), lines.join("\n"))?;
    session.close()
}

fn table_bytes(metrics: &Metrics) -> Vec<u64> {
    metrics.tiers.iter().map(|tier| tier.table_bytes).collect()
}
