//! `thermocline load`.

mod writer;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::ProgressBar;
use serde_json::json;
use thermocline::{MAX_KEY_LEN, MAX_VALUE_LEN};

use crate::failure::Failure;
use crate::input::{Bad, Format, Line, Reader};
use crate::output;
use crate::progress;
use crate::size;
use crate::store::DataArgs;
use crate::text::ESCAPES;
use writer::Writer;

/// Write many records from a file or standard input
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  thermocline load --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --create words.tsv
  thermocline load --one-tier --fast /nvme/db records.jsonl
  seq 1000 | sed 's/.*/key&\\tvalue&/' | thermocline load --one-tier --fast /nvme/db -

Lines that are sorted by key, each key once, are loaded several times faster: they become tables
at once, without the log and without compactions, and readers see them all together at the end.
`LC_ALL=C sort` puts TSV without escapes in order. From the first line on that is not in order,
records are written in batches; of two records of a key the last one counts. Less than 8 MiB goes
in batches, too.

When a line is bad, the message names it. What comes before it is in the store, and loading the
corrected file again does no harm.

{ESCAPES}

With --literal TSV has no escapes: a key ends at the first tab, a value at the line feed. Without
it a carriage return before the line feed is no part of the line.
Strings of JSON are what JSON says; bytes that are no UTF-8 are in \"key_hex\" and \"value_hex\"
instead, as `scan --json` prints them. What `scan` prints, with whichever of --hex and --json, is
loaded as it was. A byte-order mark before the first line is left out."))]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    /// Make the store, and the keyspace, if they do not exist
    #[arg(long)]
    create: bool,

    /// How lines are built [default: jsonl for *.jsonl and *.ndjson, else tsv]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Take the keys and values of TSV as they are, without escapes
    #[arg(long, conflicts_with = "hex")]
    literal: bool,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    /// Write this many records at a time, and after each time print how many are in the store:
    /// what a test needs that kills the command
    #[arg(long, hide = true, value_name = "RECORDS", value_parser = clap::value_parser!(u64).range(1..))]
    acknowledge: Option<u64>,

    /// The file; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (input, bar) = open_input(&args.file)?;
    let format = args.format.unwrap_or_else(|| guess_format(&args.file));
    if args.literal && format == Format::Jsonl {
        return Err(Failure::usage(
            "--literal is for TSV: strings of JSON are what JSON says",
        ));
    }
    let notation = (!args.literal).then(|| args.data.notation());
    let reader = Reader::new(input, format, notation);
    let session = args.data.open_or_create(args.create)?;
    let start = Instant::now();
    let mut load = Load {
        bar: &bar,
        writer: Writer::new(&session, args.acknowledge),
    };
    let result = load.run(reader, &args.file);
    bar.finish_and_clear();
    let writer = load.writer;
    let (records, bytes, ingested) = (writer.records, writer.bytes, writer.ingested);
    drop(writer);
    session.close()?;
    result?;
    let seconds = start.elapsed().as_secs_f64();
    let how = match ingested {
        0 => String::new(),
        all if all == records => "; they were sorted, and were ingested".to_owned(),
        part => format!("; the first {part} were sorted, and were ingested"),
    };
    output::say(
        args.json,
        &json!({"records": records, "bytes": bytes, "ingested": ingested, "seconds": seconds}),
        format!(
            "{records} records, {} in {seconds:.1} s{how}",
            size::show(bytes)
        ),
    )
}

fn open_input(path: &Path) -> Result<(Box<dyn BufRead>, ProgressBar), Failure> {
    if path == Path::new("-") {
        return Ok((
            Box::new(io::stdin().lock()),
            progress::unknown_bytes("loading"),
        ));
    }
    let file = File::open(path).map_err(|e| Failure::io("open", path, e))?;
    let meta = file.metadata().map_err(|e| Failure::io("read", path, e))?;
    // A pipe has no length, so the bar cannot show a part of it.
    let bar = if meta.is_file() {
        progress::bytes(meta.len(), "loading")
    } else {
        progress::unknown_bytes("loading")
    };
    Ok((Box::new(BufReader::new(file)), bar))
}

fn guess_format(path: &Path) -> Format {
    match path.extension().and_then(|e| e.to_str()) {
        Some("jsonl" | "ndjson") => Format::Jsonl,
        _ => Format::Tsv,
    }
}

/// Why no store takes this record, if that is so.
fn too_large(key: &[u8], value: &[u8]) -> Option<String> {
    let parts = [("key", key, MAX_KEY_LEN), ("value", value, MAX_VALUE_LEN)];
    parts.into_iter().find_map(|(what, bytes, limit)| {
        let len = bytes.len();
        (len > limit).then(|| format!("the {what} has {len} bytes, the limit is {limit}"))
    })
}

struct Load<'a> {
    bar: &'a ProgressBar,
    writer: Writer<'a>,
}

impl Load<'_> {
    fn run(&mut self, mut input: Reader<impl BufRead>, path: &Path) -> Result<(), Failure> {
        loop {
            match input.next_line() {
                Ok(Line::Record { record, bytes }) => {
                    let (key, value) = record;
                    if let Some(why) = too_large(&key, &value) {
                        return self.stop_at(path, input.line_number(), &why);
                    }
                    self.bar.inc(bytes);
                    self.writer.put(key, value)?;
                }
                Ok(Line::Blank) => {}
                Ok(Line::End) => return self.writer.finish(),
                Err(Bad::Input(error)) => {
                    self.writer.finish()?;
                    return Err(Failure::Io {
                        what: format!(
                            "cannot read {} on ({} records were loaded)",
                            path.display(),
                            self.writer.records
                        ),
                        source: error,
                    });
                }
                Err(Bad::Line(why)) => {
                    return self.stop_at(path, input.line_number(), &why);
                }
            }
        }
    }

    /// Ends at a line that cannot be loaded. What came before it is in the store.
    fn stop_at(&mut self, path: &Path, line: u64, why: &str) -> Result<(), Failure> {
        self.writer.finish()?;
        Err(Failure::usage(format!(
            "{}:{line}: {why} ({} records before it were loaded)",
            path.display(),
            self.writer.records
        )))
    }
}
