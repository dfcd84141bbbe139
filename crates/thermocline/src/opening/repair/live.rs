//! Which tables belong to a store whose manifest is lost or has gaps.
//!
//! A table says which tables it took over. That shows what a crash may have left beside the tables
//! of the store: outputs of a compaction that was never put in force, and inputs of one that was.
//!
//! A compaction is proven to have been in force if an edit that can be read says so, if one of its
//! inputs is gone (inputs go only after the edit is durable, I4), or if another compaction took
//! over one of its outputs. Then its inputs do not count: some of them may be gone, with deletes in
//! them, and the others would bring back what was deleted. A compaction that is not proven has all
//! its inputs beside it. They hold everything that its outputs hold, so the outputs do not count.
//!
//! A table also says which replaced tables were still there when it was written. Those do not
//! count, even if everything that replaced them is gone by now.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{FileId, KeyspaceId};
use crate::version::edit::VersionEdit;

/// What a table says of its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) keyspace: KeyspaceId,
    pub(super) replaces: Vec<FileId>,
    /// Tables that had been replaced when it was written.
    pub(super) gone: Vec<FileId>,
}

/// Whether a table belongs to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It does.
    Live,
    /// Its records were taken over, or dropped with their keyspace.
    Obsolete,
    /// The tables that it was to replace are all there and count instead.
    Unproven,
}

/// What the edits that can be read say of tables and keyspaces, gaps or not.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Whether a table was part of the store when it was last mentioned.
    pub(super) tables: BTreeMap<FileId, bool>,
    pub(super) dropped: BTreeSet<KeyspaceId>,
}

impl Said {
    pub(super) fn by(edits: &[VersionEdit]) -> Self {
        let mut said = Self::default();
        for edit in edits {
            for (_, id) in &edit.removed {
                said.tables.insert(*id, false);
            }
            for table in &edit.added {
                said.tables.insert(table.id, true);
            }
            said.dropped.extend(&edit.dropped);
        }
        said
    }
}

/// How each of `tables` stands; `there` are the numbers of all table files, unreadable ones too.
pub(super) fn standings(
    tables: &BTreeMap<FileId, Origin>,
    there: &BTreeSet<FileId>,
    said: &Said,
) -> BTreeMap<FileId, Standing> {
    let taken_over: BTreeSet<FileId> = tables.values().flat_map(|t| &t.replaces).copied().collect();
    // The outputs of a compaction name the same inputs and are put in force by one edit.
    let gone: BTreeSet<FileId> = tables.values().flat_map(|t| &t.gone).copied().collect();
    let is_gone = |input: &FileId| {
        !there.contains(input) || gone.contains(input) || said.tables.get(input) == Some(&false)
    };
    let proven: BTreeSet<&[FileId]> = tables
        .iter()
        .filter(|(id, table)| {
            said.tables.contains_key(id)
                || taken_over.contains(id)
                || table.replaces.iter().any(is_gone)
        })
        .map(|(_, table)| &table.replaces[..])
        .collect();
    let is_proven =
        |table: &Origin| table.replaces.is_empty() || proven.contains(&table.replaces[..]);
    let obsolete: BTreeSet<FileId> = tables
        .values()
        .filter(|table| is_proven(table))
        .flat_map(|table| &table.replaces)
        .copied()
        .collect();
    let standing = |id: &FileId, table: &Origin| {
        if obsolete.contains(id)
            || gone.contains(id)
            || said.tables.get(id) == Some(&false)
            || said.dropped.contains(&table.keyspace)
        {
            Standing::Obsolete
        } else if is_proven(table) {
            Standing::Live
        } else {
            Standing::Unproven
        }
    };
    tables
        .iter()
        .map(|(id, table)| (*id, standing(id, table)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Standing::{Live, Obsolete, Unproven};
    use super::*;

    fn decide(tables: &[(FileId, &[FileId])], said: &[(FileId, bool)]) -> Vec<(FileId, Standing)> {
        let origin = |replaces: &[FileId]| Origin {
            keyspace: 0,
            replaces: replaces.to_vec(),
            gone: Vec::new(),
        };
        let tables: BTreeMap<_, _> = tables.iter().map(|(id, r)| (*id, origin(r))).collect();
        let there = tables.keys().copied().collect();
        let said = Said {
            tables: said.iter().copied().collect(),
            dropped: BTreeSet::new(),
        };
        standings(&tables, &there, &said).into_iter().collect()
    }

    #[test]
    fn an_output_whose_inputs_are_all_there_proves_nothing() {
        let found = decide(&[(1, &[]), (2, &[]), (3, &[1, 2]), (4, &[1, 2])], &[]);
        assert_eq!(found, [(1, Live), (2, Live), (3, Unproven), (4, Unproven)]);
    }

    #[test]
    fn an_input_that_is_gone_proves_the_compaction_and_rules_out_the_other_inputs() {
        let found = decide(&[(1, &[]), (3, &[1, 2]), (4, &[1, 2])], &[]);
        assert_eq!(found, [(1, Obsolete), (3, Live), (4, Live)]);
    }

    #[test]
    fn a_compaction_that_took_over_an_output_proves_the_one_before() {
        let found = decide(
            &[(1, &[]), (2, &[]), (3, &[1, 2]), (5, &[]), (6, &[3, 5])],
            &[],
        );
        let live_and_not = [
            (1, Obsolete),
            (2, Obsolete),
            (3, Live),
            (5, Live),
            (6, Unproven),
        ];
        assert_eq!(found, live_and_not);
    }

    #[test]
    fn what_a_later_table_saw_replaced_does_not_count() {
        // 1 was replaced by a table that is gone itself; 9 was written while 1 was still there.
        let origin = |gone: &[FileId]| Origin {
            keyspace: 0,
            replaces: Vec::new(),
            gone: gone.to_vec(),
        };
        let tables = BTreeMap::from([(1, origin(&[])), (9, origin(&[1, 2]))]);
        let there = tables.keys().copied().collect();
        let found = standings(&tables, &there, &Said::default());
        assert_eq!(found, BTreeMap::from([(1, Obsolete), (9, Live)]));
    }

    #[test]
    fn edits_decide_where_there_are_any() {
        let tables: &[(FileId, &[FileId])] = &[(1, &[]), (2, &[]), (3, &[1, 2]), (4, &[1, 2])];
        // One output is named: the other was put in force by the same edit.
        let found = decide(tables, &[(3, true)]);
        assert_eq!(found, [(1, Obsolete), (2, Obsolete), (3, Live), (4, Live)]);
        let found = decide(tables, &[(2, false)]);
        assert_eq!(found, [(1, Obsolete), (2, Obsolete), (3, Live), (4, Live)]);
    }
}
