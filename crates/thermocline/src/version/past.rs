//! Versions that are no longer the present one, for as long as readers hold them.

use std::sync::Weak;
use std::time::Duration;

use super::set::Version;
use crate::sync::Arc;

/// A reader that has held something this long after it went out of use will hold it for a while
/// yet: it is a scan or a copy, not a read of a key.
pub(super) const LONG_HELD: Duration = Duration::from_secs(1);

/// A keyspace's versions that others have replaced, and when.
#[derive(Debug, Default)]
pub(crate) struct PastVersions {
    versions: Vec<(Weak<Version>, Duration)>,
}

impl PastVersions {
    /// Adds `version`, which another one replaces at time `now`.
    pub(crate) fn push(&mut self, version: &Arc<Version>, now: Duration) {
        self.versions
            .retain(|(version, _)| version.strong_count() > 0);
        self.versions.push((Arc::downgrade(version), now));
    }

    /// The versions that readers have held for long at time `now`.
    pub(crate) fn long_held(&self, now: Duration) -> Vec<Arc<Version>> {
        let is_long = |since: Duration| now.saturating_sub(since) >= LONG_HELD;
        let long = self.versions.iter().filter(|(_, since)| is_long(*since));
        long.filter_map(|(version, _)| version.upgrade()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_long_held_a_second_after_it_went_out_of_use_until_nobody_holds_it() {
        let mut past = PastVersions::default();
        let second = Duration::from_secs(1);
        let (held, next) = (Arc::new(Version::default()), Arc::new(Version::default()));
        past.push(&held, second);
        let just_before = 2 * second - Duration::from_nanos(1);
        assert!(past.long_held(just_before).is_empty());
        past.push(&next, 2 * second);
        let long = past.long_held(2 * second);
        assert!(long.len() == 1 && Arc::ptr_eq(&long[0], &held));
        drop((long, held));
        past.push(&next, 3 * second);
        assert_eq!(past.versions.len(), 2, "what is gone is forgotten");
        assert_eq!(past.long_held(3 * second).len(), 1);
    }
}
