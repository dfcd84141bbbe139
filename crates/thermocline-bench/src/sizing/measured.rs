//! What a store says that each price buys: the report of `Db::cost`, as `thermocline cost --json`
//! prints it.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::model::one_disk;
use super::offer::{Disks, Layout, Offer, Point};

/// No report is longer. A device would go on for ever.
const LONGEST: u64 = 1 << 20;

/// The fields of a report that are used.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Report {
    prices: Vec<f64>,
    data_bytes: u64,
    floor: f64,
    ceiling: f64,
    curve: Vec<CurvePoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct CurvePoint {
    cost: f64,
    hit_rate: f64,
}

impl Report {
    /// Reads the file, or standard input for `-`.
    ///
    /// # Errors
    /// It cannot be read, or is no report of a store that knows what its prices buy.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let (name, file): (String, Box<dyn Read>) = match path.as_os_str() == "-" {
            true => ("standard input".to_owned(), Box::new(stdin())),
            false => {
                let name = path.display().to_string();
                let file =
                    File::open(path).with_context(|| format!("--curve: cannot open {name}"))?;
                (name, Box::new(file))
            }
        };
        let mut text = String::new();
        file.take(LONGEST)
            .read_to_string(&mut text)
            .with_context(|| format!("--curve: cannot read {name}"))?;
        Self::parse(&text).with_context(|| format!("--curve {name}"))
    }

    fn parse(text: &str) -> Result<Self> {
        let report: Self =
            serde_json::from_str(text).context("it is no report of `thermocline cost --json`")?;
        ensure!(
            report.prices.len() == 2,
            "it has {} prices, and this tells of two disks",
            report.prices.len()
        );
        let [first, .., last] = &report.curve[..] else {
            bail!(
                "its curve is empty. Placement by hotness has one while reads are counted: have the program \
                 that reads the store write its `Db::cost`; or give --trace FILE, or --keys, --value-size \
                 and --distribution"
            );
        };
        ensure!(
            report.curve.iter().any(|point| point.hit_rate > 0.0),
            "the store knows of no reads yet; let the program that reads it write its `Db::cost`, or close it after reads"
        );
        let is_rising =
            |a: &CurvePoint, b: &CurvePoint| a.cost <= b.cost && a.hit_rate <= b.hit_rate;
        ensure!(
            report.curve.is_sorted_by(is_rising) && first.hit_rate >= 0.0 && last.hit_rate <= 1.0,
            "its curve does not rise from 0 to 1"
        );
        let prices_and_bounds = [report.prices[1], report.floor, report.ceiling];
        ensure!(
            report.data_bytes > 0 && prices_and_bounds.iter().all(|dollars| *dollars > 0.0),
            "its data, prices, floor and ceiling are to be above 0"
        );
        ensure!(
            report.floor < report.ceiling && report.floor < report.prices[0],
            "its floor {} has to be below its ceiling {} and the fast disk's price {}",
            report.floor,
            report.ceiling,
            report.prices[0]
        );
        Ok(report)
    }

    /// Of the fast disk, and of the slow one.
    pub(super) fn prices(&self) -> [f64; 2] {
        [self.prices[0], self.prices[1]]
    }

    /// Bytes of keys and values.
    pub(super) fn data(&self) -> f64 {
        self.data_bytes as f64
    }

    fn hit_rate(&self, cost: f64) -> f64 {
        let after = self.curve.partition_point(|point| point.cost <= cost);
        let before = self.curve.get(after.wrapping_sub(1));
        match (before, self.curve.get(after)) {
            (Some(a), Some(b)) => {
                a.hit_rate + (b.hit_rate - a.hit_rate) * (cost - a.cost) / (b.cost - a.cost)
            }
            (Some(only), None) | (None, Some(only)) => only.hit_rate,
            (None, None) => 0.0,
        }
    }
}

/// A store that is there, with as many data as one wants.
pub(super) struct Measured<'a> {
    pub(super) report: &'a Report,
    pub(super) disks: Disks,
    pub(super) data: f64,
    pub(super) reads: Option<f64>,
}

impl Offer for Measured<'_> {
    fn bounds(&self) -> [f64; 2] {
        [
            self.report.floor,
            self.report.ceiling.min(self.disks.prices[0]),
        ]
    }

    fn at(&self, cost: f64) -> Result<Point> {
        let [fast, slow] = self.disks.prices;
        if cost >= fast {
            return Ok(one_disk(self.disks, self.data, self.reads));
        }
        let hit_rate = self.report.hit_rate(cost);
        Ok(Point {
            placement: Layout::Store,
            cost,
            dollars_per_month: cost * self.data / 1e9,
            fast_bytes: (cost - self.report.floor) * self.data / (fast - slow),
            fast_capacity: None,
            hit_rate,
            slow_reads_per_second: self.reads.map(|reads| reads * (1.0 - hit_rate)),
            mean_read_us: self.disks.latency(hit_rate) * 1e6,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sizing::offer::points;
    use crate::sizing::offer::tests::DISKS;

    const GOOD: &str = r#"{"target": "none", "prices": [0.5, 0.1], "data_bytes": 1000000000, "floor": 0.12,
        "ceiling": 0.52, "curve": [{"cost": 0.12, "hit_rate": 0.2}, {"cost": 0.32, "hit_rate": 0.8},
        {"cost": 0.52, "hit_rate": 1.0}]}"#;

    #[test]
    fn a_report_tells_what_its_prices_buy() {
        let report = Report::parse(GOOD).unwrap();
        let (disks, data) = (DISKS, 2e9);
        let reads = Some(100.0);
        let store = Measured {
            report: &report,
            disks,
            data,
            reads,
        };
        assert_eq!(store.bounds(), [0.12, 0.5]);
        // Half way between two points. 0.1 dollars more for each of 2 GB are 0.5 GB that cost 0.4
        // more.
        let point = store.at(0.22).unwrap();
        assert!((point.hit_rate - 0.5).abs() < 1e-9, "{point:?}");
        assert!((point.fast_bytes - 5e8).abs() < 1.0, "{point:?}");
        assert!((point.dollars_per_month - 0.44).abs() < 1e-9);
        assert!((point.slow_reads_per_second.unwrap() - 50.0).abs() < 1e-9);
        assert!((point.mean_read_us - 6000.0).abs() < 1e-6);
        assert_eq!(store.at(0.12).unwrap().hit_rate, 0.2);
        assert_eq!(store.at(0.5).unwrap().placement, Layout::OneDisk);
    }

    proptest! {
        /// Whatever numbers a report has, it is refused or its table rises.
        #[test]
        fn numbers_are_refused_or_rise(
            prices in prop::array::uniform2(-0.1..1.0f64), data: u64, floor in -0.1..1.0f64,
            ceiling in -0.1..2.0f64, curve in prop::collection::vec((-0.1..2.0f64, -0.1..1.1f64), 0..4),
            sorts: bool,
        ) {
            let mut curve = curve;
            if sorts {
                curve.sort_by(|a, b| a.0.total_cmp(&b.0));
                let mut most = 0.0_f64;
                for point in &mut curve {
                    most = most.max(point.1);
                    point.1 = most;
                }
            }
            let each = curve.iter().map(|(cost, rate)| format!(r#"{{"cost":{cost},"hit_rate":{rate}}}"#));
            let curve = each.collect::<Vec<_>>().join(",");
            let text = format!(
                r#"{{"prices":{prices:?},"data_bytes":{data},"floor":{floor},"ceiling":{ceiling},"curve":[{curve}]}}"#
            );
            if let Ok(report) = Report::parse(&text) {
                let disks = Disks { prices: report.prices(), ..DISKS };
                let store = Measured { report: &report, disks, data: report.data(), reads: None };
                let points = points(&store).unwrap();
                prop_assert!(points.is_sorted_by(|a, b| a.hit_rate <= b.hit_rate), "{points:?}");
                prop_assert!(points.iter().all(|point| (0.0..=1.0).contains(&point.hit_rate)));
            }
        }
    }

    #[test]
    fn a_damaged_report_is_refused_with_what_is_wrong() {
        for (from, to, says) in [
            (
                "{\"target",
                "\"target",
                "no report of `thermocline cost --json`",
            ),
            ("\"prices\"", "\"price\"", "missing field `prices`"),
            ("[0.5, 0.1]", "[0.5, 0.2, 0.1]", "it has 3 prices"),
            ("[0.5, 0.1]", "[0.5, -0.1]", "above 0"),
            ("1000000000", "0", "above 0"),
            ("1000000000", "-7", "no report"),
            ("\"floor\": 0.12", "\"floor\": 0.6", "floor 0.6"),
            ("\"hit_rate\": 0.8", "\"hit_rate\": 0.1", "does not rise"),
            ("\"hit_rate\": 1.0", "\"hit_rate\": 1.5", "does not rise"),
            ("\"cost\": 0.32", "\"cost\": 0.1", "does not rise"),
            ("\"cost\": 0.32", "\"cost\": null", "no report"),
            ("\"cost\": 0.32", "\"cost\": 1e999", "no report"),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from}");
            let error = format!("{:#}", Report::parse(&text).unwrap_err());
            assert!(error.contains(says), "{from} to {to}: {error}");
        }
        let none = GOOD.split("\"curve\"").next().unwrap();
        let error = Report::parse(&format!("{none}\"curve\": []}}")).unwrap_err();
        assert!(error.to_string().contains("curve is empty"), "{error}");
        let unread = r#""curve": [{"cost": 0.1, "hit_rate": 0}, {"cost": 0.2, "hit_rate": 0}]}"#;
        let error = Report::parse(&format!("{none}{unread}")).unwrap_err();
        assert!(error.to_string().contains("no reads yet"), "{error}");
    }
}
