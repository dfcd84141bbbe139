//! What a trace is made of, and whether promotion can help under it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::sinking::Sinking;
use super::{Action, Format, Trace, unpack};
use crate::bad_arguments::BadArguments;
use crate::keys::KEY_LEN;
use crate::record_sizes::{LEAST_RECORD, MOST_RECORD};

/// Flags of `thermocline trace stats`.
#[derive(Debug, Clone, clap::Args)]
pub struct TraceStatsArgs {
    /// The trace; .xz and .zst files are unpacked
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Format of the trace
    #[arg(long, value_enum)]
    pub format: Format,

    /// Part of the data that fits on the fast disk. Half of it is the amount of data after which a
    /// record counts as sunk, and no longer as hot: 5 percent for a tenth, as in the HotRAP paper
    #[arg(long, value_parser = percent, default_value = "10%", value_name = "PERCENT")]
    pub fast_share: f64,

    /// Key and value of a record whose sizes the trace does not tell; keys have 24 bytes
    #[arg(long, value_parser = crate::args::size, default_value = "1KiB", value_name = "SIZE")]
    pub record_size: u64,
}

/// A percentage as a part of 1.
fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').map(str::parse::<f64>) {
        Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err(format!("`{text}`: give over 0 to 100 percent, like 10%")),
    }
}

/// What a trace is made of. Shares are parts of 1. They are `null` if there is nothing of which
/// they could be a share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceStats {
    /// The file's name.
    pub file: String,
    /// Accesses in it.
    pub accesses: u64,
    /// Distinct keys in it.
    pub distinct_keys: u64,
    /// Accesses by what the trace calls them.
    pub operations: BTreeMap<&'static str, u64>,
    /// Accesses that a replay makes a read.
    pub reads: u64,
    /// Accesses that a replay makes a write.
    pub writes: u64,
    /// Accesses that a replay makes a deletion.
    pub deletes: u64,
    /// Mean length of a distinct key in the trace, if it tells.
    pub mean_key_bytes: Option<f64>,
    /// How many distinct keys have a value whose size the trace tells.
    pub keys_with_size: u64,
    /// Mean of those sizes.
    pub mean_value_bytes: Option<f64>,
    /// Greatest of those sizes.
    pub max_value_bytes: Option<u32>,
    /// The assumed size of one record of the other keys, key and value.
    pub assumed_record_bytes: u64,
    /// All records as a replay loads them: keys of 24 bytes, and their values.
    pub data_bytes: u64,
    /// Share of keys with one access.
    pub one_hit_share: f64,
    /// Share of accesses to the most accessed hundredth of the keys, which is at least one key.
    pub top_1_percent_share: f64,
    /// Share of accesses to the most accessed twentieth.
    pub top_5_percent_share: f64,
    /// Share of accesses to the most accessed tenth.
    pub top_10_percent_share: f64,
    /// The part of the data that is assumed to fit on the fast disk.
    pub fast_share: f64,
    /// Half of that, in bytes. If more than this was written since a record's last write, it counts
    /// as sunk. If less than this was read since its last read, it counts as hot.
    pub threshold_bytes: u64,
    /// Share of reads that are of sunk records.
    pub sunk_read_share: Option<f64>,
    /// Share of reads that are of hot records.
    pub hot_read_share: Option<f64>,
    /// Share of reads that are of records both sunk and hot.
    pub sunk_and_hot_read_share: Option<f64>,
}

/// Reads a trace and says what it is made of.
///
/// # Errors
/// [`BadArguments`]: the file cannot be read or is not of that format, or flags are out of range.
pub fn trace_stats(args: &TraceStatsArgs) -> Result<TraceStats> {
    Ok(of_file(args).map_err(BadArguments)?)
}

fn of_file(args: &TraceStatsArgs) -> Result<TraceStats> {
    ensure!(
        (LEAST_RECORD..=MOST_RECORD).contains(&args.record_size),
        "--record-size {}: must be {LEAST_RECORD} bytes to 16 MiB",
        args.record_size
    );
    let trace = Trace::read(&args.file, args.format)?;
    let file = args.file.file_name().unwrap_or(args.file.as_os_str());
    let file = file.to_string_lossy().into_owned();
    Ok(of(&trace, file, args.fast_share, args.record_size))
}

pub(super) fn of(trace: &Trace, file: String, fast_share: f64, record_size: u64) -> TraceStats {
    let lens = trace.value_lens(record_size as usize - KEY_LEN);
    let record_bytes: Vec<u64> = (0..trace.distinct())
        .map(|record| (KEY_LEN + lens.of(record)) as u64)
        .collect();
    let data_bytes: u64 = record_bytes.iter().sum();
    let threshold_bytes = (data_bytes as f64 * fast_share / 2.0) as u64;
    let mut counts = vec![0u64; record_bytes.len()];
    let mut sinking = Sinking::new(record_bytes.len(), threshold_bytes);
    let (mut reads, mut writes, mut deletes) = (0, 0, 0);
    for access in &trace.accesses {
        let (action, number) = unpack(*access);
        let bytes = record_bytes.get(number).copied().unwrap_or_default();
        if let Some(count) = counts.get_mut(number) {
            *count += 1;
        }
        match action {
            Action::Read => {
                reads += 1;
                sinking.read(number, bytes);
            }
            Action::Write => {
                writes += 1;
                sinking.write(number, bytes);
            }
            Action::Delete => {
                deletes += 1;
                sinking.write(number, KEY_LEN as u64);
            }
        }
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top = |share: f64| {
        let keys = (counts.len() as f64 * share).round().max(1.0) as usize;
        counts.iter().take(keys).sum::<u64>() as f64 / trace.accesses() as f64
    };
    let once = counts.iter().filter(|count| **count == 1).count();
    let sizes = || trace.value_lens.iter().copied().filter(|len| *len > 0);
    let sized = sizes().count();
    TraceStats {
        file,
        accesses: trace.accesses(),
        distinct_keys: trace.distinct(),
        operations: trace.operations.clone(),
        reads,
        writes,
        deletes,
        mean_key_bytes: trace
            .key_bytes
            .map(|bytes| bytes as f64 / trace.distinct() as f64),
        keys_with_size: sized as u64,
        mean_value_bytes: (sized > 0).then(|| sizes().map(f64::from).sum::<f64>() / sized as f64),
        max_value_bytes: sizes().max(),
        assumed_record_bytes: record_size,
        data_bytes,
        one_hit_share: once as f64 / counts.len() as f64,
        top_1_percent_share: top(0.01),
        top_5_percent_share: top(0.05),
        top_10_percent_share: top(0.1),
        fast_share,
        threshold_bytes,
        sunk_read_share: sinking.found.sunk(),
        hot_read_share: sinking.found.hot(),
        sunk_and_hot_read_share: sinking.found.both(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::access::Access;

    /// Ten keys of 100 bytes, key included. `r3` reads the fourth, `w` writes, `d` deletes.
    fn stats(accesses: &str, fast_share: f64) -> TraceStats {
        let mut all: Vec<Result<Access>> = Vec::new();
        for access in accesses.split(' ') {
            let (action, key) = access.split_at(1);
            all.push(Ok(Access {
                action: match action {
                    "r" => Action::Read,
                    "w" => Action::Write,
                    _ => Action::Delete,
                },
                operation: if action == "r" { "get" } else { "put" },
                key_len: Some(30),
                value_len: Some(76),
                ..Access::read(key.parse().unwrap())
            }));
        }
        let trace = Trace::new(Box::new(all.into_iter())).unwrap();
        of(&trace, "hand made".to_owned(), fast_share, 1024)
    }

    #[test]
    fn what_a_trace_is_made_of_is_counted() {
        let stats = stats("r0 r0 r0 w1 r1 d2 r3 r4 r5 r6 r7 r8 r9 r9", 0.1);
        assert_eq!((stats.accesses, stats.distinct_keys), (14, 10));
        assert_eq!((stats.reads, stats.writes, stats.deletes), (12, 1, 1));
        assert_eq!(stats.operations, BTreeMap::from([("get", 12), ("put", 2)]));
        assert_eq!((stats.data_bytes, stats.threshold_bytes), (1000, 50));
        assert_eq!(stats.one_hit_share, 0.7);
        assert_eq!(stats.top_1_percent_share, 3.0 / 14.0, "one key at least");
        assert_eq!(stats.top_10_percent_share, 3.0 / 14.0);
        assert_eq!(
            (stats.mean_key_bytes, stats.max_value_bytes),
            (Some(30.0), Some(76))
        );
        assert_eq!(
            (stats.mean_value_bytes, stats.keys_with_size),
            (Some(76.0), 10)
        );
    }

    #[test]
    fn sunk_and_hot_reads_are_the_papers() {
        // The threshold is 200 of 1000 bytes, two records.
        let head = "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9";
        let read = |tail: &str| {
            let stats = stats(&format!("{head} {tail}"), 0.4);
            assert_eq!(stats.threshold_bytes, 200);
            [
                stats.sunk_read_share.unwrap(),
                stats.hot_read_share.unwrap(),
                stats.sunk_and_hot_read_share.unwrap(),
            ]
        };
        // w8 and w9 come after w7. 200 bytes are not more than the threshold.
        assert_eq!(read("r7"), [0.0, 0.0, 0.0]);
        // There are three records after w6.
        assert_eq!(read("r6"), [1.0, 0.0, 0.0]);
        // If it is read again at once, the second read is of a hot record as well.
        assert_eq!(read("r6 r6"), [1.0, 0.5, 0.5]);
        // With one other read in between, 100 bytes are less than the threshold. With two, they are
        // not.
        assert_eq!(read("r9 r8 r9 r9"), [0.0, 0.5, 0.0]);
        assert_eq!(read("r9 r8 r7 r9"), [0.0, 0.0, 0.0]);
        // Once written again, it is no longer sunk. A deletion only writes its key.
        assert_eq!(read("r6 w6 d5 r6"), [0.5, 0.5, 0.0]);
    }

    #[test]
    fn a_record_that_was_only_loaded_is_sunk() {
        let stats = stats("r0 r0 r1", 0.1);
        assert_eq!(stats.sunk_read_share, Some(1.0));
        assert_eq!(stats.sunk_and_hot_read_share, Some(1.0 / 3.0));
        let writes = super::tests::stats("w0 w1", 0.1);
        assert_eq!(writes.sunk_read_share, None);
    }

    #[test]
    fn text_and_json_have_the_shares() {
        let stats = stats("r0 r0 w1 r1", 0.1);
        let text = stats.to_string();
        for words in ["4 accesses to 2 keys", "get 3", "sunk", "66.7 %"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let json = serde_json::to_value(&stats).unwrap();
        assert_eq!(json["sunk_read_share"], 2.0 / 3.0);
        assert_eq!(json["operations"]["put"], 1);
    }

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!(percent("10%"), Ok(0.1));
        for bad in ["10", "0%", "101%", "x%", "nan%"] {
            assert!(percent(bad).unwrap_err().contains("like 10%"), "{bad}");
        }
    }
}
