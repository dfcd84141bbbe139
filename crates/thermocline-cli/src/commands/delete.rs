//! `thermocline delete`.

use std::ops::Bound;

use clap::ArgGroup;
use serde_json::json;
use thermocline::{Batch, Db, Durability, Keyspace};

use crate::confirm::confirmed;
use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::selection::{KeyBounds, SelectionArgs};
use crate::store::DataArgs;
use crate::text::ESCAPES;

/// How many keys, and how many of their bytes, make a batch when keys are not named one by one.
const BATCH_KEYS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// Delete keys, all of them or, on an error, none; a key that does not exist is no error. Or the
/// records of a prefix or a range
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("which")
    .args(["keys", "prefix", "from", "to", "range"])
    .required(true)
    .multiple(true))]
#[command(after_help = format!("\
Examples:
  thermocline delete --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB city:berlin
  thermocline delete --one-tier --fast /nvme/db --keyspace users alice bob
  thermocline delete --one-tier --fast /nvme/db --prefix session: --yes
  thermocline delete --one-tier --fast /nvme/db --range log:2023 log:2024

With --prefix, --range, --from or --to, --yes deletes, in batches; without it the records are
counted, and somebody at the terminal is asked. What is told as deleted is durable. One that is cut
short has deleted a part: the same command goes on.

The store is open until a `scan` has printed its last key. To delete keys that one finds, print
them to a file first:
  thermocline scan --one-tier --fast /nvme/db --keys-only | grep :tmp: > keys
  xargs -d '\\n' -a keys thermocline delete --one-tier --fast /nvme/db

{ESCAPES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Do not ask before the records of a prefix or a range are deleted
    #[arg(long, conflicts_with = "keys")]
    yes: bool,

    /// Print how many records of a prefix or a range were deleted as JSON
    #[arg(long, conflicts_with = "keys")]
    json: bool,

    /// The keys
    #[arg(
        conflicts_with_all = ["prefix", "from", "to", "range"],
        value_name = "KEY",
        allow_negative_numbers = true
    )]
    keys: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.selection.is_given() {
        return delete_selected(args);
    }
    let keys: Vec<Vec<u8>> = args
        .keys
        .iter()
        .map(|key| args.data.read("key", key))
        .collect::<Result<_, _>>()?;
    let session = args.data.open()?;
    let mut batch = Batch::new();
    for key in &keys {
        batch.delete_in(&session.keyspace, key);
    }
    session.db.write(batch)?;
    session.close()
}

fn delete_selected(args: &Args) -> Result<(), Failure> {
    let bounds = args.selection.bounds(&args.data)?;
    let session = args.data.open()?;
    if !args.yes {
        let records = count(&session.keyspace, &bounds)?;
        let this = format!("deletes {records} records");
        if !confirmed(&this, &format!("Delete {records} records?"))? {
            return Err(Failure::usage("nothing was deleted"));
        }
    }
    let bar = progress::spinner("deleting");
    let deleted = delete_range(&session.db, &session.keyspace, bounds);
    bar.finish_and_clear();
    let deleted = deleted?;
    output::say(
        args.json,
        &json!({"deleted": deleted}),
        format!("{deleted} records deleted"),
    )?;
    session.close()
}

fn count(keyspace: &Keyspace, bounds: &KeyBounds) -> Result<u64, Failure> {
    let mut records = 0;
    for record in keyspace.range(bounds.clone()).fill_cache(false) {
        record?;
        records += 1;
    }
    Ok(records)
}

/// Deletes all records within `bounds`. Says how many, once that is durable.
fn delete_range(db: &Db, keyspace: &Keyspace, bounds: KeyBounds) -> Result<u64, Failure> {
    let (mut from, to) = bounds;
    let mut deleted = 0;
    loop {
        // The scan is begun anew for each batch, because an iterator keeps what the deletes make
        // obsolete.
        let mut records = keyspace.range((from, to.clone())).fill_cache(false);
        let mut batch = Batch::new();
        let mut last = None;
        while batch.len() < BATCH_KEYS && batch.byte_len() < BATCH_BYTES {
            let Some(record) = records.next() else { break };
            let (key, _) = record?;
            batch.delete_in(keyspace, &key);
            last = Some(key);
        }
        let Some(last) = last else { break };
        deleted += batch.len() as u64;
        db.write_with(batch, Durability::Buffered)?;
        from = Bound::Excluded(last.to_vec());
    }
    db.sync()?;
    Ok(deleted)
}
