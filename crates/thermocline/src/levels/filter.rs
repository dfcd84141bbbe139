//! Which versions of a key somebody can still see.

use crate::key::{InternalKey, Kind, SeqNo};

/// Drops versions that no reader can see any more, in a pass over records in key order.
///
/// Snapshots cut the sequence numbers into stripes; of each key only the newest version in
/// a stripe is visible to anyone.
#[derive(Debug)]
pub(crate) struct VersionFilter {
    /// Ascending: the snapshots, then the last published sequence number.
    boundaries: Vec<SeqNo>,
    last_key: Vec<u8>,
    last_stripe: Option<usize>,
}

impl VersionFilter {
    /// A filter for readers at `boundaries`, which are ascending and end with the last
    /// published sequence number.
    pub(crate) fn new(boundaries: Vec<SeqNo>) -> Self {
        Self {
            boundaries,
            last_key: Vec::new(),
            last_stripe: None,
        }
    }

    /// Whether the record must be kept. `bottom` tells whether nothing older of the key lies
    /// below the output; a delete that hides nothing then goes.
    pub(crate) fn keep(&mut self, key: InternalKey<'_>, bottom: impl FnOnce() -> bool) -> bool {
        let stripe = self.boundaries.partition_point(|&b| b < key.seq);
        let same_key = self.last_stripe.is_some() && self.last_key == key.user_key;
        if same_key && self.last_stripe == Some(stripe) {
            return false;
        }
        if !same_key {
            self.last_key.clear();
            self.last_key.extend_from_slice(key.user_key);
        }
        self.last_stripe = Some(stripe);
        !(key.kind == Kind::Delete && stripe == 0 && bottom())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(boundaries: &[u64], bottom: bool, records: &[(&str, u64, Kind)]) -> Vec<u64> {
        let mut filter = VersionFilter::new(boundaries.to_vec());
        let keep = |r: &&(&str, u64, Kind)| {
            filter.keep(InternalKey::new(r.0.as_bytes(), r.1, r.2), || bottom)
        };
        records.iter().filter(keep).map(|r| r.1).collect()
    }

    #[test]
    fn without_snapshots_only_the_newest_version_stays() {
        let records = [
            ("a", 9, Kind::Put),
            ("a", 4, Kind::Put),
            ("b", 3, Kind::Put),
        ];
        assert_eq!(kept(&[10], false, &records), [9, 3]);
    }

    #[test]
    fn each_snapshot_keeps_the_version_it_sees() {
        let records = [
            ("a", 9, Kind::Put),
            ("a", 5, Kind::Put),
            ("a", 4, Kind::Put),
            ("a", 1, Kind::Put),
        ];
        assert_eq!(kept(&[5, 10], false, &records), [9, 5]);
        assert_eq!(kept(&[1, 4, 10], false, &records), [9, 4, 1]);
    }

    #[test]
    fn a_delete_goes_only_at_the_bottom_and_takes_what_it_hides_along() {
        let records = [("a", 9, Kind::Delete), ("a", 4, Kind::Put)];
        assert_eq!(kept(&[10], true, &records), Vec::<u64>::new());
        assert_eq!(kept(&[10], false, &records), [9]);
        assert_eq!(
            kept(&[5, 10], true, &records),
            [9, 4],
            "the snapshot at 5 sees the put"
        );
    }

    #[test]
    fn an_internal_key_that_appears_twice_comes_out_once() {
        let records = [("a", 4, Kind::Put), ("a", 4, Kind::Put)];
        assert_eq!(kept(&[10], false, &records), [4]);
    }
}
