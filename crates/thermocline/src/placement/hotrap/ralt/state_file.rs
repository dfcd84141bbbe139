//! Reading the file of the state: a log of edits, or the one record that earlier builds wrote.

use std::collections::BTreeMap;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::files::Files;
use super::scoring::Model;
use super::state::{CUT_SHORT, Edit, Scores, State, TableState};
use super::state_log::NAME;
use crate::coding::Decoder;
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::log_format::{FILE_HEADER_LEN, FileHeader, FileKind, Found, Records};
use crate::metrics::Purpose;
use crate::options::HotRapOptions;

/// The magic number and the version of earlier builds.
const OLD_MAGIC: &[u8; 8] = b"TCLNRALT";
const OLD_VERSION: u32 = 2;
const CHECKSUM_LEN: usize = 8;

const NO_MATCH: &str = "the state's checksum does not match";

/// What the file says, whatever its database and its settings are.
#[derive(Debug)]
pub(super) struct StateFile {
    pub(super) database: u128,
    pub(super) scores: Scores,
    pub(super) state: State,
}

/// Why a file is of no use, in words, and where that shows.
#[derive(Debug)]
pub(super) struct Unusable {
    offset: u64,
    pub(super) what: String,
}

impl Unusable {
    fn at(offset: u64, what: impl Into<String>) -> Self {
        Self {
            offset,
            what: what.into(),
        }
    }
}

impl StateFile {
    /// What `bytes` say, the tables on the tier `tier`. An edit that a crash cut short was never in
    /// force. The first record was durable before the file had its name, so that it is whole.
    pub(super) fn read(bytes: &[u8], tier: u8) -> std::result::Result<Self, Unusable> {
        if bytes.starts_with(OLD_MAGIC) {
            return Self::read_old(bytes, tier);
        }
        let header = header_of(bytes)?;
        let (mut replay, mut scores) = (Replay::default(), None);
        let mut records = Records::new(header.number, bytes);
        loop {
            match records.next() {
                Found::Record { offset, payload } => {
                    let payload = bytes.get(payload).unwrap_or_default();
                    let edit = Edit::decode(payload, tier);
                    let (by, edit) = edit.map_err(|what| Unusable::at(offset, what))?;
                    let applied = replay.apply(edit);
                    applied.map_err(|what| Unusable::at(offset, what))?;
                    scores = Some(by);
                }
                Found::End | Found::Torn { .. } if scores.is_some() => break,
                Found::End => return Err(Unusable::at(FILE_HEADER_LEN as u64, CUT_SHORT)),
                // Each edit was synced before the next was written.
                Found::Torn { offset } | Found::Damaged { offset, .. } => {
                    return Err(Unusable::at(offset, NO_MATCH));
                }
            }
        }
        let scores = scores.ok_or_else(|| Unusable::at(0, CUT_SHORT))?;
        Ok(Self {
            database: header.database,
            scores,
            state: replay.end(),
        })
    }

    fn read_old(bytes: &[u8], tier: u8) -> std::result::Result<Self, Unusable> {
        let parts = bytes.split_last_chunk::<CHECKSUM_LEN>();
        let (covered, sum) = parts.ok_or_else(|| Unusable::at(0, CUT_SHORT))?;
        if xxh3_64(covered).to_le_bytes() != *sum {
            return Err(Unusable::at(0, NO_MATCH));
        }
        let mut decoder = Decoder::new(covered);
        let begin = (|| Some((decoder.take(8)?, decoder.u32()?, decoder.u128()?)))();
        let (_, version, database) = begin.ok_or_else(|| Unusable::at(0, CUT_SHORT))?;
        if version != OLD_VERSION {
            return Err(newer(version, OLD_VERSION));
        }
        let rest = covered.get(decoder.position()..).unwrap_or_default();
        let edit = Edit::decode(rest, tier);
        let (scores, edit) = edit.map_err(|what| Unusable::at(0, what))?;
        let mut replay = Replay::default();
        let applied = replay.apply(edit);
        applied.map_err(|what| Unusable::at(0, what))?;
        Ok(Self {
            database,
            scores,
            state: replay.end(),
        })
    }

    /// The state in force, and its file's length.
    ///
    /// # Errors
    /// [`Error::Corruption`] for whatever this build cannot use; I/O errors.
    pub(super) fn load(files: &Files, model: &Model) -> Result<(State, u64)> {
        let bytes = files.log.read(NAME)?;
        files.tier.count_read(Purpose::Open, bytes.len() as u64);
        let found = Self::read(&bytes, files.tier.index);
        let state = found.and_then(|found| found.of(files.database, model));
        let path = files.log.path().join(NAME);
        let state = state.map_err(|bad| Error::corruption(path, bad.offset, bad.what))?;
        Ok((state, bytes.len() as u64))
    }

    fn of(self, database: u128, model: &Model) -> std::result::Result<State, Unusable> {
        if self.database != database {
            let what = format!("the state belongs to database {:032x}", self.database);
            return Err(Unusable::at(0, what));
        }
        if !self.scores.are_of(model) {
            let what = "its scores are of other settings (`decay`, `slice` by `hot_set_max`)";
            return Err(Unusable::at(0, what));
        }
        Ok(self.state)
    }
}

/// The settings that a state was written with, as far as it tells them; none if it is damaged.
pub(super) fn settings(bytes: &[u8]) -> Option<HotRapOptions> {
    let found = StateFile::read(bytes, 0).ok()?;
    found.scores.settings(&found.state)
}

fn header_of(bytes: &[u8]) -> std::result::Result<FileHeader, Unusable> {
    match FileHeader::decode(Path::new(NAME), FileKind::AccessRecords, bytes) {
        Ok(Some(header)) => Ok(header),
        Ok(None) if bytes.len() < FILE_HEADER_LEN => Err(Unusable::at(0, CUT_SHORT)),
        Ok(None) if !FileKind::AccessRecords.begins(bytes) => {
            Err(Unusable::at(0, "the file is no state"))
        }
        Ok(None) => Err(Unusable::at(0, NO_MATCH)),
        Err(Error::FormatVersion {
            found, supported, ..
        }) => Err(newer(found, supported)),
        Err(error) => Err(Unusable::at(0, error.to_string())),
    }
}

fn newer(found: u32, supported: u32) -> Unusable {
    let what = format!("the state has format version {found}, this build reads {supported}");
    Unusable::at(0, what)
}

/// What the edits so far add up to.
#[derive(Debug, Default)]
struct Replay {
    state: State,
    tables: BTreeMap<FileId, TableState>,
}

impl Replay {
    /// The error says in words what is wrong.
    fn apply(&mut self, edit: Edit) -> std::result::Result<(), &'static str> {
        for id in &edit.removed {
            let removed = self.tables.remove(id);
            removed.ok_or("it does without a table that it did not have")?;
        }
        for (id, trim) in edit.trimmed {
            let table = self.tables.get_mut(&id);
            table.ok_or("it trims a table that it does not have")?.trim = Some(trim);
        }
        let mut state = edit.state;
        for table in std::mem::take(&mut state.tables) {
            // A table that is named twice would be merged away twice.
            let id = table.meta.id;
            if id >= state.next_id || self.tables.insert(id, table).is_some() {
                return Err("it has a table of a number that is not new");
            }
        }
        self.state = state;
        Ok(())
    }

    fn end(self) -> State {
        State {
            tables: self.tables.into_values().collect(),
            ..self.state
        }
    }
}
