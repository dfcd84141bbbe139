//! What a store would hold on each disk for a price, and which reads the fast one would answer.
//!
//! Bytes of data D cost P_slow on the slow disk, and what is on the fast one P_fast. A record that
//! is on the fast disk may have an old copy on the slow one, so it is paid twice. A table that goes
//! to the fast disk leaves the slow one.

use anyhow::{Result, ensure};

use super::coverage::Coverage;
use super::offer::{Disks, Layout, Offer, Point};

/// Where records are placed, the slow disk holds so many times the data: old copies of records that
/// are on the fast disk, filters and indexes.
pub(super) const WITH_COPIES: f64 = 1.2;

/// Tables on either disk have so many times their data, for filters and indexes.
pub(super) const IN_TABLES: f64 = 1.05;

/// Hot records take so many times their bytes on the fast disk: with filters, indexes, and cold
/// records that lie between them.
pub(super) const ON_FAST: f64 = 1.1;

/// The most of the fast disk that access records take.
pub(super) const MOST_TRACKED: f64 = 0.25;

/// The least fast disk that is looked at, as a part of the data.
const LEAST_FAST: f64 = 0.01;

/// Steps to a capacity that fits what is on the disk. Each step leaves a tenth of what was missing.
const STEPS: u32 = 12;

/// What a store takes of a fast disk beside records, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Space {
    /// The log and new tables. They are paid for.
    pub(super) fixed: f64,
    /// What a compaction needs for a moment. It has to be there, and is not paid for.
    pub(super) job: f64,
    /// The most that hot records may take.
    pub(super) hot_set: f64,
}

/// What of it a store of a capacity takes.
pub(super) type SpaceOf<'a> = &'a dyn Fn(f64) -> Result<Space>;

/// A store over two disks that does not exist yet.
pub(super) struct Model<'a> {
    disks: Disks,
    coverage: &'a Coverage,
    /// Point reads a second.
    reads: Option<f64>,
    /// Bytes of access records for each byte of hot records. None if tables are placed.
    tracked: Option<f64>,
    space: SpaceOf<'a>,
    /// The slow disk holds so many times the data if nothing is on the fast one.
    on_slow: f64,
    /// What it costs at least.
    least: f64,
}

impl<'a> Model<'a> {
    /// # Errors
    /// The data are so few that the log alone costs as much as all on the fast disk.
    pub(super) fn new(
        disks: Disks,
        coverage: &'a Coverage,
        reads: Option<f64>,
        tracked: Option<f64>,
        space: SpaceOf<'a>,
    ) -> Result<Self> {
        let ([fast, slow], data) = (disks.prices, coverage.data());
        let on_slow = match tracked {
            Some(_) => WITH_COPIES,
            None => IN_TABLES,
        };
        let least = slow * on_slow + fast * space(data * LEAST_FAST)?.fixed / data;
        ensure!(
            least < fast,
            "{data:.0} bytes of data cost {least:.3} $/GB/month at least over two disks, and {fast} all on the fast one: \
             there is nothing to gain by a slow one"
        );
        Ok(Self {
            disks,
            coverage,
            reads,
            tracked,
            space,
            on_slow,
            least,
        })
    }

    /// The capacity for `fast` bytes, and what the store then takes.
    fn space_for(&self, fast: f64) -> Result<(f64, Space)> {
        let least = self.coverage.data() * LEAST_FAST;
        let mut capacity = fast.max(least);
        let mut space = (self.space)(capacity)?;
        for _ in 0..STEPS {
            capacity = (fast + space.job).max(least);
            space = (self.space)(capacity)?;
        }
        Ok((capacity, space))
    }

    /// Bytes on the fast disk, its capacity, and the hit rate, for `money` in dollars times bytes
    /// per GB beside what the data cost on the slow disk.
    fn records(&self, money: f64, tracked: f64) -> Result<(f64, f64, f64)> {
        let fast = money / self.disks.prices[0];
        let (capacity, space) = self.space_for(fast)?;
        let left = (fast - space.fixed).max(0.0);
        // Access records are of hot records, up to their limit.
        let of_hot = (left / (ON_FAST + tracked)).max((left - fast * MOST_TRACKED) / ON_FAST);
        let hot = of_hot.min(space.hot_set);
        let share = self.coverage.share(hot);
        // What hot records leave holds copies of tables. Hot keys that are scattered are in all.
        let used = hot * ON_FAST + (hot * tracked).min(fast * MOST_TRACKED);
        let copies = (left - used).max(0.0) / (self.coverage.data() * self.on_slow);
        Ok((fast, capacity, share + (1.0 - share) * copies.min(1.0)))
    }

    fn tables(&self, money: f64) -> Result<(f64, f64, f64)> {
        let [price, slow] = self.disks.prices;
        let (mut fast, mut up, mut capacity) = (money / price, 0.0, 0.0);
        for _ in 0..STEPS {
            let space;
            (capacity, space) = self.space_for(fast)?;
            up = ((money - price * space.fixed) / (price - slow)).max(0.0);
            fast = space.fixed + up;
        }
        Ok((fast, capacity, self.coverage.share(up / self.on_slow)))
    }
}

impl Offer for Model<'_> {
    fn bounds(&self) -> [f64; 2] {
        [self.least, self.disks.prices[0]]
    }

    fn at(&self, cost: f64) -> Result<Point> {
        let data = self.coverage.data();
        let [price, slow] = self.disks.prices;
        if cost >= price {
            return Ok(one_disk(self.disks, data, self.reads));
        }
        let money = (cost - slow * self.on_slow) * data;
        let (placement, (fast_bytes, capacity, hit_rate)) = match self.tracked {
            Some(tracked) => (Layout::Records, self.records(money, tracked)?),
            None => (Layout::Tables, self.tables(money)?),
        };
        Ok(Point {
            placement,
            cost,
            dollars_per_month: cost * data / 1e9,
            fast_bytes,
            fast_capacity: Some(capacity),
            hit_rate,
            slow_reads_per_second: self.reads.map(|reads| reads * (1.0 - hit_rate)),
            mean_read_us: self.disks.latency(hit_rate) * 1e6,
        })
    }
}

/// All data on the fast disk, and no slow one.
pub(super) fn one_disk(disks: Disks, data: f64, reads: Option<f64>) -> Point {
    Point {
        placement: Layout::OneDisk,
        cost: disks.prices[0],
        dollars_per_month: disks.prices[0] * data / 1e9,
        fast_bytes: data,
        fast_capacity: None,
        hit_rate: 1.0,
        slow_reads_per_second: reads.map(|_| 0.0),
        mean_read_us: disks.latencies[0] * 1e6,
    }
}

#[cfg(test)]
mod tests;
