//! The settings of several cells in one line.

use bytesize::ByteSize;

use super::super::plot::thousands;
use crate::results::{Cell, Run};

/// What the cells have in common, and where they differ, what there is.
pub(crate) fn line(cells: &[&Cell]) -> String {
    let runs: Vec<&Run> = cells.iter().filter_map(|cell| cell.first()).collect();
    let mut phrases: Vec<String> = PHRASES
        .iter()
        .filter_map(|phrase| {
            let mut said: Vec<String> = Vec::new();
            for words in runs.iter().filter_map(|run| phrase(run)) {
                if !said.contains(&words) {
                    said.push(words);
                }
            }
            (!said.is_empty()).then(|| said.join(" or "))
        })
        .collect();
    let repeats = || cells.iter().map(|cell| cell.runs.len());
    let (least, most) = (repeats().min().unwrap_or(0), repeats().max().unwrap_or(0));
    phrases.push(match (least, most) {
        (1, 1) => "one run each".to_owned(),
        _ if least == most => format!("{most} repeats, medians"),
        _ => format!("{least} to {most} repeats, medians"),
    });
    phrases.join("; ")
}

type Phrase = fn(&Run) -> Option<String>;

const PHRASES: [Phrase; 8] = [
    |run| {
        Some(format!(
            "{} records of {} B",
            thousands(run.records as f64),
            run.record_bytes
        ))
    },
    |run| Some(format!("fast tier {}", size(run.settings.fast_capacity))),
    |run| {
        let settings = &run.settings;
        let records = match settings.record_cache {
            0 => String::new(),
            bytes => format!(" ({} for records)", size(bytes)),
        };
        Some(format!(
            "memory {}, cache {}{records}, memtables {}",
            size(settings.memory),
            size(settings.cache),
            size(settings.memtable)
        ))
    },
    |run| {
        let settings = &run.settings;
        Some(format!(
            "blocks {} fast, {} slow",
            size(settings.block_size_fast),
            size(settings.block_size_slow)
        ))
    },
    |run| Some(format!("compression {}", run.settings.compression)),
    |run| {
        Some(format!(
            "durability {}, {} threads",
            run.settings.durability, run.threads
        ))
    },
    |run| {
        let device = &run.settings.slow_device;
        let iops = device
            .iops
            .map(|n| format!("{} operations", thousands(n as f64)));
        let bandwidth = device.bandwidth.map(size);
        let limits: Vec<String> = [iops, bandwidth].into_iter().flatten().collect();
        (!limits.is_empty())
            .then(|| format!("emulated slow disk, {} a second", limits.join(" and ")))
    },
    |run| {
        let measured = run.seconds.map(|s| format!("{s:.0} s measured"));
        let warm_up = run
            .warm_up_seconds
            .map(|s| format!("after {s:.0} s of warm-up"));
        let words: Vec<String> = [measured, warm_up].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(" "))
    },
];

/// A size as it was given: in powers of two where it is round in them.
fn size(bytes: u64) -> String {
    let size = ByteSize(bytes).display();
    let size = if bytes.is_multiple_of(1 << 10) {
        size.iec()
    } else {
        size.si()
    };
    size.to_string().replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    #[test]
    fn what_is_alike_is_said_once() {
        let mut a = cell("hotrap", "uniform", &[1.0, 2.0]);
        let b = cell("leveled", "uniform", &[1.0, 2.0]);
        let text = line(&[&a, &b]);
        assert_eq!(text.matches("1,000 records of 1024 B").count(), 1, "{text}");
        assert!(text.contains("5,000 operations a second"), "{text}");
        assert!(text.ends_with("2 repeats, medians"), "{text}");
        for run in &mut a.runs {
            run.threads = 9;
        }
        let text = line(&[&a, &b]);
        assert!(
            text.contains("9 threads or durability buffered, 4 threads"),
            "{text}"
        );
    }

    #[test]
    fn sizes_are_round_where_they_were() {
        assert_eq!(size(16 << 20), "16 MiB");
        assert_eq!(size(1_000_000_000), "1 GB");
    }
}
