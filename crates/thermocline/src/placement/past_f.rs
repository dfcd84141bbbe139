//! The router of a bypass of level f.

use super::crossing::CrossingRouter;
use super::{Brought, DOWN, Router, Source, UP};
use crate::key::InternalKey;
use crate::levels::Bypass;

/// Decides for the records of a bypass. If level f may have a version of a key, all its versions
/// stay in the level above, and none comes up from below: what lies on level f belongs between the
/// two (I1). Nothing lies between the versions of any other key, and they go where a crossing would
/// send them.
pub(crate) struct PastF {
    bypass: Bypass,
    crossing: CrossingRouter,
    key: Option<Vec<u8>>,
    /// Whether level f may have a version of `key`.
    is_held: bool,
    /// Bytes of keys and values of its input from above that are still to come.
    to_come: u64,
}

impl PastF {
    /// A router for `bypass` that has `input` bytes of keys and values from above. Where it has a
    /// choice, it decides as `crossing` does.
    pub(super) fn new(bypass: Bypass, input: u64, crossing: CrossingRouter) -> Self {
        Self {
            bypass,
            crossing,
            key: None,
            is_held: false,
            to_come: input,
        }
    }
}

impl Router for PastF {
    fn route(
        &mut self,
        key: InternalKey<'_>,
        value_len: usize,
        source: Source,
        room: u64,
    ) -> usize {
        if self.key.as_deref() != Some(key.user_key) {
            let last = self.key.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key.user_key);
            self.is_held = self.bypass.may_hold(key.user_key);
        }
        // Records that come up may take the place of those that have gone down, but not of those
        // that have to stay (I8).
        let room = match source {
            Source::Upper => {
                let size = (key.user_key.len() + value_len) as u64;
                self.to_come = self.to_come.saturating_sub(size);
                room
            }
            Source::Lower => room.saturating_sub(self.to_come),
        };
        match source {
            Source::Upper if self.is_held => UP,
            Source::Lower if self.is_held => DOWN,
            _ => self.crossing.route(key, value_len, source, room),
        }
    }

    fn moved(&self) -> (u64, u64) {
        self.crossing.moved()
    }

    fn brought(&mut self) -> Brought {
        self.crossing.brought()
    }
}
