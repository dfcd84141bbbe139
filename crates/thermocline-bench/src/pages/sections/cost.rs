//! What a store costs, and what that buys.

use super::super::plot::{Ink, Line, Plot, Shape, Table, Unit, of_engine};
use super::settings::{self, Shown};
use super::{Captioned, Section, commands, engine_label, work_label};
use crate::results::{Cell, Run, Stage};

/// Price against throughput and latency, and the figures of every stage with a bill.
pub(super) fn section(cells: &[Cell]) -> Section {
    let mut works: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells.iter().filter(|cell| !stages(cell).is_empty()) {
        let is_same = |other: &&mut Vec<&Cell>| key(other[0]) == key(cell);
        match works.iter_mut().find(is_same) {
            Some(work) => work.push(cell),
            None => works.push(vec![cell]),
        }
    }
    let (mut plots, mut tables) = (Vec::new(), Vec::new());
    for (number, work) in works.iter().enumerate() {
        let work = Work::new(number + 1, work);
        plots.extend(MEASURES.iter().filter_map(|measure| work.plot(measure)));
        tables.push(work.table());
    }
    Section {
        id: "cost",
        title: "Price",
        intro: "Dollars per GB of records and month, once the store had settled, with all that it \
            keeps beside the records. Each point is a run, or a stage of one: of several repeats the \
            one in the middle.",
        plots,
        tables,
        missing: Vec::new(),
    }
}

/// The stages of a cell that have a bill. If the distribution makes them, they did not do the same.
fn stages(cell: &Cell) -> &[Stage] {
    let Some(run) = cell.typical() else {
        return &[];
    };
    let is_one_work = run.stages.len() == 1 || run.target.is_some();
    let has_bills = run.stages.iter().all(|stage| stage.bill_mean.is_some());
    match is_one_work && has_bills {
        true => &run.stages,
        false => &[],
    }
}

/// What cells of one plot have in common: all but how much is on the fast disk, which is what is
/// paid for.
fn key(cell: &Cell) -> (String, Vec<String>) {
    let given = cell.first().map(settings::given_beside_the_fast_tier);
    (work_label(cell), given.unwrap_or_default())
}

struct Measure {
    name: &'static str,
    title: &'static str,
    unit: Unit,
    axis: &'static str,
    value: fn(&Stage) -> Option<f64>,
}

const MEASURES: [Measure; 2] = [
    Measure {
        name: "price-throughput",
        title: "Throughput by price",
        unit: Unit::PerSecond,
        axis: "operations a second",
        value: |stage| Some(stage.ops_s),
    },
    Measure {
        name: "price-latency",
        title: "Read latency by price",
        unit: Unit::Micros,
        axis: "mean time of a point read",
        value: |stage| stage.read_mean_us,
    },
];

/// Cells that did the same work at different prices.
struct Work<'a> {
    number: usize,
    cells: &'a [&'a Cell],
    /// Each engine with its colour, in the order in which they come.
    engines: Vec<(String, Ink)>,
}

impl<'a> Work<'a> {
    fn new(number: usize, cells: &'a [&'a Cell]) -> Self {
        let mut engines: Vec<(String, Ink)> = Vec::new();
        for cell in cells {
            let Some(run) = cell.first() else { continue };
            let label = engine_label(cell);
            if engines.iter().any(|(known, _)| *known == label) {
                continue;
            }
            let taken: Vec<Ink> = engines.iter().map(|(_, ink)| *ink).collect();
            engines.push((label, of_engine(&run.engine).unless(&taken)));
        }
        Self {
            number,
            cells,
            engines,
        }
    }

    fn name(&self) -> String {
        self.cells
            .first()
            .map_or_else(String::new, |cell| work_label(cell))
    }

    fn settings(&self) -> String {
        settings::line(self.cells, Shown::MiddleRun)
    }

    /// One line for each engine, from its cheapest point on. None if nothing has a value.
    fn plot(&self, measure: &Measure) -> Option<Plot> {
        let mut table = Table::new(&["engine", "target", "bill", measure.axis]);
        let mut lines = Vec::new();
        for (engine, ink) in &self.engines {
            let of_it = self
                .cells
                .iter()
                .filter(|cell| engine_label(cell) == *engine);
            let mut points: Vec<(f64, f64, &Stage)> = of_it
                .flat_map(|cell| stages(cell))
                .filter_map(|stage| Some((stage.bill_mean?, (measure.value)(stage)?, stage)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (bill, value, stage) in &points {
                table.rows.push(vec![
                    engine.clone(),
                    or_none(stage.target.clone()),
                    Unit::Dollars.show(*bill),
                    measure.unit.show(*value),
                ]);
            }
            if !points.is_empty() {
                lines.push(Line {
                    label: engine.clone(),
                    ink: *ink,
                    limit: false,
                    points: points.iter().map(|(x, y, _)| (*x, Some(*y))).collect(),
                });
            }
        }
        (!lines.is_empty()).then(|| Plot {
            id: format!("{}-{}", measure.name, self.number),
            title: format!("{}: {}", measure.title, self.name()),
            unit: measure.unit,
            axis: measure.axis.to_owned(),
            notes: Vec::new(),
            settings: self.settings(),
            shape: Shape::Curves {
                lines,
                unit: Unit::Dollars,
                across: "dollars per GB of records and month",
            },
            table,
            commands: commands(self.cells.iter().copied()),
            main: true,
        })
    }

    /// Everything that is known of each point.
    fn table(&self) -> Captioned {
        let mut table = Table::new(&[
            "cell",
            "target",
            "bill",
            "most",
            "by tables",
            "kept after",
            "above it again",
            "operations a second",
            "read, mean",
            "median",
            "99 %",
            "without the slow disk",
            "tables up",
            "down",
        ]);
        let dollars = |of: Option<f64>| or_none(of.map(|of| Unit::Dollars.show(of)));
        let time = |of: Option<f64>| or_none(of.map(|of| format!("{of:.0} s")));
        let micros = |of: Option<f64>| or_none(of.map(|of| Unit::Micros.show(of)));
        let bytes = |of: Option<u64>| or_none(of.map(|of| Unit::Bytes.show(of as f64)));
        for cell in self.cells {
            for stage in stages(cell) {
                table.rows.push(vec![
                    cell.id.clone(),
                    or_none(stage.target.clone()),
                    dollars(stage.bill_mean),
                    dollars(stage.bill_max),
                    dollars(stage.bill_by_tables),
                    time(stage.seconds_to_target),
                    time(stage.seconds_above_target),
                    Unit::PerSecond.show(stage.ops_s),
                    micros(stage.read_mean_us),
                    micros(stage.read_p50_us),
                    micros(stage.read_p99_us),
                    or_none(stage.fd_hit_rate.map(|rate| Unit::Share.show(rate))),
                    bytes(stage.tables_up_bytes),
                    bytes(stage.tables_down_bytes),
                ]);
            }
        }
        Captioned {
            title: format!("Price: {}", self.name()),
            settings: self.settings(),
            table,
            commands: commands(self.cells.iter().copied()),
        }
    }
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// The target of `run` over time, as a line of steps; none if it had none in dollars.
pub(super) fn target(run: &Run) -> Option<Vec<(f64, Option<f64>)>> {
    let mut steps = Vec::new();
    for stage in &run.stages {
        let end = stage.begin_seconds + stage.seconds;
        let target = Some(stage.target_cost?);
        steps.extend([(stage.begin_seconds, target), (end, target)]);
    }
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    /// A run whose stages have these bills, at a thousand operations a second per dollar.
    fn priced(engine: &str, bills: &[f64]) -> Cell {
        let mut cell = cell(engine, "uniform", &[1.0]);
        let run = &mut cell.runs[0];
        let stage = run.stages[0].clone();
        let of = |(number, bill): (usize, &f64)| Stage {
            begin_seconds: number as f64 * 10.0,
            target: Some(format!("cost:{bill}")),
            target_cost: Some(*bill),
            bill_mean: Some(*bill),
            ops_s: bill * 1000.0,
            read_mean_us: Some(100.0 / bill),
            ..stage.clone()
        };
        run.stages = bills.iter().enumerate().map(of).collect();
        run.target = Some("these".to_owned());
        cell
    }

    #[test]
    fn an_engine_has_one_line_from_its_cheapest_point_on() {
        let mut other = priced("tables", &[0.3]);
        // What is paid for does not tell cells apart, and a slow disk is one, emulated or not.
        other.runs[0].settings.fast_capacity *= 3;
        let emulated = other.runs[0].settings.slow_device.iops.take();
        let command = format!("thermocline bench --expect-slow-iops {}", emulated.unwrap());
        other.runs[0].command = Some(command);
        let mut elsewhere = priced("tables", &[0.1]);
        elsewhere.runs[0].workload = "rw".into();
        let cells = [
            priced("tables", &[0.4, 0.2]),
            priced("hotrap", &[0.1]),
            other,
            elsewhere,
        ];
        let section = section(&cells);
        let titles: Vec<&str> = section
            .plots
            .iter()
            .map(|plot| plot.title.as_str())
            .collect();
        let expected = [
            "Throughput by price: ro uniform",
            "Read latency by price: ro uniform",
            "Throughput by price: rw uniform",
            "Read latency by price: rw uniform",
        ];
        assert_eq!(titles, expected);
        let Shape::Curves { lines, .. } = &section.plots[0].shape else {
            panic!("no curves")
        };
        let points = [0.2, 0.3, 0.4].map(|bill: f64| (bill, Some(bill * 1000.0)));
        assert_eq!(lines[0].points, points);
        assert_eq!((lines.len(), lines[1].label.as_str()), (2, "hotrap"));
        assert_ne!(lines[0].ink, lines[1].ink);
        let row = &section.plots[1].table.rows[0];
        assert_eq!(*row, ["tables", "cost:0.2", "$0.200", "500 µs"]);
        assert_eq!(section.tables[0].table.rows.len(), 4);
    }

    #[test]
    fn what_has_no_bill_or_did_other_work_by_stages_is_left_out() {
        let free = cell("hotrap", "uniform", &[1.0]);
        let mut by_distribution = priced("tables", &[0.1, 0.2]);
        by_distribution.runs[0].target = None;
        let section = section(&[free, by_distribution]);
        assert!(section.plots.is_empty() && section.tables.is_empty());
    }

    #[test]
    fn a_target_is_drawn_in_steps() {
        let cell = priced("tables", &[0.4, 0.2]);
        let steps = [(0.0, 0.4), (10.0, 0.4), (10.0, 0.2), (20.0, 0.2)];
        let steps = steps.map(|(at, target)| (at, Some(target)));
        assert_eq!(target(&cell.runs[0]), Some(steps.to_vec()));
        let free = crate::results::tests::cell("hotrap", "uniform", &[1.0]);
        assert_eq!(target(&free.runs[0]), None);
    }
}
