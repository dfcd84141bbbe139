//! A cursor over records taken out of the promotion cache, for the merge they join.

use bytes::Bytes;

use super::cache::Promoted;
use crate::error::Result;
use crate::iter::InternalIterator;
use crate::key::{InternalKey, Kind};
use crate::sync::Arc;

/// Records in key order.
pub(crate) struct Joining {
    records: Vec<(Bytes, Arc<Promoted>)>,
    /// Past the end when there is no record to stand on.
    at: usize,
}

impl Joining {
    /// A cursor over `records`, which may come in any order. If a key comes twice, either record
    /// will do, since both are its newest version below level f (I6).
    pub(crate) fn new(mut records: Vec<(Bytes, Arc<Promoted>)>) -> Self {
        records.sort_by(|a, b| a.0.cmp(&b.0));
        records.dedup_by(|a, b| a.0 == b.0);
        Self {
            at: records.len(),
            records,
        }
    }

    /// Their keys, in order.
    pub(crate) fn keys(&self) -> Vec<Bytes> {
        self.records.iter().map(|(key, _)| key.clone()).collect()
    }

    fn internal(&self, at: usize) -> InternalKey<'_> {
        let (key, promoted) = &self.records[at];
        InternalKey::new(key, promoted.seq, Kind::Put)
    }
}

impl InternalIterator for Joining {
    fn valid(&self) -> bool {
        self.at < self.records.len()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.at = self.records.len().wrapping_sub(1);
        Ok(())
    }

    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        let before = (0..self.records.len()).take_while(|&at| self.internal(at) < target);
        self.at = before.count();
        Ok(())
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let upto = (0..self.records.len()).take_while(|&at| self.internal(at) <= target);
        self.at = upto.count().wrapping_sub(1);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.at = self.at.wrapping_sub(1);
        Ok(())
    }

    fn key(&self) -> InternalKey<'_> {
        self.internal(self.at)
    }

    fn value(&self) -> &[u8] {
        &self.records[self.at].1.value
    }

    fn value_bytes(&self) -> Bytes {
        self.records[self.at].1.value.clone()
    }
}
