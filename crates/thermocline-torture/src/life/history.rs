//! What a store was told, and so what it may hold: the model of the crash and fault tests.

use std::collections::BTreeMap;

use thermocline::{Batch, Db, Durability, Error, Result, SeqNo};

use super::Stop;
use crate::verdict::{Promise, Violation};

/// The records of all keyspaces, by keyspace and key.
pub type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// One atomic write: for each record its keyspace, its key, and its value unless it is a delete.
pub type Write = Vec<(&'static str, String, Option<String>)>;

/// The writes of a store in order, and how many of them survive which event.
#[derive(Debug, Default, Clone)]
pub struct History {
    /// First those that were acknowledged, and at the end those of unknown outcome.
    writes: Vec<Write>,
    acknowledged: usize,
    /// How many survive the end of the process.
    handed_over: usize,
    /// How many survive a loss of power (I5).
    synced: usize,
}

/// What happened before a store is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The process ended without closing the store.
    Exit,
    /// The power was lost.
    PowerLoss,
}

impl History {
    /// Applies `write` to the store and notes the outcome.
    ///
    /// A write that was refused must leave no trace, unless a failed sync was the reason: then it
    /// may.
    ///
    /// # Errors
    /// [`Stop::Failed`] when it was refused, [`Stop::Broken`] when it should have been (I9).
    pub fn write(&mut self, db: &Db, write: Write, durability: Durability) -> Result<(), Stop> {
        let done = batch_of(db, &write).and_then(|batch| db.write_with(batch, durability));
        self.note(write, durability, &done)?;
        done.map(|_| ()).map_err(Stop::Failed)
    }

    /// As [`History::write`], of puts into one keyspace in the order of their keys, which are
    /// ingested. They are durable, and with them all that comes before.
    ///
    /// # Errors
    /// As [`History::write`].
    pub fn ingest(&mut self, db: &Db, write: Write) -> Result<(), Stop> {
        let done = ingest(db, &write);
        self.note(write, Durability::Sync, &done)?;
        done.map(|_| ()).map_err(Stop::Failed)
    }

    /// Notes what the store has said to `write`.
    ///
    /// # Errors
    /// When it was accepted and should not have been (I9).
    pub(crate) fn note(
        &mut self,
        write: Write,
        durability: Durability,
        done: &Result<SeqNo>,
    ) -> Result<(), Violation> {
        let unknown = self.acknowledged < self.writes.len();
        match done {
            Ok(_) if unknown => {
                let message = "accepted after a write whose fate is unknown (I9)";
                return Err(Violation::disorder(message));
            }
            Ok(_) => {
                self.writes.push(write);
                self.acknowledged = self.writes.len();
                if durability == Durability::Sync {
                    self.all_synced();
                } else if durability == Durability::Buffered {
                    self.handed_over = self.acknowledged;
                }
            }
            Err(Error::Poisoned { .. }) if !unknown => self.writes.push(write),
            Err(_) => {}
        }
        Ok(())
    }

    /// Everything acknowledged so far was made durable.
    pub fn all_synced(&mut self) {
        self.synced = self.acknowledged;
        self.handed_over = self.acknowledged;
    }

    /// How many writes were acknowledged or may have happened.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// What the first `count` writes add up to.
    fn prefix(&self, count: usize) -> Contents {
        let mut contents = Contents::new();
        for write in &self.writes[..count] {
            apply(write, &mut contents);
        }
        contents
    }

    /// What readers see while the store is open.
    pub fn visible(&self) -> Contents {
        self.prefix(self.acknowledged)
    }

    /// Checks that `found` is the outcome of a prefix of the writes that is long enough after what
    /// happened (I5), and goes on from there: what a store was opened with is durable.
    ///
    /// # Errors
    /// The promise that was broken when it is no such outcome.
    pub fn recovered(&mut self, found: &Contents, after: After) -> Result<(), Violation> {
        let least = match after {
            After::Exit => self.handed_over,
            After::PowerLoss => self.synced,
        };
        let mut contents = self.prefix(least);
        for count in least..=self.writes.len() {
            if contents == *found {
                self.writes.truncate(count);
                self.acknowledged = count;
                self.all_synced();
                return Ok(());
            }
            if let Some(write) = self.writes.get(count) {
                apply(write, &mut contents);
            }
        }
        let whole = self.prefix(least);
        let missing = first_difference(&whole, found);
        let extra = first_difference(found, &whole);
        let promise = match extra {
            _ if missing.is_some() => Promise::Kept,
            Some((key, _)) if !whole.contains_key(key) => Promise::Gone,
            _ => Promise::Right,
        };
        let message = format!(
            "no prefix of {least} to {} writes gives the {} records found; \
             of the {} that must be there the first not found is {}, \
             the first found that is not among them {}",
            self.writes.len(),
            found.len(),
            whole.len(),
            named(missing),
            named(extra),
        );
        Err(Violation::new(promise, message))
    }
}

type Record<'a> = (&'a (String, Vec<u8>), &'a Vec<u8>);

/// The first record of `these` that `those` do not have.
fn first_difference<'a>(these: &'a Contents, those: &Contents) -> Option<Record<'a>> {
    these
        .iter()
        .find(|(key, value)| those.get(*key) != Some(*value))
}

/// The record, and the write that it comes from.
fn named(record: Option<Record<'_>>) -> String {
    let Some(((keyspace, key), value)) = record else {
        return "none".to_owned();
    };
    let write = String::from_utf8_lossy(value);
    let write = write.split(':').next().unwrap_or_default();
    let key = String::from_utf8_lossy(key);
    format!("{keyspace}/{key} of write {write}")
}

/// `write` as the store takes it.
pub(crate) fn batch_of(db: &Db, write: &Write) -> Result<Batch> {
    let mut batch = Batch::new();
    for (keyspace, key, value) in write {
        let keyspace = db.keyspace(keyspace)?;
        match value {
            Some(value) => batch.put_in(&keyspace, key, value),
            None => batch.delete_in(&keyspace, key),
        }
    }
    Ok(batch)
}

/// Ingests the puts of `write`. They go to one keyspace, and come in the order of their keys.
pub(crate) fn ingest(db: &Db, write: &Write) -> Result<SeqNo> {
    let name = write.first().map_or("default", |(keyspace, _, _)| keyspace);
    let records = write.iter();
    let records = records.filter_map(|(_, key, value)| Some((key, value.as_ref()?)));
    Ok(db.keyspace(name)?.ingest(records)?.seq)
}

/// Applies `write` to `contents`.
pub(crate) fn apply(write: &Write, contents: &mut Contents) {
    for (keyspace, key, value) in write {
        let at = ((*keyspace).to_owned(), key.clone().into_bytes());
        match value {
            Some(value) => contents.insert(at, value.clone().into_bytes()),
            None => contents.remove(&at),
        };
    }
}

/// What is wrong when a read of the record at `at` finds `found`, and `wanted` was written last.
pub(crate) fn difference(
    at: &(String, Vec<u8>),
    wanted: Option<&Vec<u8>>,
    found: Option<&[u8]>,
) -> Option<Violation> {
    let promise = Promise::judge(found, wanted.map(Vec::as_slice))?;
    let wanted = named(wanted.map(|value| (at, value)));
    let found = named(found.map(<[u8]>::to_vec).as_ref().map(|value| (at, value)));
    let message = format!("a read finds {found} instead of {wanted}");
    Some(Violation::new(promise, message))
}

/// Everything that a scan of every keyspace finds.
///
/// # Errors
/// Those of the store.
pub fn contents(db: &Db) -> Result<Contents> {
    let mut contents = Contents::new();
    for name in db.keyspaces() {
        for record in db.keyspace(&name)?.iter() {
            let (key, value) = record?;
            contents.insert((name.clone(), key.to_vec()), value.to_vec());
        }
    }
    Ok(contents)
}
