//! What a store may hold, as the journal says.

use std::collections::{BTreeMap, BTreeSet};

use thermocline::{Db, Durability};

use super::journal::Event;
use crate::client::{Client, Found, KEYS, KEYSPACES, Model, counter};
use crate::verdict::{Promise, Violation};

/// The keyspace that comes and goes.
pub(super) const SCRATCH: &str = "scratch";

/// How many records are ingested into it: all of them are there, or none.
pub(super) const INGESTED: usize = 60;

/// The key of the ingested record `number`.
pub(super) fn ingested(number: usize) -> String {
    format!("ingested{number:03}")
}

/// One client's writes.
#[derive(Debug, Clone, Default)]
struct Line {
    /// The writes that may be there, with their sequence numbers as far as they are known.
    writes: BTreeMap<u64, Option<u64>>,
    /// An opening found all writes up to this one.
    found: u64,
    /// The highest number ever used.
    highest: u64,
}

/// What is known of the keyspace that comes and goes. The number tells its lifetimes apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Scratch {
    #[default]
    Gone,
    Begun(u64),
    There(u64),
    Going(u64),
}

/// What is known of a checkpoint.
#[derive(Debug, Clone, Default)]
struct Copy {
    /// For each client, its last write that was acknowledged when the checkpoint was begun.
    least: Vec<u64>,
    /// For each client, the last write that was begun before the checkpoint was acknowledged, if it
    /// was.
    most: Option<Vec<u64>>,
}

/// The expected state.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    seed: u64,
    lines: Vec<Line>,
    /// Everything up to this sequence number was handed over or found in an opened store (I5).
    kept: u64,
    keyspaces: bool,
    scratch: Scratch,
    copy: Option<Copy>,
}

impl Expected {
    /// What a store of `clients` clients should hold after `events`.
    pub(super) fn after(seed: u64, clients: usize, events: &[Event]) -> Self {
        let mut expected = Self {
            seed,
            lines: vec![Line::default(); clients],
            ..Self::default()
        };
        let mut asked = BTreeMap::new();
        let mut keeping = 0;
        let mut found = Vec::new();
        for event in events {
            match *event {
                Event::Began {
                    client,
                    durability,
                    number,
                } => {
                    asked.insert(client, durability);
                    let line = expected.line(client);
                    line.writes.insert(number, None);
                    line.highest = line.highest.max(number);
                }
                Event::Acknowledged {
                    client,
                    number,
                    seq,
                } => {
                    expected.line(client).writes.insert(number, Some(seq));
                    if asked.get(&client) != Some(&Durability::None) {
                        // The log is in order, so what came before went to the system with it.
                        expected.kept = expected.kept.max(seq);
                    }
                }
                Event::Refused { client, number } => {
                    expected.line(client).writes.remove(&number);
                }
                Event::KeepBegan => keeping = expected.acknowledged(),
                Event::Kept => expected.kept = expected.kept.max(keeping),
                Event::Found { client, number } => found.push((client, number)),
                Event::Opened => {
                    for (client, number) in found.drain(..) {
                        let line = expected.line(client);
                        line.writes.retain(|write, _| *write <= number);
                        line.found = number;
                    }
                    // The sequence numbers of lost writes are given to new ones.
                    (expected.kept, keeping) = (0, 0);
                }
                Event::KeyspacesMade => expected.keyspaces = true,
                Event::ScratchBegan { number } => expected.scratch = Scratch::Begun(number),
                Event::ScratchMade { number } => expected.scratch = Scratch::There(number),
                Event::ScratchGoes { number } => expected.scratch = Scratch::Going(number),
                Event::ScratchGone { .. } => expected.scratch = Scratch::Gone,
                Event::CopyBegan => {
                    let least = expected.lines.iter().map(Line::acknowledged).collect();
                    expected.copy = Some(Copy { least, most: None });
                }
                Event::Copied => {
                    let most = expected.lines.iter().map(Line::last).collect();
                    if let Some(copy) = &mut expected.copy {
                        copy.most = Some(most);
                    }
                }
                Event::CopyGone => expected.copy = None,
            }
        }
        expected
    }

    fn line(&mut self, client: u8) -> &mut Line {
        let client = usize::from(client);
        if self.lines.len() <= client {
            self.lines.resize(client + 1, Line::default());
        }
        &mut self.lines[client]
    }

    /// The highest sequence number that was acknowledged.
    fn acknowledged(&self) -> u64 {
        let seqs = self.lines.iter().flat_map(|line| line.writes.values());
        seqs.filter_map(|seq| *seq).max().unwrap_or(0)
    }

    /// The number of the first write of `client` that was never used.
    pub(super) fn next(&self, client: u8) -> u64 {
        let line = self.lines.get(usize::from(client));
        line.map_or(0, |line| line.highest) + 1
    }

    /// A number for a lifetime of the keyspace that comes and goes, one that was not used yet.
    pub(super) fn next_scratch(events: &[Event]) -> u64 {
        let begun = events.iter().filter_map(|event| match event {
            Event::ScratchBegan { number } => Some(*number),
            _ => None,
        });
        begun.max().unwrap_or(0) + 1
    }

    /// Checks what a store held when it was opened after a kill: a prefix of the writes of all
    /// clients across keyspaces, with everything that was handed over (I5). Returns how many writes
    /// of each client it holds, and what they add up to.
    ///
    /// # Errors
    /// What was lost, wrong or resurrected.
    pub(super) fn recovered(&self, found: &Found) -> Result<Vec<(u64, Model)>, Violation> {
        let bounds = |line: &Line| {
            let handed = |(_, seq): &(&u64, &Option<u64>)| seq.is_some_and(|seq| seq <= self.kept);
            let handed = line.writes.iter().filter(handed).map(|(number, _)| *number);
            (handed.max().unwrap_or(0).max(line.found), line.last())
        };
        self.held(found, &self.lines.iter().map(bounds).collect::<Vec<_>>())
    }

    /// Checks what a checkpoint holds, or why it cannot be opened. A checkpoint that was never
    /// acknowledged need not be whole, but then it is no store.
    ///
    /// # Errors
    /// What was lost, wrong or resurrected; a checkpoint that is gone.
    pub(super) fn copied(&self, found: Result<&Found, &str>) -> Result<(), Violation> {
        let Some(copy) = &self.copy else {
            return Ok(());
        };
        let found = match (found, &copy.most) {
            (Ok(found), _) => found,
            (Err(_), None) => return Ok(()),
            (Err(error), Some(_)) => {
                let message = format!("the checkpoint is no store: {error}");
                return Err(Violation::new(Promise::Kept, message));
            }
        };
        let last: Vec<u64> = self.lines.iter().map(Line::last).collect();
        let most = copy.most.as_ref().unwrap_or(&last);
        let bounds = copy.least.iter().copied().zip(most.iter().copied());
        let held = self.held(found, &bounds.collect::<Vec<_>>());
        held.map(|_| ()).map_err(|violation| Violation {
            message: format!("checkpoint: {}", violation.message),
            ..violation
        })
    }

    /// Whether there is, or may be, a checkpoint.
    pub(super) fn has_copy(&self) -> bool {
        self.copy.is_some()
    }

    fn held(&self, found: &Found, bounds: &[(u64, u64)]) -> Result<Vec<(u64, Model)>, Violation> {
        let known = 0..self.lines.len();
        if let Some(stranger) = found.keys().find(|c| !known.contains(&usize::from(**c))) {
            let message = format!("records of client {stranger}, which does not exist");
            return Err(Violation::new(Promise::Right, message));
        }
        let nothing = BTreeMap::new();
        let mut held = Vec::new();
        for ((index, line), (least, most)) in (0u8..).zip(&self.lines).zip(bounds) {
            let found = found.get(&index).unwrap_or(&nothing);
            let number = counter(found);
            let said = |promise, what: &str| {
                let message = format!(
                    "client {index} has {number} writes, {what}; from {least} to {most} there may be"
                );
                Err(Violation::new(promise, message))
            };
            if number < *least {
                return said(Promise::Kept, "too few");
            }
            if number > *most {
                return said(Promise::Right, "too many");
            }
            if number > 0 && !line.writes.contains_key(&number) {
                return said(
                    Promise::Gone,
                    "the last of which was lost or refused before",
                );
            }
            let client = Client {
                seed: self.seed,
                index,
                keys: KEYS,
            };
            let mut model = Model::default();
            for (write, _) in line.writes.range(..=number) {
                model.apply(client, *write);
            }
            model.check_all(client, found)?;
            held.push((number, model));
        }
        self.check_order(&held)?;
        Ok(held)
    }

    /// No write is there that came after a missing one: there is one log for all clients (I5).
    fn check_order(&self, held: &[(u64, Model)]) -> Result<(), Violation> {
        let (mut there, mut missing) = (BTreeSet::new(), BTreeSet::new());
        for (line, (number, _)) in self.lines.iter().zip(held) {
            for (write, seq) in &line.writes {
                let seqs = if write <= number {
                    &mut there
                } else {
                    &mut missing
                };
                seqs.extend(*seq);
            }
        }
        match (there.last(), missing.first()) {
            (Some(last), Some(hole)) if last > hole => {
                let message = format!("sequence {last} is there and {hole} is not: no prefix");
                Err(Violation::new(Promise::Kept, message))
            }
            _ => Ok(()),
        }
    }

    /// Checks which keyspaces there are. Also checks that the one that comes and goes holds nothing
    /// of an earlier lifetime.
    ///
    /// # Errors
    /// A keyspace that is lost or resurrected.
    pub(super) fn check_keyspaces(&self, db: &Db) -> Result<(), Violation> {
        let names = db.keyspaces();
        let lost = KEYSPACES
            .iter()
            .find(|name| !names.iter().any(|n| n == *name));
        if let (true, Some(name)) = (self.keyspaces, lost) {
            let message = format!("the keyspace {name} is lost");
            return Err(Violation::new(Promise::Kept, message));
        }
        let is_there = names.iter().any(|name| name == SCRATCH);
        let number = match self.scratch {
            Scratch::Gone if is_there => {
                let message = "a keyspace that was dropped is back";
                return Err(Violation::new(Promise::Gone, message));
            }
            Scratch::There(_) if !is_there => {
                let message = "a keyspace that was created is lost";
                return Err(Violation::new(Promise::Kept, message));
            }
            Scratch::Gone => return Ok(()),
            Scratch::Begun(number) | Scratch::There(number) | Scratch::Going(number) => number,
        };
        if !is_there {
            return Ok(());
        }
        let scratch = db.keyspace(SCRATCH).map_err(|error| error.to_string())?;
        let found = scratch.prefix("ingested").count();
        if found != 0 && found != INGESTED {
            let message = format!("of {INGESTED} records that were ingested {found} are there");
            return Err(Violation::new(Promise::Kept, message));
        }
        for record in scratch.iter() {
            let (_, value) = record.map_err(|error| error.to_string())?;
            if *value != *number.to_string().as_bytes() {
                let message = "a keyspace holds what was dropped with its predecessor";
                return Err(Violation::new(Promise::Gone, message));
            }
        }
        Ok(())
    }
}

impl Line {
    /// The last write that may be there.
    fn last(&self) -> u64 {
        self.writes.keys().next_back().copied().unwrap_or(0)
    }

    /// The last write that was acknowledged.
    fn acknowledged(&self) -> u64 {
        let acknowledged = self.writes.iter().filter(|(_, seq)| seq.is_some());
        acknowledged
            .map(|(number, _)| *number)
            .max()
            .unwrap_or(0)
            .max(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn began(client: u8, number: u64, durability: Durability) -> Event {
        Event::Began {
            client,
            durability,
            number,
        }
    }

    fn acknowledged(client: u8, number: u64, seq: u64) -> Event {
        Event::Acknowledged {
            client,
            number,
            seq,
        }
    }

    /// What a store holds that has this many writes of each client.
    fn holding(numbers: &[u64]) -> Found {
        let mut found = Found::new();
        for (index, last) in (0u8..).zip(numbers) {
            let client = Client {
                seed: 1,
                index,
                keys: KEYS,
            };
            let records: &mut BTreeMap<_, _> = found.entry(index).or_default();
            for number in 1..=*last {
                for (place, is_put) in client.changes(number) {
                    match is_put {
                        true => records.insert(place, client.value(number, place)),
                        false => records.remove(&place),
                    };
                }
            }
        }
        found
    }

    fn broken(events: &[Event], numbers: &[u64]) -> Option<Promise> {
        let expected = Expected::after(1, numbers.len(), events);
        let checked = expected.recovered(&holding(numbers));
        checked.err().map(|violation| violation.promise)
    }

    #[test]
    fn a_write_counts_as_kept_once_a_later_one_was_handed_over() {
        let events = [
            began(0, 1, Durability::None),
            acknowledged(0, 1, 1),
            began(1, 1, Durability::Buffered),
            acknowledged(1, 1, 2),
            began(0, 2, Durability::None),
            acknowledged(0, 2, 3),
            began(1, 2, Durability::Sync),
        ];
        assert_eq!(broken(&events, &[1, 1]), None);
        assert_eq!(broken(&events, &[2, 1]), None);
        assert_eq!(broken(&events, &[2, 2]), None);
        assert_eq!(broken(&events, &[0, 1]), Some(Promise::Kept));
        assert_eq!(broken(&events, &[1, 0]), Some(Promise::Kept));
        assert_eq!(broken(&events, &[3, 1]), Some(Promise::Right));
        assert_eq!(broken(&events[..1], &[0, 0]), None);
    }

    #[test]
    fn a_hole_among_writes_that_might_be_lost_is_no_prefix() {
        let events = [
            began(0, 1, Durability::None),
            acknowledged(0, 1, 1),
            began(1, 1, Durability::None),
            acknowledged(1, 1, 2),
        ];
        assert_eq!(broken(&events, &[1, 0]), None);
        assert_eq!(broken(&events, &[0, 1]), Some(Promise::Kept));
    }

    #[test]
    fn what_an_opening_did_not_find_stays_away() {
        let events = [
            began(0, 1, Durability::None),
            acknowledged(0, 1, 1),
            Event::Found {
                client: 0,
                number: 0,
            },
            Event::Opened,
        ];
        assert_eq!(broken(&events, &[0]), None);
        assert!(broken(&events, &[1]).is_some());
        assert_eq!(Expected::after(1, 1, &events).next(0), 2);
    }

    #[test]
    fn a_call_that_keeps_covers_what_was_acknowledged_before_it() {
        let mut events = vec![
            began(0, 1, Durability::None),
            acknowledged(0, 1, 1),
            Event::KeepBegan,
            began(0, 2, Durability::None),
            acknowledged(0, 2, 2),
            Event::Kept,
        ];
        assert_eq!(broken(&events, &[1]), None);
        assert_eq!(broken(&events, &[0]), Some(Promise::Kept));
        events.pop();
        assert_eq!(broken(&events, &[0]), None);
    }

    #[test]
    fn a_checkpoint_that_was_acknowledged_is_a_store_with_all_that_came_before_it() {
        let mut events = vec![
            began(0, 1, Durability::None),
            acknowledged(0, 1, 1),
            Event::CopyBegan,
            began(0, 2, Durability::None),
        ];
        let copied = |events: &[Event], found: Result<&Found, &str>| {
            Expected::after(1, 1, events).copied(found).is_ok()
        };
        assert!(copied(&events, Err("no store")));
        assert!(!copied(&events, Ok(&holding(&[0]))));
        events.push(Event::Copied);
        assert!(!copied(&events, Err("no store")));
        assert!(copied(&events, Ok(&holding(&[1]))));
        assert!(copied(&events, Ok(&holding(&[2]))));
    }
}
