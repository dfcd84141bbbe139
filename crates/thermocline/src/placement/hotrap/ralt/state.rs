//! What RALT's state on disk says: limits, thresholds, and the tables with their histograms.
//!
//! It names tables that are durable (I4); files that it does not name are orphans.
//! [`super::state_log`] says how it lies in its file.

use bytes::Bytes;

use super::histogram::Histogram;
use super::limits::{Cut, Limits};
use super::reuse::CLASSES;
use super::scoring::Model;
use super::version::{Change, Tracked, Version};
use crate::coding::{Decoder, put_bytes, put_varint};
use crate::ids::{FileId, MAX_NUMBER};
use crate::key::KeyRange;
use crate::options::{HotRapOptions, Scoring};
use crate::sync::Arc;
use crate::table::TableMeta;

/// Largest size or weight, and largest number of records or of slices, that is taken for sound:
/// more than any device holds, and few enough for all of a state to add up without an overflow.
pub(super) const MOST: u64 = 1 << 46;
/// How many further numbers are kept: the settings' bounds, and how much of the slice is over.
const KEPT: usize = 5;

pub(super) const CUT_SHORT: &str = "the state is cut short";

/// The scores that the records of a state have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scores {
    /// As [`Model`] has them.
    decay: f64,
    epochs_per_tick: f64,
    /// None if it is none of this build.
    scoring: Option<Scoring>,
}

impl Scores {
    /// Whether they are those of `model`, but for rounding.
    pub(super) fn are_of(&self, model: &Model) -> bool {
        let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-9);
        is_near(self.decay, model.decay)
            && is_near(self.epochs_per_tick, model.epochs_per_tick)
            && self.scoring == Some(model.scoring)
    }

    /// What scores like this.
    pub(super) fn model(&self) -> Option<Model> {
        let scoring = self.scoring?;
        Some(Model::of_scores(scoring, self.decay, self.epochs_per_tick))
    }

    /// The settings that give such scores, with the bounds of `state` as far as they are valid.
    pub(super) fn settings(&self, state: &State) -> Option<HotRapOptions> {
        let scored = HotRapOptions::scored_by(self.decay, self.epochs_per_tick, self.scoring?)?;
        Some(scored.bounded_by(state.bounds).unwrap_or(scored))
    }
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
        Self {
            tables: version.tables().map(TableState::of).collect(),
            ..Self::without_tables(version, clock, next_id, options)
        }
    }

    fn without_tables(
        version: &Version,
        clock: Clock,
        next_id: FileId,
        options: &HotRapOptions,
    ) -> Self {
        Self {
            clock,
            next_id,
            limits: version.limits,
            duplicates: version.duplicates,
            bounds: options.bounds(),
            tables: Vec::new(),
        }
    }
}

impl TableState {
    fn of(table: &Arc<Tracked>) -> Self {
        Self {
            meta: table.meta.clone(),
            trim: table.trim.clone(),
            histogram: Arc::clone(&table.histogram),
        }
    }
}

/// One record of the file: what becomes of the state by a step of work, or, with tables alone, all
/// of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Edit {
    /// The tables that are added, and all else as it is from now on.
    pub(super) state: State,
    /// The numbers of the tables that are no longer part of it.
    pub(super) removed: Vec<FileId>,
    /// Tables whose records up to a key are not seen any more.
    pub(super) trimmed: Vec<(FileId, Bytes)>,
}

impl Edit {
    /// The edit by which `change` makes what is kept that of `version`.
    pub(super) fn of(
        version: &Version,
        change: &Change,
        clock: Clock,
        next_id: FileId,
        options: &HotRapOptions,
    ) -> Self {
        let trim = |table: &Arc<Tracked>| Some((table.meta.id, table.trim.clone()?));
        Self {
            state: State {
                tables: change.added.iter().map(TableState::of).collect(),
                ..State::without_tables(version, clock, next_id, options)
            },
            removed: change.removed.iter().map(|table| table.meta.id).collect(),
            trimmed: change.trimmed.iter().filter_map(trim).collect(),
        }
    }

    pub(super) fn encode(&self, model: &Model, out: &mut Vec<u8>) {
        let state = &self.state;
        let limits = &state.limits;
        for float in [
            model.decay,
            model.epochs_per_tick,
            limits.evicted,
            state.duplicates,
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
            state.clock.tick,
            state.next_id,
            KEPT as u64,
        ] {
            put_varint(out, number);
        }
        for kept in state.bounds.into_iter().chain([state.clock.begun]) {
            put_varint(out, kept.to_bits());
        }
        put_varint(out, state.tables.len() as u64);
        state.tables.iter().for_each(|table| table.encode(out));
        if self.removed.is_empty() && self.trimmed.is_empty() {
            return;
        }
        put_varint(out, self.removed.len() as u64);
        self.removed.iter().for_each(|id| put_varint(out, *id));
        put_varint(out, self.trimmed.len() as u64);
        for (id, trim) in &self.trimmed {
            put_varint(out, *id);
            put_bytes(out, trim);
        }
    }

    /// What `bytes` say, the tables on the tier `tier`. The error says in words what is wrong.
    pub(super) fn decode(bytes: &[u8], tier: u8) -> Result<(Scores, Self), String> {
        let mut decoder = Decoder::new(bytes);
        let read = Self::read(&mut decoder, tier).filter(|_| decoder.is_empty());
        let (scores, edit) = read.ok_or_else(|| CUT_SHORT.to_owned())?;
        let (limits, duplicates) = (&edit.state.limits, edit.state.duplicates);
        let mut floats = limits.hot.ranks.into_iter().chain([limits.evicted]);
        if floats.any(f64::is_nan) || !(0.0..=1.0).contains(&duplicates) {
            return Err("its thresholds are no numbers".to_owned());
        }
        Ok((scores, edit))
    }

    fn read(decoder: &mut Decoder<'_>, tier: u8) -> Option<(Scores, Self)> {
        let mut float = || Some(f64::from_bits(decoder.u64()?));
        let [decay, epochs_per_tick, evicted, duplicates] =
            [float()?, float()?, float()?, float()?];
        let mut ranks = [0.0; CLASSES];
        for rank in &mut ranks {
            *rank = float()?;
        }
        let scores = Scores {
            decay,
            epochs_per_tick,
            scoring: scoring_of(decoder.varint()?),
        };
        let sound = |number: u64| (number <= MOST).then_some(number);
        let mut state = State {
            limits: Limits {
                hot_set: decoder.varint()?,
                physical: decoder.varint()?,
                generation: sound(decoder.varint()?)?,
                hot: Cut {
                    epoch: decoder.varint()?,
                    ranks,
                },
                evicted,
            },
            duplicates,
            clock: Clock {
                tick: sound(decoder.varint()?)?,
                begun: 0.0,
            },
            next_id: decoder.varint().filter(|id| *id <= MAX_NUMBER)?,
            ..State::default()
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
            let table = TableState::read(decoder, tier)?;
            state.tables.push(table);
        }
        let mut edit = Self {
            state,
            ..Self::default()
        };
        if decoder.is_empty() {
            return Some((scores, edit));
        }
        for _ in 0..decoder.varint()? {
            edit.removed.push(decoder.varint()?);
        }
        for _ in 0..decoder.varint()? {
            let id = decoder.varint()?;
            let trim = Bytes::copy_from_slice(decoder.bytes()?);
            edit.trimmed.push((id, trim));
        }
        Some((scores, edit))
    }
}

impl TableState {
    fn encode(&self, out: &mut Vec<u8>) {
        let meta = &self.meta;
        out.push(meta.level);
        for number in [meta.id, meta.len, meta.entries] {
            put_varint(out, number);
        }
        put_bytes(out, &meta.range.first);
        put_bytes(out, &meta.range.last);
        match &self.trim {
            Some(trim) => {
                out.push(1);
                put_bytes(out, trim);
            }
            None => out.push(0),
        }
        self.histogram.encode(out);
    }

    fn read(decoder: &mut Decoder<'_>, tier: u8) -> Option<Self> {
        let sound = |number: u64| (number <= MOST).then_some(number);
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
        Some(Self {
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
        })
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
