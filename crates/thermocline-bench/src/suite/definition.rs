//! What a suite is, as its TOML file declares it.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, ensure};
use bytesize::ByteSize;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;

use super::flags::Flags;
use crate::results::MOST_REPEATS;

/// How long loaded states are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum States {
    /// Each state has directories of its own and is kept to the end. Repeats are interleaved over
    /// all cells.
    Kept,
    /// One state is on the disks at a time, with all of its cells and repeats. The next one
    /// replaces it.
    OneAtATime,
}

/// Where the stores of a suite lie if the command line does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Directories {
    /// The command line has to say.
    Required,
    /// In the directory of the results.
    Optional,
}

/// What the remaining time is guessed from.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Guess {
    /// Bytes that are loaded in a second, until loads of this suite have shown the true rate.
    #[serde(deserialize_with = "bytes")]
    pub(crate) load_bytes_per_second: u64,
    /// What a run takes in addition to its warm-up and its measured time.
    pub(crate) seconds_per_run: f64,
}

/// The limits that the slow disk has while the cells of a group are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlowLimits {
    /// Operations a second.
    pub(crate) iops: u64,
    /// Bytes a second.
    #[serde(deserialize_with = "bytes")]
    pub(crate) bandwidth: u64,
}

impl SlowLimits {
    /// No limits, in the form that scripts/slow-disk expects.
    pub(crate) const NONE: SlowLimits = SlowLimits {
        iops: 0,
        bandwidth: 0,
    };
}

/// Cells that belong together: each engine under each workload, distribution and size.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Group {
    pub(crate) name: String,
    /// Figures and tables that it is for.
    #[serde(default)]
    pub(crate) figures: Vec<String>,
    pub(crate) engines: Vec<String>,
    /// Empty for what has its own workload: a trace, a cluster.
    #[serde(default)]
    pub(crate) workloads: Vec<String>,
    /// Empty for the distribution that each workload has by itself.
    #[serde(default)]
    pub(crate) distributions: Vec<String>,
    /// Values of `data-size`. Empty for the one of the settings.
    #[serde(default)]
    pub(crate) sizes: Vec<String>,
    /// Whether cells that this build cannot measure are left out. Otherwise they are refused.
    #[serde(default)]
    pub(crate) optional: bool,
    /// Whether loading is what is measured.
    #[serde(default)]
    pub(crate) load: bool,
    pub(crate) repeats: Option<u32>,
    pub(crate) slow: Option<SlowLimits>,
    /// Whether the slow disk gets its limits only after the warm-up, which would take too long
    /// under them.
    #[serde(default)]
    pub(crate) warm_up_unlimited: bool,
    /// Groups with the same name here share loaded states. By default none does.
    pub(crate) state: Option<String>,
    #[serde(default)]
    pub(crate) settings: Flags,
    /// Settings of single engines.
    #[serde(default)]
    pub(crate) engine: BTreeMap<String, Flags>,
}

/// A suite.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) states: States,
    pub(crate) directories: Directories,
    pub(crate) repeats: u32,
    pub(crate) guess: Guess,
    #[serde(default)]
    pub(crate) slow: Option<SlowLimits>,
    #[serde(default)]
    pub(crate) settings: Flags,
    /// Settings of single engines.
    #[serde(default)]
    pub(crate) engine: BTreeMap<String, Flags>,
    #[serde(rename = "group")]
    pub(crate) groups: Vec<Spanned<Group>>,
}

impl Definition {
    /// Reads `text`. Messages call it `file`.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self> {
        let definition: Definition =
            toml::from_str(text).map_err(|error| anyhow!("{file}: {error}"))?;
        ensure!(
            is_name(&definition.name),
            "{file}: name: letters, digits and `-` are wanted"
        );
        ensure!(
            is_repeats(definition.repeats),
            "{file}: repeats: must be 1 to {MOST_REPEATS}"
        );
        ensure!(
            definition.guess.load_bytes_per_second > 0 && definition.guess.seconds_per_run >= 0.0,
            "{file}: guess: must be more than nothing"
        );
        ensure!(!definition.groups.is_empty(), "{file}: there is no group");
        for group in &definition.groups {
            let line = 1 + text[..group.span().start].matches('\n').count();
            group
                .get_ref()
                .check(definition.states)
                .map_err(|error| anyhow!("{file}:{line}: {error}"))?;
        }
        let groups = definition.groups.iter();
        for engine in definition.engine.keys() {
            ensure!(
                groups
                    .clone()
                    .any(|group| group.get_ref().engines.contains(engine)),
                "{file}: settings for `{engine}`, which no group has among its engines"
            );
        }
        Ok(definition)
    }
}

impl Group {
    fn check(&self, states: States) -> Result<()> {
        let name = &self.name;
        ensure!(
            is_name(name),
            "group `{name}`: letters, digits and `-` are wanted"
        );
        ensure!(
            self.state.as_deref().is_none_or(is_name),
            "group `{name}`: state: letters, digits and `-` are wanted"
        );
        ensure!(
            states == States::Kept || self.state.is_none(),
            "group `{name}`: state: there is one state at a time, and what can share it does"
        );
        ensure!(
            !self.engines.is_empty(),
            "group `{name}`: engines: there is none"
        );
        ensure!(
            self.repeats.is_none_or(is_repeats),
            "group `{name}`: repeats: must be 1 to {MOST_REPEATS}"
        );
        let trace = self.settings.get("trace").is_some();
        ensure!(
            !trace || self.workloads.is_empty(),
            "group `{name}`: workloads: a trace has its own"
        );
        ensure!(
            !trace || self.distributions.is_empty(),
            "group `{name}`: distributions: a trace has its own"
        );
        for engine in self.engine.keys() {
            ensure!(
                self.engines.contains(engine),
                "group `{name}`: settings for `{engine}`, which is not one of its engines"
            );
        }
        Ok(())
    }
}

/// A size with a unit, as in `500MB`.
fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let size: ByteSize = text.parse().map_err(D::Error::custom)?;
    Ok(size.as_u64())
}

/// Whether results with this number of repeats can be read again.
fn is_repeats(number: u32) -> bool {
    (1..=MOST_REPEATS).contains(&number)
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A suite with two states, and with both ways to give settings.
    pub(crate) const SMALL: &str = r#"
name = "small"
description = "For tests."
states = "kept"
directories = "required"
repeats = 2
guess = { load-bytes-per-second = "1MB", seconds-per-run = 1.0 }

[settings]
data-size = "10MB"
threads = 2
duration = "5s"
cache = "1MiB"

[engine]
leveled = { cache = "2MiB", memory = "32MiB" }

[[group]]
name = "reads"
figures = ["6"]
engines = ["hotrap", "leveled"]
workloads = ["ro", "uh"]
distributions = ["hotspot-5", "uniform"]
settings = { duration = "3s" }

[[group]]
name = "other"
engines = ["leveled"]
workloads = ["ro"]
distributions = ["uniform"]
sizes = ["20MB"]
slow = { iops = 400, bandwidth = "5MB" }
warm-up-unlimited = true
settings = { memory = false, warm-up = "2s" }
engine.leveled = { cache = "4MiB" }
"#;

    pub(crate) fn small() -> Definition {
        Definition::parse("small.toml", SMALL).unwrap()
    }

    #[track_caller]
    fn refused(from: &str, to: &str, words: &[&str]) {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from} is not there");
        let error = Definition::parse("small.toml", &text)
            .unwrap_err()
            .to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is not in: {error}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        refused(
            "repeats = 2",
            "repeat = 2",
            &["small.toml", "line 6", "`repeat`"],
        );
        refused("threads", "thraeds", &["line 9", "`thraeds` is no flag"]);
        refused(
            "[engine]\nleveled = { cache",
            "[engine]\nleveled = { cash",
            &["line 16", "`cash`"],
        );
        refused(
            "threads = 2",
            "threads = [2]",
            &["flag `threads`", "a string"],
        );
        refused(
            "threads = 2",
            "engine = \"hotrap\"",
            &["`engine`", "sets it itself"],
        );
        refused("figures", "figure", &["line 20", "`figure`"]);
        refused("bandwidth = \"5MB\"", "bandwidth = \"fast\"", &["line 32"]);
        refused(
            "name = \"other\"",
            "name = \"../other\"",
            &["small.toml:26", "group `../other`"],
        );
        refused(
            "states = \"kept\"",
            "states = \"gone\"",
            &["`gone`", "one-at-a-time"],
        );
    }

    #[test]
    fn contradictions_are_explained() {
        refused("repeats = 2", "repeats = 0", &["repeats", "1 to 10000"]);
        refused("repeats = 2", "repeats = 10001", &["repeats", "1 to 10000"]);
        refused("\"1MB\"", "\"0\"", &["guess"]);
        refused(
            "[\"hotrap\", \"leveled\"]",
            "[]",
            &["small.toml:18", "engines"],
        );
        refused(
            "engine.leveled",
            "engine.hotrap",
            &["`hotrap`", "not one of its engines"],
        );
        // Regression: a suite of hours was measured with other settings than it declares.
        refused(
            "[engine]\nleveled",
            "[engine]\nlevelled",
            &["small.toml", "`levelled`", "no group"],
        );
        refused(
            "settings = { duration = \"3s\" }",
            "settings = { trace = \"a\" }",
            &["workloads: a trace has its own"],
        );
        let text = SMALL.replace("\"kept\"", "\"one-at-a-time\"");
        let text = text.replace("name = \"other\"", "name = \"other\"\nstate = \"a\"");
        let error = Definition::parse("small.toml", &text).unwrap_err();
        assert!(error.to_string().contains("one state at a time"), "{error}");
    }
}
