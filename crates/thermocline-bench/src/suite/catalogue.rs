//! The suites that come with the binary, and suites in files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::definition::Definition;

const BUILT_IN: [(&str, &str); 4] = [
    ("smoke", include_str!("../../suites/smoke.toml")),
    ("paper-small", include_str!("../../suites/paper-small.toml")),
    ("raw", include_str!("../../suites/raw.toml")),
    ("dynamic", include_str!("../../suites/dynamic.toml")),
];

/// The suite called `name`, or the one in the file of that name.
///
/// # Errors
/// There is none, or the file cannot be read, or is no suite.
pub(crate) fn find(name: &str) -> Result<Definition> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Definition::parse(&format!("suite {name}"), text);
    }
    if !name.ends_with(".toml") {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        bail!(
            "`{name}` is no suite; there are {}, and files whose names end in .toml",
            names.join(", ")
        );
    }
    let text =
        fs::read_to_string(Path::new(name)).with_context(|| format!("cannot read {name}"))?;
    Definition::parse(name, &text)
}
