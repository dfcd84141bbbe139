//! How long what is left will take.

use std::time::Duration;

use super::cells::Cell;
use super::definition::Guess;
use super::schedule::Run;

/// What is known about the time that things take.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    guess: Guess,
    /// Bytes loaded so far, and the seconds that it took.
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

    /// What loading the state of `cell` takes.
    pub(crate) fn load(&self, cell: &Cell) -> f64 {
        let (bytes, seconds) = self.loaded;
        let rate = if bytes > 0.0 && seconds > 0.0 {
            bytes / seconds
        } else {
            self.guess.load_bytes_per_second as f64
        };
        cell.load_bytes as f64 / rate
    }

    /// What measuring `cell` once takes.
    pub(crate) fn run(&self, cell: &Cell) -> f64 {
        let measured = if cell.load {
            self.load(cell)
        } else {
            cell.seconds
        };
        measured + self.guess.seconds_per_run
    }

    /// What `runs` take. A state is loaded when the one before is another one; `on_disk` is the content
    /// of those that are there now.
    pub(crate) fn all(&self, cells: &[Cell], runs: &[Run], on_disk: &[String]) -> f64 {
        let mut seconds = 0.0;
        // By directories: what lies in them.
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
