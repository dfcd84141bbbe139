//! How a look for hidden records and small tables is known to find no more than the last one.

use std::sync::Weak;

use super::Picker;
use crate::ids::FileId;
use crate::key::SeqNo;
use crate::read::Passed;
use crate::sync::Arc;
use crate::version::Version;

/// What [`Picker::tidying`] depends on. Each piece of work ends in a look, and one at a thousand
/// tables takes as long as a small piece of work. So a keyspace is looked at again only when some
/// of this has changed since a look that found nothing.
///
/// The levels' targets are left out. They change with each piece of work on access records, and
/// what is hidden takes no more room by that.
#[derive(Debug)]
pub(crate) struct Looked {
    /// It is not held, for its files' sake.
    version: Weak<Version>,
    running: (u64, usize),
    l0_limit: u64,
    oldest_reader: SeqNo,
    passed: Option<Passed>,
    often_looked: FileId,
    /// How many tables were opened before: the samples of open ones tell what is superseded.
    opened: u64,
}

impl Looked {
    /// A look by `picker` after so many tables were opened.
    pub(crate) fn by(picker: &Picker<'_>, opened: u64) -> Self {
        Self {
            version: Arc::downgrade(picker.version),
            running: picker.running.moment(),
            l0_limit: picker.l0_limit,
            oldest_reader: picker.oldest_reader,
            passed: picker.passed.cloned(),
            often_looked: picker.often_looked,
            opened,
        }
    }

    /// Whether nothing has changed from `self` to `other`.
    pub(crate) fn is_as(&self, other: &Looked) -> bool {
        let passed = match (&self.passed, &other.passed) {
            (Some(passed), Some(other)) => passed.is_as(other),
            (passed, other) => passed.is_none() && other.is_none(),
        };
        Weak::ptr_eq(&self.version, &other.version)
            && self.running == other.running
            && self.l0_limit == other.l0_limit
            && self.oldest_reader == other.oldest_reader
            && self.opened == other.opened
            && self.often_looked == other.often_looked
            && passed
    }
}
