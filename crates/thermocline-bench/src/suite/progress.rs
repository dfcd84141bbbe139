//! What somebody sees who waits for a suite.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::estimate::in_words;

/// A bar of seconds on a terminal. Elsewhere, a line for each thing that is done.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    begun: Instant,
    /// The seconds that are expected for what goes on now, and for all that follows it.
    now: f64,
    later: f64,
    done: f64,
}

impl Progress {
    /// Progress on standard error.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] about {prefix} left: {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
            lines: !std::io::stderr().is_terminal(),
            begun: Instant::now(),
            now: 0.0,
            later: 0.0,
            done: 0.0,
        }
    }

    /// Shows nothing.
    #[cfg(test)]
    pub(crate) fn hidden() -> Self {
        let progress = Self {
            lines: false,
            ..Self::new()
        };
        progress
            .bar
            .set_draw_target(indicatif::ProgressDrawTarget::hidden());
        progress
    }

    /// Something begins that takes `now` seconds. There are `later` seconds of work after it.
    pub(crate) fn begin(&mut self, what: String, now: f64, later: f64) {
        (self.now, self.later) = (now, later);
        self.begun = Instant::now();
        self.bar.set_message(what);
        self.tick();
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        // If it is late, it is still not done: the bar waits just before its end.
        let past = self.begun.elapsed().as_secs_f64().min(self.now);
        let left = self.now - past + self.later;
        self.bar
            .set_length((self.done + self.now + self.later) as u64);
        self.bar.set_position((self.done + past) as u64);
        self.bar.set_prefix(in_words(left));
    }

    /// What had begun is done. Prints `what` came of it.
    pub(crate) fn end(&mut self, what: &str) {
        self.done += self.begun.elapsed().as_secs_f64();
        self.now = 0.0;
        self.say(what);
    }

    /// Prints something that stays.
    pub(crate) fn say(&self, what: &str) {
        if self.lines {
            // Hours of measuring must not end because nobody reads this.
            let _ = writeln!(std::io::stderr(), "{what}");
        } else {
            self.bar.println(what);
        }
    }

    /// How long the present work has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
