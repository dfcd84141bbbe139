//! A bar on the terminal while a benchmark goes on.

use indicatif::{ProgressBar, ProgressStyle};

use crate::run::{Second, Watch};

/// Steps of a bar.
const STEPS: u64 = 1000;

/// One bar for the load, one for the run. Draws nothing if there is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    part: &'static str,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) =
            ProgressStyle::with_template("{prefix:<10} [{bar:40}] {percent:>3} % {msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, part: "" }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn loaded(&mut self, records: u64, of: u64) {
        self.bar.set_prefix("loading");
        self.bar.set_position(STEPS * records / of.max(1));
    }

    fn settling(&mut self) {
        self.bar.set_message("waiting for background work");
    }

    fn part(&mut self, name: &'static str) {
        self.part = name;
    }

    fn second(&mut self, second: &Second, progress: f64) {
        self.bar.set_prefix(self.part);
        self.bar.set_position((progress * STEPS as f64) as u64);
        let hits = second.fd_hit_rate.map_or(String::new(), |rate| {
            format!(", {:.1} % without the slow disk", rate * 100.0)
        });
        self.bar
            .set_message(format!("{:.0} ops/s{hits}", second.ops_s));
    }
}
