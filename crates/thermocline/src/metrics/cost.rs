//! What a store costs, and what another target would buy.

use std::time::Duration;

use crate::options::Target;

/// What [`Db::cost`](crate::Db::cost) tells. Dollars are per GB (10⁹ bytes) of keys and values in
/// live tables and month, unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CostReport {
    /// The target in force.
    pub target: Target,
    /// Dollars that the target allows at present: of a cost itself, of a hit rate or a latency what
    /// it is found to take. None without a target.
    pub budget: Option<f64>,
    /// The part of point reads of late, 0 to 1, that needed no read of a slower tier than the
    /// first. None if there were none.
    pub hit_rate: Option<f64>,
    /// How long point reads took of late on average. None if hardly any were measured: one in
    /// sixteen is.
    pub mean_latency: Option<Duration>,
    /// What a GB of each tier costs in a month.
    pub prices: Vec<f64>,
    /// Dollars now. Every byte of files and copies counts, obsolete ones that readers hold
    /// included.
    pub now: f64,
    /// Dollars a month for all of the store.
    pub dollars_per_month: f64,
    /// Bytes of keys and values in live tables, before compression.
    pub data_bytes: u64,
    /// The least that the store can cost now: all that may lie on the last tier does. The log, the
    /// manifest, new tables and what readers hold stay where they are.
    pub floor: f64,
    /// The most that it can cost: all that the tiers' capacities allow lies on the first one.
    pub ceiling: f64,
    /// Bytes of tables that are to move to another tier, or do so now.
    pub moving_bytes: u64,
    /// Why the store costs more than the target; none if it does not, or if tables are on the way
    /// that may bring it there.
    pub held_up_by: Option<String>,
    /// What each target would buy, from the cheapest on, as tables are read of late. Until reads
    /// have been counted for a second since the opening, of those reads that a disk answers.
    pub curve: Vec<CurvePoint>,
    /// Bytes of the first tier that placement by hotness has filled with files.
    pub fast_room_records_bytes: u64,
    /// Bytes of it that hold copies of tables.
    pub fast_room_tables_bytes: u64,
    /// Tables that were written anew on another tier since the store was opened.
    pub migrations: u64,
    /// Bytes of them that came to a faster tier.
    pub migrated_up_bytes: u64,
    /// Bytes of them that went to a slower tier.
    pub migrated_down_bytes: u64,
    /// Tables that other jobs have brought to another tier since the store was opened: they wrote
    /// them on a tier on which none of the tables lay that they were made of.
    pub migrations_by_compaction: u64,
    /// Bytes of them.
    pub migrated_by_compaction_bytes: u64,
}

impl CostReport {
    /// Floor and ceiling. None for a store without data, and where nothing can move.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        let is_known = self.data_bytes > 0 && self.ceiling > 0.0;
        is_known.then_some((self.floor, self.ceiling))
    }
}

/// What a target would buy.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct CurvePoint {
    /// Dollars.
    pub cost: f64,
    /// The part of point reads, 0 to 1, that would need no read of a slower tier than the first.
    pub hit_rate: f64,
}
