//! What one more read would make of a record that is not hot.
//!
//! A record that was read from the slow tier is judged before that read is logged: the promotion
//! cache counts the reads of its records, and RALT hears of them when a record leaves the cache.
//! Going by what was logged alone, a record was promoted one read of the slow tier later than it
//! was hot. So tables mark the keys that one more read would make hot. No read counts twice: one
//! access marks a record and another promotes it, however soon that comes, and a record that was
//! never read before is marked nowhere.
//!
//! The read is assumed to come when the table is written. One that comes later outranks it, and
//! leaves the record stable for at least as long. If an eviction raises the cut, it writes all
//! tables anew. A record that was promoted in this way is hot by its own record for the crossings
//! that meet it: they put together what several tables know of it.

use super::limits::Cut;
use super::record::Record;
use super::reuse::{CLASSES, Reuse, class};
use super::scoring::{Model, Moment};
use super::shared::Shared;

/// The read that is assumed to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outlook {
    now: Moment,
    /// The counters' epoch.
    epoch: u64,
    /// The classes that are worth the fast tier.
    worth: [bool; CLASSES],
}

impl Outlook {
    /// The outlook of a read at `now`. With `reuse` it goes by what that has measured of the
    /// classes, and until then no class is worth it. Without `reuse` the cut alone decides.
    pub(super) fn new(model: &Model, now: Moment, reuse: Option<&Reuse>) -> Self {
        // An opening finds the cut again, and not what was measured.
        let is_worth =
            |class| reuse.is_none_or(|reuse| reuse.is_measured() && reuse.is_worth(class));
        Self {
            now,
            epoch: model.epoch(now.tick),
            worth: std::array::from_fn(is_worth),
        }
    }

    /// Whether the record of `key` would be hot by `hot` with one more read.
    ///
    /// The record must also be of a class that is worth it. The least hot set is more than nothing,
    /// and under uniform reads chance fills it: a second read is then no reason to be promoted.
    pub(super) fn makes_hot(&self, model: &Model, hot: &Cut, key: &[u8], record: &Record) -> bool {
        let read = model.first(self.now, record.value_len, 1);
        let merged = model.merge(*record, read);
        let stable_before = model.stable_before(&merged);
        self.worth[class(stable_before, self.epoch)]
            && hot.admits(stable_before, model.rank(&merged, key))
    }
}

impl Shared {
    /// What a read now would make of records, by what `reuse` has measured.
    pub(super) fn outlook(&self, reuse: &Reuse) -> Outlook {
        // Without auto-tuning classes are worth nothing and mean nothing: the scores alone decide.
        let reuse = self.options.switches().auto_tuning.then_some(reuse);
        Outlook::new(&self.model, self.now(), reuse)
    }
}
