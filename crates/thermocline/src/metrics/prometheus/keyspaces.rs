//! Samples of keyspaces.

use std::fmt;

use prometheus_client::registry::Unit;

use crate::metrics::KeyspaceMetrics;
use crate::metrics::exposition::{Label, Writer, per_tier};

fn label(keyspace: &KeyspaceMetrics) -> Vec<Label> {
    vec![("keyspace", keyspace.name.clone())]
}

impl Writer<'_> {
    /// A few sizes only: there may be thousands of keyspaces, and each is a series of each family.
    pub(super) fn keyspaces(&mut self, keyspaces: &[KeyspaceMetrics]) -> fmt::Result {
        let bytes = || Some(Unit::Bytes);
        let each = || keyspaces.iter();
        self.gauge(
            "keyspace_records",
            None,
            "Records in the tables of a keyspace, deletes and replaced versions among them",
            each().map(|keyspace| (label(keyspace), keyspace.records)),
        )?;
        self.gauge(
            "keyspace_table",
            bytes(),
            "Bytes of the tables of a keyspace on a tier",
            each().flat_map(|keyspace| per_tier(label(keyspace), &keyspace.table_bytes)),
        )?;
        self.gauge(
            "keyspace_memtable",
            bytes(),
            "Bytes that the records of a keyspace take in memtables",
            each().map(|keyspace| (label(keyspace), keyspace.memtable_bytes)),
        )?;
        let hot = |keyspace: &KeyspaceMetrics| Some((label(keyspace), keyspace.hot_bytes?));
        self.gauge(
            "keyspace_hot",
            bytes(),
            "Bytes of keys and values that are hot of a keyspace, absent if records live by level",
            each().filter_map(hot),
        )
    }
}
