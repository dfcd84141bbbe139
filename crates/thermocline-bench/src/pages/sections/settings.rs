//! The settings of several cells in one line.

use bytesize::ByteSize;

use super::super::plot::thousands;
use crate::results::{Cell, Run, SlowDevice};

/// Which repeats of a cell are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The median of each figure.
    Medians,
    /// The repeat in the middle by throughput.
    MiddleRun,
}

/// What the cells have in common, and where they differ, all that there is. `shown` tells which of
/// their repeats are shown.
pub(crate) fn line(cells: &[&Cell], shown: Shown) -> String {
    let runs: Vec<&Run> = cells.iter().filter_map(|cell| cell.first()).collect();
    let of_each = |phrase: &Phrase| {
        let said = each_once(runs.iter().filter_map(|run| phrase(run)));
        (!said.is_empty()).then(|| said.join(" or "))
    };
    let mut phrases: Vec<String> = BEFORE_MEMORY.iter().filter_map(of_each).collect();
    phrases.extend(held_memory(&runs));
    phrases.extend(AFTER_MEMORY.iter().filter_map(of_each));
    let repeats = || cells.iter().map(|cell| cell.runs.len());
    let (least, most) = (repeats().min().unwrap_or(0), repeats().max().unwrap_or(0));
    phrases.push(match (least, most) {
        (1, 1) => "one run each".to_owned(),
        _ => {
            let repeats = match least == most {
                true => format!("{most} repeats"),
                false => format!("{least} to {most} repeats"),
            };
            match shown {
                Shown::Medians => format!("{repeats}, medians"),
                Shown::MiddleRun => format!("the middle one of {repeats}"),
            }
        }
    });
    phrases.join("; ")
}

/// Each word once.
fn each_once(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for words in words {
        if !once.contains(&words) {
            once.push(words);
        }
    }
    once
}

type Phrase = fn(&Run) -> Option<String>;

const BEFORE_MEMORY: [Phrase; 2] = [|run| Some(records(run)), |run| Some(fast_tier(run))];

const AFTER_MEMORY: [Phrase; 13] = [
    |run| {
        let of_records = match run.settings.record_cache {
            0 => String::new(),
            bytes => format!(" ({} for records)", size(bytes)),
        };
        Some(format!("{}{of_records}", cache(run)))
    },
    |run| Some(memtables(run)),
    |run| {
        let settings = &run.settings;
        Some(format!(
            "blocks {} fast, {} slow",
            size(settings.block_size_fast),
            size(settings.block_size_slow)
        ))
    },
    |run| Some(compression(run)),
    |run| Some(durability(run)),
    |run| Some(threads(run)),
    slow_disk,
    further_tiers,
    prices,
    |run| {
        let levels = run.settings.rocksdb_fast_levels?;
        Some(format!(
            "{} with {levels} levels on the fast disk",
            run.engine
        ))
    },
    |run| {
        let measured = run.seconds.map(|s| format!("{} s measured", seconds(s)));
        let warm_up = run
            .warm_up_seconds
            .map(|s| format!("after {} s of warm-up", seconds(s)));
        let words: Vec<String> = [measured, warm_up].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(" "))
    },
    |run| {
        let by = run.loaded_by.as_ref();
        let by = by.filter(|by| by.engine != run.engine)?;
        Some(format!(
            "{} on a state that {} loaded",
            run.engine, by.engine
        ))
    },
    |run| {
        let ingested = run.loaded_by.as_ref().is_some_and(|by| by.ingested);
        ingested.then(|| format!("{} loaded by ingestion", run.engine))
    },
];

/// What engines that are compared are given alike, at least by their command lines: not all of them
/// are held to the memory. Block sizes, caches of records and the time to warm up are each engine's
/// own.
const GIVEN: [fn(&Run) -> String; 10] = [
    records,
    fast_tier,
    memory,
    cache,
    memtables,
    compression,
    durability,
    threads,
    |run| slow_disk(run).unwrap_or_else(|| "no emulated slow disk".to_owned()),
    |run| further_tiers(run).unwrap_or_else(|| "two tiers at most".to_owned()),
];

/// What a run was given, phrase by phrase. Runs that differ in it are different experiments.
pub(super) fn given(run: &Run) -> Vec<String> {
    GIVEN.iter().map(|phrase| phrase(run)).collect()
}

/// The same with what the store aimed at.
pub(super) fn given_with_target(run: &Run) -> Vec<String> {
    let mut given = given(run);
    given.push(match &run.target {
        Some(target) => format!("target {target}"),
        None => "no target".to_owned(),
    });
    given
}

/// The same but for what the fast tier may hold. A slow disk that is emulated counts like a real
/// one of the same limits.
pub(super) fn given_beside_the_fast_tier(run: &Run) -> Vec<String> {
    let fast = fast_tier(run);
    let phrases = given(run).into_iter().filter(|phrase| *phrase != fast);
    let disk = |phrase: String| match phrase.strip_prefix("emulated slow disk, ") {
        Some(limits) => format!("slow disk of {limits}"),
        None => phrase,
    };
    phrases.map(disk).collect()
}

/// The parts of `given` that are not the same in all of `others`.
pub(super) fn apart<'a>(
    given: &'a [String],
    others: impl Iterator<Item = &'a [String]> + Clone,
) -> Vec<&'a str> {
    let all_have = |phrase: &String| others.clone().all(|other| other.contains(phrase));
    given
        .iter()
        .filter(|phrase| !all_have(phrase))
        .map(String::as_str)
        .collect()
}

pub(super) fn records(run: &Run) -> String {
    let records = thousands(run.records as f64);
    format!("{records} records of {} B", run.record_bytes)
}

fn fast_tier(run: &Run) -> String {
    format!("fast tier {}", size(run.settings.fast_capacity))
}

fn memory(run: &Run) -> String {
    format!("memory {}", size(run.settings.memory))
}

/// The memory of the engines that are held to theirs, and the names of the others.
fn held_memory(runs: &[&Run]) -> Option<String> {
    let (held, free): (Vec<&Run>, Vec<&Run>) = runs
        .iter()
        .copied()
        .partition(|run| run.is_held_to_memory());
    let held = each_once(held.into_iter().map(memory)).join(" or ");
    let free = each_once(free.into_iter().map(|run| run.engine.clone())).join(", ");
    match (held.is_empty(), free.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("memory not limited ({free})")),
        (false, true) => Some(held),
        (false, false) => Some(format!("{held} (not {free})")),
    }
}

fn cache(run: &Run) -> String {
    format!("cache {}", size(run.settings.cache))
}

fn memtables(run: &Run) -> String {
    format!("memtables {}", size(run.settings.memtable))
}

fn compression(run: &Run) -> String {
    format!("compression {}", run.settings.compression)
}

fn durability(run: &Run) -> String {
    format!("durability {}", run.settings.durability)
}

fn threads(run: &Run) -> String {
    let offered = run.rate.map_or(String::new(), |rate| {
        format!(" offering {} operations a second", thousands(rate as f64))
    });
    format!("{} threads{offered}", run.threads)
}

fn prices(run: &Run) -> Option<String> {
    let prices = run.settings.prices.as_ref()?;
    let each: Vec<String> = prices.each().map(|price| format!("${price}")).collect();
    Some(format!("{} per GB and month", each.join(" and ")))
}

/// Tiers beyond the fast one and a slow one without a limit.
fn further_tiers(run: &Run) -> Option<String> {
    let limit = |bytes| format!(" of {}", size(bytes));
    let mut tiers = Vec::new();
    if let Some(bytes) = run.settings.slow_capacity {
        tiers.push(format!("slow tier of {}", size(bytes)));
    }
    for tier in &run.settings.slower {
        let capacity = tier.capacity.map_or(String::new(), limit);
        let device = emulated(&tier.device).map_or(String::new(), |device| format!(" ({device})"));
        tiers.push(format!("a slower tier{capacity}{device}"));
    }
    (!tiers.is_empty()).then(|| tiers.join(", "))
}

/// What the emulation of a slow disk lets it do. If none is emulated, what the command expects of
/// the real one.
pub(crate) fn slow_disk(run: &Run) -> Option<String> {
    if let Some(device) = emulated(&run.settings.slow_device) {
        return Some(format!("emulated slow disk, {device}"));
    }
    let command = run.command.as_deref()?;
    let real = limits(
        expected(command, "--expect-slow-iops"),
        expected(command, "--expect-slow-bandwidth"),
    );
    real.map(|limits| format!("slow disk of {limits}"))
}

/// What an emulated device can do, if there is one.
fn emulated(device: &SlowDevice) -> Option<String> {
    let longer = device.latency.map(humantime::format_duration);
    let longer = longer.map(|latency| format!("each operation {latency} longer"));
    let words = [limits(device.iops, device.bandwidth), longer];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// In words.
fn limits(iops: Option<u64>, bandwidth: Option<u64>) -> Option<String> {
    let iops = iops.map(|n| format!("{} operations", thousands(n as f64)));
    let limits = [iops, bandwidth.map(size)];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| format!("{} a second", limits.join(" and ")))
}

/// The size or number given with `flag` in a command line, either as the next word or after a `=`.
pub(crate) fn expected(command: &str, flag: &str) -> Option<u64> {
    let words = shlex::split(command)?;
    let mut words = words.iter().map(String::as_str);
    let value = loop {
        let after = words.next()?.strip_prefix(flag);
        match after {
            Some("") => break words.next()?,
            Some(value) if value.starts_with('=') => break &value[1..],
            _ => {}
        }
    };
    let size: ByteSize = value.parse().ok()?;
    Some(size.as_u64())
}

/// Seconds. Short times have a decimal.
pub(super) fn seconds(seconds: f64) -> String {
    let decimals = usize::from(seconds < 10.0);
    let text = format!("{seconds:.decimals$}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A size as it was given: in powers of two if it is round in them.
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
    use crate::prices::Prices;
    use crate::report::LoadedBy;
    use crate::results::tests::cell;

    /// Regression: only what stood behind a blank was read, and limits of a disk that were given
    /// with `=` were taken for none.
    #[test]
    fn a_flag_is_read_in_both_its_forms() {
        for (command, found) in [
            ("bench --expect-slow-iops 400", Some(400)),
            ("bench '--expect-slow-iops=400' --keep", Some(400)),
            ("bench --expect-slow-iops=5kB", Some(5000)),
            ("bench --fast '--expect-slow-iops 400'", None),
            ("bench --expect-slow-iopses 400", None),
            ("bench --expect-slow-iops", None),
            ("bench", None),
        ] {
            assert_eq!(expected(command, "--expect-slow-iops"), found, "{command}");
        }
    }

    #[test]
    fn what_is_alike_is_said_once() {
        let mut a = cell("hotrap", "uniform", &[1.0, 2.0]);
        let b = cell("leveled", "uniform", &[1.0, 2.0]);
        let text = line(&[&a, &b], Shown::Medians);
        assert_eq!(text.matches("1,000 records of 1024 B").count(), 1, "{text}");
        assert!(text.contains("5,000 operations a second"), "{text}");
        assert!(text.ends_with("; 2 repeats, medians"), "{text}");
        let text = line(&[&a, &b], Shown::MiddleRun);
        assert!(text.ends_with("; the middle one of 2 repeats"), "{text}");
        for run in &mut a.runs {
            run.threads = 9;
        }
        let text = line(&[&a, &b], Shown::Medians);
        assert!(text.contains("; 9 threads or 4 threads;"), "{text}");
    }

    /// Regression: `--no-memory-limit` leaves an engine all the page cache that there is, and
    /// RocksDB is never given the memory. The line named the memory that they were not held to.
    #[test]
    fn memory_that_was_not_limited_is_not_said_to_be() {
        let mut cells =
            ["hotrap", "fjall", "rocksdb"].map(|engine| cell(engine, "uniform", &[1.0]));
        cells[1].runs[0].memory_limited = Some(true);
        let said = |cells: &[Cell]| {
            let text = line(&cells.iter().collect::<Vec<_>>(), Shown::Medians);
            let memory = text.split("; ").find(|phrase| phrase.starts_with("memory"));
            memory.unwrap_or_default().to_owned()
        };
        assert_eq!(said(&cells[..2]), "memory 16 MiB");
        assert_eq!(said(&cells), "memory 16 MiB (not rocksdb)");
        cells[1].runs[0].memory_limited = Some(false);
        assert_eq!(said(&cells), "memory 16 MiB (not fjall, rocksdb)");
        assert_eq!(said(&cells[1..2]), "memory not limited (fjall)");
        assert_eq!(said(&cells[2..]), "memory not limited (rocksdb)");
    }

    /// Regression: it was recorded, and no report said it.
    #[test]
    fn a_state_of_another_engine_is_said_to_be() {
        let mut cell = cell("leveled", "uniform", &[1.0]);
        let by = |engine: &str| LoadedBy {
            engine: engine.to_owned(),
            commit: None,
            ingested: false,
        };
        cell.runs[0].loaded_by = Some(by("leveled"));
        assert!(!line(&[&cell], Shown::Medians).contains("state"));
        cell.runs[0].loaded_by = Some(by("hotrap"));
        let text = line(&[&cell], Shown::Medians);
        assert!(
            text.contains("; leveled on a state that hotrap loaded;"),
            "{text}"
        );
        assert!(!text.contains("ingestion"), "{text}");
        let ingested = LoadedBy {
            ingested: true,
            ..by("leveled")
        };
        cell.runs[0].loaded_by = Some(ingested);
        let text = line(&[&cell], Shown::Medians);
        assert!(text.contains("; leveled loaded by ingestion;"), "{text}");
    }

    #[test]
    fn prices_are_said() {
        let mut cells = ["hotrap", "tables"].map(|engine| cell(engine, "uniform", &[1.0]));
        for cell in &mut cells {
            let slow = vec![0.045];
            cell.runs[0].settings.prices = Some(Prices { fast: 0.528, slow });
        }
        let text = line(&cells.iter().collect::<Vec<_>>(), Shown::Medians);
        let said = "; $0.528 and $0.045 per GB and month;";
        assert!(text.contains(said), "{text}");
    }

    /// The capacity says nothing then.
    #[test]
    fn levels_on_the_fast_disk_are_said() {
        let mut cells = ["hotrap", "rocksdb"].map(|engine| cell(engine, "uniform", &[1.0]));
        cells[1].runs[0].settings.rocksdb_fast_levels = Some(4);
        let text = line(&cells.iter().collect::<Vec<_>>(), Shown::Medians);
        let said = "; rocksdb with 4 levels on the fast disk;";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn short_times_are_not_rounded_to_nothing() {
        let mut cell = cell("hotrap", "uniform", &[1.0]);
        cell.runs[0].seconds = Some(0.5);
        cell.runs[0].warm_up_seconds = Some(0.2);
        let text = line(&[&cell], Shown::Medians);
        assert!(
            text.contains("; 0.5 s measured after 0.2 s of warm-up;"),
            "{text}"
        );
        cell.runs[0].seconds = Some(300.4);
        cell.runs[0].warm_up_seconds = Some(2.0);
        let text = line(&[&cell], Shown::Medians);
        assert!(
            text.contains("; 300 s measured after 2 s of warm-up;"),
            "{text}"
        );
    }

    #[test]
    fn sizes_are_round_where_they_were() {
        assert_eq!(size(16 << 20), "16 MiB");
        assert_eq!(size(1_000_000_000), "1 GB");
    }
}
