//! Progress of long work, on standard error, and only if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

fn style(template: &str) -> ProgressStyle {
    // The templates are constants; a bad one would still show a plain bar.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A bar over `total` bytes.
pub(crate) fn bytes(total: u64, message: &'static str) -> ProgressBar {
    ProgressBar::new(total)
        .with_style(style(
            "{msg} [{wide_bar}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} eta {eta}",
        ))
        .with_message(message)
}

/// A spinner that counts bytes, for an unknown total.
pub(crate) fn unknown_bytes(message: &'static str) -> ProgressBar {
    let bar = ProgressBar::no_length()
        .with_style(style(
            "{spinner} {msg} {binary_bytes} {binary_bytes_per_sec} {elapsed}",
        ))
        .with_message(message);
    bar.enable_steady_tick(TICK);
    bar
}

/// A spinner for work without a measure.
pub(crate) fn spinner(message: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner()
        .with_style(style("{spinner} {msg} {elapsed}"))
        .with_message(message);
    bar.enable_steady_tick(TICK);
    bar
}
