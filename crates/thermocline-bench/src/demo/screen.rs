//! What is shown while the demo runs: bars on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard};

use bytesize::ByteSize;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::lines::{Lines, NotShown};
use crate::run::{Second, Watch};

/// Without a terminal, a line is printed every so many seconds.
const QUIET_SECONDS: usize = 3;

/// Steps of a bar.
const STEPS: u64 = 1000;

/// One screen for both stores.
pub(super) struct Screen {
    names: [&'static str; 2],
    bars: Option<Bars>,
    /// The last second of each store.
    latest: [Option<Second>; 2],
    /// Seconds of the first store.
    seconds: usize,
    lines: Lines,
}

struct Bars {
    all: MultiProgress,
    load: ProgressBar,
    stores: Vec<ProgressBar>,
}

impl Screen {
    pub(super) fn new(names: [&'static str; 2]) -> Self {
        let bars = std::io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let load = all.add(bar("loading"));
            Bars {
                all,
                load,
                stores: Vec::new(),
            }
        });
        Self {
            names,
            bars,
            latest: [None, None],
            seconds: 0,
            lines: Lines::default(),
        }
    }

    pub(super) fn say(&mut self, line: &str) {
        self.lines.say(line);
    }

    /// # Errors
    /// A line could not be written.
    pub(super) fn shown(&mut self) -> Result<(), NotShown> {
        self.lines.shown()
    }

    pub(super) fn loaded_in(&mut self, seconds: f64) {
        let names = self.names;
        match &mut self.bars {
            Some(bars) => {
                bars.load.abandon_with_message(format!("in {seconds:.1} s"));
                bars.stores = names.map(|name| bars.all.add(bar(name))).into();
            }
            None => {
                self.say(&format!(
                    "loaded in {seconds:.1} s; reads answered without the slow disk:"
                ));
            }
        }
    }

    pub(super) fn finish(&self) {
        for bar in self.bars.iter().flat_map(|bars| &bars.stores) {
            bar.abandon();
        }
    }

    fn second(&mut self, store: usize, second: &Second) {
        if let Some(latest) = self.latest.get_mut(store) {
            *latest = Some(second.clone());
        }
        if let Some(bars) = &self.bars {
            if let Some(bar) = bars.stores.get(store) {
                let rate = second.fd_hit_rate.unwrap_or(0.0);
                bar.set_position((rate * STEPS as f64).round() as u64);
                bar.set_message(words(second));
            }
        } else if store == 0 {
            if self.seconds.is_multiple_of(QUIET_SECONDS) {
                let line = self.line(second.second);
                self.say(&line);
            }
            self.seconds += 1;
        }
    }

    /// Both stores side by side.
    fn line(&self, at: f64) -> String {
        let mut line = format!("{at:>4.0} s");
        for (name, latest) in self.names.iter().zip(&self.latest) {
            if let Some(second) = latest {
                let rate = second.fd_hit_rate.unwrap_or(0.0) * 100.0;
                line.push_str(&format!("  {name} {rate:>5.1} %, {};", words(second)));
            }
        }
        line.trim_end_matches(';').to_owned()
    }
}

/// What a second has to say beside its hit rate.
fn words(second: &Second) -> String {
    let hot = match (second.hot_set_bytes, second.hot_set_limit_bytes) {
        (Some(hot), Some(limit)) => format!(", {} of {} hot", ByteSize(hot), ByteSize(limit)),
        _ => String::new(),
    };
    format!("{:>6.0} reads/s{hot}", second.ops_s)
}

fn bar(name: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(STEPS).with_prefix(name);
    if let Ok(style) = ProgressStyle::with_template("{prefix:<10} [{bar:30}] {percent:>3} % {msg}")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// The screen, whatever happened to the thread that held it.
pub(super) fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One store's part of the screen.
pub(super) struct Lane<'a> {
    store: usize,
    screen: &'a Mutex<Screen>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(store: usize, screen: &'a Mutex<Screen>) -> Self {
        Self { store, screen }
    }
}

impl Watch for Lane<'_> {
    fn loaded(&mut self, records: u64, of: u64) {
        if let Some(bars) = &lock(self.screen).bars {
            bars.load.set_position(STEPS * records / of.max(1));
        }
    }

    fn settling(&mut self) {
        if let Some(bars) = &lock(self.screen).bars {
            bars.load.set_message("waiting for compactions");
        }
    }

    fn second(&mut self, second: &Second, _progress: f64) {
        lock(self.screen).second(self.store, second);
    }

    fn is_gone(&self) -> bool {
        lock(self.screen).lines.is_gone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(rate: f64, hot: Option<u64>) -> Second {
        Second {
            second: 7.0,
            ops: 10,
            ops_s: 10.0,
            fd_hit_rate: Some(rate),
            hot_set_bytes: hot,
            hot_set_limit_bytes: hot,
            ..Second::default()
        }
    }

    #[test]
    fn a_line_shows_both_stores() {
        let mut screen = Screen {
            names: ["a", "b"],
            bars: None,
            latest: [None, None],
            seconds: 1,
            lines: Lines::default(),
        };
        screen.second(1, &second(0.125, None));
        screen.second(0, &second(0.75, Some(1 << 20)));
        assert_eq!(
            screen.line(7.0),
            "   7 s  a  75.0 %,     10 reads/s, 1.0 MiB of 1.0 MiB hot;  b  12.5 %,     10 reads/s"
        );
    }
}
