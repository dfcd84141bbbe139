//! How long the values of a run's records are.

use std::sync::Arc;

use crate::keys::KEY_LEN;
use crate::value::HEADER_LEN;

/// Greatest record, key and value together.
pub(crate) const MOST_RECORD: u64 = 16 << 20;

/// Smallest record: a value that can be checked.
pub(crate) const LEAST_RECORD: u64 = (KEY_LEN + HEADER_LEN) as u64;

/// How long the values of a run's records are. A record keeps its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueLens {
    usual: usize,
    /// By the number of the key, which repeats for each copy of a trace. 0 stands for the usual
    /// length.
    by_key: Arc<[u32]>,
}

impl ValueLens {
    /// All values have the same length.
    pub(crate) fn all(len: usize) -> Self {
        Self::by_key(len, Arc::new([]))
    }

    /// As in a trace, and `usual` for keys whose length it does not tell.
    pub(crate) fn by_key(usual: usize, by_key: Arc<[u32]>) -> Self {
        Self { usual, by_key }
    }

    /// The length of the record's value.
    pub(crate) fn of(&self, record: u64) -> usize {
        let number = record.checked_rem(self.by_key.len() as u64);
        match number.and_then(|number| self.by_key.get(number as usize)) {
            None | Some(0) => self.usual,
            Some(len) => {
                let most = (MOST_RECORD - KEY_LEN as u64) as usize;
                (*len as usize).clamp(HEADER_LEN, most)
            }
        }
    }

    /// The greatest.
    pub(crate) fn greatest(&self) -> usize {
        self.each().max().unwrap_or(self.usual)
    }

    /// The usual length, if only some of a trace's records have it.
    pub(crate) fn usual_of_some(&self) -> Option<usize> {
        let untold = self.by_key.iter().filter(|len| **len == 0).count();
        (0 < untold && untold < self.by_key.len()).then_some(self.usual)
    }

    /// Mean size of a record, key and value together.
    pub(crate) fn record_bytes(&self) -> u64 {
        let records = self.by_key.len().max(1) as u64;
        let values: u64 = self.each().map(|len| len as u64).sum();
        KEY_LEN as u64 + (values + records / 2) / records
    }

    fn each(&self) -> impl Iterator<Item = usize> {
        (0..self.by_key.len().max(1) as u64).map(|record| self.of(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_long_as_the_trace_says_within_bounds() {
        let lens = ValueLens::by_key(1000, Arc::new([100, 0, 5, u32::MAX]));
        let each: Vec<usize> = (0..6).map(|record| lens.of(record)).collect();
        let most = (16 << 20) - KEY_LEN;
        assert_eq!(each, [100, 1000, 24, most, 100, 1000]);
        assert_eq!(lens.greatest(), most);
        let mean = KEY_LEN as u64 + (100 + 1000 + 24 + most as u64 + 2) / 4;
        assert_eq!(lens.record_bytes(), mean);
        assert_eq!(lens.usual_of_some(), Some(1000));
        for alike in [[0, 0], [100, 100]] {
            let lens = ValueLens::by_key(1000, Arc::new(alike));
            assert_eq!(lens.usual_of_some(), None);
        }
    }

    #[test]
    fn values_may_be_all_alike() {
        let lens = ValueLens::all(976);
        assert_eq!((lens.of(7), lens.greatest()), (976, 976));
        assert_eq!(lens.usual_of_some(), None);
        assert_eq!(lens.record_bytes(), 1000);
    }
}
