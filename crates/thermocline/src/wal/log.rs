//! The open log: buffer, current segment, rotation.

use std::collections::VecDeque;

use bytes::Bytes;

use super::large::LARGE_RECORD;
use super::record::GroupHeader;
use super::recover::Recovered;
use super::segment::{ClosedSegment, Segment, begin_file, log_store, segment_file_name};
use super::sync::WalSync;
use crate::batch;
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::key::SeqNo;
use crate::log_format::{FILE_HEADER_LEN, FileHeader, FileKind, put_record};
use crate::metrics::Purpose;
use crate::points::{Points, point};
use crate::storage::{LogFile, LogStore};
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;

/// When the process buffer has this many bytes, it is handed over without a request.
const BUFFER_LEN: usize = 64 << 10;

/// What appending, syncing and reading threads share. Lock order: `turn`, `state`, `poison`.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tier: Arc<Tier>,
    pub(super) store: Arc<dyn LogStore>,
    pub(super) database: u128,
    /// Bytes of flushed log that are kept.
    pub(super) retention: u64,
    pub(super) points: Points,
    pub(super) state: Mutex<State>,
    /// Held while syncing, so that a later caller never overtakes the sync of an older segment, and
    /// while segments are removed. Appends do not take it.
    pub(super) turn: Mutex<Turn>,
    poison: Mutex<Option<Arc<str>>>,
}

/// What the holder of the turn has to know.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Whether the store is closed. If so, its directory may belong to another store.
    pub(super) has_ended: bool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) closed: VecDeque<Segment>,
    pub(super) current: Segment,
    pub(super) current_file: Arc<dyn LogFile>,
    /// Encoded records that have not been handed to the file yet.
    buffer: Vec<u8>,
    /// Where the newest record starts in the buffer, and its first sequence number. Present while
    /// that record may still be withdrawn.
    newest: Option<(usize, SeqNo)>,
    pub(super) next_seq: SeqNo,
    /// [`State::next_seq`] when the log was opened.
    opened_at: SeqNo,
    /// Changes of the directory so far, and how many of them are durable.
    pub(super) entry_changes: u64,
    pub(super) entries_durable: u64,
    /// The change that removed the latest segment.
    pub(super) removal: u64,
}

impl State {
    /// Whether all closed segments are durable. Syncs go oldest first (I5), so all are if the
    /// newest is.
    pub(super) fn older_durable(&self) -> bool {
        self.closed.back().is_none_or(Segment::is_durable)
    }

    /// Drops the newest record from the buffer. Its writers are told of a failure, so a later
    /// hand-over must not bring it back.
    fn withdraw_newest(&mut self) {
        if let Some((at, first_seq)) = self.newest.take() {
            self.buffer.truncate(at);
            self.next_seq = first_seq;
        }
    }
}

impl Shared {
    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed (I9).
    pub(super) fn check(&self) -> Result<()> {
        match &*self.poison.lock() {
            Some(cause) => Err(Error::Poisoned {
                cause: Arc::clone(cause),
            }),
            None => Ok(()),
        }
    }

    /// Refuses everything from here on; the first cause stays (I9).
    pub(super) fn poison(&self, error: &Error) -> Error {
        let cause = match error {
            Error::Poisoned { cause } => Arc::clone(cause),
            other => other.to_string().into(),
        };
        let mut poison = self.poison.lock();
        Error::Poisoned {
            cause: Arc::clone(poison.get_or_insert(cause)),
        }
    }

    /// Hands the whole buffer to the file. On failure the buffer is as before and the file
    /// ends where it did, so the call may be repeated.
    pub(super) fn flush(&self, state: &mut State) -> Result<()> {
        if state.buffer.is_empty() {
            return Ok(());
        }
        self.tier.with_room(|| {
            let written = point!(self.points, "wal.before_hand_over")
                .and_then(|()| state.current_file.append(&state.buffer));
            written.map_err(|error| self.undo_append(state, error))
        })?;
        let len = state.buffer.len() as u64;
        self.tier.count_write(Purpose::Wal, len);
        self.tier.add_file_bytes(len);
        state.current.extent.len += len;
        state.current.extent.last_seq = state.next_seq - 1;
        state.buffer.clear();
        state.buffer.shrink_to(2 * BUFFER_LEN);
        state.newest = None;
        // The records are in the file: an error must no longer mean "not written".
        point!(self.points, "wal.after_hand_over").map_err(|error| self.poison(&error))
    }

    /// The error to report for an append that failed with `error`. Part of the records may have
    /// reached the file and is cut off. If it stayed there, recovery would bring it back, although
    /// its writers were told otherwise.
    pub(super) fn undo_append(&self, state: &State, error: Error) -> Error {
        match state.current_file.truncate(state.current.extent.len) {
            Ok(()) => error,
            Err(truncation) => self.poison(&truncation),
        }
    }

    fn create_segment(
        &self,
        number: FileId,
        previous: Option<(FileId, u64)>,
        base_seq: SeqNo,
    ) -> Result<(Segment, Arc<dyn LogFile>)> {
        start_segment(
            &self.tier,
            &*self.store,
            &FileHeader {
                kind: FileKind::Wal,
                number,
                database: self.database,
                previous,
                base_seq,
            },
        )
    }
}

fn start_segment(
    tier: &Tier,
    store: &dyn LogStore,
    header: &FileHeader,
) -> Result<(Segment, Arc<dyn LogFile>)> {
    let name = segment_file_name(header.number);
    let bytes = header.encode();
    let file = begin_file(tier, store, &name, &bytes)?;
    let len = bytes.len() as u64;
    tier.count_write(Purpose::Wal, len);
    tier.add_file_bytes(len);
    let segment = Segment {
        extent: ClosedSegment {
            number: header.number,
            base_seq: header.base_seq,
            len,
            last_seq: header.base_seq,
        },
        durable_len: 0,
        marks: Vec::new(),
        file: Some(Arc::clone(&file)),
    };
    Ok((segment, file))
}

/// The open log. One thread at a time writes to it (the leader of a commit group);
/// [`WalSync`] works beside it.
///
/// Once a call has returned [`Error::Poisoned`], every later one does nothing but return it, too
/// (I9). After any other error, the log stays usable.
#[derive(Debug)]
pub(crate) struct Wal {
    shared: Arc<Shared>,
}

impl Wal {
    /// Starts segment `number` after what [`super::recover`] found ([`Recovered::default`] for a
    /// new store). `retention` is in bytes.
    ///
    /// # Errors
    /// I/O errors of the log store.
    pub(crate) fn create(
        tier: Arc<Tier>,
        database: u128,
        number: FileId,
        recovered: &Recovered,
        retention: u64,
        points: Points,
    ) -> Result<Wal> {
        let store = log_store(&tier)?;
        let header = FileHeader {
            kind: FileKind::Wal,
            number,
            database,
            previous: recovered.segments.last().map(|s| (s.number, s.len)),
            base_seq: recovered.last_seq,
        };
        let begun = start_segment(&tier, &*store, &header)?;
        Self::behind(tier, database, begun, recovered, retention, points)
    }

    /// The log of a store that is open only for reading. There is no segment after what was found;
    /// segment `number` would be the next, and `file` refuses whatever would be written to it.
    ///
    /// # Errors
    /// A tier without logs.
    pub(crate) fn refusing(
        tier: Arc<Tier>,
        database: u128,
        number: FileId,
        recovered: &Recovered,
        file: Arc<dyn LogFile>,
        points: Points,
    ) -> Result<Wal> {
        let extent = ClosedSegment {
            number,
            base_seq: recovered.last_seq,
            len: 0,
            last_seq: recovered.last_seq,
        };
        let segment = Segment {
            extent,
            durable_len: 0,
            marks: Vec::new(),
            file: None,
        };
        Self::behind(tier, database, (segment, file), recovered, 0, points)
    }

    /// The log that goes on in `current` after what was found.
    fn behind(
        tier: Arc<Tier>,
        database: u128,
        (current, current_file): (Segment, Arc<dyn LogFile>),
        recovered: &Recovered,
        retention: u64,
        points: Points,
    ) -> Result<Wal> {
        let store = log_store(&tier)?;
        let closed = recovered.segments.iter().map(|&extent| Segment {
            extent,
            durable_len: extent.len,
            marks: Vec::new(),
            file: None,
        });
        let closed: VecDeque<_> = closed.collect();
        tier.add_file_bytes(closed.iter().map(|s| s.extent.len).sum());
        let state = State {
            closed,
            current,
            current_file,
            buffer: Vec::with_capacity(BUFFER_LEN),
            newest: None,
            next_seq: recovered.last_seq + 1,
            opened_at: recovered.last_seq + 1,
            entry_changes: 1,
            entries_durable: 0,
            removal: 0,
        };
        let shared = Shared {
            tier,
            store,
            database,
            retention,
            points,
            state: Mutex::new(state),
            turn: Mutex::default(),
            poison: Mutex::new(None),
        };
        Ok(Wal {
            shared: Arc::new(shared),
        })
    }

    /// Puts a commit group into the process buffer, as one record: recovery has all of its
    /// batches or none. A full buffer is handed over, and large batches are not buffered at all.
    ///
    /// Until the next append or hand-over, the group may be withdrawn: a failed [`Wal::hand_over`]
    /// or [`Wal::sync`] drops it, and its sequence numbers must be given out again. Groups before
    /// it were acknowledged, and stay for the next attempt.
    ///
    /// # Errors
    /// I/O errors of a hand-over; the group is then not part of the log. [`Error::TooLarge`].
    /// [`Error::Poisoned`] for sequence numbers with a gap, which recovery would have to call
    /// damage.
    pub(crate) fn append(&mut self, first_seq: SeqNo, batches: &[Bytes]) -> Result<()> {
        self.shared.check()?;
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        // Whoever appends again has acknowledged what came before.
        state.newest = None;
        if first_seq != state.next_seq {
            let path = self.shared.store.path();
            let expected = state.next_seq;
            let what = format!("append of sequence {first_seq} where {expected} is next");
            let error = Error::corruption(path, state.current.extent.len, what);
            return Err(self.shared.poison(&error));
        }
        let count = batches
            .iter()
            .filter_map(|b| batch::count(b))
            .map(u64::from);
        let header = GroupHeader {
            older_durable: state.older_durable(),
            durable_len: state.current.durable_len,
            first_seq,
            count: count.sum(),
        };
        if batches.iter().map(Bytes::len).sum::<usize>() >= LARGE_RECORD {
            return self.shared.write_large(state, &header, batches);
        }
        let at = state.buffer.len();
        let offset = state.current.extent.len + at as u64;
        let number = state.current.extent.number;
        put_record(&mut state.buffer, number, offset, |out| {
            header.encode(batches, out);
        })?;
        state.current.mark(first_seq, offset);
        state.newest = Some((at, first_seq));
        state.next_seq += header.count;
        if state.buffer.len() < BUFFER_LEN {
            return Ok(());
        }
        self.shared
            .flush(state)
            .inspect_err(|_| state.withdraw_newest())
    }

    /// Hands the buffer to the operating system.
    ///
    /// # Errors
    /// I/O errors of the log store; the newest group is then withdrawn, see [`Wal::append`].
    pub(crate) fn hand_over(&mut self) -> Result<()> {
        self.shared.check()?;
        let mut state = self.shared.state.lock();
        self.shared
            .flush(&mut state)
            .inspect_err(|_| state.withdraw_newest())
    }

    /// As [`Wal::hand_over`], for a caller who appended nothing: on failure no group is withdrawn,
    /// because all of them were acknowledged.
    ///
    /// # Errors
    /// As [`Wal::hand_over`].
    pub(crate) fn hand_over_all(&mut self) -> Result<()> {
        self.shared.check()?;
        self.shared.flush(&mut self.shared.state.lock())
    }

    /// Makes everything appended so far durable, older segments first (I5).
    ///
    /// # Errors
    /// As [`Wal::hand_over`]; [`Error::Poisoned`] when a sync fails (I9).
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.hand_over()?;
        self.shared.sync_through(SeqNo::MAX)
    }

    /// As [`Wal::sync`], for a caller who appended nothing, like [`Wal::hand_over_all`].
    ///
    /// # Errors
    /// As [`Wal::sync`].
    pub(crate) fn sync_all(&mut self) -> Result<()> {
        self.shared.sync_through(SeqNo::MAX)
    }

    /// Hands the buffer over and goes on in segment `number`, which must be higher than every
    /// number so far. The old segment is closed, but not synced yet. A segment without a record is
    /// kept: when several memtables freeze at one point of the log, the first one ends the segment
    /// for all of them.
    ///
    /// # Errors
    /// I/O errors of the log store; the log then stays in the old segment.
    pub(crate) fn rotate(&mut self, number: FileId) -> Result<()> {
        self.shared.check()?;
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        self.shared.flush(state)?;
        if state.current.extent.len <= FILE_HEADER_LEN as u64 {
            return Ok(());
        }
        point!(self.shared.points, "wal.rotate.before_create")?;
        let old = state.current.extent;
        let (segment, file) =
            self.shared
                .create_segment(number, Some((old.number, old.len)), state.next_seq - 1)?;
        let mut old = std::mem::replace(&mut state.current, segment);
        old.let_go();
        state.current_file = file;
        state.closed.push_back(old);
        state.entry_changes += 1;
        point!(self.shared.points, "wal.rotate.after_create")
            .map_err(|error| self.shared.poison(&error))
    }

    /// Syncs the log and appends a record that says so. The next open can then tell damage from a
    /// crash, wherever the damage is. If nothing was written, no record is appended: the manifest
    /// says what the opening found, and the next opening does without a segment that has no record.
    ///
    /// # Errors
    /// As [`Wal::sync`].
    pub(crate) fn close(&mut self) -> Result<()> {
        self.sync_all()?;
        let (next_seq, opened_at) = {
            let state = self.shared.state.lock();
            (state.next_seq, state.opened_at)
        };
        if next_seq == opened_at {
            return Ok(());
        }
        self.append(next_seq, &[])?;
        self.sync()
    }

    /// Removes segments that hold nothing above `flushed_through`; see
    /// [`WalSync::remove_obsolete`].
    ///
    /// # Errors
    /// As there.
    #[cfg(test)]
    pub(crate) fn remove_obsolete(&mut self, flushed_through: SeqNo) -> Result<u64> {
        self.shared.remove_obsolete(flushed_through)
    }

    /// Closed segments whose files are open.
    #[cfg(test)]
    pub(crate) fn open_closed(&self) -> usize {
        let state = self.shared.state.lock();
        state.closed.iter().filter(|s| s.file.is_some()).count()
    }

    /// Bytes of all segments, handed over or not.
    #[cfg(test)]
    pub(crate) fn total_bytes(&self) -> u64 {
        let state = self.shared.state.lock();
        let closed: u64 = state.closed.iter().map(|s| s.extent.len).sum();
        closed + state.current.extent.len + state.buffer.len() as u64
    }

    /// A handle for threads that sync, remove and read while others append.
    pub(crate) fn handle(&self) -> WalSync {
        WalSync::new(Arc::clone(&self.shared))
    }
}
