//! How long the rest will take.

use std::time::Duration;

use super::cell::Cell;
use super::definition::Guess;
use super::schedule::Run;

/// What is known about how long things take.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    guess: Guess,
    /// Bytes loaded so far, and the seconds that this took.
    loaded: (f64, f64),
}

impl Estimate {
    pub(crate) fn new(guess: Guess) -> Self {
        Self {
            guess,
            loaded: (0.0, 0.0),
        }
    }

    /// Takes note of a load.
    pub(crate) fn loaded(&mut self, cell: &Cell, took: Duration) {
        self.loaded.0 += cell.load_bytes as f64;
        self.loaded.1 += took.as_secs_f64();
    }

    /// How long it takes to load the state of `cell`.
    pub(crate) fn load(&self, cell: &Cell) -> f64 {
        let (bytes, seconds) = self.loaded;
        let rate = if bytes > 0.0 && seconds > 0.0 {
            bytes / seconds
        } else {
            self.guess.load_bytes_per_second as f64
        };
        cell.load_bytes as f64 / rate
    }

    /// How long it takes to measure `cell` once.
    pub(crate) fn run(&self, cell: &Cell) -> f64 {
        let measured = if cell.load {
            self.load(cell)
        } else {
            cell.seconds
        };
        measured + self.guess.seconds_per_run
    }

    /// How long `runs` take. A state is loaded if the state before it is another one. `on_disk`
    /// holds the contents of the states that are there now.
    pub(crate) fn all(&self, cells: &[Cell], runs: &[Run], on_disk: &[String]) -> f64 {
        let mut seconds = 0.0;
        // What lies in the directories, by their names.
        let mut there: Vec<(&str, String)> = Vec::new();
        for cell in runs.iter().filter_map(|run| cells.get(run.cell)) {
            seconds += self.run(cell);
            if cell.load {
                continue;
            }
            let content = cell.content();
            let known = there.iter_mut().find(|(state, _)| *state == cell.state);
            let is_there = match &known {
                Some((_, other)) => *other == content,
                None => on_disk.contains(&content),
            };
            if !is_there {
                seconds += self.load(cell);
            }
            match known {
                Some((_, other)) => *other = content,
                None => there.push((&cell.state, content)),
            }
        }
        seconds
    }
}

/// Seconds as people say them.
pub(crate) fn in_words(seconds: f64) -> String {
    let whole = if seconds < 90.0 {
        Duration::from_secs(seconds as u64)
    } else {
        Duration::from_secs((seconds / 60.0).round() as u64 * 60)
    };
    humantime::format_duration(whole).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::cells::tests::of_small;
    use crate::suite::definition::tests::small;

    fn run(cell: usize) -> Run {
        Run { cell, repeat: 1 }
    }

    /// 10 MB at 1 MB/s, 3 s of measuring, and 1 s in addition.
    #[test]
    fn each_state_is_loaded_once() {
        let (cells, estimate) = (of_small(), Estimate::new(small().guess));
        assert_eq!(estimate.all(&cells, &[run(0)], &[]), 14.0);
        assert_eq!(estimate.all(&cells, &[run(0), run(2)], &[]), 18.0);
        assert_eq!(estimate.all(&cells, &[run(0), run(1)], &[]), 28.0);
        let there = [cells[0].content()];
        assert_eq!(estimate.all(&cells, &[run(0), run(1)], &there), 18.0);
    }

    #[test]
    fn a_state_that_was_replaced_is_loaded_again() {
        let mut cells = of_small();
        for cell in &mut cells {
            cell.state.clear();
        }
        let estimate = Estimate::new(small().guess);
        assert_eq!(estimate.all(&cells, &[run(0), run(1), run(0)], &[]), 42.0);
    }

    #[test]
    fn loads_that_were_seen_count_more_than_the_guess() {
        let (cells, mut estimate) = (of_small(), Estimate::new(small().guess));
        estimate.loaded(&cells[0], Duration::from_secs(2));
        assert_eq!(estimate.load(&cells[0]), 2.0);
        assert_eq!(estimate.load(&cells[8]), 4.0);
    }

    #[test]
    fn seconds_are_said_as_people_do() {
        assert_eq!(in_words(41.7), "41s");
        assert_eq!(in_words(7270.0), "2h 1m");
    }
}
