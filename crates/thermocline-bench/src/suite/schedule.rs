//! In which order the cells of a suite are measured.

use super::cells::Cell;
use super::definition::States;

/// One measurement of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of the cell.
    pub(crate) cell: usize,
    /// Counts from 1.
    pub(crate) repeat: u32,
}

/// The runs of the cells numbered `chosen`. Cells that share a block take turns, first all for the first
/// time, then all for the second, so that a machine that grows slower does so for all of them. A block is
/// what can be measured without changing the disks: one set of limits, and one loaded state if there
/// is one at a time.
pub(crate) fn order(cells: &[Cell], chosen: &[usize], states: States) -> Vec<Run> {
    let mut blocks: Vec<(Option<String>, Vec<&usize>)> = Vec::new();
    for number in chosen {
        let Some(cell) = cells.get(*number) else {
            continue;
        };
        let state = (states == States::OneAtATime).then(|| cell.content());
        match blocks.iter_mut().find(|(key, _)| *key == state) {
            Some((_, members)) => members.push(number),
            None => blocks.push((state, vec![number])),
        }
    }
    let mut runs = Vec::new();
    for (_, members) in blocks {
        runs.extend(by_limits(cells, &members));
    }
    runs
}

fn by_limits(cells: &[Cell], members: &[&usize]) -> Vec<Run> {
    let limits = |number: &usize| cells.get(*number).and_then(|cell| cell.slow);
    let mut seen = Vec::new();
    for number in members {
        if !seen.contains(&limits(number)) {
            seen.push(limits(number));
        }
    }
    let mut runs = Vec::new();
    for slow in seen {
        let block: Vec<(usize, u32)> = members
            .iter()
            .filter(|number| limits(number) == slow)
            .filter_map(|number| Some((**number, cells.get(**number)?.repeats)))
            .collect();
        let most = block.iter().map(|(_, repeats)| *repeats).max();
        for repeat in 1..=most.unwrap_or(0) {
            let due = block.iter().filter(|(_, repeats)| *repeats >= repeat);
            runs.extend(due.map(|(cell, _)| Run {
                cell: *cell,
                repeat,
            }));
        }
    }
    runs
}
