//! RALT's state on disk: one small file, written whole with each new version.
//!
//! It names tables that are durable (I4) and is renamed into place, so that a crash leaves the old
//! one or the new one. Files that it does not name are orphans.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::files::Files;
use super::histogram::Histogram;
use super::limits::{Cut, Limits};
use super::reuse::CLASSES;
use super::scoring::Model;
use super::version::{Tracked, Version};
use crate::coding::{Decoder, put_bytes, put_varint};
use crate::error::{Error, Result};
use crate::ids::{FileId, MAX_NUMBER};
use crate::key::KeyRange;
use crate::metrics::Purpose;
use crate::options::{HotRapOptions, Scoring};
use crate::points::point;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::table::TableMeta;

/// The state's name in RALT's directory, and that of one being written.
pub(crate) const NAME: &str = "RALT";
pub(super) const TEMPORARY: &str = "RALT.tmp";

const MAGIC: &[u8; 8] = b"TCLNRALT";
const FORMAT_VERSION: u32 = 2;
const CHECKSUM_LEN: usize = 8;
/// Largest size or weight, and largest number of records or of slices, that is taken for sound:
/// more than any device holds, and few enough for all of a state to add up without an overflow.
pub(super) const MOST: u64 = 1 << 46;
/// How many further numbers are kept: the settings' bounds, and how much of the slice is over.
const KEPT: usize = 5;
/// Magic, version, database and the two numbers of the model.
#[cfg(any(test, feature = "fuzzing"))]
const SHARED_LEN: usize = 44;

const CUT_SHORT: &str = "the state is cut short";

/// What the file begins with.
#[derive(Debug)]
struct Header {
    database: u128,
    /// As [`Model`] has them.
    decay: f64,
    epochs_per_tick: f64,
    scoring: Option<Scoring>,
    evicted: f64,
    duplicates: f64,
    ranks: [f64; CLASSES],
}

impl Header {
    /// The header of a whole state, and what is behind it. The error says in words what is wrong.
    fn read(bytes: &[u8]) -> std::result::Result<(Self, Decoder<'_>), String> {
        let (covered, sum) = bytes
            .split_last_chunk::<CHECKSUM_LEN>()
            .ok_or_else(|| CUT_SHORT.to_owned())?;
        if xxh3_64(covered).to_le_bytes() != *sum {
            return Err("the state's checksum does not match".to_owned());
        }
        let mut decoder = Decoder::new(covered);
        let begin = (|| Some((decoder.take(8)?, decoder.u32()?, decoder.u128()?)))();
        let database = match begin {
            Some((magic, _, _)) if magic != MAGIC => {
                return Err("the file is no state".to_owned());
            }
            Some((_, version, _)) if version != FORMAT_VERSION => {
                return Err(format!(
                    "the state has format version {version}, this build reads {FORMAT_VERSION}"
                ));
            }
            Some((_, _, database)) => database,
            None => return Err(CUT_SHORT.to_owned()),
        };
        let header = Self::rest(database, &mut decoder).ok_or_else(|| CUT_SHORT.to_owned())?;
        let mut floats = header
            .ranks
            .into_iter()
            .chain([header.evicted, header.duplicates]);
        if floats.any(f64::is_nan) || !(0.0..=1.0).contains(&header.duplicates) {
            return Err("its thresholds are no numbers".to_owned());
        }
        Ok((header, decoder))
    }

    fn rest(database: u128, decoder: &mut Decoder<'_>) -> Option<Self> {
        let mut float = || Some(f64::from_bits(decoder.u64()?));
        let [decay, epochs_per_tick, evicted, duplicates] =
            [float()?, float()?, float()?, float()?];
        let mut ranks = [0.0; CLASSES];
        for rank in &mut ranks {
            *rank = float()?;
        }
        Some(Self {
            database,
            decay,
            epochs_per_tick,
            scoring: scoring_of(decoder.varint()?),
            evicted,
            duplicates,
            ranks,
        })
    }

    /// Whether its scores are those of `model`, but for rounding.
    fn is_of(&self, model: &Model) -> bool {
        let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-9);
        is_near(self.decay, model.decay)
            && is_near(self.epochs_per_tick, model.epochs_per_tick)
            && self.scoring == Some(model.scoring)
    }
}

/// The settings that a state was written with, as far as it tells them; none if it is damaged.
pub(super) fn settings(bytes: &[u8]) -> Option<HotRapOptions> {
    let (header, mut decoder) = Header::read(bytes).ok()?;
    let scored = HotRapOptions::scored_by(header.decay, header.epochs_per_tick, header.scoring?)?;
    let bounds = State::rest(&mut decoder, 0)?.bounds;
    Some(scored.bounded_by(bounds).unwrap_or(scored))
}

/// RALT's time, as a state keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Clock {
    /// The time slice.
    pub(super) tick: u64,
    /// How much of it is over, from 0 to less than 1.
    pub(super) begun: f64,
}

impl Clock {
    /// Bytes that were accessed in the slice so far, if slices have `slice` bytes.
    pub(super) fn accessed(self, slice: u64) -> u64 {
        let accessed = (self.begun * slice as f64).round() as u64;
        // More are going to be added.
        accessed.min(u64::MAX / 2)
    }
}

/// What the file says.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) clock: Clock,
    /// Tables from this number on do not exist.
    pub(super) next_id: FileId,
    pub(super) limits: Limits,
    pub(super) duplicates: f64,
    /// [`HotRapOptions::bounds`] of the settings in use. A state of an earlier build has none that
    /// are valid.
    pub(super) bounds: [f64; 4],
    pub(super) tables: Vec<TableState>,
}

/// A table that the state names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableState {
    pub(super) meta: TableMeta,
    pub(super) trim: Option<Bytes>,
    pub(super) histogram: Arc<Histogram>,
}

impl State {
    /// The state that `version` is to be kept with.
    pub(super) fn of(
        version: &Version,
        clock: Clock,
        next_id: FileId,
        options: &HotRapOptions,
    ) -> Self {
        let table = |table: &Arc<Tracked>| TableState {
            meta: table.meta.clone(),
            trim: table.trim.clone(),
            histogram: Arc::clone(&table.histogram),
        };
        Self {
            clock,
            next_id,
            limits: version.limits,
            duplicates: version.duplicates,
            bounds: options.bounds(),
            tables: version.tables().map(table).collect(),
        }
    }

    pub(super) fn encode(&self, database: u128, model: &Model) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&database.to_le_bytes());
        let limits = &self.limits;
        for float in [
            model.decay,
            model.epochs_per_tick,
            limits.evicted,
            self.duplicates,
        ]
        .into_iter()
        .chain(limits.hot.ranks)
        {
            out.extend_from_slice(&float.to_bits().to_le_bytes());
        }
        for number in [
            scoring_number(model.scoring),
            limits.hot_set,
            limits.physical,
            limits.generation,
            limits.hot.epoch,
            self.clock.tick,
            self.next_id,
            KEPT as u64,
        ] {
            put_varint(&mut out, number);
        }
        for kept in self.bounds.into_iter().chain([self.clock.begun]) {
            put_varint(&mut out, kept.to_bits());
        }
        put_varint(&mut out, self.tables.len() as u64);
        for table in &self.tables {
            let meta = &table.meta;
            out.push(meta.level);
            for number in [meta.id, meta.len, meta.entries] {
                put_varint(&mut out, number);
            }
            put_bytes(&mut out, &meta.range.first);
            put_bytes(&mut out, &meta.range.last);
            match &table.trim {
                Some(trim) => {
                    out.push(1);
                    put_bytes(&mut out, trim);
                }
                None => out.push(0),
            }
            table.histogram.encode(&mut out);
        }
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    /// A state of any `content` behind the beginning that all states of a database and a model
    /// share.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn sealed(database: u128, model: &Model, content: &[u8]) -> Vec<u8> {
        let mut out = Self::default().encode(database, model);
        out.truncate(SHARED_LEN);
        out.extend_from_slice(content);
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    /// What [`State::sealed`] took.
    #[cfg(test)]
    pub(super) fn content(sealed: &[u8]) -> Option<&[u8]> {
        sealed.get(SHARED_LEN..sealed.len().checked_sub(CHECKSUM_LEN)?)
    }

    /// The error says in words what is wrong.
    fn decode(bytes: &[u8], files: &Files, model: &Model) -> std::result::Result<Self, String> {
        let (header, decoder) = Header::read(bytes)?;
        if header.database != files.database {
            return Err(format!(
                "the state belongs to database {:032x}",
                header.database
            ));
        }
        if !header.is_of(model) {
            return Err(
                "its scores are of other settings (`decay`, `slice` by `hot_set_max`)".to_owned(),
            );
        }
        Self::behind(&header, decoder, files.tier.index)
    }

    /// What a state says, whatever its database and its settings are, with its scores and the
    /// database's number. The error says in words what is wrong.
    pub(super) fn of_any(bytes: &[u8]) -> std::result::Result<(Self, Model, u128), String> {
        let (header, decoder) = Header::read(bytes)?;
        let scoring = header.scoring.ok_or("its scoring is none of this build")?;
        let model = Model::of_scores(scoring, header.decay, header.epochs_per_tick);
        // It does not matter which tier the tables are said to be on.
        let state = Self::behind(&header, decoder, 0)?;
        Ok((state, model, header.database))
    }

    /// The state that `header` begins, its tables on the tier `tier`.
    fn behind(
        header: &Header,
        mut decoder: Decoder<'_>,
        tier: u8,
    ) -> std::result::Result<Self, String> {
        let rest = Self::rest(&mut decoder, tier).filter(|_| decoder.is_empty());
        let mut state = rest.ok_or_else(|| CUT_SHORT.to_owned())?;
        state.limits.hot.ranks = header.ranks;
        state.limits.evicted = header.evicted;
        state.duplicates = header.duplicates;
        Ok(state)
    }

    fn rest(decoder: &mut Decoder<'_>, tier: u8) -> Option<Self> {
        let sound = |number: u64| (number <= MOST).then_some(number);
        let mut state = Self {
            limits: Limits {
                hot_set: decoder.varint()?,
                physical: decoder.varint()?,
                generation: sound(decoder.varint()?)?,
                hot: Cut {
                    epoch: decoder.varint()?,
                    ..Cut::NONE
                },
                ..Limits::default()
            },
            clock: Clock {
                tick: sound(decoder.varint()?)?,
                begun: 0.0,
            },
            next_id: decoder.varint().filter(|id| *id <= MAX_NUMBER)?,
            ..Self::default()
        };
        // Earlier builds have numbers of keyspaces here, or nothing. Read as fractions, these are
        // next to 0: no slice has begun, and no settings have such bounds.
        let mut kept = [0.0; KEPT];
        for at in 0..decoder.varint()? {
            let fraction = f64::from_bits(decoder.varint()?);
            let place = usize::try_from(at).ok().and_then(|at| kept.get_mut(at));
            if let Some(place) = place {
                *place = fraction;
            }
        }
        let [bounds @ .., begun] = kept;
        state.bounds = bounds;
        if (0.0..1.0).contains(&begun) {
            state.clock.begun = begun;
        }
        for _ in 0..decoder.varint()? {
            let level = decoder.u8()?;
            let id = decoder.varint()?;
            let (len, entries) = (sound(decoder.varint()?)?, sound(decoder.varint()?)?);
            let range = KeyRange {
                first: Bytes::copy_from_slice(decoder.bytes()?),
                last: Bytes::copy_from_slice(decoder.bytes()?),
            };
            let trim = match decoder.u8()? {
                0 => None,
                _ => Some(Bytes::copy_from_slice(decoder.bytes()?)),
            };
            // A table that is named twice would be merged away twice.
            if id >= state.next_id || state.tables.iter().any(|other| other.meta.id == id) {
                return None;
            }
            state.tables.push(TableState {
                meta: TableMeta {
                    id,
                    keyspace: 0,
                    level,
                    tier,
                    epoch: 0,
                    len,
                    entries,
                    deletes: 0,
                    min_seq: 0,
                    max_seq: 0,
                    ingested: false,
                    range,
                    content: None,
                },
                trim,
                histogram: Arc::new(Histogram::decode(decoder, MOST)?),
            });
        }
        Some(state)
    }

    /// Writes the state to `log` and puts it in force there. Returns its length.
    ///
    /// # Errors
    /// One that [may pass](Error::may_pass) before anything changed. After any other it is not
    /// known which state is in force, and nothing may be tried again (I9).
    pub(super) fn save(&self, files: &Files, log: &dyn LogStore, model: &Model) -> Result<u64> {
        point!(files.points, "ralt.before_state")?;
        let bytes = self.encode(files.database, model);
        let file = log.create(TEMPORARY)?;
        file.append(&bytes)?;
        files.tier.count_write(Purpose::Hotness, bytes.len() as u64);
        file.sync()?;
        point!(files.points, "ralt.state_written")?;
        let renamed = log.rename(TEMPORARY, NAME);
        let renamed = renamed.and_then(|()| log.sync_dir());
        renamed.map_err(|error| match error {
            // It is not known which state is in force now, whatever the cause.
            passing if passing.may_pass() => Error::Poisoned {
                cause: passing.to_string().into(),
            },
            other => other,
        })?;
        let _: Result<()> = point!(files.points, "ralt.state_renamed");
        Ok(bytes.len() as u64)
    }

    /// The state in force, and its file's length.
    ///
    /// # Errors
    /// [`Error::Corruption`] for whatever this build cannot use; I/O errors.
    pub(super) fn load(files: &Files, model: &Model) -> Result<(Self, u64)> {
        let bytes = files.log.read(NAME)?;
        files.tier.count_read(Purpose::Open, bytes.len() as u64);
        let path = files.log.path().join(NAME);
        let state = Self::decode(&bytes, files, model);
        let state = state.map_err(|what| Error::corruption(path, 0, what))?;
        Ok((state, bytes.len() as u64))
    }
}

fn scoring_number(scoring: Scoring) -> u64 {
    match scoring {
        Scoring::Smoothing => 0,
        Scoring::Clock => 1,
        Scoring::Lru => 2,
    }
}

fn scoring_of(number: u64) -> Option<Scoring> {
    let all = [Scoring::Smoothing, Scoring::Clock, Scoring::Lru];
    all.into_iter()
        .find(|scoring| scoring_number(*scoring) == number)
}
