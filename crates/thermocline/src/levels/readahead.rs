//! How much of its inputs a compaction reads at once.

use crate::storage::operation::MAX_OPERATION;

/// Bytes read from an input in one I/O: a slow device gives its bandwidth only to few large
/// reads, and every small one delays a reader.
const MOST: usize = MAX_OPERATION as usize;

/// Bytes that many inputs share. Many inputs are tables of L0, and hence on the fast tier.
const TOGETHER: usize = 4 << 20;

/// Bytes that each input has at least.
const LEAST: usize = 128 << 10;

/// Bytes read in one I/O from each of `inputs` inputs, all of which are open at once. Each has two
/// such windows: one that the job goes through, and one that is on its way.
pub(super) fn readahead(inputs: usize) -> usize {
    (TOGETHER / (2 * inputs.max(1))).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a compaction of twelve tables of L0 had twelve buffers of a mebibyte.
    #[test]
    fn few_inputs_are_read_in_large_pieces_and_many_share_their_memory() {
        assert_eq!(readahead(2), 512 << 10);
        for inputs in 1..=16 {
            assert!(2 * inputs * readahead(inputs) <= 4 << 20, "{inputs}");
        }
        assert_eq!(readahead(1000), 128 << 10);
    }
}
