//! How records come into the store: sorted ones by an ingestion, others in batches.

use std::io::{self, Write};
use std::path::Path;

use thermocline::{Batch, Ingestion};

use crate::failure::Failure;
use crate::input::Record;
use crate::store::Session;

/// How many records, and how many bytes, make a batch. It is so large that the cost of a commit is
/// shared, and small against the memtable.
const BATCH_RECORDS: usize = 1000;
const BATCH_BYTES: u64 = 1 << 20;

/// So many bytes of sorted records are worth an ingestion: the tables of fewer would be small.
const WORTH_INGESTING: u64 = 8 << 20;

/// Writes records in the order in which they come, and as fast as that order allows.
pub(super) struct Writer<'a> {
    session: &'a Session,
    way: Way,
    last_key: Option<Vec<u8>>,
    batch: Batch,
    batch_records: usize,
    batch_bytes: u64,
    acknowledge: Option<u64>,
    /// How many records, and how many bytes of keys and values, are in the store.
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// How many of these records were ingested.
    pub(super) ingested: u64,
}

/// How the next record is written.
enum Way {
    /// All so far were sorted, and they are few.
    Waits(Vec<Record>, u64),
    /// All so far were sorted.
    Ingests(Ingestion),
    /// One came that was not.
    Batches,
}

impl<'a> Writer<'a> {
    pub(super) fn new(session: &'a Session, acknowledge: Option<u64>) -> Self {
        Self {
            session,
            way: match acknowledge {
                Some(_) => Way::Batches,
                None => Way::Waits(Vec::new(), 0),
            },
            last_key: None,
            batch: Batch::new(),
            batch_records: 0,
            batch_bytes: 0,
            acknowledge,
            records: 0,
            bytes: 0,
            ingested: 0,
        }
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), Failure> {
        if matches!(self.way, Way::Batches) {
            return self.put_in_batch(&key, &value);
        }
        let rises = self.last_key.as_ref().is_none_or(|last| *last < key);
        if !rises {
            // What was sorted comes first: of two records of a key the last one counts.
            self.end_of_order()?;
            return self.put_in_batch(&key, &value);
        }
        self.last_key = Some(key.clone());
        match &mut self.way {
            Way::Waits(records, bytes) => {
                *bytes += (key.len() + value.len()) as u64;
                records.push((key, value));
                if *bytes >= WORTH_INGESTING {
                    let records = std::mem::take(records);
                    self.begin_ingestion(records)?;
                }
                Ok(())
            }
            Way::Ingests(ingestion) => ingestion.put(key, value).map_err(not_one),
            Way::Batches => Ok(()),
        }
    }

    /// Writes what is left.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.end_of_order()?;
        self.write()
    }

    fn begin_ingestion(&mut self, records: Vec<Record>) -> Result<(), Failure> {
        let mut ingestion = self.session.keyspace.ingestion().map_err(not_one)?;
        for (key, value) in records {
            ingestion.put(key, value).map_err(not_one)?;
        }
        self.way = Way::Ingests(ingestion);
        Ok(())
    }

    /// Brings into the store what was sorted so far. From here on records go in batches.
    fn end_of_order(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.way, Way::Batches) {
            Way::Waits(records, _) => records
                .into_iter()
                .try_for_each(|(key, value)| self.put_in_batch(&key, &value)),
            Way::Ingests(ingestion) => {
                let ingested = ingestion.commit().map_err(not_one)?;
                self.records += ingested.records;
                self.bytes += ingested.bytes;
                self.ingested = ingested.records;
                Ok(())
            }
            Way::Batches => Ok(()),
        }
    }

    fn put_in_batch(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.batch.put_in(&self.session.keyspace, key, value);
        self.batch_records += 1;
        self.batch_bytes += (key.len() + value.len()) as u64;
        match self.batch_is_full() {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn batch_is_full(&self) -> bool {
        match self.acknowledge {
            Some(records) => self.batch_records as u64 >= records,
            None => self.batch_records >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES,
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let written = self.session.db.write(std::mem::take(&mut self.batch));
        written.map_err(|error| Failure::Store {
            error,
            hint: Some(format!(
                "{} records were loaded; it was one of the next {} that was refused",
                self.records, self.batch_records
            )),
        })?;
        self.records += std::mem::take(&mut self.batch_records) as u64;
        self.bytes += std::mem::take(&mut self.batch_bytes);
        if self.acknowledge.is_some() {
            let mut out = io::stdout().lock();
            let said = writeln!(out, "{}", self.records).and_then(|()| out.flush());
            said.map_err(|e| Failure::io("write", Path::new("standard output"), e))?;
        }
        Ok(())
    }
}

/// The failure of an ingestion, of which nothing is left.
fn not_one(error: thermocline::Error) -> Failure {
    Failure::Store {
        error,
        hint: Some("the records were sorted and were to be ingested; none was loaded".into()),
    }
}
