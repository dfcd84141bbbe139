//! What somebody who waits for a suite sees.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::estimate::in_words;

/// A bar of seconds on a terminal, elsewhere a line for each thing done.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    begun: Instant,
    /// What is expected of what goes on now, and of all that follows it, in seconds.
    now: f64,
    later: f64,
    done: f64,
}

impl Progress {
    /// On standard error.
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

    /// Something begins that takes `now` seconds, with `later` seconds of work after it.
    pub(crate) fn begin(&mut self, what: String, now: f64, later: f64) {
        (self.now, self.later) = (now, later);
        self.begun = Instant::now();
        self.bar.set_message(what);
        self.tick();
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        // Late, it is not done: the bar waits just before its end.
        let past = self.begun.elapsed().as_secs_f64().min(self.now);
        let left = self.now - past + self.later;
        self.bar
            .set_length((self.done + self.now + self.later) as u64);
        self.bar.set_position((self.done + past) as u64);
        self.bar.set_prefix(in_words(left));
    }

    /// What had begun is done; says `what` came of it.
    pub(crate) fn end(&mut self, what: &str) {
        self.done += self.begun.elapsed().as_secs_f64();
        self.now = 0.0;
        self.say(what);
    }

    /// Says something that stays.
    pub(crate) fn say(&self, what: &str) {
        if self.lines {
            // Hours of measuring do not end because nobody reads this.
            let _ = writeln!(std::io::stderr(), "{what}");
        } else {
            self.bar.println(what);
        }
    }

    /// How long what goes on has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
