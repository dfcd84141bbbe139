//! An entry point for fuzzing: it must return, whatever a trace's file holds.

use clap::ValueEnum;

use super::stats;
use super::{Format, Trace};

/// Longest input. What a packed input holds has no limit.
const LONGEST: usize = 4 << 10;

/// The first byte chooses the format, the others are the file. Returns how many accesses are in it.
///
/// # Errors
/// Why it is no trace.
pub(crate) fn fuzz_trace(bytes: &[u8]) -> anyhow::Result<u64> {
    let Some((format, file)) = bytes.split_first().filter(|_| bytes.len() <= LONGEST) else {
        return Ok(0);
    };
    let formats = Format::value_variants();
    let format = formats[usize::from(*format) % formats.len()];
    let trace = Trace::decode(file.to_vec(), format)?;
    let (space, lens) = (trace.key_space(), trace.value_lens(100));
    for index in 0..trace.accesses().min(200) {
        let (_, record) = trace.operation(index, 3);
        assert!(record < 3 * trace.distinct(), "an access to no record");
        space.key(record);
        lens.of(record);
        trace.deletes(record);
    }
    trace.fingerprint();
    // Each repetition counts in the statistics.
    if trace.accesses() < 100_000 {
        let _ = stats::of(&trace, "any".to_owned(), 0.1, 1 << 10).to_string();
    }
    Ok(trace.accesses())
}
