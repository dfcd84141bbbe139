//! What the log says of an ingestion: that it took a number, and which tables hold its records.
//!
//! The record stands in front of the edit that names the tables. So whoever follows the log comes
//! upon the ingestion at its place among the writes, and learns that the log does not have it. If
//! a crash comes between the two, the record stays without tables; nobody ever saw any of it.

use bytes::Bytes;

use crate::batch::{self, Op};
use crate::coding::{Decoder, put_varint};
use crate::ids::{FileId, KeyspaceId};
use crate::key::{Kind, SeqNo};

/// An ingestion, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ingestion {
    /// The number of all of its records.
    pub(crate) seq: SeqNo,
    pub(crate) keyspace: KeyspaceId,
    pub(crate) tables: Vec<FileId>,
}

impl Ingestion {
    /// The batch that stands for it in the log.
    pub(crate) fn to_batch(&self) -> Bytes {
        let mut tables = Vec::new();
        for table in &self.tables {
            put_varint(&mut tables, *table);
        }
        batch::encode_one(self.keyspace, Kind::Ingestion, &[], &tables)
    }

    /// The ingestion that write `seq` of a batch is; none if it is a put or a delete.
    pub(crate) fn of(seq: SeqNo, op: &Op) -> Option<Self> {
        if op.kind != Kind::Ingestion {
            return None;
        }
        // Of a list that does not decode nothing is known but that it was one.
        let tables = Decoder::new(&op.value).varints().unwrap_or_default();
        Some(Self {
            seq,
            keyspace: op.keyspace,
            tables,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Ops;

    #[test]
    fn it_comes_back_as_one_write() {
        let ingestion = Ingestion {
            seq: 7,
            keyspace: 3,
            tables: vec![12, 1 << 40],
        };
        let mut ops = Ops::new(ingestion.to_batch()).unwrap();
        let op = ops.next().unwrap().unwrap();
        assert_eq!(Ingestion::of(7, &op), Some(ingestion));
        assert!(ops.next().is_none());
        let put = batch::encode_one(3, Kind::Put, b"key", b"value");
        let put = Ops::new(put).unwrap().next().unwrap().unwrap();
        assert_eq!(Ingestion::of(7, &put), None);
    }
}
