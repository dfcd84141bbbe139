//! What a compaction knows of the records that it merges, and what it notes of them.

use super::below::Below;
use super::bypass::Bypass;
use super::fresh::Held;
use super::heirs::Heirs;
use super::pass::Watch;
use crate::engine::Engine;
use crate::error::Result;
use crate::metrics::CompactionMetrics;
use crate::placement::{Brought, Source, Stayers};
use crate::points::point;
use crate::sync::Arc;
use crate::table::{Heat, TableMeta};
use crate::tier::Reservation;

/// Of one pass.
pub(super) struct Notes {
    pub(super) engine: Arc<Engine>,
    pub(super) to: usize,
    pub(super) below: Arc<Below>,
    pub(super) bypass: Option<Bypass>,
    /// What could not pass level f by, if the job tells anything about that.
    pub(super) held: Option<Held>,
    /// What a bypass would have left.
    pub(super) stayers: Option<Stayers>,
    pub(super) heirs: Heirs,
    pub(super) done: Done,
}

/// What passes have come to; that of several adds up.
#[derive(Default)]
pub(super) struct Done {
    /// Tables written so far; emptied when an edit begins to name them.
    pub(super) written: Vec<TableMeta>,
    /// How hot each of them is.
    pub(super) heats: Vec<Heat>,
    pub(super) metrics: CompactionMetrics,
    /// Bytes that could not pass level f by.
    pub(super) held: u64,
    /// Bytes of records that stay on the fast tier because they are hot, and that come up to it.
    pub(super) moved: (u64, u64),
    pub(super) brought: Brought,
    /// What was reserved for the tables. Held until they are installed: until then they count as
    /// in flight.
    pub(super) space: Vec<Reservation>,
}

impl Done {
    /// Adds what another pass has come to.
    pub(super) fn add(&mut self, other: Done) {
        self.written.extend(other.written);
        self.heats.extend(other.heats);
        self.space.extend(other.space);
        self.held += other.held;
        self.metrics.seconds += other.metrics.seconds;
        for (sum, bytes) in self
            .metrics
            .write_bytes
            .iter_mut()
            .zip(other.metrics.write_bytes)
        {
            *sum += bytes;
        }
        self.moved = (self.moved.0 + other.moved.0, self.moved.1 + other.moved.1);
        self.brought.add(other.brought);
    }
}

impl Watch for Notes {
    fn is_bottom(&self, key: &[u8]) -> bool {
        let is_bypassed = |bypass: &Bypass| bypass.may_hold(key);
        !self.below.may_hold(self.to, key) && !self.bypass.as_ref().is_some_and(is_bypassed)
    }

    fn meet(&mut self, key: &[u8], is_first: bool, source: Source, size: u64) {
        if let (Some(held), None) = (&mut self.held, &self.bypass) {
            let stays = self.stayers.as_mut();
            let is_hot = || stays.is_some_and(|stays| stays(key));
            held.meet(is_first, source, size, is_hot);
        }
    }

    fn send(&mut self, key: &[u8], source: Source, size: u64, output: usize) {
        self.heirs.add(key, size, output);
        if let (Some(held), Some(_)) = (&mut self.held, &self.bypass) {
            held.send(source, size, output);
        }
    }

    fn written(&mut self, table: TableMeta, output: usize) -> Result<()> {
        self.done.metrics.write_bytes[usize::from(table.tier)] += table.len;
        self.done.heats.push(self.heirs.take(output));
        self.done.written.push(table);
        point!(self.engine.points, "compaction.table_written")
    }
}
