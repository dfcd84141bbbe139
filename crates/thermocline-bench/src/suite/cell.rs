//! A cell of a suite: one command line of `thermocline bench`, and what is known of it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use bytesize::ByteSize;

use super::definition::SlowLimits;
use super::flags::Flags;
use super::line;
use crate::args::{DEFAULT_DATA_SIZE, DEFAULT_DURATION};
use crate::distribution::Stages;
use crate::warm_up::WarmUpLength;
use crate::{engine, program};

/// The directories that command lines name.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) fast: PathBuf,
    pub(crate) slow: PathBuf,
    pub(crate) data: PathBuf,
    /// A command that sets limits of the slow disk. Operations and bytes a second are appended to
    /// it.
    pub(crate) limit_slow: Option<String>,
}

/// What one command line measures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// Names its results.
    pub(crate) id: String,
    /// Figures and tables that it is for.
    pub(crate) figures: Vec<String>,
    pub(crate) engine: String,
    /// Its workload, as in the results.
    pub(crate) workload: String,
    /// Its distribution, as in the results.
    pub(crate) distribution: String,
    /// The rest of its command line.
    pub(crate) flags: Flags,
    /// What comes after `thermocline bench`.
    pub(crate) words: Vec<String>,
    /// The loaded state that it runs on, by the name of its directories. Empty if there is one
    /// state at a time.
    pub(crate) state: String,
    pub(crate) slow: Option<SlowLimits>,
    /// Whether it warms up without those limits.
    pub(crate) warm_up_unlimited: bool,
    pub(crate) repeats: u32,
    /// Whether loading is what is measured, so that no loaded state is needed.
    pub(crate) load: bool,
    /// Whether it reads a file that comes with the binary.
    pub(crate) needs_data: bool,
    /// Warm-up and measured time. How long a number of operations takes is not known.
    pub(crate) seconds: f64,
    /// Size of the loaded state. For a trace it is not known.
    pub(crate) load_bytes: u64,
}

/// Flags that decide what is loaded.
const CONTENT: [&str; 12] = [
    "data-size",
    "record-size",
    "fast-capacity",
    "memory",
    "memtable",
    "block-size-fast",
    "block-size-slow",
    "compression",
    "slow-capacity",
    "rocksdb-fast-levels",
    "trace",
    "trace-copies",
];

/// Flags that loading does without, because loading is not what is measured.
const RUN_ONLY: [&str; 11] = [
    "rate",
    "cost-target",
    "latency-target",
    "expect-slow-iops",
    "expect-slow-bandwidth",
    "warm-up",
    "warm-up-unthrottled",
    "after-warm-up",
    "slow-iops",
    "slow-bandwidth",
    "slow-latency",
];

impl Cell {
    /// Describes the loaded state. Cells with the same description can run on the same state. The
    /// benchmark itself decides whether a state on disk can be used.
    pub(crate) fn content(&self) -> String {
        let files = engine::find(&self.engine).map_or(self.engine.as_str(), |kind| kind.files());
        let mut content = vec![self.state.clone(), files.to_owned()];
        for name in CONTENT {
            content.push(self.flags.get(name).unwrap_or_default().to_owned());
        }
        if self.flags.iter().any(|(name, _)| name == "ingest") {
            content.push("ingested".to_owned());
        }
        // Clusters have records of their own length.
        if self.distribution.contains("cluster") {
            content.push(self.distribution.clone());
        }
        content.join("\n")
    }

    /// The words of the command line that loads its state.
    pub(crate) fn load_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        // A value is kept or left out together with its flag.
        let mut is_wanted = true;
        for word in &self.words {
            if let Some(name) = word.strip_prefix("--") {
                is_wanted = !RUN_ONLY.contains(&name);
            }
            if is_wanted {
                words.push(word.clone());
            }
        }
        words.extend(["--phase".to_owned(), "load".to_owned()]);
        words
    }

    /// Whether this build has what it needs.
    pub(crate) fn is_built_in(&self) -> bool {
        self.check_built_in().is_ok()
    }

    /// Checks that this build has what it needs.
    ///
    /// # Errors
    /// What it lacks.
    pub(crate) fn check_built_in(&self) -> Result<()> {
        engine::find(&self.engine)?;
        line::check_techniques(&self.flags)
    }

    /// What it is, in a line.
    pub(crate) fn about(&self) -> String {
        let mut about = self.id.clone();
        if !self.figures.is_empty() {
            about += &format!(", for {}", self.figures.join(", "));
        }
        if self.repeats > 1 {
            about += &format!(", {} times", self.repeats);
        }
        if let Some(slow) = self.slow {
            let bandwidth = ByteSize(slow.bandwidth).display().si();
            about += &format!(
                ", slow disk of {} operations and {bandwidth} a second",
                slow.iops
            );
            if self.warm_up_unlimited {
                about += " after the warm-up";
            }
        }
        about
    }

    /// The command line, for people to repeat.
    pub(crate) fn command(&self) -> String {
        let words = ["thermocline", "bench"].into_iter();
        program::command_line(words.chain(self.words.iter().map(String::as_str)))
    }
}

/// What the flags of a cell say about it.
pub(super) struct About {
    pub(super) workload: String,
    pub(super) distribution: String,
    pub(super) seconds: f64,
    pub(super) load_bytes: u64,
}

impl About {
    /// What the axes in `axes` and the other flags say, as `thermocline bench` reads them.
    pub(super) fn new(axes: &[String], flags: &Flags) -> Result<Self> {
        let args = line::parse(&[axes, &flags.known().words()].concat())?;
        let (workload, distribution) = match &args.trace {
            // Its file need not exist yet.
            Some(file) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                ("trace".to_owned(), format!("{name} x{}", args.trace_copies))
            }
            None => {
                let source = args.source()?;
                (source.workload_name(), source.distribution_name())
            }
        };
        let is_open = args.ops.is_some() || args.trace.is_some();
        let timed = args.distribution.as_ref().and_then(Stages::duration);
        let durations = [args.duration.or(timed), args.targets.duration()];
        let measured = match durations.into_iter().flatten().min() {
            Some(duration) => duration,
            None if is_open => Duration::ZERO,
            None => DEFAULT_DURATION,
        };
        let warm_up = match args.warm_up.warm_up {
            Some(WarmUpLength::Time(time)) => time,
            Some(WarmUpLength::Ops(_)) | None => Duration::ZERO,
        };
        Ok(Self {
            workload,
            distribution,
            seconds: (measured + warm_up).as_secs_f64(),
            load_bytes: match args.trace {
                Some(_) => 0,
                None => args.data_size.unwrap_or(DEFAULT_DATA_SIZE),
            },
        })
    }
}
