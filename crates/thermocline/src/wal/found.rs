//! What an opening takes over of the log, as the manifest remembers it.

use crate::ids::FileId;
use crate::key::SeqNo;

/// What an opening took over of the log. A segment that is not named here and has a lower number
/// than `next` is not part of the log: it was obsolete or given up, and a loss of power undid its
/// removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FoundLog {
    /// Segments and their lengths in bytes, in order of their numbers. All of this was durable.
    pub(crate) segments: Vec<(FileId, u64)>,
    /// Segments that were begun after the opening have this number or a higher one.
    pub(crate) next: FileId,
    /// Set if the last segment ends before this sequence number. What is missing up to it was given
    /// up, and the log goes on after it. Once there is a next segment, its base says so, too.
    pub(crate) reaches: Option<SeqNo>,
}

impl FoundLog {
    /// Whether the numbers of the segments ascend.
    pub(crate) fn is_in_order(&self) -> bool {
        self.segments.is_sorted_by(|a, b| a.0 < b.0)
    }

    /// The length of the segment, if it was there. A binary search, because there may be many
    /// segments.
    pub(crate) fn len_of(&self, number: FileId) -> Option<u64> {
        let at = self.segments.binary_search_by_key(&number, |s| s.0).ok()?;
        self.segments.get(at).map(|(_, len)| *len)
    }
}
