//! Entry points for fuzzing: they must return, whatever a suite's file or a command line says.

use std::path::PathBuf;

use super::cell::Places;
use super::cells::cells;
use super::definition::Definition;
use super::estimate::Estimate;
use super::{line, schedule};

/// With more cells than this, a suite takes long and shows nothing new.
const MOST_CELLS: usize = 200;

/// Reads the suite that `text` declares, with the command line of every cell.
///
/// # Errors
/// Why it is none.
pub(crate) fn fuzz_suite(text: &str) -> anyhow::Result<()> {
    let definition = Definition::parse("any.toml", text)?;
    let axes = definition.groups.iter().map(|group| {
        let group = group.get_ref();
        [&group.sizes, &group.distributions, &group.workloads]
            .into_iter()
            .fold(group.engines.len(), |cells, axis| {
                cells.saturating_mul(axis.len().max(1))
            })
    });
    if axes.fold(0, usize::saturating_add) > MOST_CELLS {
        return Ok(());
    }
    let places = Places {
        fast: PathBuf::from("F"),
        slow: PathBuf::from("S"),
        data: PathBuf::from("D"),
        limit_slow: Some("limit".to_owned()),
    };
    let cells = cells(&definition, &places)?;
    let all: Vec<usize> = (0..cells.len()).collect();
    for cell in &cells {
        cell.about();
        cell.command();
        cell.content();
        // A trace would be read from anywhere.
        if cell.flags.get("trace").is_none() {
            let _ = line::plan(&cell.words, &cell.flags);
        }
        let _ = line::parse(&cell.load_words());
    }
    let repeats: u64 = cells.iter().map(|cell| u64::from(cell.repeats)).sum();
    if repeats < 10_000 {
        let runs = schedule::order(&cells, &all, definition.states);
        Estimate::new(definition.guess).all(&cells, &runs, &[]);
    }
    Ok(())
}

/// Reads the command line of these words, with the plan that it makes.
///
/// # Errors
/// Why it makes none.
pub(crate) fn fuzz_command_line(words: &[String]) -> anyhow::Result<()> {
    let args = line::parse(words)?;
    if args.trace.is_none() {
        args.plan()?;
    }
    Ok(())
}
