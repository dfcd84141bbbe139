//! The looks of scans into the levels between f and the last: there may be runs.
//!
//! A run is merged with what is below it once there is no room for another above it. Point reads
//! need not care: filters tell them where to look. A scan looks into each run, and each look may
//! be a read of the slow disk. So a run is merged as soon as scans have looked into it as often as
//! its merge is worth.

use super::Superversion;
use crate::engine::Engine;
use crate::ids::{FileId, KeyspaceId};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::version::{TableHandle, Version};

/// A merge may write so many bytes for each look that it would have saved. A slow disk takes about
/// as long for them as for a read.
const BYTES_PER_LOOK: u64 = 64 << 10;

/// A table is told of once in so many looks: what is asked then takes as long as some of them.
const BETWEEN_TELLINGS: u64 = 16;

/// The table below level f that scans look into more often than its merge with what lies below it
/// would cost. One is enough: others are told of again.
#[derive(Debug, Default)]
pub(crate) struct OftenLooked(AtomicU64);

impl OftenLooked {
    /// Its number; 0 if there never was one.
    pub(crate) fn get(&self) -> FileId {
        self.0.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Counts a look of a scan of the keyspace over `pinned`, from `key` on, into each level
    /// between f and the last.
    pub(crate) fn count_looks(&self, keyspace: KeyspaceId, pinned: &Superversion, key: &[u8]) {
        let Some(tree) = self.tree(keyspace) else {
            return;
        };
        let version = &pinned.version;
        let below_f = usize::from(tree.last_fast_level) + 1;
        let last = version.last_level().unwrap_or(0);
        let looked = (below_f..last).filter_map(|level| {
            let tables = &version.levels[level].tables;
            let at = tables.partition_point(|table| &table.meta.range.last[..] < key);
            tables.get(at)
        });
        for table in looked {
            let looks = table.looks.fetch_add(1, Ordering::Relaxed) + 1;
            if looks.is_multiple_of(BETWEEN_TELLINGS)
                && looks.saturating_mul(BYTES_PER_LOOK) >= bytes_of_merge(version, table)
            {
                // It may be no run, or not be merged for other work: told again after as many.
                table.looks.store(0, Ordering::Relaxed);
                tree.often_looked.0.store(table.meta.id, Ordering::Relaxed);
                self.schedule_compactions();
            }
        }
    }
}

/// About how many bytes a merge of `table` with what lies below it writes.
fn bytes_of_merge(version: &Version, table: &TableHandle) -> u64 {
    let below = version
        .levels
        .iter()
        .skip(usize::from(table.meta.level) + 1);
    let met = below.flat_map(|level| level.overlapping(&table.meta.range));
    met.map(|met| met.meta.len).sum::<u64>() + table.meta.len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scene::{KEYS, SLOW, Scene};

    const RUN: usize = SLOW - 1;

    /// A scene in which versions of two keys lie in a run, above those in which `look` is to look
    /// often.
    fn levels_after_looks(look: impl Fn(&Scene)) -> Vec<(u8, String)> {
        let scene = Scene::with_old(&KEYS);
        scene.without_compactions(|| {
            scene.put_all(&["k02", "k04"], "new");
            scene.to_last_fast();
            scene.cross_to(RUN);
        });
        let in_run = [
            (RUN as u8, "new".to_owned()),
            (SLOW as u8, "old".to_owned()),
        ];
        for _ in 0..BETWEEN_TELLINGS {
            scene.drain();
            assert_eq!(scene.levels_of("k02"), in_run);
            look(&scene);
        }
        scene.drain();
        scene.levels_of("k02")
    }

    #[test]
    fn a_run_that_scans_look_into_is_merged_with_what_lies_below() {
        let merged = [(SLOW as u8, "new".to_owned())];
        let forward = |scene: &Scene| {
            let first = scene.db.range("k03"..).next();
            assert_eq!(first.unwrap().unwrap().0, "k03");
        };
        let backward = |scene: &Scene| {
            let last = scene.db.range(..="k03").next_back();
            assert_eq!(last.unwrap().unwrap().0, "k03");
        };
        assert_eq!(levels_after_looks(forward), merged);
        assert_eq!(levels_after_looks(backward), merged);
    }

    #[test]
    fn neither_point_reads_nor_scans_behind_a_run_have_it_merged() {
        let point = |scene: &Scene| assert_eq!(scene.get("k04").unwrap(), "new");
        let behind = |scene: &Scene| {
            let next = scene.db.range("k05"..).next();
            assert_eq!(next.unwrap().unwrap().0, "k05");
        };
        assert_eq!(levels_after_looks(point).len(), 2);
        assert_eq!(levels_after_looks(behind).len(), 2);
    }
}
