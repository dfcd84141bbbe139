//! The order in which the cells of a suite are measured.

use super::cell::Cell;
use super::definition::States;

/// One measurement of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of the cell.
    pub(crate) cell: usize,
    /// Counts from 1.
    pub(crate) repeat: u32,
}

/// The runs of the cells numbered `chosen`. Cells of the same block take turns: first all for the
/// first time, then all for the second. So if a machine becomes slower, it does so for all of them.
/// A block is what can be measured without changing the disks: one set of limits, and one loaded
/// state if there is one at a time.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::cells::tests::of_small;
    use crate::suite::definition::SlowLimits;

    const HDD: SlowLimits = SlowLimits {
        iops: 400,
        bandwidth: 1,
    };

    /// Four cells: two engines, each with its own state, under two workloads.
    fn four() -> Vec<Cell> {
        of_small().into_iter().take(4).collect()
    }

    fn numbers(runs: &[Run]) -> Vec<(usize, u32)> {
        runs.iter().map(|run| (run.cell, run.repeat)).collect()
    }

    #[test]
    fn repeats_are_interleaved() {
        let runs = order(&four(), &[0, 1, 3], States::Kept);
        assert_eq!(
            numbers(&runs),
            [(0, 1), (1, 1), (3, 1), (0, 2), (1, 2), (3, 2)]
        );
    }

    #[test]
    fn a_state_is_done_with_before_the_next() {
        let runs = order(&four(), &[0, 1, 2, 3], States::OneAtATime);
        assert_eq!(
            numbers(&runs),
            [
                (0, 1),
                (2, 1),
                (0, 2),
                (2, 2),
                (1, 1),
                (3, 1),
                (1, 2),
                (3, 2)
            ]
        );
    }

    #[test]
    fn limits_change_once_and_fewer_repeats_are_fewer() {
        let mut cells = four();
        cells[0].slow = Some(HDD);
        cells[2].slow = Some(HDD);
        cells[2].repeats = 1;
        let runs = order(&cells, &[0, 1, 2, 3], States::Kept);
        assert_eq!(
            numbers(&runs),
            [(0, 1), (2, 1), (0, 2), (1, 1), (3, 1), (1, 2), (3, 2)]
        );
    }
}
