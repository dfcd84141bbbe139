//! Entry points for fuzzing: files and words that people give to `thermocline bench`.
//!
//! Each takes any bytes and must return. What makes no sense is refused with a reason. The fuzz
//! targets in `fuzz/` call them, and their corpora also run as tests on stable.

#[cfg(test)]
mod corpus;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::args;
use crate::distribution::Stages;
use crate::settings::Compression;
use crate::suite::fuzz::{fuzz_command_line, fuzz_suite};
use crate::trace::fuzz::fuzz_trace;
use crate::warm_up::WarmUpLength;
use crate::workload::Workload;

/// What a target calls.
pub type Entry = fn(&[u8]);

/// Every entry point with the name of its target.
pub const TARGETS: [(&str, Entry); 4] = [
    ("command_line", command_line),
    ("settings", settings),
    ("suite", suite),
    ("trace", trace),
];

/// The first byte chooses the format of a trace, the others are the file.
pub fn trace(bytes: &[u8]) {
    let _ = fuzz_trace(bytes);
}

/// A suite's file.
pub fn suite(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        let _ = fuzz_suite(text);
    }
}

/// The words of a command line, each on its own line.
pub fn command_line(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        let words: Vec<String> = text.lines().map(str::to_owned).collect();
        let _ = fuzz_command_line(&words);
    }
}

/// The first byte chooses the setting, the others are its text.
pub fn settings(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else {
        return;
    };
    let Some(text) = text(rest) else {
        return;
    };
    match which % 6 {
        0 => drop(args::size(text)),
        1 => drop(text.parse::<Compression>()),
        2 => drop(text.parse::<WarmUpLength>()),
        3 => drop(text.parse::<Workload>()),
        4 => drop(text.parse::<Stages>().map(used)),
        _ => {
            crate::distribution::fuzz_tables(text, &mut SmallRng::seed_from_u64(1));
        }
    }
}

/// Prints a distribution, and asks it for a stage at any time and for popular records.
fn used(stages: Stages) {
    let _ = stages.to_string();
    for stage in stages.stages() {
        let _ = stage.shape.popularity(1000);
    }
    for progress in [0.0, 0.5, 1.0, f64::NAN] {
        assert!(stages.at(progress) < stages.stages().len(), "no such stage");
    }
}

/// `bytes` as text, unless it could name a file: a file that is read to its end need not have any.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_path = |rest: &str| {
        let name = rest.split([',', '@', '"', '\'', '\n', ' ']).next();
        name.is_some_and(|name| name.contains(['/', '.', ':', '\\']))
    };
    let kinds = ["ranks:", "cluster:"].into_iter();
    let mut names = kinds.flat_map(|kind| text.split(kind).skip(1));
    (!names.any(is_path)).then_some(text)
}
