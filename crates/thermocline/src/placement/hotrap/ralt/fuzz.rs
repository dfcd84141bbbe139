//! Entry points for fuzzing: they must return, whatever RALT's files say (I7).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bytes::Bytes;

use super::files::Files;
use super::histogram::Histogram;
#[cfg(test)]
use super::record::Record;
use super::record::tracked_key;
use super::scoring::Model;
use super::sizes::Sizes;
use super::state::{Edit, State, TableState};
use super::state_log::{NAME, StateLog};
use super::{Ralt, RaltParts};
use crate::error::Result;
use crate::key::{InternalKey, KeyRange, Kind};
use crate::log_format::{FileHeader, FileKind, RECORD_HEADER_LEN, put_record};
use crate::metrics::Purpose;
use crate::options::{HotRapOptions, TierOptions};
use crate::points::Points;
use crate::storage::{Medium, Memory};
use crate::sync::Arc;
use crate::table::{TableBuilder, TableIdentity};
use crate::tier::Tier;
use crate::version::edit::PlacedBy;

const DATABASE: u128 = 0xf0_22;
/// Small: a run takes all of RALT's files in.
const CAPACITY: u64 = 100 << 10;
const DIR: &str = "/fast/ralt";
/// Number of the table that [`table_of`] writes.
const NUMBER: u64 = 1;
/// What stands between the records of an input.
const CUT: [u8; 4] = [0xee; 4];
/// The two numbers of the model.
const SHARED_LEN: usize = 16;
/// Steps of background work after which it is taken to have no end.
const MOST_STEPS: usize = 10_000;

/// RALT's files, by name.
type FilesByName = Vec<(String, Vec<u8>)>;

/// The files of a RALT that has learnt a few keys, evicted others and was closed.
static LEFT: LazyLock<FilesByName> = LazyLock::new(|| {
    let memory = Memory::new();
    let ralt = Ralt::open(parts(&memory));
    ralt.set_data(10 * CAPACITY);
    for number in (0..50).chain(0..50).chain(1000..2000) {
        if ralt.log(3, &key(number), 200, 1) {
            work(&ralt);
        }
    }
    ralt.close();
    files_of(&memory)
});

fn key(number: u32) -> Vec<u8> {
    format!("user{number:08}").into_bytes()
}

fn parts(memory: &Memory) -> RaltParts {
    let fast = Memory::new();
    let tables = expect(fast.table_store(Path::new("/fast"), true));
    let tier = TierOptions::fast("/fast").capacity(CAPACITY);
    RaltParts {
        keyspaces: BTreeSet::from([0, 3, u32::MAX]),
        database: DATABASE,
        options: HotRapOptions::default(),
        fast: Arc::new(Tier::new(0, tier, tables, None)),
        medium: Arc::new(memory.clone()),
        path: PathBuf::from(DIR),
        points: Points::default(),
        reads_only: false,
        before: Some(PlacedBy::Hotness),
    }
}

fn work(ralt: &Ralt) {
    let steps = (0..MOST_STEPS).take_while(|_| ralt.work()).count();
    assert!(steps < MOST_STEPS, "the work does not end");
}

fn files_of(memory: &Memory) -> FilesByName {
    let log = expect(memory.log_store(Path::new(DIR), true));
    let files = expect(log.list()).into_iter();
    files
        .map(|file| (file.name.clone(), expect(log.read(&file.name))))
        .collect()
}

fn put(memory: &Memory, name: &str, bytes: &[u8]) {
    let log = expect(memory.log_store(Path::new(DIR), true));
    expect(expect(log.create(name)).append(bytes));
}

/// Opens a RALT beside the tables of an earlier process. The records of its state say `bytes`.
pub(crate) fn fuzz_state(bytes: &[u8]) {
    let memory = Memory::new();
    lay_out(&memory, bytes);
    use_it(&memory);
}

/// Lays out the tables that were left, and a state of `bytes`, as [`sealed`] takes them.
fn lay_out(memory: &Memory, bytes: &[u8]) {
    for (name, content) in LEFT.iter().filter(|(name, _)| name != NAME) {
        put(memory, name, content);
    }
    let model = Model::new(&HotRapOptions::default());
    put(memory, NAME, &sealed(&model, bytes));
}

/// A state whose records hold `bytes`, cut at each run of four bytes 0xee, each behind what all
/// records of a model begin with.
fn sealed(model: &Model, bytes: &[u8]) -> Vec<u8> {
    let header = FileHeader {
        kind: FileKind::AccessRecords,
        number: NUMBER,
        database: DATABASE,
        previous: None,
        base_seq: 0,
    };
    let mut out = header.encode();
    let mut rest = Some(bytes);
    while let Some(bytes) = rest {
        let cut = bytes.windows(CUT.len()).position(|window| window == CUT);
        let record = &bytes[..cut.unwrap_or(bytes.len())];
        rest = cut.map(|at| &bytes[at + CUT.len()..]);
        let offset = out.len() as u64;
        let written = put_record(&mut out, NUMBER, offset, |out| {
            Edit::default().encode(model, out);
            out.truncate((offset as usize) + RECORD_HEADER_LEN + SHARED_LEN);
            out.extend_from_slice(record);
        });
        // What is too large for a record is no record.
        let _: Result<()> = written;
    }
    out
}

/// Opens a RALT whose only table has the records that `bytes` give: length of the key's end,
/// weight, length of the value, then the key's end and the value.
pub(crate) fn fuzz_records(bytes: &[u8]) {
    let memory = Memory::new();
    if table_of(&memory, bytes).is_ok() {
        use_it(&memory);
    }
}

fn table_of(memory: &Memory, bytes: &[u8]) -> Result<()> {
    let mut records = std::collections::BTreeMap::new();
    let mut rest = bytes;
    while let [key_len, weight, value_len, tail @ ..] = rest {
        let (end, tail) = tail.split_at(tail.len().min(usize::from(key_len % 24)));
        let (value, tail) = tail.split_at(tail.len().min(usize::from(*value_len)));
        records.insert(tracked_key(3, end), (value.to_vec(), u64::from(*weight)));
        rest = tail;
    }
    let (Some((first, _)), Some((last, _))) = (records.first_key_value(), records.last_key_value())
    else {
        return Ok(());
    };
    let range = KeyRange {
        first: Bytes::copy_from_slice(first),
        last: Bytes::copy_from_slice(last),
    };
    let parts = parts(memory);
    let (sizes, model) = (
        Sizes::new(&parts.options, CAPACITY, CAPACITY),
        Model::new(&parts.options),
    );
    let files = Files::new(&parts, &sizes)?;
    let identity = TableIdentity {
        database: DATABASE,
        keyspace: 0,
        id: NUMBER,
        level: 1,
        tier: 0,
        epoch: 0,
        replaces: Vec::new(),
        gone: Vec::new(),
        keyspace_name: Bytes::new(),
    };
    let mut builder =
        TableBuilder::new(&files.tier, identity, sizes.table, Purpose::Hotness)?.weighed();
    for (key, (value, weight)) in &records {
        builder.add_weighing(InternalKey::new(key, 0, Kind::Put), value, *weight)?;
    }
    let mut meta = builder.finish()?;
    meta.range = range;
    let state = State {
        next_id: NUMBER + 1,
        tables: vec![TableState {
            meta,
            trim: None,
            histogram: Arc::new(Histogram::new(&mut [], 0)),
        }],
        ..State::default()
    };
    StateLog::write(&files, &*files.log, &model, state)?;
    Ok(())
}

/// Asks RALT everything that there is to ask, makes all of its work due, and opens it again.
fn use_it(memory: &Memory) -> Option<String> {
    let ralt = Ralt::open(parts(memory));
    let opened = ralt.trouble();
    ralt.set_data(10 * CAPACITY);
    let all = KeyRange {
        first: Bytes::new(),
        last: Bytes::from_static(&[0xff; 16]),
    };
    for keyspace in [0, 3, u32::MAX] {
        ralt.is_hot(keyspace, &key(5));
        ralt.is_hot_with_a_read(keyspace, &key(5));
        ralt.hot_bytes(keyspace, &all);
        let mut hot = ralt.hot_keys(keyspace, &all);
        for number in 0..60 {
            hot.is_hot(&key(number));
        }
    }
    let _ = ralt.heat(20, &|keyspace| Some(keyspace.to_string()));
    ralt.metrics();
    work(&ralt);
    // Enough for a flush; less room than there are hot records makes an eviction due.
    for number in 0..150 {
        if ralt.log(3, &key(number), 200, 1) {
            work(&ralt);
        }
    }
    ralt.set_room(1 << 10);
    work(&ralt);
    ralt.forget(3);
    ralt.close();
    // What it leaves is sound, whatever it found.
    let again = Ralt::open(parts(memory));
    assert_eq!(again.trouble(), None, "what was left by {opened:?}");
    again.close();
    opened
}

/// Putting the files together is not what is tested.
#[allow(clippy::panic, reason = "a fuzz target reports by panicking")]
fn expect<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("memory refuses: {error}"))
}

/// What [`fuzz_state`] takes, as an earlier process left it.
#[cfg(test)]
pub(crate) fn intact_state() -> Vec<u8> {
    let model = Model::new(&HotRapOptions::default());
    let state = left_state();
    content(
        &model,
        &Edit {
            state,
            ..Edit::default()
        },
    )
}

/// The same with two edits: one trims a table, and one does without it.
#[cfg(test)]
pub(crate) fn intact_edits() -> Vec<u8> {
    let model = Model::new(&HotRapOptions::default());
    let state = left_state();
    let table = state.tables.first().expect("a table").clone();
    let edit = |removed, trimmed| Edit {
        state: State {
            tables: Vec::new(),
            ..state.clone()
        },
        removed,
        trimmed,
    };
    let trimming = edit(Vec::new(), vec![(table.meta.id, table.meta.range.first)]);
    let removing = edit(vec![table.meta.id], Vec::new());
    let edits = [trimming, removing].map(|edit| content(&model, &edit));
    [intact_state(), edits.join(&CUT[..])].join(&CUT[..])
}

#[cfg(test)]
fn left_state() -> State {
    let file = LEFT.iter().find(|(name, _)| name == NAME);
    let (_, bytes) = file.expect("RALT leaves a state");
    let found = super::state_file::StateFile::read(bytes, 0);
    found.expect("a whole state").state
}

/// The part of an edit's record that an input holds.
#[cfg(test)]
fn content(model: &Model, edit: &Edit) -> Vec<u8> {
    let mut bytes = Vec::new();
    edit.encode(model, &mut bytes);
    bytes.split_off(SHARED_LEN)
}

/// What [`fuzz_state`] takes, well formed, with the largest numbers that fit.
#[cfg(test)]
pub(crate) fn largest_state() -> Vec<u8> {
    let model = Model::new(&HotRapOptions::default());
    let state = State {
        clock: super::state::Clock {
            tick: u64::MAX,
            begun: 0.0,
        },
        next_id: u64::MAX,
        limits: super::limits::Limits {
            generation: u64::MAX,
            ..Default::default()
        },
        ..State::default()
    };
    content(
        &model,
        &Edit {
            state,
            ..Edit::default()
        },
    )
}

/// What [`fuzz_records`] takes, with sound records.
#[cfg(test)]
pub(crate) fn intact_records() -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..12u8 {
        let record = Record {
            value_len: 200,
            tick: u64::from(number),
            score: 1.5,
            stable_until: 64 * u64::from(number),
            again: number % 2 == 0,
        };
        let mut value = Vec::new();
        record.encode(&mut value);
        let key = key(u32::from(number));
        out.extend_from_slice(&[key.len() as u8, number, value.len() as u8]);
        out.extend_from_slice(&key);
        out.extend_from_slice(&value);
    }
    out
}

/// Why the targets' inputs would not be used, if so: a corpus that is refused is worthless.
#[cfg(test)]
pub(crate) fn refused(state: &[u8], records: &[u8]) -> [Option<String>; 2] {
    let (with_state, with_records) = (Memory::new(), Memory::new());
    lay_out(&with_state, state);
    table_of(&with_records, records).expect("sound records");
    [use_it(&with_state), use_it(&with_records)]
}
