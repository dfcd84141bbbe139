//! The engine's named points, and what each is part of.

/// A part of the engine that a process can die in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// The name under which it is counted.
    pub(super) name: &'static str,
    /// How often, at most, one of its points is passed before the process ends.
    pub(super) most: u64,
    /// Names of the points.
    pub(super) points: &'static [&'static str],
}

/// All points that a process may die at. Whoever adds one to the engine adds it here.
pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "kills in the log",
        most: 200,
        points: &[
            "wal.before_hand_over",
            "wal.after_hand_over",
            "wal.before_sync",
            "wal.after_sync",
        ],
    },
    Class {
        name: "kills in rotation and removal of the log",
        most: 5,
        points: &[
            "wal.rotate.before_create",
            "wal.rotate.after_create",
            "wal.before_remove",
            "wal.removed",
        ],
    },
    Class {
        name: "kills in a commit",
        most: 300,
        points: &["commit.inserting", "commit.published"],
    },
    Class {
        name: "kills in the manifest",
        most: 20,
        points: &[
            "manifest.before_append",
            "manifest.before_sync",
            "manifest.after_sync",
        ],
    },
    Class {
        name: "kills in a new manifest",
        most: 2,
        points: &[
            "manifest.before_current",
            "manifest.current_written",
            "manifest.current_renamed",
            "manifest.after_current",
        ],
    },
    Class {
        name: "kills in a flush",
        most: 6,
        points: &[
            "freeze.before_publish",
            "flush.start",
            "flush.written",
            "flush.before_edit",
            "flush.refreshed",
            "flush.installed",
            "flush.trimmed",
        ],
    },
    Class {
        name: "kills in a compaction",
        most: 4,
        points: &[
            "compaction.start",
            "compaction.claimed",
            "compaction.table_written",
            "compaction.before_edit",
            "compaction.installed",
            "move.before_edit",
        ],
    },
    Class {
        name: "kills in a crossing",
        most: 2,
        points: &[
            "crossing.claimed",
            "crossing.before_edit",
            "crossing.installed",
        ],
    },
    Class {
        name: "kills in a promotion",
        most: 1,
        points: &[
            "promotion.before_admission",
            "promotion.start",
            "promotion.weighed",
            "promotion.purged",
            "promotion.frozen",
            "promotion.written",
            "promotion.before_edit",
            "promotion.installed",
            "promotion.by_compaction",
        ],
    },
    Class {
        name: "kills in a copy of a slow table",
        most: 2,
        points: &["copying.written"],
    },
    Class {
        name: "kills in a change of the target",
        most: 1,
        points: &["target.before_edit", "governor.begun"],
    },
    Class {
        name: "kills in the table of accesses",
        most: 2,
        points: &[
            "ralt.flush",
            "ralt.flush_written",
            "ralt.step",
            "ralt.merged",
            "ralt.evicted",
            "ralt.before_state",
            "ralt.state_written",
            "ralt.state_renamed",
            "ralt.edit_written",
            "ralt.edit_synced",
            "ralt.before_remove",
        ],
    },
    Class {
        name: "kills in a checkpoint",
        most: 1,
        points: &[
            "checkpoint.begun",
            "checkpoint.frozen",
            "checkpoint.flushed",
            "checkpoint.linked",
            "checkpoint.identified",
            "checkpoint.hotness_pinned",
            "checkpoint.hotness_linked",
            "checkpoint.before_manifest",
        ],
    },
    Class {
        name: "kills in a change of keyspaces",
        most: 2,
        points: &[
            "keyspace.create",
            "keyspace.created",
            "keyspace.dropped",
            "keyspace.emptied",
        ],
    },
    Class {
        name: "kills in an ingestion",
        most: 2,
        points: &[
            "ingest.table_written",
            "ingest.flushed",
            "ingest.logged",
            "ingest.before_edit",
            "ingest.installed",
        ],
    },
    Class {
        name: "kills in the removal of a table",
        most: 6,
        points: &["files.before_remove", "files.removed"],
    },
    Class {
        name: "kills in recovery",
        most: 1,
        points: &[
            "recovery.begun",
            "recovery.founded",
            "recovery.log_shortened",
            "recovery.log_copied",
            "recovery.log_settled",
            "recovery.replayed",
            "recovery.swept",
            "recovery.hotness_opened",
            "recovery.manifest_begun",
            "recovery.log_begun",
            "recovery.tables_opened",
        ],
    },
    Class {
        name: "kills in closing",
        most: 1,
        points: &[
            "close.flushed",
            "close.log_ended",
            "close.work_ended",
            "close.hotness_kept",
        ],
    },
];

/// Points that a run need not reach. At some of them there is no room or something fails, which a
/// healthy store may never meet. Others belong to the record cache, which not every store has, or
/// to reads, which change nothing.
pub(super) const SELDOM: &[&str] = &[
    "stall.stuck",
    "stall.held",
    "flush.refused",
    "promotion.waits",
    "compaction.failed",
    "compaction.no_crossing",
    "record_cache.found",
    "record_cache.reserved",
    "record_cache.checked",
    "record_cache.refreshing",
    "multi_get.batch",
];

/// All points with their classes, in order.
pub(super) fn all() -> impl Iterator<Item = (&'static Class, &'static str)> {
    CLASSES
        .iter()
        .flat_map(|class| class.points.iter().map(move |point| (class, *point)))
}

/// The point called `name`, as it stands in the lists.
pub(super) fn named(name: &str) -> Option<&'static str> {
    let listed = all().map(|(_, point)| point);
    listed
        .chain(SELDOM.iter().copied())
        .find(|point| *point == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_forty_points_at_least_and_none_twice() {
        let mut points: Vec<_> = all().map(|(_, point)| point).collect();
        points.sort_unstable();
        let count = points.len();
        points.dedup();
        assert_eq!(points.len(), count);
        assert!(count >= 40, "{count}");
    }
}
