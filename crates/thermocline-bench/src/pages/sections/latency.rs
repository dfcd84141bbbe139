//! Latencies: figure 8 of the paper.
//!
//! Clients that wait for a disk at its limit queue there. Their latency is then the number of
//! clients over the limit, and says nothing of the engine. Such runs are left out.

use serde_json::Value;

use super::super::plot::Unit;
use super::panel::{Measure, Panel};
use super::{Section, settings, work_label};
use crate::results::{Cell, Latency, Run};

/// From this share of its limit on, the slow disk is what a run waits for.
const BOUND: f64 = 0.85;

/// Percentiles of reads, or of what the run has instead.
pub(super) fn section(panels: &[Panel<'_>], probe: &Value) -> Section {
    let mut plots = Vec::new();
    let mut missing = Vec::new();
    let mut unknown = false;
    for panel in panels {
        let mut bound = Vec::new();
        for cell in &panel.cells {
            match cell.first().map(|run| load_of_slow_disk(cell, run, probe)) {
                Some(Some(load)) if load >= BOUND => bound.push(format!(
                    "{} {} ({:.0} %)",
                    panel.label(cell),
                    work_label(cell),
                    load * 100.0
                )),
                Some(None) => unknown = true,
                _ => {}
            }
        }
        if !bound.is_empty() {
            missing.push(format!(
                "Left out of {}, as the slow disk was at its limit and latency is the queue before it: {}.",
                panel.title,
                bound.join("; ")
            ));
        }
        let free = panel.cells.iter().copied();
        let free = panel.with(free.filter(|cell| !is_bound(cell, probe)).collect());
        missing.extend(without_last_tenth(&free));
        for (name, title, axis, percentile) in PERCENTILES {
            let measure = Measure {
                name,
                title,
                unit: Unit::Micros,
                axis,
                main: false,
            };
            let whole = |run: &Run| run.of_reads().map(percentile);
            let last = |run: &Run| run.final_of_reads().map(percentile);
            plots.extend(free.bars_of(&measure, &[("", &whole), ("last tenth", &last)]));
        }
    }
    if unknown && !plots.is_empty() {
        missing.push(
            "For some runs it is not known how much of the slow disk's limit they used: no limit was \
             emulated, and no probe of the disk recorded, or the engine does not count reads. They are shown."
                .to_owned(),
        );
    }
    Section {
        id: "latency",
        title: "Latency",
        intro: "Of reads (where there are none, of the first kind of operation), with all clients waiting for their \
            answers: over the whole run, and where that was recorded, in its last tenth, as the paper has it.",
        plots,
        tables: Vec::new(),
        missing,
    }
}

type Percentile = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Latency) -> f64,
);

const PERCENTILES: [Percentile; 3] = [
    (
        "latency-p50",
        "Latency, median",
        "time within which half of the reads were answered",
        |l| l.p50_us,
    ),
    (
        "latency-p99",
        "Latency, 99th percentile",
        "time within which 99 % of the reads were answered",
        |l| l.p99_us,
    ),
    (
        "latency-p999",
        "Latency, 99.9th percentile",
        "time within which 99.9 % of the reads were answered",
        |l| l.p999_us,
    ),
];

/// Names the cells that only have the whole run, beside others that have their last tenth too. If
/// no cell has it, all bars show the same.
fn without_last_tenth(panel: &Panel<'_>) -> Option<String> {
    let is_shown = |cell: &&Cell| cell.runs.iter().any(|run| run.of_reads().is_some());
    let has_end = |cell: &&Cell| cell.runs.iter().any(|run| run.final_of_reads().is_some());
    let shown = panel.cells.iter().copied().filter(is_shown);
    let (with, without): (Vec<&Cell>, Vec<&Cell>) = shown.partition(has_end);
    if with.is_empty() || without.is_empty() {
        return None;
    }
    let names = without.iter();
    let names: Vec<String> = names
        .map(|cell| format!("{} {}", panel.label(cell), work_label(cell)))
        .collect();
    Some(format!(
        "Shown of the whole run only in {}, as their results have no latencies of the last tenth: {}.",
        panel.title,
        names.join("; ")
    ))
}

/// Whether a cell waits for the slow disk at its limit, as far as is known.
fn is_bound(cell: &Cell, probe: &Value) -> bool {
    let load = cell
        .first()
        .and_then(|run| load_of_slow_disk(cell, run, probe));
    load.is_some_and(|load| load >= BOUND)
}

/// The share of the slow disk's limit that a run used, of operations or of bytes read. `None` if
/// that is not known. The limit is the emulated one, or what the command expects of a real disk, or
/// what the probe found.
fn load_of_slow_disk(cell: &Cell, run: &Run, probe: &Value) -> Option<f64> {
    // Of several slow disks, only the sum of their I/O is read.
    if !run.settings.slower.is_empty() {
        return None;
    }
    let seconds = run.seconds.filter(|seconds| *seconds > 0.0)?;
    let emulated = &run.settings.slow_device;
    let disk = run.slow_probe.as_ref().unwrap_or(&probe["slow"]);
    let probed = |field: &str| disk.pointer(field).and_then(Value::as_f64);
    let iops = emulated
        .iops
        .or_else(|| settings::expected(&cell.command, "--expect-slow-iops"))
        .map(|limit| limit as f64)
        .or_else(|| probed("/random_read_16k/iops"));
    let bandwidth = emulated
        .bandwidth
        .or_else(|| settings::expected(&cell.command, "--expect-slow-bandwidth"))
        .map(|limit| limit as f64)
        .or_else(|| probed("/sequential_read_bytes_s"));
    let share = |used: Option<u64>, limit: Option<f64>| {
        Some(used? as f64 / seconds / limit.filter(|limit| *limit > 0.0)?)
    };
    let shares = [
        share(run.sd_read_ops, iops),
        share(run.sd_read_bytes, bandwidth),
    ];
    shares.into_iter().flatten().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::panel;
    use super::*;
    use crate::results::tests::cell;
    use serde_json::json;

    #[test]
    fn runs_that_wait_for_the_slow_disk_are_left_out() {
        let mut cells = vec![
            cell("hotrap", "uniform", &[1.0]),
            cell("leveled", "uniform", &[1.0]),
        ];
        // The limit is 5000 a second, and the run is ten seconds long.
        cells[1].runs[0].sd_read_ops = Some(49_000);
        let section = section(&panel::of(&cells), &Value::Null);
        assert_eq!(section.plots.len(), 3);
        assert_eq!(section.plots[0].table.rows.len(), 1);
        assert!(section.missing[0].contains("leveled ro uniform (98 %)"));
    }

    /// Regression: only latencies of the whole run were there, and the paper's figure 8 is of the
    /// last tenth.
    #[test]
    fn the_last_tenth_stands_beside_the_whole_run_where_it_was_recorded() {
        let mut cells = [
            cell("hotrap", "uniform", &[1.0]),
            cell("leveled", "uniform", &[1.0]),
        ];
        let run = &mut cells[0].runs[0];
        let mut end = run.latencies.clone();
        end[0].p99_us = 30.0;
        run.last_tenth.as_mut().unwrap().latencies = end;
        let section = section(&panel::of(&cells), &Value::Null);
        let rows = section.plots[1].table.rows.iter();
        let rows: Vec<(&str, &str)> = rows.map(|row| (&row[1][..], &row[2][..])).collect();
        let expected = [
            ("hotrap", "90.0 µs"),
            ("hotrap, last tenth", "30.0 µs"),
            ("leveled", "90.0 µs"),
        ];
        assert_eq!(rows, expected);
    }

    /// Regression: bars of the whole run alone stood beside others of the last tenth, without a
    /// word that this one was missing.
    #[test]
    fn those_without_a_last_tenth_are_named_beside_those_that_have_it() {
        let engines = ["hotrap", "leveled", "rocksdb"];
        let mut cells = engines.map(|engine| cell(engine, "uniform", &[1.0]));
        cells[2].runs[0].sd_read_ops = Some(49_000);
        let missing = |cells: &[Cell]| section(&panel::of(cells), &Value::Null).missing;
        let bound = missing(&cells);
        assert_eq!(bound.len(), 1, "{bound:?}");
        let run = &mut cells[0].runs[0];
        let end = run.latencies.clone();
        run.last_tenth.as_mut().unwrap().latencies = end;
        let line = "Shown of the whole run only in 1,000 records of 1024 B, \
                    as their results have no latencies of the last tenth: leveled ro uniform.";
        assert_eq!(missing(&cells), [&bound[0][..], line]);
    }

    #[test]
    fn what_is_left_out_can_be_told_from_what_is_not() {
        let mut cells = [
            cell("hotrap", "uniform", &[1.0]),
            cell("hotrap", "uniform", &[1.0]),
        ];
        cells[1].id = "blocks-16k".into();
        cells[1].runs[0].sd_read_ops = Some(49_000);
        let section = section(&panel::of(&cells), &Value::Null);
        assert!(
            section.missing[0].contains(": blocks-16k ro uniform (98 %)"),
            "{:?}",
            section.missing
        );
    }

    #[test]
    fn the_limit_of_a_real_disk_is_what_was_expected_or_measured() {
        let mut cell = cell("hotrap", "uniform", &[1.0]);
        let mut run = cell.runs.remove(0);
        run.settings.slow_device.iops = None;
        run.sd_read_ops = Some(1000);
        assert_eq!(load_of_slow_disk(&cell, &run, &Value::Null), None);
        let probe = json!({"slow": {"random_read_16k": {"iops": 400.0}}});
        assert_eq!(load_of_slow_disk(&cell, &run, &probe), Some(0.25));
        cell.command = "thermocline bench --expect-slow-iops 200 --threads 4".into();
        assert_eq!(load_of_slow_disk(&cell, &run, &probe), Some(0.5));
    }
}
