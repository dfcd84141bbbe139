//! Placement by hotness: a crossing keeps hot records on the fast tier, and brings more up (HotRAP,
//! §3.1).

use std::iter::Peekable;

use bytes::Bytes;

use super::ralt::HotKeys;
use crate::key::{InternalKey, KeyRange, Kind};
use crate::options::Switches;
use crate::placement::{Brought, DOWN, Router, Source, UP};

/// The most that a crossing leaves on the fast tier, or brings there, as a part of its input from
/// level f. The limit holds whatever is hot, so that the crossing makes room even if all is hot. It
/// is not lower, since beside a stream of new records a hotspot may be more than three quarters of
/// level f: hot records that are sent down only to make room are read back at once.
const MOST_UP: f64 = 0.9;

/// Decides for the records of one crossing. The newest version of a key may go to level f, if the
/// key is hot; every older version goes down. If the newest version is a delete, all of the key
/// goes down. That keeps I1: once one version of a key has gone down, no older one goes up.
pub(crate) struct HotRouter {
    /// Nothing outside this range may be written to level f (I11).
    hull: KeyRange,
    hot: HotKeys,
    /// Keys of records that came out of the promotion cache: they are hot.
    promoted: Peekable<std::vec::IntoIter<Bytes>>,
    switches: Switches,
    key: Vec<u8>,
    has_key: bool,
    /// Bytes sent to level f, and how many may be. The limit is a share of the whole input, not of
    /// what was seen so far: hot records come in runs.
    up: u64,
    most_up: u64,
    retained: u64,
    brought: u64,
    brought_keys: Brought,
}

impl HotRouter {
    /// A router for a crossing of `input` bytes of keys and values from level f.
    pub(crate) fn new(
        hull: KeyRange,
        input: u64,
        hot: HotKeys,
        promoted: Vec<Bytes>,
        switches: Switches,
    ) -> Self {
        Self {
            hull,
            hot,
            promoted: promoted.into_iter().peekable(),
            switches,
            key: Vec::new(),
            has_key: false,
            up: 0,
            most_up: (input as f64 * MOST_UP) as u64,
            retained: 0,
            brought: 0,
            brought_keys: Brought::default(),
        }
    }

    /// Whether hot records of its input stay where they are.
    pub(super) fn retains(&self) -> bool {
        self.switches.retention
    }

    /// Whether this is the first, and so the newest, version of its key.
    fn is_new(&mut self, key: &[u8]) -> bool {
        if self.has_key && self.key == key {
            return false;
        }
        self.has_key = true;
        self.key.clear();
        self.key.extend_from_slice(key);
        true
    }

    fn is_hot(&mut self, key: &[u8]) -> bool {
        while self.promoted.next_if(|hot| &hot[..] < key).is_some() {}
        self.promoted.peek().is_some_and(|hot| hot == key) || self.hot.is_hot(key)
    }
}

impl Router for HotRouter {
    fn route(
        &mut self,
        key: InternalKey<'_>,
        value_len: usize,
        source: Source,
        room: u64,
    ) -> usize {
        let size = (key.user_key.len() + value_len) as u64;
        let may_go_up = match source {
            Source::Upper => self.switches.retention,
            Source::Lower => self.switches.promotion_by_compaction,
        };
        if !self.is_new(key.user_key)
            || !may_go_up
            || key.kind != Kind::Put
            || self.up + size > self.most_up
            // Records are counted before compression, and the reservation is counted after it. This
            // is the limit if the input compressed better than its hot records do.
            || size > room
            || !self.hull.contains(key.user_key)
            || !self.is_hot(key.user_key)
        {
            return DOWN;
        }
        self.up += size;
        match source {
            Source::Upper => self.retained += size,
            Source::Lower => {
                self.brought += size;
                self.brought_keys.insert(key.user_key);
            }
        }
        UP
    }

    fn moved(&self) -> (u64, u64) {
        (self.retained, self.brought)
    }

    fn brought(&mut self) -> Brought {
        std::mem::take(&mut self.brought_keys)
    }
}
