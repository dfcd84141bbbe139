//! What a weighed table answers from its filters and index alone.

use super::filter;
use super::index::BlockWeight;
use super::reader::{ReadTrace, Table};
use crate::error::Result;
use crate::metrics::Purpose;

/// No record has a higher trailer: seeking to it finds the first record of a user key.
const FIRST: u64 = u64::MAX;

impl Table {
    /// Whether a record of `key` that weighs something may be here; `false` is certain.
    ///
    /// # Errors
    /// [`crate::Error::Corruption`]; I/O errors of the tier, where partitions are not in memory.
    pub(crate) fn may_contain(&self, key: &[u8]) -> Result<bool> {
        self.may_hold(key, filter::hash(key))
    }

    /// Whether a record of `key` that is [marked](super::TableBuilder::mark_last) may be here;
    /// `false` is certain.
    ///
    /// # Errors
    /// As [`Table::may_contain`].
    pub(crate) fn may_be_marked(&self, key: &[u8]) -> Result<bool> {
        self.may_hold(key, filter::mark(key))
    }

    /// Whether the filter for `key` may hold `hash`.
    fn may_hold(&self, key: &[u8], hash: u64) -> Result<bool> {
        let Some(number) = self.top.find(key, FIRST) else {
            return Ok(false);
        };
        let pinned = self.pinned()?.and_then(|all| all.get(number));
        let answer = match pinned {
            Some(partition) => partition.filter.as_ref().map(|f| f.contains(hash)),
            None => {
                let mut trace = ReadTrace::default();
                let filter = self.load_filter(number, Purpose::Hotness, true, &mut trace)?;
                filter.map(|f| f.contains(hash))
            }
        };
        match answer {
            Some(answer) => Ok(answer),
            // A partition has no filter if nothing in it weighs anything or is marked, or if none
            // could be made.
            None => Ok(self.block_weight(key)?.is_none_or(|weight| weight.own > 0)),
        }
    }

    /// The weight of the records before `key`, to the accuracy of a block: records in the block
    /// where `key` is or would be do not count.
    ///
    /// # Errors
    /// As [`Table::may_contain`].
    pub(crate) fn weight_before(&self, key: &[u8]) -> Result<u64> {
        match self.block_weight(key)? {
            Some(weight) => Ok(weight.before),
            None => Ok(self.properties.weight.unwrap_or(0)),
        }
    }

    /// The weight of the records up to `key`, to the accuracy of a block: records in the block
    /// where `key` is or would be all count.
    ///
    /// # Errors
    /// As [`Table::may_contain`].
    pub(crate) fn weight_through(&self, key: &[u8]) -> Result<u64> {
        match self.block_weight(key)? {
            Some(weight) => Ok(weight.before.saturating_add(weight.own)),
            None => Ok(self.properties.weight.unwrap_or(0)),
        }
    }

    /// The share of the table before `key`, from 0 to 1, to the accuracy of a block: the block
    /// where `key` is or would be does not count.
    ///
    /// # Errors
    /// As [`Table::may_contain`].
    pub(crate) fn share_before(&self, key: &[u8]) -> Result<f64> {
        let before = self.in_index(key, |value, number| {
            self.data_handle(value, number).map(|block| block.offset)
        })?;
        let all = self.properties.data_bytes;
        Ok(before.map_or(1.0, |before| before as f64 / all.max(1) as f64))
    }

    /// The weight of the block where `key` is or would be; `None` past the last one.
    fn block_weight(&self, key: &[u8]) -> Result<Option<BlockWeight>> {
        self.in_index(key, |value, number| {
            self.at(self.index_offset(number), BlockWeight::of(value))
        })
    }

    /// Finds the index entry of the block where `key` is or would be, and returns what `of` makes
    /// of the entry's value and the number of its partition. `None` if `key` is past the last
    /// block.
    fn in_index<T>(
        &self,
        key: &[u8],
        of: impl FnOnce(&[u8], usize) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(number) = self.top.find(key, FIRST) else {
            return Ok(None);
        };
        let mut trace = ReadTrace::default();
        let index = self.index(number, Purpose::Hotness, true, &mut trace)?;
        match self.at(self.index_offset(number), index.find(key, FIRST))? {
            Some((entry, _)) => of(index.value(&entry), number).map(Some),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::Fixture;
    use super::*;
    use crate::key::{InternalKey, Kind};
    use crate::options::{FilterPolicy, TierOptions};
    use crate::sync::Arc;

    fn fixture(pins: u64) -> Fixture {
        let options = TierOptions::fast("t").block_size(512);
        Fixture::new(options.filter(FilterPolicy::Fuse16), 0, pins)
    }

    fn key(number: usize) -> Vec<u8> {
        format!("user{number:06}").into_bytes()
    }

    /// A table with one record for each weight, at every second number.
    fn weighed(fixture: &Fixture, weights: &[u64]) -> Arc<Table> {
        let mut builder = fixture.builder(7).weighed();
        for (number, weight) in weights.iter().enumerate() {
            let key = key(2 * number);
            let key = InternalKey::new(&key, 0, Kind::Put);
            builder
                .add_weighing(key, b"twenty bytes or so..", *weight)
                .unwrap();
        }
        fixture.open(&builder.finish().unwrap()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn sums_are_exact_to_a_block_and_filters_hold_what_weighs(
            weights in prop::collection::vec(prop_oneof![Just(0u64), 1u64..5000], 1..400),
            probes in prop::collection::vec(0usize..900, 1..20), pinned: bool,
        ) {
            let fixture = fixture(if pinned { u64::MAX } else { 0 });
            let table = weighed(&fixture, &weights);
            table.verify().unwrap();
            // Most records in a block: 512 bytes, at least 30 bytes each.
            let most = 17;
            for probe in probes {
                let sum = |to: usize| weights.iter().take(to).sum::<u64>();
                let (before, at) = (table.weight_before(&key(probe)).unwrap(), probe.div_ceil(2));
                prop_assert!(before <= sum(at) && before >= sum(at.saturating_sub(most)));
                let through = table.weight_through(&key(probe)).unwrap();
                prop_assert!(through >= sum(probe / 2 + 1) && through <= sum(at + most));
                // Records are of equal length, so the share of bytes is the share of records.
                let share = table.share_before(&key(probe)).unwrap() * weights.len() as f64;
                let at = at.min(weights.len()) as f64;
                prop_assert!(share <= at + 1.0 && share >= at - most as f64 - 1.0, "{share} {at}");
            }
            prop_assert_eq!(table.share_before(b"a").unwrap(), 0.0);
            prop_assert_eq!(table.share_before(b"z").unwrap(), 1.0);
            prop_assert_eq!(table.weight_before(b"a").unwrap(), 0);
            let total: u64 = weights.iter().sum();
            prop_assert_eq!(table.weight_through(&key(799)).unwrap(), total);
            prop_assert_eq!(table.weight_before(b"z").unwrap(), total);
            for (number, weight) in weights.iter().enumerate() {
                if *weight > 0 {
                    prop_assert!(table.may_contain(&key(2 * number)).unwrap());
                }
            }
            let light = (0..weights.len()).filter(|n| weights[*n] == 0).map(|n| key(2 * n));
            let absent = (0..weights.len()).map(|n| key(2 * n + 1));
            let wrong = light.chain(absent).filter(|key| table.may_contain(key).unwrap());
            prop_assert!(wrong.count() <= 2, "far below 1 %");
        }
    }

    /// A mark that was taken for a weight made a cold record hot. A mark that was not put into its
    /// record's partition was lost.
    #[test]
    fn marks_are_told_from_weights_in_every_partition() {
        const RECORDS: usize = 9000;
        let fixture = fixture(u64::MAX);
        let mut builder = fixture.builder(7).weighed();
        let (weighs, is_marked) = (|n: usize| n.is_multiple_of(3), |n: usize| n % 3 == 1);
        for number in 0..RECORDS {
            let key = key(number);
            let stored = InternalKey::new(&key, 0, Kind::Put);
            let weight = u64::from(weighs(number));
            builder.add_weighing(stored, b"value", weight).unwrap();
            if is_marked(number) {
                builder.mark_last();
            }
        }
        let table = fixture.open(&builder.finish().unwrap()).unwrap();
        table.verify().unwrap();
        assert!(table.partitions() > 1);
        let mut wrong = 0;
        for number in 0..RECORDS {
            let contains = table.may_contain(&key(number)).unwrap();
            let marked = table.may_be_marked(&key(number)).unwrap();
            assert!(contains || !weighs(number), "{number}");
            assert!(marked || !is_marked(number), "{number}");
            wrong += u32::from(contains != weighs(number)) + u32::from(marked != is_marked(number));
        }
        assert!(wrong <= 5, "far below 1 %: {wrong}");
        let total = table.weight_through(&key(RECORDS)).unwrap();
        assert_eq!(total, RECORDS as u64 / 3, "marks weigh nothing");
    }

    #[test]
    fn a_partition_in_which_nothing_weighs_anything_holds_nothing() {
        let mut weights = vec![0; 9000];
        weights[8999] = 5;
        let table = weighed(&fixture(u64::MAX), &weights);
        assert!(table.partitions() > 1);
        assert!((0..4000).all(|n| !table.may_contain(&key(2 * n)).unwrap()));
        assert!(table.may_contain(&key(2 * 8999)).unwrap());
    }
}
