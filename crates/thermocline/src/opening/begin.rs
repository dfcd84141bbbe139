//! What an opening writes: it settles the log, begins a new manifest and a new segment, and removes
//! what is left over.

use std::path::PathBuf;

use super::open::Parts;
use super::{set_aside, unfinished};
use crate::error::Result;
use crate::ids::FileId;
use crate::placement::{self, Opening, PlacementPolicy};
use crate::points::point;
use crate::sync::Arc;
use crate::version::{Manifest, identity};
use crate::wal::{self, FoundLog, Recovered, Surveyed, Wal};

/// What a store goes on with.
pub(crate) struct Begun {
    pub(crate) recovered: Recovered,
    pub(crate) found_log: FoundLog,
    pub(crate) placement: Arc<dyn PlacementPolicy>,
    /// What is wrong with what placement keeps on disk.
    pub(crate) hotness: Option<String>,
    pub(crate) manifest: Manifest,
    pub(crate) wal: Wal,
    /// Files that no edit names and that were removed.
    pub(crate) orphans: u64,
    /// Those of them that were kept all the same.
    pub(crate) set_aside: Vec<PathBuf>,
}

impl Parts<'_> {
    /// The policy of placement that the options ask for.
    pub(crate) fn open_placement(&self) -> Arc<dyn PlacementPolicy> {
        let request = self.request;
        #[cfg(test)]
        if let Some(placement) = &request.placement {
            return Arc::clone(placement);
        }
        placement::open(Opening {
            options: &request.options,
            database: self.database,
            fast: &self.tiers[0],
            medium: request.medium_of(0),
            points: request.points.clone(),
            keyspaces: self.shape.keyspaces.keys().copied().collect(),
            before: self.shape.placed_by,
            reads_only: request.reads_only,
            counts_accesses: request.counts_accesses,
        })
    }

    /// Begins a new manifest and a new segment behind what was found. `aside` are tables to be set
    /// aside.
    pub(crate) fn begin(
        &mut self,
        surveyed: Surveyed,
        aside: &[(usize, String)],
        new_file: &dyn Fn() -> FileId,
    ) -> Result<Begun> {
        let request = self.request;
        for tier in &self.tiers {
            tier.remove_left_copies()?;
        }
        let recovered = surveyed.settle(&self.tiers[0], &request.points)?;
        point!(request.points, "recovery.replayed")?;
        // Each opening begins a manifest of its own, so a torn tail of the old one is left behind.
        // It comes before the first log segment, which would be foreign without it.
        let (manifest_file, log_file) = (new_file(), new_file());
        let log_start = recovered.segments.first().map_or(log_file, |s| s.number);
        // Before the manifest, which says that what placement keeps on disk is there.
        let placement = self.open_placement();
        point!(request.points, "recovery.hotness_opened")?;
        let found_log = recovered.found_log(log_file);
        // Before the manifest: the end of the new one no longer tells that an edit may be lost.
        let set_aside = set_aside::set_aside(request, &self.tiers, aside)?;
        // A repair that was killed, or whose sync failed, has left its `TIER` in the system's cache
        // only (I4).
        for (index, tier) in self.tiers.iter().enumerate() {
            if identity::is_unsynced(tier)? {
                let store = request.medium_of(index);
                let store = store.log_store(&tier.options.path, false)?;
                identity::replace(tier, &*store, self.database)?;
            }
        }
        // Before the manifest, which divides the levels among the tiers: from then on a tier
        // without its mark counts as not mounted.
        for tier in &self.new_tiers {
            identity::write(tier, self.database)?;
        }
        let edits = self.shape.to_edits(
            recovered.last_seq,
            log_start,
            placement.placed_by(),
            &found_log,
        );
        let manifest = Manifest::create(
            Arc::clone(&self.tiers[0]),
            self.database,
            manifest_file,
            &edits,
            request.points.clone(),
        )?;
        point!(request.points, "recovery.manifest_begun")?;
        // The sync of the previous `CURRENT` may have failed, that of this one has not. The marks
        // go before any write is taken: a restore into the same directories would remove that
        // write.
        unfinished::finish(&self.tiers)?;
        // Only now: the edits that were read may be in the system's cache only, even where an
        // earlier sync of them failed. If they were lost, the files that they call obsolete would
        // be needed (I4).
        wal::remove_others(&self.tiers[0], &found_log, &request.points)?;
        let orphans = std::mem::take(&mut self.orphans).sweep(&self.tiers)?;
        point!(request.points, "recovery.swept")?;
        let wal = Wal::create(
            Arc::clone(&self.tiers[0]),
            self.database,
            log_file,
            &recovered,
            request.options.log_retention,
            request.points.clone(),
        )?;
        point!(request.points, "recovery.log_begun")?;
        // After the manifest: the new one no longer says that what is not kept is there.
        let hotness = placement.begun(&*request.medium_of(0), &self.tiers[0]);
        Ok(Begun {
            recovered,
            found_log,
            placement,
            hotness,
            manifest,
            wal,
            orphans,
            set_aside,
        })
    }
}
