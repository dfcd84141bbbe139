//! What placement by hotness chooses: a crossing keeps hot records on the fast tier, and brings
//! more up (HotRAP, §3.1).

use std::iter::Peekable;

use bytes::Bytes;

use super::ralt::HotKeys;
use crate::placement::{Choice, Source};

/// Chooses the hot records of one crossing.
pub(crate) struct HotChoice {
    pub(super) hot: HotKeys,
    /// Keys of records that came out of the promotion cache: they are hot.
    pub(super) promoted: Peekable<std::vec::IntoIter<Bytes>>,
    /// Whether hot records from above stay.
    pub(super) retains: bool,
    /// Whether hot records from below come up.
    pub(super) promotes: bool,
}

impl Choice for HotChoice {
    fn goes_up(&mut self, key: &[u8], source: Source) -> bool {
        let may_go_up = match source {
            Source::Upper => self.retains,
            Source::Lower => self.promotes,
        };
        may_go_up && self.is_hot(key)
    }
}

impl HotChoice {
    fn is_hot(&mut self, key: &[u8]) -> bool {
        while self.promoted.next_if(|hot| &hot[..] < key).is_some() {}
        self.promoted.peek().is_some_and(|hot| hot == key) || self.hot.is_hot(key)
    }
}
