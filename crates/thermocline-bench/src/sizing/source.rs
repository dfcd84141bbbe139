//! What is known of data and its reads: from a trace, or from a description.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, ensure};
use bytesize::ByteSize;

use super::args::SizingArgs;
use super::coverage::Coverage;
use crate::keys::KEY_LEN;
use crate::record_sizes::ValueLens;
use crate::trace::Trace;

/// Values whose sizes a trace does not tell.
const USUAL_VALUE: u64 = 1000;

/// Sizes of files are counted with 64 bits, and a bill has several for each byte of data.
const MOST_DATA: f64 = 1e18;

/// Tables in the data, and how long each is at least and at most.
const TABLES: f64 = 1000.0;
const TABLE_BYTES: (f64, f64) = (65_536.0, 67_108_864.0);

/// What an access record takes beside its key, in bytes.
const ACCESS_RECORD: f64 = 27.0;

/// Access records for each hot record: others are tracked, too, to tell which become hot.
const TRACKED: f64 = 2.0;

/// Data, and which parts of it are read how often.
#[derive(Debug)]
pub(super) struct Source {
    /// What it is, in words.
    pub(super) name: String,
    /// By record.
    pub(super) records: Coverage,
    /// By table. None if nobody knows which keys are neighbours, or if they are scattered.
    pub(super) tables: Option<Coverage>,
    /// Why not, if so.
    pub(super) no_tables: &'static str,
    /// How long tables were taken to be.
    pub(super) table_bytes: f64,
    /// Bytes of access records for each byte of hot records.
    pub(super) tracked: f64,
}

impl Source {
    /// # Errors
    /// The trace cannot be read or has no reads; popularity moves.
    pub(super) fn of(args: &SizingArgs) -> Result<Self> {
        let source = match (&args.trace, args.keys) {
            (Some(_), _) => of_trace(args)?,
            (None, Some(keys)) => of_description(args, keys)?,
            (None, None) => return Err(anyhow!("give --curve, --trace or --keys")),
        };
        let source = match args.data_size {
            Some(data) => source.scaled_to(data as f64),
            None => source,
        };
        let data = source.records.data();
        ensure!(
            data < MOST_DATA,
            "{data:.1e} bytes of keys and values are more than the {MOST_DATA:.1e} a store can have"
        );
        Ok(source)
    }

    fn scaled_to(self, data: f64) -> Self {
        Self {
            records: self.records.scaled_to(data),
            tables: self.tables.map(|tables| tables.scaled_to(data)),
            ..self
        }
    }
}

/// Bytes of access records for each byte of records of a mean size.
fn tracked(key: f64, record: f64) -> f64 {
    TRACKED * (key + ACCESS_RECORD) / record
}

fn of_description(args: &SizingArgs, keys: u64) -> Result<Source> {
    let described = args.distribution.as_ref().zip(args.value_size);
    let (shape, value) = described.context("--keys: needs --value-size and --distribution")?;
    let record = (args.key_size as f64) + value as f64;
    let alike = shape
        .popularity(keys)
        .map_err(|why| anyhow!("--distribution: {why}"))?;
    let records = Coverage::new(alike.iter().map(|part| (part.records * record, part.share)));
    Ok(Source {
        name: format!("{shape}, {keys} records of {record:.0} B"),
        records: records.context("--keys: there are no records")?,
        tables: None,
        no_tables: "A distribution does not say which keys are neighbours. Where hot keys are scattered, \
                    nearly every table has some, and placement by table does little.",
        table_bytes: 0.0,
        tracked: tracked(args.key_size as f64, record),
    })
}

fn of_trace(args: &SizingArgs) -> Result<Source> {
    let named = args.trace.as_ref().zip(args.format);
    let (path, format) = named.context("--trace: needs --format")?;
    let trace = Trace::read(path, format)?;
    let lens = trace.value_lens(args.value_size.unwrap_or(USUAL_VALUE) as usize);
    let reads = trace.reads();
    let records = by_reads(&reads, &lens);
    let records = records.with_context(|| {
        format!(
            "trace {}: there are no reads in it, which are what a fast disk is for",
            path.display()
        )
    })?;
    let data = records.data();
    let mean = data / trace.distinct() as f64;
    let wanted = args.data_size.map_or(data, |bytes| bytes as f64);
    let table_bytes = (wanted / TABLES).clamp(TABLE_BYTES.0, TABLE_BYTES.1);
    // So many neighbours of the trace stand for a table of what is wanted.
    let neighbours = table_bytes * data / wanted;
    let has_order = format.keeps_key_order();
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    Ok(Source {
        name: format!(
            "{name}, {} accesses to {} records of {} on average",
            trace.accesses(),
            trace.distinct(),
            ByteSize::b(mean as u64).display().si()
        ),
        tables: has_order
            .then(|| by_table(trace.keys(), &reads, &lens, neighbours))
            .flatten(),
        records,
        no_tables: "Of text keys the trace reader keeps hashes, so it is not known which are neighbours.",
        table_bytes,
        tracked: tracked(KEY_LEN as f64, mean),
    })
}

/// Key and value of record `number`, in bytes.
fn record_bytes(lens: &ValueLens, number: usize) -> f64 {
    (KEY_LEN + lens.of(number as u64)) as f64
}

/// The records by how often they are read, the hottest first. The store does not go by size.
fn by_reads(reads: &[u64], lens: &ValueLens) -> Option<Coverage> {
    let mut alike: BTreeMap<Reverse<u64>, (f64, f64)> = BTreeMap::new();
    for (number, reads) in reads.iter().enumerate() {
        let (bytes, sum) = alike.entry(Reverse(*reads)).or_default();
        *bytes += record_bytes(lens, number);
        *sum += *reads as f64;
    }
    Coverage::new(alike.into_values())
}

/// Tables of neighbouring keys, those with most reads for their bytes first.
fn by_table(keys: &[u64], reads: &[u64], lens: &ValueLens, most: f64) -> Option<Coverage> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|number| keys.get(*number));
    let mut tables = vec![(0.0, 0.0)];
    for number in order {
        let bytes = record_bytes(lens, number);
        if let Some(full) = tables.last().filter(|table| table.0 > 0.0)
            && full.0 + bytes > most
        {
            tables.push((0.0, 0.0));
        }
        if let Some(table) = tables.last_mut() {
            table.0 += bytes;
            table.1 += reads.get(number).copied().unwrap_or(0) as f64;
        }
    }
    Coverage::of_densest(tables)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Values of 76 bytes make records of 100.
    fn lens() -> ValueLens {
        ValueLens::all(76)
    }

    #[test]
    fn records_come_by_how_often_they_are_read_whatever_their_size() {
        let coverage = by_reads(&[0, 5, 2, 2, 1], &lens()).unwrap();
        assert_eq!(coverage.data(), 500.0);
        for (bytes, share) in [(100.0, 0.5), (200.0, 0.7), (300.0, 0.9), (400.0, 1.0)] {
            assert!((coverage.share(bytes) - share).abs() < 1e-12);
        }
        // The large one is read more often.
        let lens = ValueLens::by_key(0, Arc::new([976, 76]));
        let coverage = by_reads(&[3, 2], &lens).unwrap();
        assert_eq!(coverage.share(1000.0), 0.6);
        assert_eq!(by_reads(&[0, 0], &lens), None);
    }

    #[test]
    fn tables_hold_neighbours_and_come_by_their_reads() {
        // In key order the reads are 1 0, 4 4, 0 1. Two records make a table.
        let keys = [30, 10, 20, 40, 60, 50];
        let reads = [4, 1, 0, 4, 1, 0];
        let coverage = by_table(&keys, &reads, &lens(), 250.0).unwrap();
        assert_eq!(coverage.data(), 600.0);
        for (bytes, share) in [(200.0, 0.8), (400.0, 0.9), (600.0, 1.0)] {
            assert!(
                (coverage.share(bytes) - share).abs() < 1e-12,
                "{coverage:?}"
            );
        }
        // A record that is longer than a table has one of its own.
        let long = by_table(&keys, &reads, &lens(), 10.0).unwrap();
        assert!((long.share(200.0) - 0.8).abs() < 1e-12, "{long:?}");
    }
}
