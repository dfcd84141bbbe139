//! What another target would buy under placement by hotness.
//!
//! Records have the fast tier as far as they are worth it, and copies of tables the rest. What
//! records draw follows from their scores, what tables draw from the reads that reach the slow tier
//! now. Both are set against the rate of hits that is seen now, so the curve goes through the
//! present.

use super::HotRap;
use super::governor::paid_on_first;
use super::hot_room::HOT_SHARE;
use super::ralt::Mass;
use crate::engine::Engine;
use crate::metrics::{CostReport, CurvePoint};
use crate::placement::price::Bill;

/// Points of the curve, from the floor to the ceiling.
const POINTS: u32 = 20;

/// Slow tables and records, as they are now.
#[derive(Debug, Clone, Default)]
struct Outlook {
    /// Bytes of the fast tier that hold what has to lie there.
    others: f64,
    /// Records, the hottest first, in bytes of fast tables. Only those that are worth it.
    records: Vec<Mass>,
    /// Slow tables, those first that are read most for their size.
    tables: Vec<Mass>,
}

/// The part of all reads that the first `bytes` of `masses` draw. The first half of what lies
/// together draws half of its reads.
fn drawn(masses: &[Mass], bytes: f64) -> f64 {
    let all: f64 = masses.iter().map(|mass| mass.reads).sum();
    let mut left = bytes.max(0.0);
    let drawn = masses.iter().map(|mass| {
        let part = (left / mass.bytes.max(1.0)).min(1.0);
        left = (left - mass.bytes).max(0.0);
        part * mass.reads
    });
    match all > 0.0 {
        true => drawn.sum::<f64>() / all,
        false => 0.0,
    }
}

fn bytes(masses: &[Mass]) -> f64 {
    masses.iter().map(|mass| mass.bytes).sum()
}

impl Outlook {
    /// What records and tables draw, each of all that they could, if `paid` bytes are paid for.
    fn shares(&self, paid: f64) -> (f64, f64) {
        let room = (paid - self.others).max(0.0);
        let records = bytes(&self.records).min(room);
        (
            drawn(&self.records, records),
            drawn(&self.tables, room - records),
        )
    }

    /// The part of reads that need no slow disk if `paid` bytes are paid for. Now `seen` of them
    /// do, with `now` bytes.
    fn hit_rate(&self, paid: f64, now: f64, seen: f64) -> f64 {
        let (records_now, tables_now) = self.shares(now);
        let (records, tables) = self.shares(paid);
        // Of those that records leave over, tables answer their part.
        let without_tables = (1.0 - (1.0 - seen) / (1.0 - tables_now).max(0.01)).max(0.0);
        let all_records = match records_now > 0.0 {
            true => without_tables / records_now,
            false => 0.0,
        };
        let by_records = (all_records * records).min(1.0);
        1.0 - (1.0 - by_records) * (1.0 - tables)
    }
}

impl HotRap {
    /// The curve, if there have been reads.
    pub(super) fn add_curve(&self, engine: &Engine, bill: &Bill, report: &mut CostReport) {
        let Some(seen) = self.governor.reads.lock().hit_rate() else {
            return;
        };
        let fast = engine.fast();
        let others = fast
            .file_bytes()
            .saturating_sub(engine.bytes_of_last_levels());
        let outlook = Outlook {
            others: others as f64,
            records: self.worthy_masses(engine),
            tables: slow_masses(engine),
        };
        let now = (fast.file_bytes() + fast.copied_bytes()) as f64;
        let step = (report.ceiling - report.floor).max(0.0) / f64::from(POINTS);
        let point = |number: u32| {
            let cost = report.floor + step * f64::from(number);
            let paid = paid_on_first(bill, cost, fast.capacity()) as f64;
            CurvePoint {
                cost,
                hit_rate: outlook.hit_rate(paid, now, seen),
            }
        };
        report.curve = (0..=POINTS).map(point).collect();
    }

    /// Records that are worth the fast tier, in bytes of its tables.
    fn worthy_masses(&self, engine: &Engine) -> Vec<Mass> {
        let stored = 1.0 / self.expansion(engine) / HOT_SHARE;
        let mut left = self.ralt.may_be_worth() as f64 * stored;
        let mut masses = self.tracked_masses(engine);
        masses.retain(|mass| {
            let fits = left > 0.0;
            left -= mass.bytes;
            fits
        });
        masses
    }

    /// All records that are known, in bytes of the fast tier's tables.
    pub(super) fn tracked_masses(&self, engine: &Engine) -> Vec<Mass> {
        let stored = 1.0 / self.expansion(engine) / HOT_SHARE;
        let mut masses = self.ralt.masses();
        for mass in &mut masses {
            mass.bytes *= stored;
        }
        masses
    }
}

fn slow_masses(engine: &Engine) -> Vec<Mass> {
    let mut tables = Vec::new();
    for tree in engine.all_trees() {
        let version = tree.version();
        let slow = version.tables().filter(|table| table.meta.tier > 0);
        tables.extend(slow.map(|table| Mass {
            bytes: table.meta.len as f64,
            reads: table.density() * table.raw_bytes() as f64,
        }));
    }
    tables.sort_by(|a, b| (b.reads * a.bytes).total_cmp(&(a.reads * b.bytes)));
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a}, not {b}");
    }

    fn mass(bytes: f64, reads: f64) -> Mass {
        Mass { bytes, reads }
    }

    #[test]
    fn what_is_hottest_draws_its_part() {
        let masses = [mass(100.0, 60.0), mass(200.0, 30.0), mass(700.0, 10.0)];
        near(drawn(&masses, 0.0), 0.0);
        near(drawn(&masses, 50.0), 0.3);
        near(drawn(&masses, 300.0), 0.9);
        near(drawn(&masses, 5000.0), 1.0);
        near(drawn(&[], 100.0), 0.0);
    }

    #[test]
    fn the_curve_goes_through_the_present_and_rises() {
        let outlook = Outlook {
            others: 50.0,
            records: vec![mass(100.0, 80.0), mass(100.0, 20.0)],
            tables: vec![mass(500.0, 10.0), mass(500.0, 10.0)],
        };
        let at = |paid| outlook.hit_rate(paid, 150.0, 0.6);
        // All that is paid for now is the hotter half of the records: 0.6 for 0.8 of their reads.
        near(at(150.0), 0.6);
        near(at(100.0), 0.3);
        near(at(40.0), 0.0);
        near(at(250.0), 0.75);
        // Of what records leave over, half of the tables answer half.
        near(at(750.0), 0.875);
        near(at(1250.0), 1.0);
    }

    #[test]
    fn without_hot_records_tables_are_all_there_is() {
        let outlook = Outlook {
            others: 0.0,
            records: Vec::new(),
            tables: vec![mass(500.0, 10.0), mass(500.0, 10.0)],
        };
        near(outlook.hit_rate(500.0, 0.0, 0.0), 0.5);
    }
}
