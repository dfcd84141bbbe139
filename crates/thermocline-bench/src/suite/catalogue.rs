//! The suites that come with the binary, and suites in files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::definition::Definition;

const BUILT_IN: [(&str, &str); 5] = [
    ("smoke", include_str!("../../suites/smoke.toml")),
    ("paper-small", include_str!("../../suites/paper-small.toml")),
    ("overview", include_str!("../../suites/overview.toml")),
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::suite::cell::Places;
    use crate::suite::cells::cells;
    use crate::suite::cells::tests::places;
    use crate::suite::estimate::Estimate;
    use crate::suite::schedule;
    use crate::suite::{fixtures, line};

    #[test]
    fn every_cell_of_every_suite_is_a_command_line_that_makes_a_plan() {
        let data = tempfile::tempdir().unwrap();
        fixtures::unpack(data.path()).unwrap();
        let places = Places {
            fast: "F".into(),
            slow: "S".into(),
            data: data.path().to_owned(),
            limit_slow: Some("limit".to_owned()),
        };
        for (name, _) in BUILT_IN {
            let definition = find(name).unwrap();
            assert_eq!(definition.name, name);
            for cell in cells(&definition, &places).unwrap() {
                // Other cells are not in this build, which says so.
                if cell.is_built_in() {
                    let (_, plan) = line::plan(&cell.words, &cell.flags)
                        .unwrap_or_else(|error| panic!("{}: {error:#}", cell.id));
                    assert_eq!(plan.engine.name(), cell.engine);
                    assert_eq!(plan.source.distribution_name(), cell.distribution);
                    assert_eq!(plan.source.workload_name(), cell.workload);
                } else {
                    let error = line::plan(&cell.words, &cell.flags).err().unwrap();
                    let error = format!("{error:#}");
                    assert!(error.contains("--features"), "{}: {error}", cell.id);
                }
            }
        }
    }

    /// What was promised of them.
    #[test]
    fn suites_take_no_longer_than_they_may() {
        let places = Places {
            fast: "F".into(),
            slow: "S".into(),
            data: "D".into(),
            limit_slow: None,
        };
        for (name, hours) in [("paper-small", 12.0), ("smoke", 2.0 / 60.0)] {
            let definition = find(name).unwrap();
            let cells = cells(&definition, &places).unwrap();
            let all: Vec<usize> = (0..cells.len()).collect();
            let runs = schedule::order(&cells, &all, definition.states);
            let seconds = Estimate::new(definition.guess).all(&cells, &runs, &[]);
            assert!(seconds / 3600.0 < hours, "{name}: {seconds} s");
        }
    }

    /// Regression: RocksDB had 20 s before it was measured and hotrap 120, but with both an update
    /// brings its record to the fast disk. So the longer warm-up was an advantage in itself.
    #[test]
    fn all_engines_warm_up_as_long_for_updates() {
        let definition = find("paper-small").unwrap();
        let mut by_distribution: HashMap<String, Vec<Option<String>>> = HashMap::new();
        for cell in cells(&definition, &places()).unwrap() {
            if cell.workload == "uh" {
                let warm_up = cell.flags.get("warm-up").map(str::to_owned);
                let of_all = by_distribution.entry(cell.distribution).or_default();
                of_all.push(warm_up);
            }
        }
        assert_eq!(by_distribution.len(), 3);
        for (distribution, warm_ups) in by_distribution {
            let first = warm_ups.first();
            let is_alike = warm_ups.iter().all(|warm_up| Some(warm_up) == first);
            assert!(
                is_alike && warm_ups.len() > 1,
                "{distribution}: {warm_ups:?}"
            );
        }
    }

    #[test]
    fn a_suite_that_does_not_exist_is_told_what_does() {
        let error = find("smoek").unwrap_err().to_string();
        for word in ["smoek", "smoke", "paper-small", "raw", "dynamic", ".toml"] {
            assert!(error.contains(word), "{error}");
        }
        let error = format!("{:#}", find("/no/such.toml").unwrap_err());
        assert!(error.contains("/no/such.toml"), "{error}");
    }
}
