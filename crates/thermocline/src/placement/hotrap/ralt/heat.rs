//! What is hottest, and how size falls with hotness.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::cursor::Merged;
use super::record::{Record, split_key};
use super::shared::Shared;
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::metrics::{HeatPoint, HeatReport, HotKey};
use crate::sync::Arc;

/// Bytes read from a run in one I/O.
const READAHEAD: usize = 256 << 10;

/// Most points of the curve.
const POINTS: usize = 40;

/// Steps of a rank that are counted apart.
const RESOLUTION: f64 = 1.0 / 32.0;

/// A record in the order of its rank.
#[derive(Debug, PartialEq)]
struct Ranked {
    rank: f64,
    key: Vec<u8>,
    record: Record,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let rank = self.rank.total_cmp(&other.rank);
        rank.then_with(|| other.key.cmp(&self.key))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Shared {
    /// The `most` hottest keys, and the curve, from a scan of all records.
    pub(super) fn heat(
        &self,
        most: usize,
        name: &dyn Fn(KeyspaceId) -> Option<String>,
    ) -> Result<HeatReport> {
        let version = self.version.load_full();
        let now = self.now();
        let (model, keyspaces) = (self.model, self.keyspaces.load_full());
        let tables = version.numbered();
        let tables = tables.map(|(level, table)| (level, Arc::clone(table)));
        let tables = tables.collect();
        let mut merged = Merged::new(tables, keyspaces, model, READAHEAD, &[])?;
        let mut hottest = BinaryHeap::new();
        // Records and bytes by rank, in small steps.
        let mut sizes: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
        while let Some((key, record)) = merged.next(None)? {
            let rank = self.model.rank(&record, key);
            let step = sizes.entry((rank / RESOLUTION).floor() as i64).or_default();
            step.0 += 1;
            step.1 += record.hot_rap_size(key);
            let is_among = |least: &Reverse<Ranked>| rank > least.0.rank;
            if hottest.len() < most || hottest.peek().is_some_and(is_among) {
                let key = key.to_vec();
                hottest.push(Reverse(Ranked { rank, key, record }));
            }
            if hottest.len() > most {
                hottest.pop();
            }
        }
        let epoch = self.model.epoch(now.tick);
        let describe = |Reverse(ranked): Reverse<Ranked>| {
            let (keyspace, key) = split_key(&ranked.key)?;
            Some(HotKey {
                keyspace: name(keyspace)?,
                key: key.to_vec(),
                value_len: u64::from(ranked.record.value_len),
                score: self.model.score(&ranked.record, now),
                is_stable: self.model.is_stable(&ranked.record, epoch),
                is_hot: (version.limits.hot)
                    .admits(self.model.stable_before(&ranked.record), ranked.rank),
            })
        };
        let score = |step: i64| self.model.score_at(step as f64 * RESOLUTION, now);
        Ok(HeatReport {
            hottest: hottest
                .into_sorted_vec()
                .into_iter()
                .filter_map(describe)
                .collect(),
            curve: curve(&sizes, score),
            data_bytes: 0,
        })
    }
}

/// At most [`POINTS`] points of the sums from the highest step down, about evenly by size.
fn curve(sizes: &BTreeMap<i64, (u64, u64)>, score: impl Fn(i64) -> f64) -> Vec<HeatPoint> {
    let total: u64 = sizes.values().map(|(_, bytes)| bytes).sum();
    let (mut records, mut bytes, mut drawn) = (0, 0, 0);
    let mut points = Vec::new();
    for (at, (&step, size)) in sizes.iter().rev().enumerate() {
        records += size.0;
        bytes += size.1;
        let is_last = at + 1 == sizes.len();
        if is_last || bytes - drawn >= total.div_ceil(POINTS as u64 - 1) {
            drawn = bytes;
            points.push(HeatPoint {
                score: score(step),
                records,
                bytes,
            });
        }
    }
    points
}
