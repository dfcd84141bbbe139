//! The tables of an ingestion while they are written.

use std::sync::Weak;

use super::Request;
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::key::{InternalKey, Kind, SeqNo};
use crate::levels::TableSizes;
use crate::metrics::Purpose;
use crate::points::point;
use crate::storage::background::Background;
use crate::sync::{Arc, Mutex};
use crate::table::{LazyTable, TableBuilder, TableHeat, TableIdentity, TableMeta};
use crate::tier::{Reservation, Tier};
use crate::version::MAX_LEVELS;

/// What a table takes beside its records and the index of what is written: its sample of keys, the
/// filter of its last partition, its end.
const BESIDE_RECORDS: u64 = 12 << 10;

/// How often a key may be in a table beside its record: in both indexes and in the properties.
const COPIES_OF_KEY: u64 = 4;

/// The ingestions that are being written. A store that closes ends them: their files lie in
/// directories that may then belong to another store.
#[derive(Debug, Default)]
pub(crate) struct Ingestions(Mutex<Vec<Weak<Mutex<IngestTables>>>>);

impl Ingestions {
    /// Begins one into `tree`.
    ///
    /// # Errors
    /// What keeps the store from being written to; [`Error::UnknownKeyspace`].
    pub(crate) fn begin(
        &self,
        engine: &Arc<Engine>,
        tree: &Arc<Tree>,
    ) -> Result<Arc<Mutex<IngestTables>>> {
        let mut open = self.0.lock();
        // Under the lock: whoever closes the store finds every one that began before.
        engine.check_writable()?;
        engine.check_not_dropped(tree)?;
        let tables = Arc::new(Mutex::new(IngestTables::new(engine, tree)));
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&tables));
        Ok(tables)
    }

    /// Ends all of them, and waits for the one that is being installed. The store takes no more
    /// writes by now.
    pub(crate) fn end(&self) {
        for tables in std::mem::take(&mut *self.0.lock()) {
            if let Some(tables) = tables.upgrade() {
                tables.lock().abandon(Error::Closed);
            }
        }
    }
}

/// Sorted records on their way into tables.
pub(crate) struct IngestTables {
    engine: Arc<Engine>,
    tree: Arc<Tree>,
    /// All tables lie on the tier of the lowest levels, whichever level they come to (I3).
    tier: Arc<Tier>,
    sizes: TableSizes,
    /// Bytes that the last level holds already.
    below: u64,
    table: Option<Unfinished>,
    /// The table before, while it is made durable.
    ending: Option<Background<Result<Ended>>>,
    /// Whether that takes time in which the next table can be begun.
    waits_for_a_device: bool,
    written: Vec<TableMeta>,
    /// Held until the tables are installed (I8).
    space: Vec<Reservation>,
    last_key: Vec<u8>,
    records: u64,
    /// Bytes of keys and values.
    bytes: u64,
    /// Why there is nothing to go on with.
    ended: Option<Error>,
}

/// A table that is durable, and the room that it was reserved.
struct Ended {
    meta: TableMeta,
    space: Reservation,
    /// Whether its medium is a device, as far as it could be opened.
    waits_for_a_device: Result<bool>,
}

/// A table that is being written.
struct Unfinished {
    builder: TableBuilder,
    space: Reservation,
    /// How long it gets.
    size: u64,
    longest_key: u64,
    /// What was visible when it was begun.
    after: SeqNo,
}

impl std::fmt::Debug for IngestTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestTables")
            .field("records", &self.records)
            .field("tables", &self.written.len())
            .finish_non_exhaustive()
    }
}

impl IngestTables {
    fn new(engine: &Arc<Engine>, tree: &Arc<Tree>) -> Self {
        let tier = usize::from(engine.level_tiers()[1]);
        let capacity = engine.fast().capacity();
        Self {
            tier: Arc::clone(&engine.tiers[tier]),
            sizes: TableSizes::new(
                &engine.options,
                &engine.sizes,
                capacity,
                tree.last_fast_level,
            ),
            below: tree.peek().version.levels[MAX_LEVELS - 1].bytes,
            engine: Arc::clone(engine),
            tree: Arc::clone(tree),
            table: None,
            ending: None,
            waits_for_a_device: false,
            written: Vec::new(),
            space: Vec::new(),
            last_key: Vec::new(),
            records: 0,
            bytes: 0,
            ended: None,
        }
    }

    /// Adds a record, whose key is greater than the last one. After an error nothing is left of
    /// the ingestion, and every later call returns that error.
    ///
    /// # Errors
    /// [`Error::NotSorted`]; [`Error::TooLarge`]; what [`Ingestions::begin`] returns;
    /// [`Error::NoSpace`] and I/O errors of the tier.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check()?;
        self.try_add(key, value)
            .map_err(|error| self.abandon(error))
    }

    /// Ends the last table and makes a request of all of them; none if there are none.
    ///
    /// # Errors
    /// As [`IngestTables::add`].
    pub(crate) fn finish(&mut self) -> Result<Option<Request>> {
        self.check()?;
        let ended = self.end_table().and_then(|()| self.wait_for_ending());
        let ended = ended.and_then(|()| match self.written.len() {
            0 => Ok(()),
            _ => self.engine.flush_ahead(&self.tree),
        });
        ended.map_err(|error| self.abandon(error))?;
        // Whoever installs the tables removes them if that comes to nothing.
        self.ended = Some(Error::Closed);
        let tables = std::mem::take(&mut self.written);
        let request = Request::new(&self.tree, tables, self.records, self.bytes);
        Ok(request)
    }

    /// Gives back the space of the tables, which are installed or removed.
    pub(crate) fn give_back(&mut self) {
        self.space.clear();
    }

    fn check(&self) -> Result<()> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    fn try_add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.records > 0 && key <= &self.last_key[..] {
            return Err(Error::NotSorted {
                index: self.records,
                is_duplicate: key == self.last_key,
            });
        }
        let (key_len, len) = (key.len() as u64, (key.len() + value.len()) as u64);
        let table = self.table.as_ref();
        if table.is_some_and(|table| table.is_full(key_len, len)) {
            self.end_table()?;
        }
        let table = match &mut self.table {
            Some(table) => table,
            none => none.insert(begin(
                &self.engine,
                &self.tree,
                &self.tier,
                self.sizes.of(MAX_LEVELS - 1, self.below + self.bytes),
                needed(key_len, len),
            )?),
        };
        table.longest_key = table.longest_key.max(key_len);
        table
            .builder
            .add(InternalKey::new(key, 0, Kind::Put), value)?;
        self.records += 1;
        self.bytes += len;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    /// Ends the table that is being written. On a device it becomes durable while the next one is
    /// written.
    fn end_table(&mut self) -> Result<()> {
        let Some(table) = self.table.take() else {
            return Ok(());
        };
        let engine = &self.engine;
        let heat = TableHeat::flushed(engine.clock.now());
        let database = engine.identity.database;
        let (cache, pins) = (&engine.caches.blocks, &engine.caches.pins);
        let (cache, pins) = (Arc::clone(cache), Arc::clone(pins));
        let tier = Arc::clone(&self.tier);
        let end = move || -> Result<Ended> {
            let (meta, space) = table.finish()?;
            let table = LazyTable::new(&tier, meta.clone(), heat, database, cache, pins);
            // As every table that was just written: what is wrong with it is found before anybody
            // relies on it.
            let opened = table.open();
            let opened = opened.and_then(|table| table.load().map(|()| table));
            Ok(Ended {
                waits_for_a_device: opened.map(|table| table.waits_for_a_device()),
                meta,
                space,
            })
        };
        self.wait_for_ending()?;
        if self.waits_for_a_device {
            self.ending = Some(Background::begin(end));
            return Ok(());
        }
        self.take_in(end()?)
    }

    /// Waits until the table before is durable.
    fn wait_for_ending(&mut self) -> Result<()> {
        match self.ending.take().map(Background::wait) {
            None => Ok(()),
            Some(Some(ended)) => self.take_in(ended?),
            Some(None) => Err(Error::Poisoned {
                cause: "the end of an ingested table panicked".into(),
            }),
        }
    }

    fn take_in(&mut self, ended: Ended) -> Result<()> {
        // Entered first: it has to be removed if anything is wrong.
        self.written.push(ended.meta);
        self.space.push(ended.space);
        self.waits_for_a_device = ended.waits_for_a_device?;
        point!(self.engine.points, "ingest.table_written")
    }

    /// Removes what was written, and gives `error` as the answer to all that follows.
    fn abandon(&mut self, error: Error) -> Error {
        if self.ended.is_none() {
            self.engine.background.note_poison(&error);
            self.table = None;
            // It is waited for, so that no file comes after the others were removed.
            let _: Result<()> = self.wait_for_ending();
            self.engine.discard_outputs(&self.written, &error);
            self.written.clear();
            self.space.clear();
            self.ended = Some(error.clone());
        }
        error
    }
}

impl Drop for IngestTables {
    fn drop(&mut self) {
        self.abandon(Error::Closed);
    }
}

impl Unfinished {
    /// Makes the table durable.
    fn finish(self) -> Result<(TableMeta, Reservation)> {
        let mut meta = self.builder.finish()?;
        let mut space = self.space;
        space.use_for_file(meta.len);
        // The least number that it can get, until it has its own.
        (meta.min_seq, meta.max_seq) = (self.after + 1, self.after + 1);
        Ok((meta, space))
    }

    /// Whether it ends before a record of `len` bytes, of which `key_len` are its key.
    fn is_full(&self, key_len: u64, len: u64) -> bool {
        let begun = self.builder.estimated_len();
        let needed = needed(key_len.max(self.longest_key), len);
        begun >= self.size || begun + needed > self.space.left()
    }
}

/// Begins a table of about `size` bytes, whose first record needs `first`.
fn begin(
    engine: &Engine,
    tree: &Tree,
    tier: &Arc<Tier>,
    size: u64,
    first: u64,
) -> Result<Unfinished> {
    engine.check_writable()?;
    engine.check_not_dropped(tree)?;
    let space = tier.reserve((size + size / 16).saturating_add(first))?;
    let identity = TableIdentity {
        database: engine.identity.database,
        keyspace: tree.id,
        id: engine.new_file(),
        level: MAX_LEVELS as u8 - 1,
        tier: tier.index,
        epoch: 0,
        replaces: Vec::new(),
        gone: engine.graveyard.dead(),
        keyspace_name: tree.name.clone(),
    };
    let after = engine.visible();
    let builder = TableBuilder::new(tier, identity, size, Purpose::Ingest)?.ingested(after);
    Ok(Unfinished {
        builder,
        space,
        size,
        longest_key: 0,
        after,
    })
}

/// Room that the last record of a table may take, with the table's end. The record has `len` bytes,
/// and the table's longest key `longest_key`.
fn needed(longest_key: u64, len: u64) -> u64 {
    len + COPIES_OF_KEY * longest_key + BESIDE_RECORDS
}
