//! One client thread. It draws operations, does them, and checks what comes back.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::meter::{Call, Meter};
use super::pace::Pace;
use super::{Shared, Tally};
use crate::freshness::Write;
use crate::keys::{Key, scramble};
use crate::plan::Source;
use crate::trace::Action;
use crate::value::{self, Wrong};
use crate::workload::{Operation, Workload};

pub(super) struct Client<'a> {
    shared: &'a Shared<'a>,
    tally: &'a Tally,
    meter: Meter<'a>,
    /// If a rate is offered.
    pace: Option<Pace>,
    /// When the present operation began.
    begin: Instant,
    workload: Workload,
    rng: SmallRng,
    value: Vec<u8>,
    /// Stamp of the last write of a record that is not followed.
    stamp: u64,
}

impl<'a> Client<'a> {
    /// Client `number` of a run that began at `begin`.
    pub(super) fn new(
        shared: &'a Shared<'a>,
        number: u64,
        tally: &'a Tally,
        begin: Instant,
    ) -> Self {
        let clients = shared.tallies.len();
        let pace = |rate| Pace::new(begin, rate, clients, number);
        let pace = shared.rate.map(pace);
        // So that the operations after a warm-up are not the same again.
        let number = number + if shared.is_warming { 1 << 20 } else { 0 };
        let seed = shared.seed ^ scramble(number + 1);
        Self {
            shared,
            tally,
            meter: Meter::new(tally, scramble(seed)),
            pace,
            begin: Instant::now(),
            workload: shared.workload(),
            rng: SmallRng::seed_from_u64(seed),
            value: vec![0; shared.value_lens.greatest()],
            stamp: (number + 1) << 40,
        }
    }

    pub(super) fn run(mut self) -> Result<()> {
        loop {
            let due = self.pace.as_mut();
            let due = due.map(|pace| pace.wait(|| self.shared.is_over()));
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let index = self.shared.next.fetch_add(1, Ordering::Relaxed);
            if self.shared.max_ops.is_some_and(|most| index >= most) {
                break;
            }
            let operation = self.operation(index);
            self.begin = Instant::now();
            self.perform(operation, index)?;
            let nanos = due.unwrap_or(self.begin).elapsed().as_nanos() as u64;
            if let Some(histogram) = self.tally.latencies().get_mut(operation as usize) {
                histogram.record(nanos)?;
            }
            self.tally.nanos.fetch_add(nanos, Ordering::Relaxed);
            self.tally.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What operation `index` is.
    fn operation(&mut self, index: u64) -> Operation {
        match self.shared.source {
            Source::Generated { .. } => self.workload.choose(&mut self.rng),
            Source::Trace { trace, copies, .. } => match trace.operation(index, *copies).0 {
                Action::Read => Operation::Read,
                // Every key was loaded.
                Action::Write => Operation::Update,
                Action::Delete => Operation::Delete,
            },
        }
    }

    fn perform(&mut self, operation: Operation, index: u64) -> Result<()> {
        match operation {
            Operation::Read => {
                let record = self.choose(index);
                self.read(record)
            }
            Operation::Update => {
                let (record, write) = self.choose_to_write(index);
                self.put(record, write)
            }
            Operation::ReadModifyWrite => {
                let (record, write) = self.choose_to_write(index);
                self.read(record)?;
                self.put(record, write)
            }
            Operation::Insert => {
                if let Some((record, write)) = self.enter(index) {
                    return self.put(record, write);
                }
                let record = self.shared.inserts.begin();
                self.stamp += 1;
                self.put_stamped(record, self.stamp)?;
                self.shared.inserts.done(record);
                Ok(())
            }
            Operation::Scan => {
                let record = self.choose(index);
                self.scan(record)
            }
            Operation::Delete => {
                let (record, write) = self.choose_to_write(index);
                write.deletes();
                let (engine, key) = (self.shared.engine, self.shared.keys.key(record));
                self.meter
                    .call(Call::Write, self.begin, || engine.delete(&key))?;
                write.done();
                Ok(())
            }
        }
    }

    fn choose(&mut self, index: u64) -> u64 {
        let shared = self.shared;
        match shared.source {
            Source::Trace { trace, copies, .. } => trace.operation(index, *copies).1,
            Source::Generated { .. } => {
                let stage = self.stage(index);
                match shared.choosers.get(stage) {
                    Some(chooser) => chooser.choose(&mut self.rng, shared.inserts.present()),
                    None => 0,
                }
            }
        }
    }

    /// The later one of the stages that time and operations have reached.
    fn stage(&self, index: u64) -> usize {
        let by_time = self.shared.stage.load(Ordering::Relaxed);
        match (self.shared.stages(), self.shared.max_ops) {
            (Some(stages), Some(most)) if stages.stages().len() > 1 => {
                by_time.max(stages.at(index as f64 / most as f64))
            }
            _ => by_time,
        }
    }

    fn choose_to_write(&mut self, index: u64) -> (u64, Write<'a>) {
        let shared = self.shared;
        loop {
            let record = self.choose(index);
            if let Some(write) = shared.freshness.write(record) {
                return (record, write);
            }
            // A trace leaves no choice, so this waits for the other write.
            std::thread::yield_now();
        }
    }

    /// The record whose place a new key takes, if the number of keys stays the same.
    fn enter(&self, index: u64) -> Option<(u64, Write<'a>)> {
        let chooser = self.shared.choosers.get(self.stage(index))?;
        loop {
            let record = chooser.enter()?;
            if let Some(write) = self.shared.freshness.write(record) {
                return Some((record, write));
            }
        }
    }

    fn put(&mut self, record: u64, write: Write<'_>) -> Result<()> {
        let stamp = if write.is_followed() {
            write.number()
        } else {
            self.stamp += 1;
            self.stamp
        };
        self.put_stamped(record, stamp)?;
        write.done();
        Ok(())
    }

    fn put_stamped(&mut self, record: u64, stamp: u64) -> Result<()> {
        let key = self.shared.keys.key(record);
        let value = self.value.get_mut(..self.shared.value_lens.of(record));
        let value = value.unwrap_or_default();
        value::fill(value, &key, stamp);
        let (engine, value) = (self.shared.engine, &*value);
        self.meter
            .call(Call::Write, self.begin, || engine.put(&key, value))
    }

    /// Whether a read of the record may find nothing. `oldest` is the oldest possible write.
    fn may_be_missing(&self, record: u64, oldest: Option<u64>) -> bool {
        let Source::Trace { trace, .. } = self.shared.source else {
            return false;
        };
        match oldest {
            Some(oldest) => self.shared.freshness.may_be_deleted(record, oldest),
            None => trace.deletes(record),
        }
    }

    fn read(&mut self, record: u64) -> Result<()> {
        let shared = self.shared;
        let key = shared.keys.key(record);
        let oldest = shared.freshness.oldest(record);
        let mut found = Err(Wrong::Missing);
        let mut check = |value: Option<&[u8]>| {
            if let Some(value) = value {
                found = value::verify(value, &key, shared.value_lens.of(record));
            }
        };
        self.meter.call(Call::Read, self.begin, || {
            shared.engine.get(&key, &mut check)
        })?;
        if found == Err(Wrong::Missing) && self.may_be_missing(record, oldest) {
            return Ok(());
        }
        let checked = found.and_then(|stamp| match oldest.zip(shared.freshness.newest(record)) {
            Some(possible) if stamp < possible.0 || stamp > possible.1 => Err(Wrong::Stale {
                found: stamp,
                possible,
            }),
            _ => Ok(()),
        });
        if let Err(wrong) = checked {
            shared.wrongs.add(&key, wrong);
        }
        Ok(())
    }

    fn scan(&mut self, record: u64) -> Result<()> {
        let shared = self.shared;
        let start = shared.keys.key(record);
        let limit = self.workload.scan_length(&mut self.rng, shared.scan_length);
        // Only generated workloads scan, and all their values have the same length.
        let mut check = ScanCheck::new(start, shared.value_lens.of(record));
        self.meter.call(Call::Read, self.begin, || {
            let mut each = |key: &[u8], value: &[u8]| check.record(key, value);
            shared.engine.scan(&start, limit, &mut each)
        })?;
        if let Some(wrong) = check.end(limit, shared.last_key) {
            shared.wrongs.add(&start, wrong);
        }
        Ok(())
    }
}

/// Checks the records of one scan that begins at a key that exists.
struct ScanCheck {
    start: Key,
    value_len: usize,
    last: Vec<u8>,
    count: usize,
    wrong: Option<Wrong>,
}

impl ScanCheck {
    fn new(start: Key, value_len: usize) -> Self {
        Self {
            start,
            value_len,
            last: Vec::new(),
            count: 0,
            wrong: None,
        }
    }

    fn record(&mut self, key: &[u8], value: &[u8]) {
        let in_order = if self.count == 0 {
            key == self.start
        } else {
            key > self.last.as_slice()
        };
        if !in_order {
            self.wrong.get_or_insert(Wrong::Scan);
        }
        if let Err(wrong) = value::verify(value, key, self.value_len) {
            self.wrong.get_or_insert(wrong);
        }
        self.count += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// What is wrong. A scan may only be short if it reached `last_key`.
    fn end(self, limit: usize, last_key: Option<Key>) -> Option<Wrong> {
        let reached = last_key.is_none_or(|last| self.last.as_slice() >= last.as_slice());
        if self.count > limit || (self.count < limit && !reached) {
            return self.wrong.or(Some(Wrong::Scan));
        }
        self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySpace;

    fn sorted() -> Vec<Key> {
        let mut keys: Vec<Key> = (0..10).map(|id| KeySpace::Ycsb.key(id)).collect();
        keys.sort_unstable();
        keys
    }

    fn check(keys: &[Key], start: Key, limit: usize) -> Option<Wrong> {
        let mut check = ScanCheck::new(start, 64);
        for key in keys {
            let mut value = vec![0; 64];
            value::fill(&mut value, key, 0);
            check.record(key, &value);
        }
        check.end(limit, sorted().last().copied())
    }

    #[test]
    fn scans_must_be_whole_and_in_order() {
        let keys = sorted();
        assert_eq!(check(&keys[2..5], keys[2], 3), None);
        assert_eq!(check(&keys[7..], keys[7], 5), None);
        assert_eq!(check(&keys[2..5], keys[2], 5), Some(Wrong::Scan));
        assert_eq!(check(&keys[3..5], keys[2], 2), Some(Wrong::Scan));
        assert_eq!(
            check(&[keys[2], keys[4], keys[3]], keys[2], 3),
            Some(Wrong::Scan)
        );
        assert_eq!(check(&keys[2..6], keys[2], 3), Some(Wrong::Scan));
        assert_eq!(check(&[], keys[2], 3), Some(Wrong::Scan));
    }

    #[test]
    fn a_scanned_value_is_verified() {
        let keys = sorted();
        let mut check = ScanCheck::new(keys[0], 64);
        check.record(&keys[0], &[0; 64]);
        assert_eq!(check.end(1, None), Some(Wrong::Checksum));
    }
}
