//! The cells that a definition makes. Each of its groups is combined with every engine, workload,
//! distribution and size.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};

use super::cell::{About, Cell, Places};
use super::definition::{Definition, Group, SlowLimits, States};

/// Stands for the directory with the files that come with the binary.
const DATA: &str = "{data}";

/// Longest name of a distribution in the name of a cell.
const LONGEST: usize = 24;

/// Every cell of `definition` except those [`left_out`], in its order. If an earlier group has a
/// cell with the same command line, it is that cell, and it belongs to the figures of both.
///
/// # Errors
/// A workload or distribution that does not exist, two cells of one name.
pub(crate) fn cells(definition: &Definition, places: &Places) -> Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut by_words: HashMap<Vec<String>, usize> = HashMap::new();
    for (group, cell) in all(definition, places)? {
        if is_left_out(group, &cell) {
            continue;
        }
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
    Ok(cells)
}

/// The cells of optional groups that this build cannot measure.
///
/// # Errors
/// A workload or distribution that does not exist.
pub(crate) fn left_out(definition: &Definition, places: &Places) -> Result<Vec<Cell>> {
    let all = all(definition, places)?.into_iter();
    Ok(all
        .filter(|(group, cell)| is_left_out(group, cell))
        .map(|(_, cell)| cell)
        .collect())
}

fn is_left_out(group: &Group, cell: &Cell) -> bool {
    group.optional && !cell.is_built_in()
}

/// The cells of every group, built in or not, each with its group.
fn all<'a>(definition: &'a Definition, places: &Places) -> Result<Vec<(&'a Group, Cell)>> {
    let mut all = Vec::new();
    for group in &definition.groups {
        let group = group.get_ref();
        let cells = of_group(definition, group, places)
            .with_context(|| format!("suite {}, group {}", definition.name, group.name))?;
        all.extend(cells.into_iter().map(|cell| (group, cell)));
    }
    Ok(all)
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
    // Engines are innermost, so that what is compared is measured one right after the other.
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

/// The values. If there are none, `None` once.
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
    let needs_data = flags
        .iter()
        .any(|(_, value)| value.is_some_and(|value| value.contains(DATA)));
    flags.map_values(|value| value.replace(DATA, &places.data.to_string_lossy()));
    let state = match definition.states {
        States::OneAtATime => String::new(),
        States::Kept => {
            let state = group.state.as_ref().unwrap_or(&group.name);
            let size = axes.size.map_or(String::new(), |size| format!("-{size}"));
            format!("{state}{size}-{}", axes.engine)
        }
    };
    let mut words = vec!["--engine".to_owned(), axes.engine.to_owned()];
    let axis = [
        ("--workload", axes.workload),
        ("--distribution", axes.distribution),
    ];
    for (name, value) in axis {
        words.extend(
            value
                .map(|value| [name, value])
                .into_iter()
                .flatten()
                .map(str::to_owned),
        );
    }
    let about = About::new(&words, &flags)?;
    words.extend(flags.words());
    for (name, dir) in [("--fast", &places.fast), ("--slow", &places.slow)] {
        words.extend([name.to_owned(), directory(dir, &state)?]);
    }
    let slow = group.slow.or(definition.slow).filter(|_| !group.load);
    ensure!(
        slow.is_some() || !group.warm_up_unlimited,
        "warm-up-unlimited: there are no limits (`slow`) that a run could have"
    );
    if let Some(SlowLimits { iops, bandwidth }) = slow {
        let expected = [
            "--expect-slow-iops".to_owned(),
            iops.to_string(),
            "--expect-slow-bandwidth".to_owned(),
            bandwidth.to_string(),
        ];
        words.extend(expected);
        if let Some(command) = places
            .limit_slow
            .as_ref()
            .filter(|_| group.warm_up_unlimited)
        {
            let command = format!("{command} {iops} {bandwidth}");
            words.extend(["--after-warm-up".to_owned(), command]);
        }
    }
    let rest: &[&str] = match group.load {
        true => &["--phase", "load"],
        false => &["--keep"],
    };
    words.extend(rest.iter().copied().map(str::to_owned));
    Ok(Cell {
        id: id(group, axes),
        figures: group.figures.clone(),
        engine: axes.engine.to_owned(),
        workload: about.workload,
        distribution: about.distribution,
        seconds: about.seconds,
        load_bytes: about.load_bytes,
        flags,
        words,
        state,
        slow,
        warm_up_unlimited: group.warm_up_unlimited,
        repeats: group.repeats.unwrap_or(definition.repeats),
        load: group.load,
        needs_data,
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

/// The name of the group, and what tells a cell from the others of the group.
fn id(group: &Group, axes: &Axes<'_>) -> String {
    let mut id = format!("{}-{}", group.name, axes.engine);
    let distribution = axes.distribution.filter(|text| text.len() <= LONGEST);
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::suite::definition::tests::{SMALL, small};

    pub(crate) fn places() -> Places {
        Places {
            fast: "/fast".into(),
            slow: "/slow".into(),
            data: "/data".into(),
            limit_slow: Some("limit /slow".to_owned()),
        }
    }

    pub(crate) fn of_small() -> Vec<Cell> {
        cells(&small(), &places()).unwrap()
    }

    fn of(text: &str) -> Result<Vec<Cell>> {
        cells(&Definition::parse("small.toml", text).unwrap(), &places())
    }

    #[test]
    fn every_engine_meets_every_workload_and_distribution_in_turn() {
        let ids: Vec<String> = of_small().into_iter().map(|cell| cell.id).collect();
        assert_eq!(
            ids,
            [
                "reads-hotrap-ro-hotspot-5",
                "reads-leveled-ro-hotspot-5",
                "reads-hotrap-uh-hotspot-5",
                "reads-leveled-uh-hotspot-5",
                "reads-hotrap-ro-uniform",
                "reads-leveled-ro-uniform",
                "reads-hotrap-uh-uniform",
                "reads-leveled-uh-uniform",
                "other-leveled-ro-uniform-20MB",
            ]
        );
    }

    #[test]
    fn what_is_said_of_fewer_cells_counts_more() {
        let cells = of_small();
        assert_eq!(
            cells[1].command(),
            "thermocline bench --engine leveled --workload ro --distribution hotspot-5 --cache 2MiB \
             --data-size 10MB --duration 3s --memory 32MiB --threads 2 \
             --fast /fast/reads-leveled --slow /slow/reads-leveled --keep"
        );
        // The group takes back the engine's memory, and gives it another cache.
        assert_eq!(
            cells[8].command(),
            "thermocline bench --engine leveled --workload ro --distribution uniform --cache 4MiB \
             --data-size 20MB --duration 5s --threads 2 --warm-up 2s \
             --fast /fast/other-20MB-leveled --slow /slow/other-20MB-leveled \
             --expect-slow-iops 400 --expect-slow-bandwidth 5000000 \
             --after-warm-up 'limit /slow 400 5000000' --keep"
        );
        assert_eq!((cells[8].seconds, cells[8].load_bytes), (7.0, 20_000_000));
        let about = cells[8].about();
        assert!(
            about.ends_with("5.0 MB a second after the warm-up"),
            "{about}"
        );
    }

    #[test]
    fn loading_takes_the_same_flags_without_those_of_the_run() {
        let words = of_small()[8].load_words().join(" ");
        assert!(
            words.contains("--data-size 20MB --duration 5s --threads 2 --fast"),
            "{words}"
        );
        assert!(words.ends_with("--keep --phase load"), "{words}");
        let emulated = SMALL.replacen(
            "threads = 2",
            "cost-target = \"0.4@1s,0.2@1s\"\nrate = 500\nslow-iops = 9\nwarm-up = \"1s\"\nwarm-up-unthrottled = true",
            1,
        );
        let cells = of(&emulated).unwrap();
        assert!(cells[0].command().contains("--rate 500"));
        // Its targets end it before its 3 s and the warm-up's one.
        assert_eq!(cells[0].seconds, 3.0);
        let words = cells[0].load_words().join(" ");
        assert!(words.contains("--duration 3s --fast"), "{words}");
        assert!(
            !words.contains("target"),
            "other runs use the state too: {words}"
        );
    }

    #[test]
    fn one_cell_can_be_for_several_figures() {
        let again = "\n[[group]]\nname = \"again\"\nfigures = [\"14\"]\nstate = \"reads\"\nengines = [\"hotrap\"]\n\
                     workloads = [\"ro\"]\ndistributions = [\"uniform\"]\nrepeats = 3\nsettings = { duration = \"3s\" }\n";
        let cells = of(&format!("{SMALL}{again}")).unwrap();
        assert_eq!(cells.len(), 9);
        let cell = &cells[4];
        assert_eq!(
            (cell.id.as_str(), cell.repeats),
            ("reads-hotrap-ro-uniform", 3)
        );
        assert_eq!(cell.figures, ["6", "14"]);
    }

    #[test]
    fn what_makes_no_sense_is_said_with_its_group() {
        for (from, to, words) in [
            (
                "[\"ro\", \"uh\"]",
                "[\"rx\"]",
                ["group reads", "there are ro"],
            ),
            ("hotspot-5", "hotspot-500", ["group reads", "over 0 to 100"]),
            (
                "threads = 2",
                "threads = \"two\"",
                ["group reads", "--threads"],
            ),
            (
                "name = \"other\"",
                "name = \"reads\"",
                ["reads-leveled-ro-uniform", "group of its own"],
            ),
            (
                "slow = { iops = 400, bandwidth = \"5MB\" }\n",
                "",
                ["group other", "there are no limits"],
            ),
        ] {
            let mut text = SMALL.replace(from, to);
            if from.starts_with("name") {
                text = text.replace("sizes = [\"20MB\"]", "");
            }
            let error = format!("{:#}", of(&text).unwrap_err());
            for word in words {
                assert!(error.contains(word), "{word:?} is not in: {error}");
            }
        }
    }

    #[test]
    fn what_is_not_built_in_is_left_out_of_optional_groups_only() {
        let text = SMALL.replace("[\"hotrap\", \"leveled\"]", "[\"hotrap\", \"no-such\"]");
        let all = of(&text).unwrap();
        assert_eq!(all.len(), 9);
        assert!(crate::suite::line::plan(&all[1].words, &all[1].flags).is_err());
        let text = text.replace("name = \"reads\"", "name = \"reads\"\noptional = true");
        let left = of(&text).unwrap();
        assert_eq!(left.len(), 5);
        assert!(left.iter().all(|cell| cell.engine != "no-such"));
        let definition = Definition::parse("small.toml", &text).unwrap();
        let missing = left_out(&definition, &places()).unwrap();
        assert_eq!(missing.len(), 4);
        assert!(missing.iter().all(|cell| cell.engine == "no-such"));
    }

    #[test]
    fn engines_with_the_same_files_have_the_same_content() {
        let text = SMALL
            .replace("\"kept\"", "\"one-at-a-time\"")
            .replace(", memory = \"32MiB\"", "");
        let cells = of(&text).unwrap();
        assert_eq!(cells[0].content(), cells[1].content());
        assert_ne!(cells[0].content(), cells[8].content());
        assert!(
            cells[0]
                .command()
                .contains("--fast /fast --slow /slow --keep")
        );
    }
}
