//! Tables that somebody has made up: their checksums are right, and what they weigh is not.

use super::reopening::{assert_begun_anew, reopen};
use super::*;
use crate::key::{InternalKey, Kind};
use crate::metrics::Purpose;
use crate::placement::hotrap::ralt::histogram::Histogram;
use crate::placement::hotrap::ralt::record::tracked_key;
use crate::placement::hotrap::ralt::state::{State, TableState};
use crate::placement::hotrap::ralt::state_log::StateLog;
use crate::table::{TableBuilder, TableIdentity};

/// Leaves two tables of level 1. Each has one record, whose key has the table's number and whose
/// weight is the largest that fits. By its properties the whole table weighs `said`, or else as
/// much as the record.
fn left(said: Option<u64>) -> Memory {
    let memory = Memory::new();
    let fixture = reopen(&memory);
    let shared = &fixture.ralt.shared;
    let files = shared.files.as_ref().unwrap();
    let mut value = Vec::new();
    shared.model.first(shared.now(), 10, 1).encode(&mut value);
    let table = |id| {
        let identity = TableIdentity {
            database: DATABASE,
            keyspace: 0,
            id,
            level: 1,
            tier: 0,
            epoch: 0,
            replaces: Vec::new(),
            gone: Vec::new(),
            keyspace_name: Bytes::new(),
        };
        let builder = TableBuilder::new(&files.tier, identity, 1 << 10, Purpose::Hotness);
        let mut builder = builder.unwrap().weighed();
        let key = tracked_key(3, &key(id));
        let stored = InternalKey::new(&key, 0, Kind::Put);
        builder.add_weighing(stored, &value, u64::MAX).unwrap();
        if let Some(said) = said {
            builder.craft_weight(said);
        }
        TableState {
            meta: builder.finish().unwrap(),
            trim: None,
            histogram: Arc::new(Histogram::default()),
        }
    };
    let state = State {
        next_id: 3,
        tables: vec![table(1), table(2)],
        ..State::default()
    };
    StateLog::write(files, &*files.log, &shared.model, state).unwrap();
    memory
}

/// A table's weight was believed, whatever it was. The sum of two did not fit: where that is
/// checked, the store did not open; where it is not, next to nothing was hot.
#[test]
fn tables_that_weigh_more_than_fits_mean_beginning_anew() {
    assert_begun_anew(&reopen(&left(None)), "the largest weight");
}

/// And each part of a table was believed to weigh what the index said.
#[test]
fn no_part_of_a_table_weighs_more_than_the_whole() {
    let fixture = reopen(&left(Some(100)));
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.ralt.metrics().hot_set_bytes, 200);
    assert_eq!(fixture.ralt.hot_bytes(3, &range(&key(1), &key(2))), 200);
    assert_eq!(fixture.ralt.hot_set_of(3), 200);
}
