//! Losses that cannot be told one by one, because what would name them is lost as well. Each gets
//! an entry of its own, since a report without one says that nothing is lost.

use super::Plan;
use super::rebuilt::whole_file;
use crate::opening::repair::evidence::Evidence;
use crate::opening::repair::report::Loss;
use crate::sync::Arc;
use crate::tier::Tier;

impl Plan {
    /// Counts tiers that were given up as lost. A table on such a tier that the manifest names has
    /// an entry of its own besides.
    pub(super) fn lose_tiers(&mut self, tiers: &[Arc<Tier>], evidence: &Evidence) {
        for tier in evidence.given_up.iter().map(|index| &tiers[*index]) {
            let what = match tier.index {
                0 => {
                    "the tier was given up, and with it the log, the manifest and all tables that it \
                     held: what was written last may be missing, show an older value, or be back \
                     though it was deleted"
                }
                _ => {
                    "the tier was given up, and with it all tables that it held: what they held may \
                     be missing, show an older value, or be back though it was deleted"
                }
            };
            let directory = tier.tables.path().to_path_buf();
            self.losses.push(whole_file(directory, what));
        }
    }

    /// Counts the unreadable part of the manifest as lost: nothing else tells whether a table is
    /// missing that only this part named.
    pub(super) fn lose_manifest(&mut self, tiers: &[Arc<Tier>], evidence: &Evidence) {
        // The manifest lay on that tier, and the tier has its entry.
        if evidence.given_up.contains(&0) {
            return;
        }
        let loss = match &evidence.manifest {
            None => {
                let file = evidence.lost_manifest.clone();
                let file = file.unwrap_or_else(|| tiers[0].options.path.join("MANIFEST"));
                let what = "no edit of it can be read, so which tables the store had is not known: \
                            of those that are missing, if any, nothing tells";
                whole_file(file, what)
            }
            Some(manifest) => Loss {
                offset: Some(manifest.lost_from()),
                ..whole_file(
                    manifest.path.clone(),
                    "edits of it are missing or cannot be read: of tables that only they named, if \
                     any is missing, nothing tells",
                )
            },
        };
        self.losses.push(loss);
    }
}
