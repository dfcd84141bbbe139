//! The cells of a suite: each is one command line of `thermocline bench`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytesize::ByteSize;

use super::definition::{Definition, Group, SlowLimits, States};
use super::flags::Flags;
use crate::args::{DEFAULT_DATA_SIZE, DEFAULT_DURATION};
use crate::distribution::Stages;
use crate::engine;
use crate::warm_up::WarmUpLength;
use crate::workload::Workload;

/// Stands for the directory with the files that come with the binary.
const DATA: &str = "{data}";

/// Longest name of a distribution in the name of a cell.
const LONGEST: usize = 24;

/// The directories that command lines name.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) fast: PathBuf,
    pub(crate) slow: PathBuf,
    pub(crate) data: PathBuf,
}

/// What is measured in one go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// Names its results.
    pub(crate) id: String,
    /// Figures and tables that it is for.
    pub(crate) figures: Vec<String>,
    pub(crate) engine: String,
    /// As in the results.
    pub(crate) workload: String,
    /// As in the results.
    pub(crate) distribution: String,
    /// Everything else of its command line.
    pub(crate) flags: Flags,
    /// What comes after `thermocline bench`.
    pub(crate) words: Vec<String>,
    /// The loaded state it runs on, by name of its directories; empty if there is one at a time.
    pub(crate) state: String,
    pub(crate) slow: Option<SlowLimits>,
    pub(crate) repeats: u32,
    /// Warm-up and measured time; what a number of operations takes is not known.
    pub(crate) seconds: f64,
    /// Size of the loaded state; of a trace's it is not known.
    pub(crate) load_bytes: u64,
}

/// Flags that decide what is loaded.
const CONTENT: [&str; 10] = [
    "data-size",
    "record-size",
    "fast-capacity",
    "memory",
    "memtable",
    "block-size-fast",
    "block-size-slow",
    "compression",
    "trace",
    "trace-copies",
];

/// Flags that only a measured run takes.
const RUN_ONLY: [&str; 3] = ["warm-up", "warm-up-unthrottled", "after-warm-up"];

impl Cell {
    /// Describes the loaded state: cells of one answer can run on the same. Whether a state on disk
    /// will do is decided by the benchmark itself.
    pub(crate) fn content(&self) -> String {
        let files = engine::find(&self.engine).map_or(self.engine.as_str(), |kind| kind.files());
        let mut content = vec![self.state.clone(), files.to_owned()];
        for name in CONTENT {
            content.push(self.flags.get(name).unwrap_or_default().to_owned());
        }
        // Clusters have records of their own size.
        if self.distribution.contains("cluster") {
            content.push(self.distribution.clone());
        }
        content.join("\n")
    }

    /// The words of the command line that loads its state.
    pub(crate) fn load_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut all = self.words.iter();
        while let Some(word) = all.next() {
            let name = word.strip_prefix("--").unwrap_or_default();
            if !RUN_ONLY.contains(&name) {
                words.push(word.clone());
            } else if self.flags.get(name).is_some() {
                // Its value.
                all.next();
            }
        }
        words.extend(["--phase".to_owned(), "load".to_owned()]);
        words
    }

    /// The command line, for people to repeat.
    pub(crate) fn command(&self) -> String {
        let words = ["thermocline", "bench"].into_iter();
        let words = words.chain(self.words.iter().map(String::as_str));
        // Only a zero byte cannot be quoted, and no command line can have one.
        shlex::try_join(words).unwrap_or_default()
    }
}

/// Every cell of `definition`, in its order. A cell of which an earlier group has the same command
/// line is that cell: it belongs to the figures of both.
///
/// # Errors
/// A workload or distribution that does not exist, two cells of one name.
pub(crate) fn cells(definition: &Definition, places: &Places) -> Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut by_words: HashMap<Vec<String>, usize> = HashMap::new();
    for group in &definition.groups {
        let group = group.get_ref();
        for cell in of_group(definition, group, places)
            .with_context(|| format!("suite {}, group {}", definition.name, group.name))?
        {
            if let Some(earlier) = by_words.get(&cell.words).and_then(|at| cells.get_mut(*at)) {
                earlier.figures.extend(cell.figures);
                earlier.repeats = earlier.repeats.max(cell.repeats);
                continue;
            }
            ensure!(
                cells.iter().all(|other| other.id != cell.id),
                "suite {}: two cells would be called {}; give one of them a group of its own",
                definition.name,
                cell.id
            );
            by_words.insert(cell.words.clone(), cells.len());
            cells.push(cell);
        }
    }
    Ok(cells)
}

/// The axes of one cell.
struct Axes<'a> {
    engine: &'a str,
    workload: Option<&'a str>,
    distribution: Option<&'a str>,
    size: Option<&'a str>,
}

fn of_group(definition: &Definition, group: &Group, places: &Places) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    // Engines innermost: what is compared is measured one right after the other.
    for size in options(&group.sizes) {
        for distribution in options(&group.distributions) {
            for workload in options(&group.workloads) {
                for engine in &group.engines {
                    let axes = Axes {
                        engine,
                        workload,
                        distribution,
                        size,
                    };
                    cells.push(cell(definition, group, places, &axes)?);
                }
            }
        }
    }
    Ok(cells)
}

/// The values, or once none where there are none.
fn options(values: &[String]) -> Vec<Option<&str>> {
    if values.is_empty() {
        return vec![None];
    }
    values.iter().map(|value| Some(value.as_str())).collect()
}

fn cell(definition: &Definition, group: &Group, places: &Places, axes: &Axes<'_>) -> Result<Cell> {
    let mut flags = definition.settings.clone();
    for more in [
        definition.engine.get(axes.engine),
        Some(&group.settings),
        group.engine.get(axes.engine),
    ] {
        flags = more.map_or(flags.clone(), |more| flags.with(more));
    }
    if let Some(size) = axes.size {
        flags.set("data-size", size);
    }
    let data = |value: &str| value.replace(DATA, &places.data.to_string_lossy());
    flags.map_values(data);
    let state = match definition.states {
        States::OneAtATime => String::new(),
        States::Kept => {
            let state = group.state.as_ref().unwrap_or(&group.name);
            let size = axes.size.map_or(String::new(), |size| format!("-{size}"));
            format!("{state}{size}-{}", axes.engine)
        }
    };
    let distribution = axes.distribution.map(data);
    let slow = group.slow.or(definition.slow);
    let source = source(axes.workload, distribution.as_deref(), &flags)?;
    let mut words = vec!["--engine".to_owned(), axes.engine.to_owned()];
    let axis = [
        ("workload", axes.workload),
        ("distribution", distribution.as_deref()),
    ];
    for (name, value) in axis {
        words.extend(
            value
                .map(|value| [format!("--{name}"), value.to_owned()])
                .into_iter()
                .flatten(),
        );
    }
    words.extend(flags.words());
    for (name, dir) in [("--fast", &places.fast), ("--slow", &places.slow)] {
        words.extend([name.to_owned(), directory(dir, &state)?]);
    }
    words.push("--keep".to_owned());
    Ok(Cell {
        id: id(group, axes),
        figures: group.figures.clone(),
        engine: axes.engine.to_owned(),
        seconds: seconds(&flags, source.timed)?,
        load_bytes: load_bytes(&flags)?,
        workload: source.workload,
        distribution: source.distribution,
        flags,
        words,
        state,
        slow,
        repeats: group.repeats.unwrap_or(definition.repeats),
    })
}

fn directory(parent: &Path, state: &str) -> Result<String> {
    let dir = if state.is_empty() {
        parent.to_owned()
    } else {
        parent.join(state)
    };
    dir.into_os_string()
        .into_string()
        .map_err(|dir| anyhow!("{}: a directory's name must be UTF-8", dir.display()))
}

/// Where operations come from, as results call it.
struct Source {
    workload: String,
    distribution: String,
    /// How long its stages are.
    timed: Option<Duration>,
}

fn source(workload: Option<&str>, distribution: Option<&str>, flags: &Flags) -> Result<Source> {
    let Some(workload) = workload else {
        let file = Path::new(flags.get("trace").unwrap_or_default());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let copies = flags.get("trace-copies").unwrap_or("1");
        return Ok(Source {
            workload: "trace".to_owned(),
            distribution: format!("{name} x{copies}"),
            timed: None,
        });
    };
    let workload: Workload = workload.parse().map_err(|error: String| anyhow!(error))?;
    let stages: Stages = match distribution {
        Some(text) => text.parse().map_err(|error: String| anyhow!(error))?,
        None => workload.default_distribution(),
    };
    Ok(Source {
        workload: workload.to_string(),
        distribution: stages.to_string(),
        timed: stages.duration(),
    })
}

/// Warm-up and measured time.
fn seconds(flags: &Flags, timed: Option<Duration>) -> Result<f64> {
    let measured = match flags.get("duration") {
        Some(text) => humantime::parse_duration(text).context("duration")?,
        None if flags.get("ops").is_some() || flags.get("trace").is_some() => Duration::ZERO,
        None => timed.unwrap_or(DEFAULT_DURATION),
    };
    let warm_up = match flags.get("warm-up").map(str::parse) {
        Some(Ok(WarmUpLength::Time(time))) => time,
        Some(Err(error)) => bail!("warm-up: {error}"),
        Some(Ok(WarmUpLength::Ops(_))) | None => Duration::ZERO,
    };
    Ok((measured + warm_up).as_secs_f64())
}

fn load_bytes(flags: &Flags) -> Result<u64> {
    if flags.get("trace").is_some() {
        return Ok(0);
    }
    let Some(text) = flags.get("data-size") else {
        return Ok(DEFAULT_DATA_SIZE);
    };
    let size: ByteSize = text
        .parse()
        .map_err(|error: String| anyhow!("data-size: {error}"))?;
    Ok(size.as_u64())
}

/// The group, and what tells a cell from the others of it.
fn id(group: &Group, axes: &Axes<'_>) -> String {
    let mut id = format!("{}-{}", group.name, axes.engine);
    let distribution = axes
        .distribution
        .filter(|text| text.len() <= LONGEST && !text.contains(DATA));
    for part in [axes.workload, distribution, axes.size]
        .into_iter()
        .flatten()
    {
        id.push('-');
        id.extend(part.chars().map(|char| {
            let plain = char.is_ascii_alphanumeric() || "-.+".contains(char);
            if plain { char } else { '-' }
        }));
    }
    id
}
