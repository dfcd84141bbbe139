//! What inspection finds, as JSON.

use serde_json::{Map, Value as Json, json};
use thermocline::inspect::{AccessRecords, Change, Content, Contents, Entry, TableEntry, Write};

use crate::fields::field;
use crate::text::Notation;

/// The fields of what is valid. Otherwise a field that says what it is instead.
pub(super) fn content<T>(
    content: &Content<T>,
    fields: impl FnOnce(&T) -> Json,
) -> Map<String, Json> {
    let json = match content {
        Content::Valid(valid) => fields(valid),
        Content::Torn => json!({"torn": true}),
        Content::Damaged(what) => json!({"damaged": what}),
    };
    match json {
        Json::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

pub(super) fn entry<T>(entry: &Entry<T>, fields: impl FnOnce(&T) -> Json) -> Json {
    let mut json = content(&entry.content, fields);
    json.insert("offset".into(), json!(entry.offset));
    Json::Object(json)
}

pub(super) fn change(change: &Change) -> Json {
    match change {
        Change::KeyspaceCreated {
            keyspace,
            name,
            last_fast_level,
        } => json!({"create_keyspace": keyspace, "name": name, "last_fast_level": last_fast_level}),
        Change::TableRemoved { keyspace, table } => {
            json!({"remove_table": table, "keyspace": keyspace})
        }
        Change::TableAdded(table) => json!({"add_table": table_entry(table)}),
        Change::FlushedThrough { keyspace, seq } => {
            json!({"flushed_through": seq, "keyspace": keyspace})
        }
        Change::Learned {
            keyspace,
            cold,
            fresh,
        } => json!({"learned": {"cold": cold, "fresh": fresh}, "keyspace": keyspace}),
        Change::KeyspaceDropped { keyspace } => json!({"drop_keyspace": keyspace}),
        Change::NextFile(number) => json!({"next_file": number}),
        Change::LastSeq(seq) => json!({"last_seq": seq}),
        Change::LogFloor(seq) => json!({"log_floor": seq}),
        Change::LogStart(number) => json!({"log_start": number}),
        Change::LogFound { segments, next } => {
            let named = |(number, bytes): &(u64, u64)| json!({"segment": number, "bytes": bytes});
            let segments: Vec<_> = segments.iter().map(named).collect();
            json!({"found_log": segments, "log_goes_on_from": next})
        }
        Change::LogGivenUp(seq) => json!({"log_given_up_through": seq}),
        Change::BeganWith(edits) => json!({"began_with": edits}),
        Change::PlacedBy(placed_by) => json!({"placed_by": placed_by.to_string()}),
        Change::Heat {
            table,
            millireads,
            watched,
        } => json!({"heat_of": table, "millireads": millireads, "watched_seconds": watched}),
        Change::Target(target) => json!({"target": target}),
        // A change of a later release still says what it is.
        other => json!({"change": other.to_string()}),
    }
}

pub(super) fn table_entry(table: &TableEntry) -> Map<String, Json> {
    let numbers = [
        ("table", json!(table.number)),
        ("keyspace", json!(table.keyspace)),
        ("level", json!(table.level)),
        ("tier", json!(table.tier)),
        ("epoch", json!(table.epoch)),
        ("bytes", json!(table.bytes)),
        ("entries", json!(table.entries)),
        ("deletes", json!(table.deletes)),
        ("first_seq", json!(table.first_seq)),
        ("last_seq", json!(table.last_seq)),
    ];
    let keys = [
        field("first_key", &table.first_key, Notation::Text),
        field("last_key", &table.last_key, Notation::Text),
    ];
    let numbers = numbers.map(|(name, value)| (name.to_owned(), value));
    numbers.into_iter().chain(keys).collect()
}

pub(super) fn contents(contents: &Contents) -> Json {
    json!({
        "written_level": contents.written_level,
        "written_tier": contents.written_tier,
        "replaces": contents.replaces,
        "data_blocks": contents.data_blocks,
        "partitions": contents.partitions,
        "data_bytes": contents.data_bytes,
        "index_bytes": contents.index_bytes,
        "filter_bytes": contents.filter_bytes,
        "raw_key_bytes": contents.raw_key_bytes,
        "raw_value_bytes": contents.raw_value_bytes,
    })
}

pub(super) fn access_records(records: &AccessRecords) -> Json {
    json!({
        "database": format!("{:032x}", records.database),
        "hot_set_limit_bytes": records.hot_set_limit_bytes,
        "physical_bytes": records.physical_bytes,
        "physical_limit_bytes": records.physical_limit_bytes,
        "records": records.records,
        "tables": records.tables,
        "hot_threshold": records.hot_threshold,
        "evicted_threshold": records.evicted_threshold,
        "evictions": records.evictions,
        "tick": records.tick,
    })
}

pub(super) fn write(write: &Write) -> Json {
    let (name, key) = field("key", &write.key, Notation::Text);
    json!({
        "seq": write.seq,
        "keyspace": write.keyspace,
        "kind": format!("{:?}", write.kind).to_lowercase(),
        name: key,
        "value_bytes": write.value_bytes,
    })
}
