//! How much of what is hot lies on the fast tier: what placement by hotness is there for.

use bytes::Bytes;

use super::HotRap;
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::iter::InternalIterator;
use crate::key::{KeyRange, Kind};
use crate::merge::MergingIter;
use crate::metrics::Purpose;
use crate::sync::Arc;
use crate::table::ScanOptions;
use crate::version::{LevelIter, TableHandle};

/// Bytes read from a run of tables in one I/O.
const READAHEAD: usize = 256 << 10;

/// The fast tier's number.
const FAST: u8 = 0;

impl HotRap {
    /// Bytes of keys and values of the records that are hot and lie on the fast tier, in tables of
    /// L0 to Lf. Of each key the newest version there counts, if it is no delete. Reads these
    /// tables and RALT's.
    ///
    /// What RALT says of a table ([`super::ralt::Ralt::hot_bytes`]) is no answer: it is of all
    /// records whose keys lie between the table's ends, wherever they are.
    ///
    /// # Errors
    /// I/O errors, and damage of tables.
    pub(super) fn count_hot_on_fast(&self, engine: &Engine) -> Result<u64> {
        let trees = engine.all_trees();
        let each = trees.iter().map(|tree| self.hot_on_fast(tree));
        each.sum()
    }

    fn hot_on_fast(&self, tree: &Tree) -> Result<u64> {
        // The version alone: what is in memory lies on no tier.
        let version = tree.version();
        let [l0, below @ ..] = &version.levels;
        let below = below.iter().take(usize::from(tree.last_fast_level));
        let mut runs: Vec<Vec<_>> = l0.tables.iter().map(|t| vec![Arc::clone(t)]).collect();
        for level in below {
            // Apart, because a cursor does not tell which of its tables a record is of. Some may
            // lie on another tier: those of an ingestion do, and those for which there was no room.
            let (on_fast, elsewhere): (Vec<_>, _) =
                level.tables.iter().cloned().partition(is_on_fast);
            runs.extend([on_fast, elsewhere]);
        }
        runs.retain(|run| !run.is_empty());
        let Some(range) = range_of(&runs) else {
            return Ok(0);
        };
        let mut hot = self.ralt.hot_keys(tree.id, &range);
        let on_fast: Vec<bool> = runs.iter().map(|run| run.iter().all(is_on_fast)).collect();
        let mut records = merged(runs);
        let (mut bytes, mut last) = (0, None::<Bytes>);
        records.seek_to_first()?;
        while records.valid() {
            let key = records.key();
            // The newest version of a key comes first.
            if last.as_deref() != Some(key.user_key) {
                if on_fast[records.source()] && key.kind == Kind::Put && hot.is_hot(key.user_key) {
                    bytes += (key.user_key.len() + records.value_len()) as u64;
                }
                last = Some(Bytes::copy_from_slice(key.user_key));
            }
            records.next()?;
        }
        Ok(bytes)
    }
}

fn is_on_fast(table: &Arc<TableHandle>) -> bool {
    table.meta.tier == FAST
}

/// From the first key of all to the last.
fn range_of(runs: &[Vec<Arc<TableHandle>>]) -> Option<KeyRange> {
    let mut ranges = runs.iter().flatten().map(|table| &table.meta.range);
    let mut all = ranges.next()?.clone();
    ranges.for_each(|range| all.include(range));
    Some(all)
}

/// The records of `runs`, which are in search order (I1).
fn merged(runs: Vec<Vec<Arc<TableHandle>>>) -> MergingIter {
    let how = ScanOptions {
        purpose: Purpose::Maintenance,
        readahead: READAHEAD,
        fill_cache: false,
        to_end: true,
    };
    let cursor = |run| Box::new(LevelIter::new(Arc::new(run), how)) as Box<dyn InternalIterator>;
    MergingIter::new(runs.into_iter().map(cursor).collect())
}

#[cfg(test)]
mod tests {
    use crate::testing::scene::{KEYS, Scene, VALUE};

    /// Key and value of a record of a scene.
    const RECORD: u64 = (KEYS[0].len() + VALUE) as u64;

    fn on_fast(scene: &Scene) -> u64 {
        scene.db.hot_bytes_on_fast().unwrap().unwrap()
    }

    /// The hot set was the only number there was. It says what is worth the fast tier, and nothing
    /// of what is there.
    #[test]
    fn hot_records_count_where_they_lie() {
        let scene = Scene::with_old(&KEYS);
        scene.heat(&KEYS);
        let hot_set = || scene.engine().hotrap().ralt.metrics().hot_set_bytes;
        let all = KEYS.len() as u64 * RECORD;
        assert!(hot_set() >= all);
        assert_eq!(on_fast(&scene), 0, "all are on the slow tier");

        // In memory they are on no tier.
        scene.put_all(&KEYS[8..], "new");
        scene.put("k99", "cold");
        assert_eq!(on_fast(&scene), 0);
        scene.db.flush().unwrap();
        assert_eq!(on_fast(&scene), 2 * RECORD, "in L0");
        scene.to_last_fast();
        assert_eq!(on_fast(&scene), 2 * RECORD, "in Lf");
        scene.read_into_cache(&KEYS[..8]);
        assert_eq!(on_fast(&scene), 2 * RECORD, "promoted to memory");
        scene.promote().unwrap();
        assert_eq!(on_fast(&scene), all, "promoted");
        assert!(hot_set() >= all, "as at the beginning");
    }

    #[test]
    fn of_a_key_the_newest_version_counts_and_no_other() {
        let scene = Scene::new();
        scene.heat(&KEYS[..3]);
        scene.put_all(&KEYS[..3], "old");
        scene.to_last_fast();
        assert_eq!(on_fast(&scene), 3 * RECORD);
        let longer = vec![b'.'; VALUE + 9];
        scene.db.put(KEYS[0], &longer).unwrap();
        scene.db.flush().unwrap();
        assert_eq!(on_fast(&scene), 3 * RECORD + 9, "the old one is not there");
        scene.delete(KEYS[1]);
        scene.db.flush().unwrap();
        assert_eq!(on_fast(&scene), 2 * RECORD + 9, "deleted");

        // What is ingested lies on the slow tier, above all that it meets.
        let ingested = scene.db.ingest([(KEYS[0], &longer)]).unwrap();
        assert_eq!(ingested.level, 0);
        let newest = scene.tree().version();
        let newest = &newest.levels[0].tables[0].meta;
        assert!(newest.tier > 0 && newest.range.contains(KEYS[0].as_bytes()));
        assert_eq!(on_fast(&scene), RECORD);
    }

    #[test]
    fn every_keyspace_counts() {
        let scene = Scene::new();
        let other = scene.db.create_keyspace("other").unwrap();
        scene.heat_in(other.tree().id, &KEYS[..2]);
        for key in &KEYS[..3] {
            other.put(key, [b'.'; VALUE]).unwrap();
        }
        scene.put_all(&KEYS, "cold here");
        scene.db.flush().unwrap();
        assert_eq!(on_fast(&scene), 2 * RECORD);
    }

    #[test]
    fn without_placement_by_hotness_nothing_is_known() {
        let mut options = crate::testing::scene::options();
        options.placement = crate::options::Placement::ByLevel;
        let scene = Scene::with(options);
        assert_eq!(scene.db.hot_bytes_on_fast().unwrap(), None);
    }
}
