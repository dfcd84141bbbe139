//! What the log still gives.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{Merge, Plan};
use crate::error::Result;
use crate::ids::{FileId, KeyspaceId};
use crate::key::SeqNo;
use crate::opening::orphans::log_begins;
use crate::opening::repair::evidence::Evidence;
use crate::opening::repair::report::Loss;
use crate::opening::request::Request;
use crate::options::{RecoveryMode, Resolved};
use crate::sync::Arc;
use crate::tier::Tier;
use crate::wal::{self, Cut, Recovered};

impl Plan {
    /// Replays the log without keeping anything, to learn where it ends and which keyspaces it
    /// writes to.
    pub(super) fn read_the_log(
        &mut self,
        request: &Request,
        sizes: &Resolved,
        tiers: &[Arc<Tier>],
        evidence: &Evidence,
    ) -> Result<()> {
        let newest = |merge: &Merge| merge.sources.iter().map(|table| table.max_seq).max();
        let newest: BTreeMap<KeyspaceId, SeqNo> = self
            .merges
            .iter()
            .filter_map(|merge| Some((merge.keyspace, newest(merge)?)))
            .collect();
        self.log.floor = match self.rebuilt {
            // No manifest says where the log may begin, so it may begin where it does.
            true => {
                let tables = newest.values().copied().max().unwrap_or(0);
                tables.max(wal::first_header(&tiers[0])?.map_or(0, |header| header.base_seq))
            }
            false => self.shape.log_floor,
        };
        self.log.found = self.shape.found_log.clone();
        let mut writes: BTreeMap<KeyspaceId, u64> = BTreeMap::new();
        let surveyed = wal::survey(
            &tiers[0],
            self.database,
            RecoveryMode::Tolerant,
            &self.log,
            &mut |_, keyspace, _, _, _| {
                *writes.entry(keyspace).or_insert(0) += 1;
                Ok(())
            },
        )?;
        self.logged = writes.values().sum();
        let recovered = surveyed.recovered;
        self.shape.last_seq = self.shape.last_seq.max(recovered.last_seq);
        if let Some(cut) = recovered.cut.as_ref().filter(|cut| cut.damaged) {
            let (file, offset) = (cut.path.display(), cut.offset);
            self.problems
                .push(format!("{file} at offset {offset}: {}", cut.what));
        }
        if !self.rebuilt {
            self.give_up_unreadable_tables(evidence, &recovered);
        }
        // Only the log knows this keyspace: the edit that made it is lost.
        let next = self.shape.next_file;
        for keyspace in writes.keys() {
            let was_dropped = match self.rebuilt {
                true => evidence.dropped().contains(keyspace),
                false => u64::from(*keyspace) < next,
            };
            if !was_dropped && !self.shape.keyspaces.contains_key(keyspace) {
                let what =
                    format!("the log writes to keyspace {keyspace}, the edit that made it is gone");
                let manifest = evidence.manifest.as_ref();
                self.problems
                    .push(manifest.map_or_else(|| what.clone(), |manifest| manifest.lacks(&what)));
                self.add_keyspace(request, sizes, *keyspace, Bytes::new());
            }
        }
        // The opening reports what a crash has cut off. After a repair it cannot: the torn end is
        // gone by then. So a repair that has anything to do reports it.
        if let Some(cut) = &recovered.cut
            && (self.rebuilt || !self.problems.is_empty())
        {
            self.lose_the_end_of_the_log(&tiers[0], cut, &surveyed.doomed, recovered.last_seq)?;
        }
        self.decide_what_is_replayed(&newest, &recovered);
        Ok(())
    }

    /// Counts the writes after `cut` as a loss, and sets the segments that hold them aside. The
    /// last write before the cut has number `last_seq`.
    fn lose_the_end_of_the_log(
        &mut self,
        tier: &Tier,
        cut: &Cut,
        doomed: &[FileId],
        last_seq: SeqNo,
    ) -> Result<()> {
        let last = wal::last_readable(tier)?;
        self.losses.push(Loss {
            file: cut.path.clone(),
            offset: Some(cut.offset),
            what: format!("{}; {} bytes of log are given up", cut.what, cut.bytes),
            keyspace: None,
            keys: None,
            seqs: last
                .filter(|last| *last > last_seq)
                .map(|last| (last_seq + 1, last)),
        });
        let name = cut.path.file_name().unwrap_or_default().to_string_lossy();
        self.logs_aside.push(name.into_owned());
        self.logs_aside
            .extend(doomed.iter().map(|number| wal::segment_file_name(*number)));
        self.logs_aside.sort();
        self.logs_aside.dedup();
        Ok(())
    }

    /// A log without a gap holds every write from its beginning on: replaying all of it is right,
    /// and gives back what damaged tables lost. A log that is cut, now or by an earlier recovery,
    /// must not put an older version on top of what tables hold (I1). So of each keyspace
    /// everything older than its newest table is skipped. Where tables were ingested, so is what is
    /// older than they are.
    ///
    /// All of the log is what comes after its beginning. If a keyspace were said to be flushed
    /// through less than that, neither this number nor the log would account for its tables. Any
    /// output of a later job that a crash cuts short would then pass for a table that an edit had
    /// named (`was_named`).
    fn decide_what_is_replayed(
        &mut self,
        newest: &BTreeMap<KeyspaceId, SeqNo>,
        recovered: &Recovered,
    ) {
        let (has_gap, begins) = (recovered.has_gap(), log_begins(recovered));
        let has_lost: BTreeSet<KeyspaceId> = self.merges.iter().map(|m| m.keyspace).collect();
        let ingested = |keyspace: KeyspaceId| {
            let ingestions = recovered.ingestions.iter();
            let own = ingestions.filter(move |ingestion| ingestion.keyspace == keyspace);
            own.map(|ingestion| ingestion.seq).max().unwrap_or(0)
        };
        for (keyspace, through) in &mut self.shape.flushed_through {
            let newest = newest.get(keyspace).copied().unwrap_or(0);
            if has_gap {
                *through = newest.max(*through);
            } else if self.rebuilt || has_lost.contains(keyspace) || !self.losses.is_empty() {
                // The log lacks what was ingested, and older writes must not come to lie above
                // that (I1). They had been flushed before.
                *through = begins.max(ingested(*keyspace));
            }
        }
        self.shape.log_floor = self.log.floor;
    }
}
