//! One pass over the inputs of a job, in key order: what somebody may still see goes to the sinks.

use bytes::Bytes;

use super::filter::VersionFilter;
use super::sink::Sink;
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::iter::InternalIterator;
use crate::key::{InternalKey, MAX_SEQ};
use crate::merge::MergingIter;
use crate::placement::{Brought, Router, Source, UP};
use crate::table::TableMeta;
use crate::tier::Reservation;

/// Records merged between looks at whether the store is closing.
const CHECK_EVERY: usize = 1024;

/// What a pass asks about the records that it meets, and tells of them.
pub(crate) trait Watch {
    /// Whether nothing older of `key` lies below: a delete that hides nothing goes.
    fn is_bottom(&self, key: &[u8]) -> bool;

    /// A record of `size` bytes was met; `is_first` tells whether it is the first of its key.
    fn meet(&mut self, key: &[u8], is_first: bool, source: Source, size: u64) {
        let _ = (key, is_first, source, size);
    }

    /// A record of `size` bytes was sent to an output.
    fn send(&mut self, key: &[u8], source: Source, size: u64, output: usize) {
        let _ = (key, source, size, output);
    }

    /// A table was written at an output.
    ///
    /// # Errors
    /// What keeps the job from going on.
    fn written(&mut self, table: TableMeta, output: usize) -> Result<()>;
}

/// A pass while it is under way.
pub(crate) struct Pass {
    input: MergingIter,
    /// How many of its children are from above. These are the first ones.
    uppers: usize,
    filter: VersionFilter,
    router: Box<dyn Router>,
    sinks: Vec<Sink>,
    /// The user key of the record before: tables are cut between keys only (I11).
    last_key: Vec<u8>,
    /// The user key that it ends before, if not with the inputs.
    until: Option<Bytes>,
}

impl Pass {
    /// A pass over `children`, the first `uppers` of which are from above. `router` chooses among
    /// `sinks`.
    ///
    /// # Errors
    /// Those of reading the inputs.
    pub(crate) fn new(
        children: Vec<Box<dyn InternalIterator>>,
        uppers: usize,
        filter: VersionFilter,
        router: Box<dyn Router>,
        sinks: Vec<Sink>,
    ) -> Result<Self> {
        Self::within(children, uppers, filter, router, sinks, (None, None))
    }

    /// As [`Pass::new`], over the records from the first user key of `keys` on, and before the
    /// second.
    ///
    /// # Errors
    /// As [`Pass::new`].
    pub(crate) fn within(
        children: Vec<Box<dyn InternalIterator>>,
        uppers: usize,
        filter: VersionFilter,
        router: Box<dyn Router>,
        sinks: Vec<Sink>,
        keys: (Option<Bytes>, Option<Bytes>),
    ) -> Result<Self> {
        let mut input = MergingIter::new(children);
        let (from, until) = keys;
        match &from {
            Some(key) => input.seek(InternalKey::seek_to(key, MAX_SEQ))?,
            None => input.seek_to_first()?,
        }
        Ok(Self {
            input,
            uppers,
            filter,
            router,
            sinks,
            last_key: Vec::new(),
            until,
        })
    }

    /// Goes on until a table is full. Returns `false` when the input is used up and all tables are
    /// written.
    ///
    /// # Errors
    /// Those of reading and writing; [`Error::Closed`](crate::Error::Closed).
    pub(crate) fn advance(
        &mut self,
        engine: &Engine,
        tree: &Tree,
        watch: &mut dyn Watch,
    ) -> Result<bool> {
        let mut since_check = 0;
        while self.input.valid() {
            since_check += 1;
            if since_check == CHECK_EVERY {
                since_check = 0;
                engine.check_writable()?;
            }
            let key = self.input.key();
            let is_first = self.last_key != key.user_key;
            let ends = |until: &Bytes| key.user_key >= &until[..];
            if is_first && self.until.as_ref().is_some_and(ends) {
                break;
            }
            if is_first && let Some(full) = find_full(&mut self.sinks, key.user_key) {
                if let Some(table) = self.sinks[full].finish()? {
                    watch.written(table, full)?;
                }
                return Ok(true);
            }
            if is_first {
                self.last_key.clear();
                self.last_key.extend_from_slice(key.user_key);
            }
            let source = if self.input.source() < self.uppers {
                Source::Upper
            } else {
                Source::Lower
            };
            let len = self.input.value_len();
            let size = (key.user_key.len() + len) as u64;
            watch.meet(key.user_key, is_first, source, size);
            let is_bottom = || watch.is_bottom(key.user_key);
            if self.filter.keep(key, is_bottom) {
                let room = self.sinks.get(UP).map_or(0, Sink::room);
                let output = self.router.route(key, len, source, room);
                watch.send(key.user_key, source, size, output);
                self.input.load()?;
                let (key, value) = (self.input.key(), self.input.value());
                self.sinks[output].add(engine, tree, key, value)?;
            }
            self.input.next()?;
        }
        for (output, sink) in self.sinks.iter_mut().enumerate() {
            if let Some(table) = sink.finish()? {
                watch.written(table, output)?;
            }
        }
        Ok(false)
    }

    /// Bytes of records that stayed on the fast tier, and that came up to it.
    pub(crate) fn moved(&self) -> (u64, u64) {
        self.router.moved()
    }

    /// The reservations for its outputs. They are to be held until the outputs are installed: until
    /// then they count as in flight. The inputs are let go.
    pub(crate) fn into_space(self) -> Vec<Reservation> {
        self.sinks.into_iter().flat_map(Sink::into_space).collect()
    }

    /// The records that came up; asked for once, at the end.
    pub(crate) fn brought(&mut self) -> Brought {
        self.router.brought()
    }
}

/// The sink whose table should end before `key`, if there is one. Each sink is asked, as each
/// counts the keys.
fn find_full(sinks: &mut [Sink], key: &[u8]) -> Option<usize> {
    let mut full = None;
    for (number, sink) in sinks.iter_mut().enumerate() {
        if sink.ends_before(key) && sink.has_begun() && full.is_none() {
            full = Some(number);
        }
    }
    full
}
