//! The suites that come with the binary, and suites in files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::definition::Definition;

const BUILT_IN: [(&str, &str); 6] = [
    ("smoke", include_str!("../../suites/smoke.toml")),
    ("paper-small", include_str!("../../suites/paper-small.toml")),
    ("overview", include_str!("../../suites/overview.toml")),
    ("raw", include_str!("../../suites/raw.toml")),
    ("dynamic", include_str!("../../suites/dynamic.toml")),
    (
        "mutant-small",
        include_str!("../../suites/mutant-small.toml"),
    ),
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

    use toml::Spanned;

    use super::*;
    use crate::suite::cell::Places;
    use crate::suite::cells::cells;
    use crate::suite::cells::tests::places;
    use crate::suite::definition::Group;
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
        for (name, hours, most) in [
            ("paper-small", 12.0, f64::INFINITY),
            ("smoke", 2.0 / 60.0, f64::INFINITY),
            ("mutant-small", 1.0, 180.0),
        ] {
            let mut definition = find(name).unwrap();
            // With what other builds have, too.
            if name == "mutant-small" {
                definition.groups = all_there(definition.groups);
            }
            let cells = cells(&definition, &places).unwrap();
            let longest = cells.iter().map(|cell| cell.seconds).fold(0.0, f64::max);
            assert!(longest <= most, "{name}: a cell of {longest} s");
            let all: Vec<usize> = (0..cells.len()).collect();
            let runs = schedule::order(&cells, &all, definition.states);
            let seconds = Estimate::new(definition.guess).all(&cells, &runs, &[]);
            assert!(seconds / 3600.0 < hours, "{name}: {seconds} s");
        }
    }

    /// The groups as a build has them that lacks nothing.
    fn all_there(groups: Vec<Spanned<Group>>) -> Vec<Spanned<Group>> {
        let whole = |group: Spanned<Group>| {
            let span = group.span();
            let mut group = group.into_inner();
            group.optional = false;
            Spanned::new(span, group)
        };
        groups.into_iter().map(whole).collect()
    }

    /// What `hotrap` may have of the fast disk costs as much as the target of the same name. The
    /// data on the fast disk costs the difference of the prices.
    #[test]
    fn capacities_of_mutant_small_cost_what_the_targets_are() {
        let definition = find("mutant-small").unwrap();
        let mut compared = 0;
        for cell in cells(&definition, &places()).unwrap() {
            let (_, plan) = line::plan(&cell.words, &cell.flags).unwrap();
            let prices = plan.settings.prices.unwrap();
            let Some(rest) = cell.id.strip_prefix("capacity-") else {
                continue;
            };
            let cents: f64 = rest[..2].parse().unwrap();
            let share = plan.settings.fast_capacity as f64 / cell.load_bytes as f64;
            let price = prices.slow[0] + share * (prices.fast - prices.slow[0]);
            assert!(
                (price - cents / 100.0).abs() < 0.001,
                "{}: {price}",
                cell.id
            );
            compared += 1;
        }
        assert_eq!(compared, 12);
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
        for word in [
            "smoek",
            "smoke",
            "paper-small",
            "raw",
            "dynamic",
            "mutant-small",
            ".toml",
        ] {
            assert!(error.contains(word), "{error}");
        }
        let error = format!("{:#}", find("/no/such.toml").unwrap_err());
        assert!(error.contains("/no/such.toml"), "{error}");
    }
}
