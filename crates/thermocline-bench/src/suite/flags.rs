//! Flags of `thermocline bench` as the file of a suite gives them: a table of names and values.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::args::BenchArgs;

/// Flags that a suite sets itself, cell by cell.
const OWN: [&str; 10] = [
    "engine",
    "workload",
    "distribution",
    "fast",
    "slow",
    "phase",
    "keep",
    "json",
    "expect-slow-iops",
    "expect-slow-bandwidth",
];

/// Flags that exist only when the feature `experiments` is built in.
const EXPERIMENTS: [&str; 12] = [
    "no-retention",
    "no-hotness-check",
    "no-promotion-by-compaction",
    "no-promotion-by-flush",
    "no-bypass",
    "no-copies",
    "no-auto-tuning",
    "scoring",
    "hot-set",
    "resistance",
    "no-tails",
    "plain-cooling",
];

/// One flag.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Flag {
    /// Not given, whatever settings of lower precedence say.
    Off,
    /// Given without a value.
    On,
    Value(String),
}

/// Flags by name, without the dashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flags(BTreeMap<String, Flag>);

impl Flags {
    /// The flags of `self`. A flag of `other` replaces the one of the same name.
    pub(crate) fn with(&self, other: &Flags) -> Flags {
        let mut all = self.0.clone();
        all.extend(other.0.clone());
        Flags(all)
    }

    /// Adds a flag, or replaces its value.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let value = Flag::Value(value.to_owned());
        self.0.insert(name.to_owned(), value);
    }

    /// Replaces each value by `change` of it.
    pub(crate) fn map_values(&mut self, change: impl Fn(&str) -> String) {
        for flag in self.0.values_mut() {
            if let Flag::Value(value) = flag {
                *value = change(value);
            }
        }
    }

    /// The value of flag `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Flag::Value(value) => Some(value),
            Flag::Off | Flag::On => None,
        }
    }

    /// The first flag that only the feature `experiments` has.
    pub(crate) fn experiment(&self) -> Option<&str> {
        let mut names = self.iter().map(|(name, _)| name);
        names.find(|name| EXPERIMENTS.contains(name))
    }

    /// The flags that this build has.
    pub(crate) fn known(&self) -> Flags {
        let mut known = self.clone();
        if !cfg!(feature = "experiments") {
            known
                .0
                .retain(|name, _| !EXPERIMENTS.contains(&name.as_str()));
        }
        known
    }

    /// Names and values in the order of the names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().filter_map(|(name, flag)| match flag {
            Flag::Off => None,
            Flag::On => Some((name.as_str(), None)),
            Flag::Value(value) => Some((name.as_str(), Some(value.as_str()))),
        })
    }

    /// The words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, value) in self.iter() {
            words.push(format!("--{name}"));
            words.extend(value.map(str::to_owned));
        }
        words
    }
}

impl<'de> Deserialize<'de> for Flags {
    /// Refuses here what is not a flag, so that the message has the line of the file.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = BTreeMap::<String, toml::Value>::deserialize(deserializer)?;
        let mut flags = BTreeMap::new();
        for (name, value) in table {
            check_name(&name).map_err(D::Error::custom)?;
            let flag = match value {
                toml::Value::String(text) => Flag::Value(text),
                toml::Value::Integer(number) => Flag::Value(number.to_string()),
                toml::Value::Boolean(true) => Flag::On,
                toml::Value::Boolean(false) => Flag::Off,
                other => {
                    return Err(D::Error::custom(format!(
                        "flag `{name}`: a string, an integer, `true` or `false` is wanted, not {other}"
                    )));
                }
            };
            flags.insert(name, flag);
        }
        Ok(Flags(flags))
    }
}

fn check_name(name: &str) -> Result<()> {
    if OWN.contains(&name) {
        bail!("flag `{name}`: the suite sets it itself");
    }
    let command = <BenchArgs as clap::Args>::augment_args(clap::Command::new("bench"));
    let mut known = command.get_arguments().filter_map(clap::Arg::get_long);
    if !EXPERIMENTS.contains(&name) && known.all(|flag| flag != name) {
        bail!("`{name}` is no flag of `thermocline bench`");
    }
    Ok(())
}
