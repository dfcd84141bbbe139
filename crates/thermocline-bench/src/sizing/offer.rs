//! What a price buys.

use anyhow::{Result, ensure};
use serde::Serialize;

/// Price points of a table.
const POINTS: u32 = 10;

/// Halvings of the range in which a price is sought. The result is exact to a part in 10¹².
const HALVINGS: u32 = 40;

/// What the two disks cost and how fast they answer. Each is of the fast one, then the slow one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Disks {
    /// Dollars for a GB and month.
    pub(super) prices: [f64; 2],
    /// Seconds for a read.
    pub(super) latencies: [f64; 2],
}

impl Disks {
    /// # Errors
    /// There is nothing to choose between these disks.
    pub(super) fn check(&self) -> Result<()> {
        let [fast, slow] = self.prices;
        ensure!(
            fast > slow,
            "--price-fast {fast} and --price-slow {slow}: the fast disk has to be dearer than the slow one, \
             or everything belongs on it"
        );
        let [fast, slow] = self.latencies;
        ensure!(
            fast < slow,
            "--latency-fast and --latency-slow: the fast disk has to answer sooner than the slow one, \
             or everything belongs on that"
        );
        Ok(())
    }

    /// The mean time of a read when this part of them needs no slow disk.
    pub(super) fn latency(&self, hit_rate: f64) -> f64 {
        let [fast, slow] = self.latencies;
        hit_rate * fast + (1.0 - hit_rate) * slow
    }
}

/// How data lie on the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Over both, the hottest records on the fast one.
    Records,
    /// Over both, the tables that are read most on the fast one.
    Tables,
    /// Over both, as a store that is there places them.
    Store,
    /// All on the fast one, and there is no slow one.
    OneDisk,
}

/// What a price buys.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// How the data lie.
    pub placement: Layout,
    /// Dollars for a GB of keys and values and month.
    pub cost: f64,
    /// Dollars a month for all of them.
    pub dollars_per_month: f64,
    /// Bytes on the fast disk, everything counted.
    pub fast_bytes: f64,
    /// What the store should be allowed there: that, and room for rewriting. None if it is not
    /// known.
    pub fast_capacity: Option<f64>,
    /// The part of point reads, 0 to 1, that need no slow disk.
    pub hit_rate: f64,
    /// Point reads a second that need it. None if nobody said how many reads there are.
    pub slow_reads_per_second: Option<f64>,
    /// Mean time of a point read in microseconds.
    pub mean_read_us: f64,
}

/// A way to lay out data that different prices are paid for.
pub(super) trait Offer {
    /// The least and the greatest price that make a difference.
    fn bounds(&self) -> [f64; 2];

    /// What `cost` buys, in dollars for a GB and month.
    fn at(&self, cost: f64) -> Result<Point>;
}

/// What ten prices buy, from the least to the greatest: each is as many times the one before.
pub(super) fn points(offer: &dyn Offer) -> Result<Vec<Point>> {
    let [least, most] = offer.bounds();
    let cost = |number: u32| match number {
        0 => least,
        number if number + 1 == POINTS => most,
        number => least * (most / least).powf(f64::from(number) / f64::from(POINTS - 1)),
    };
    (0..POINTS).map(|number| offer.at(cost(number))).collect()
}

/// The cheapest that has a mean read of at most `micros`, if any has.
pub(super) fn cheapest(offer: &dyn Offer, micros: f64) -> Result<Option<Point>> {
    let [mut below, mut enough] = offer.bounds();
    let is_enough = |point: &Point| point.mean_read_us <= micros;
    let (first, mut found) = (offer.at(below)?, offer.at(enough)?);
    if is_enough(&first) {
        return Ok(Some(first));
    }
    if !is_enough(&found) {
        return Ok(None);
    }
    for _ in 0..HALVINGS {
        let middle = below.midpoint(enough);
        let point = offer.at(middle)?;
        match is_enough(&point) {
            true => (enough, found) = (middle, point),
            false => below = middle,
        }
    }
    Ok(Some(found))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of 0.5 and 0.1 dollars, 1 and 11 milliseconds.
    pub(in crate::sizing) const DISKS: Disks = Disks {
        prices: [0.5, 0.1],
        latencies: [0.001, 0.011],
    };

    /// A hit rate that rises with the price, from 0 at 0.1 to 1 at 0.5.
    struct Straight;

    impl Offer for Straight {
        fn bounds(&self) -> [f64; 2] {
            [0.1, 0.5]
        }

        fn at(&self, cost: f64) -> Result<Point> {
            let hit_rate = (cost - 0.1) / 0.4;
            Ok(Point {
                placement: Layout::Records,
                cost,
                dollars_per_month: 0.0,
                fast_bytes: 0.0,
                fast_capacity: None,
                hit_rate,
                slow_reads_per_second: None,
                mean_read_us: DISKS.latency(hit_rate) * 1e6,
            })
        }
    }

    #[test]
    fn ten_prices_go_from_the_least_to_the_greatest() {
        let points = points(&Straight).unwrap();
        assert_eq!(points.len(), 10);
        assert_eq!((points[0].cost, points[9].cost), (0.1, 0.5));
        // Nine steps of the same ratio make it five times as much.
        let ratio = points[4].cost / points[3].cost;
        assert!((ratio.powi(9) - 5.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn the_cheapest_that_is_fast_enough_is_found() {
        let cost = |micros| cheapest(&Straight, micros).unwrap().map(|point| point.cost);
        // 6 ms is half of the reads from either disk.
        assert!((cost(6000.0).unwrap() - 0.3).abs() < 1e-9);
        assert_eq!(
            cost(11_000.0),
            Some(0.1),
            "nothing has to be on the fast disk"
        );
        assert_eq!(cost(1000.0), Some(0.5));
        assert_eq!(cost(999.0), None);
    }

    #[test]
    fn disks_between_which_there_is_nothing_to_choose_are_refused() {
        DISKS.check().unwrap();
        for (prices, latencies, says) in [
            (
                [0.1, 0.1],
                [1.0, 2.0],
                "--price-fast 0.1 and --price-slow 0.1",
            ),
            ([0.1, 0.5], [1.0, 2.0], "has to be dearer"),
            ([f64::NAN, 0.5], [1.0, 2.0], "has to be dearer"),
            ([0.5, 0.1], [2.0, 2.0], "has to answer sooner"),
            ([0.5, 0.1], [2.0, 1.0], "has to answer sooner"),
        ] {
            let error = Disks { prices, latencies }.check().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
