//! What a store costs whose tables lie by heat, and what it could cost.

use super::ByTable;
use crate::engine::Engine;
use crate::metrics::{CostReport, CurvePoint};
use crate::placement::organizing::{Ladder, Stock, Which, assign};

/// The part of `reads` a second that need no slow tier, when `slow` do.
fn hit_rate(slow: f64, reads: f64) -> f64 {
    match reads > 0.0 {
        true => (1.0 - slow / reads).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// Points of the curve, from the floor to the ceiling.
const POINTS: u32 = 20;

impl ByTable {
    /// Adds to `report` what this placement knows.
    pub(super) fn add_outlook(&self, engine: &Engine, report: &mut CostReport, with_curve: bool) {
        let latencies = self.reads.lock().latencies();
        let stock = Stock::take(engine, Which::All, 0, latencies);
        self.migrations.add_to(engine, report);
        self.reads.lock().add_to(report);
        // Of a store without data a GB has no price.
        let Some(bill) = stock.bill.as_ref().filter(|bill| bill.data > 0) else {
            return;
        };
        let data = bill.data as f64;
        let ladder = Ladder::new(&stock.tiers);
        report.floor = stock.floor(&ladder) / data;
        let most = ladder.most(&stock.candidates);
        report.ceiling = report.floor + most / data;
        if !with_curve {
            return;
        }
        // Heat outlasts a closing, and the count of reads does not. A store that was just opened
        // tells of the reads that a disk has answered.
        let of_tables = || stock.candidates.iter().map(|table| table.rate).sum();
        let reads = self.reads.lock().rate().unwrap_or_else(of_tables);
        report.curve = (0..=POINTS)
            .map(|point| {
                let budget = most * f64::from(point) / f64::from(POINTS);
                let assigned = assign(&stock.candidates, &ladder, budget);
                let slow = assigned.rate_below_top(&stock.candidates, &ladder);
                CurvePoint {
                    cost: report.floor + budget / data,
                    hit_rate: hit_rate(slow, reads),
                }
            })
            .collect();
    }
}
