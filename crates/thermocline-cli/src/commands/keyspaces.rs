//! `thermocline keyspaces`.

use serde_json::json;
use thermocline::metrics::KeyspaceMetrics;

use crate::confirm::confirmed;
use crate::failure::Failure;
use crate::output::Out;
use crate::size;
use crate::store::{self, StoreArgs};

/// List the keyspaces of a store, or remove one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Records count until compactions have come by what replaces or deletes them.

Examples:
  thermocline keyspaces --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB
  thermocline keyspaces --one-tier --fast /tmp/db --drop sessions --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Remove this keyspace with all that it holds first
    #[arg(long, value_name = "NAME")]
    drop: Option<String>,

    /// Do not ask before one is removed
    #[arg(long, requires = "drop")]
    yes: bool,

    /// Print the result as JSON, a line for each keyspace
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let db = match args.drop {
        Some(_) => args.store.open()?,
        None => args.store.open_to_read()?,
    };
    if let Some(name) = &args.drop {
        // Checked before anybody is asked.
        store::keyspace(&db, name, false)?;
        let question = format!("Remove the keyspace {name:?} and all that it holds?");
        if !args.yes && !confirmed("removes the keyspace", &question)? {
            return Err(Failure::usage("nothing was removed"));
        }
        db.drop_keyspace(name)?;
    }
    let mut out = Out::new();
    for name in db.keyspaces() {
        let metrics = db.keyspace(&name)?.metrics();
        if args.json {
            out.json(&json!({
                "keyspace": metrics.name,
                "memtable_bytes": metrics.memtable_bytes,
                "tables": metrics.tables,
                "table_bytes": metrics.table_bytes,
                "records": metrics.records,
                "deletes": metrics.deletes,
                "hot_bytes": metrics.hot_bytes,
            }))?;
        } else {
            out.line(line(&metrics))?;
        }
    }
    out.finish()?;
    Ok(db.close()?)
}

fn line(metrics: &KeyspaceMetrics) -> String {
    let tiers: Vec<String> = metrics
        .table_bytes
        .iter()
        .map(|bytes| size::show(*bytes))
        .collect();
    let hot = metrics
        .hot_bytes
        .map_or_else(String::new, |bytes| format!("  {} hot", size::show(bytes)));
    format!(
        "{:?}  {} records, {} of them deletes  {} tables, {}  {} in memory{hot}",
        metrics.name,
        metrics.records,
        metrics.deletes,
        metrics.tables,
        tiers.join(" + "),
        size::show(metrics.memtable_bytes),
    )
}
