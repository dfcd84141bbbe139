//! The router of a crossing: what a policy chooses stays on the fast tier, as far as no reader
//! notices.

use super::{Brought, DOWN, NoChoice, PastF, Router, Source, UP};
use crate::key::{InternalKey, KeyRange, Kind};
use crate::levels::Plan;

/// The most that a crossing leaves on the fast tier, or brings there, as a part of its input from
/// level f. The limit holds whatever a policy chooses, so that the crossing makes room even if all
/// is hot. It is not lower, since beside a stream of new records a hotspot may be more than three
/// quarters of level f: hot records that are sent down only to make room are read back at once.
const MOST_UP: f64 = 0.9;

/// A policy's choice in one crossing.
pub(crate) trait Choice: Send {
    /// Whether the record of `key` stays on the fast tier, or comes up to it. Asked in key order,
    /// and of each key once at most: of its newest version, if that is no delete, and if there is
    /// room for it. Older versions and deletes always go down.
    fn goes_up(&mut self, key: &[u8], source: Source) -> bool;
}

/// Decides for the records of one crossing. The newest version of a key may go to level f, if the
/// policy chooses it; every older version goes down. If the newest version is a delete, all of the
/// key goes down. That keeps I1: once one version of a key has gone down, no older one goes up.
pub(crate) struct CrossingRouter {
    /// Nothing outside this range may be written to level f (I11).
    hull: KeyRange,
    choice: Box<dyn Choice>,
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

/// The router of the crossing `plan`, in which `choice` decides. Without one, all goes down that
/// may.
pub(crate) fn router_of(plan: &Plan, choice: Option<Box<dyn Choice>>) -> Box<dyn Router> {
    let Some(hull) = plan.hull().filter(|_| plan.outputs.len() > 1) else {
        return Box::new(NoChoice);
    };
    let input = plan.raw_bytes();
    let choice = choice.unwrap_or_else(|| Box::new(NoChoice));
    let crossing = CrossingRouter::new(hull, input, choice);
    match &plan.bypass {
        None => Box::new(crossing),
        Some(bypass) => Box::new(PastF::new(bypass.clone(), input, crossing)),
    }
}

impl CrossingRouter {
    /// A router for a crossing of `input` bytes of keys and values from level f, within `hull`.
    fn new(hull: KeyRange, input: u64, choice: Box<dyn Choice>) -> Self {
        Self {
            hull,
            choice,
            key: Vec::new(),
            has_key: false,
            up: 0,
            most_up: (input as f64 * MOST_UP) as u64,
            retained: 0,
            brought: 0,
            brought_keys: Brought::default(),
        }
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
}

impl Router for CrossingRouter {
    fn route(
        &mut self,
        key: InternalKey<'_>,
        value_len: usize,
        source: Source,
        room: u64,
    ) -> usize {
        let size = (key.user_key.len() + value_len) as u64;
        if !self.is_new(key.user_key)
            || key.kind != Kind::Put
            || self.up + size > self.most_up
            // Records are counted before compression, and the reservation is counted after it. This
            // is the limit if the input compressed better than its hot records do.
            || size > room
            || !self.hull.contains(key.user_key)
            || !self.choice.goes_up(key.user_key, source)
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
