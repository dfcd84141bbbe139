//! What an opening takes over of the log, as the manifest remembers it.

use crate::ids::FileId;
use crate::key::SeqNo;

/// What an opening took over of the log. A segment that is not named and has a lower number than
/// `next` is no part of the log: it was obsolete or given up, and a loss of power undid its
/// removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FoundLog {
    /// Segments and their lengths in bytes, by number, which is their order. All of it was durable.
    pub(crate) segments: Vec<(FileId, u64)>,
    /// Segments that were begun since have this number or a higher one.
    pub(crate) next: FileId,
    /// Where the last segment ends before this sequence number: what is missing through it was
    /// given up, and the log goes on behind it. The next segment's base says so too, once there is
    /// one.
    pub(crate) reaches: Option<SeqNo>,
}

impl FoundLog {
    /// Whether the numbers of the segments rise.
    pub(crate) fn is_in_order(&self) -> bool {
        self.segments.is_sorted_by(|a, b| a.0 < b.0)
    }

    /// How long the segment was, if it was there. The segments are in order: there may be many.
    pub(crate) fn len_of(&self, number: FileId) -> Option<u64> {
        let at = self.segments.binary_search_by_key(&number, |s| s.0).ok()?;
        self.segments.get(at).map(|(_, len)| *len)
    }
}
