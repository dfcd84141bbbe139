//! A client of a store: writes that follow from a seed and a number, and what they add up to.
//!
//! Each client has keys of its own, so that several of them can write at once and each still knows
//! what it must read. The last change of every write is the client's counter. It tells how many of
//! its writes a store holds.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::{Batch, Db, Keyspace, Range, Result};

use crate::verdict::{Promise, Violation};

/// The keyspaces that clients write to.
pub(crate) const KEYSPACES: [&str; 3] = ["default", "side", "later"];

/// How many keys a client of a short life has in each keyspace.
pub(crate) const KEYS: u32 = 300;

/// The key of the counter, in the first keyspace.
const COUNTER: u32 = u32::MAX;

/// Where a record lies: keyspace and number of the key.
pub(crate) type Place = (u8, u32);

/// Everything that a store holds, by client.
pub(crate) type Found = BTreeMap<u8, BTreeMap<Place, Vec<u8>>>;

/// A writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// What its writes follow from.
    pub(crate) seed: u64,
    /// Which of the store's clients it is.
    pub(crate) index: u8,
    /// How many keys it has in each keyspace.
    pub(crate) keys: u32,
}

impl Client {
    /// The changes of write `number`, the counter's last. For each place, whether it is a put or a
    /// delete.
    pub(crate) fn changes(self, number: u64) -> Vec<(Place, bool)> {
        let mut rng = self.rng(number, 0);
        let count = if rng.random_bool(0.3) { 8 } else { 1 };
        let mut changes = Vec::new();
        for _ in 0..count {
            let keyspace = rng.random_range(0..KEYSPACES.len() as u8);
            let key = rng.random_range(0..self.keys);
            changes.push(((keyspace, key), rng.random_bool(0.8)));
        }
        changes.push(((0, COUNTER), true));
        changes
    }

    /// What write `number` puts at `place`.
    pub(crate) fn value(self, number: u64, place: Place) -> Vec<u8> {
        let mut value = format!("{number}:").into_bytes();
        if place.1 != COUNTER {
            let mut rng = self.rng(number, 1 + u64::from(place.0) + 8 * u64::from(place.1));
            let half = rng.random_range(0..800);
            value.extend(std::iter::repeat_with(|| rng.random::<u8>()).take(half));
            value.resize(value.len() + half, b'.');
        }
        value
    }

    /// The key at `place`.
    pub(crate) fn key(self, place: Place) -> String {
        format!("c{}-{:010}", self.index, place.1)
    }

    /// The key of the counter, in the first keyspace.
    pub(crate) fn counter(self) -> String {
        self.key((0, COUNTER))
    }

    /// What all of this client's keys begin with.
    pub(crate) fn prefix(self) -> String {
        format!("c{}-", self.index)
    }

    /// Write `number` for the store that `keyspaces` are of.
    pub(crate) fn batch(self, number: u64, keyspaces: &[Keyspace]) -> Batch {
        let mut batch = Batch::new();
        for (place, is_put) in self.changes(number) {
            let (Some(keyspace), key) = (keyspaces.get(usize::from(place.0)), self.key(place))
            else {
                continue;
            };
            match is_put {
                true => batch.put_in(keyspace, key, self.value(number, place)),
                false => batch.delete_in(keyspace, key),
            }
        }
        batch
    }

    fn rng(self, number: u64, salt: u64) -> SmallRng {
        let mixed =
            [u64::from(self.index), number, salt]
                .into_iter()
                .fold(self.seed, |seed, part| {
                    (seed ^ part)
                        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                        .rotate_left(29)
                });
        SmallRng::seed_from_u64(mixed)
    }
}

/// The keyspaces of `db` in the order of [`KEYSPACES`], created where they are missing.
///
/// # Errors
/// As [`Db::create_keyspace`].
pub(crate) fn keyspaces(db: &Db) -> Result<Vec<Keyspace>> {
    KEYSPACES
        .iter()
        .map(|name| db.create_keyspace(name))
        .collect()
}

/// Which write put the value, as the value itself says.
pub(crate) fn number_of(value: &[u8]) -> Option<u64> {
    let end = value.iter().position(|byte| *byte == b':')?;
    std::str::from_utf8(value.get(..end)?).ok()?.parse().ok()
}

/// The client and the place of a key.
fn parse(keyspace: u8, key: &[u8]) -> Option<(u8, Place)> {
    let text = std::str::from_utf8(key).ok()?;
    let (client, number) = text.strip_prefix('c')?.split_once('-')?;
    Some((client.parse().ok()?, (keyspace, number.parse().ok()?)))
}

/// Reads all that clients wrote.
///
/// # Errors
/// A key that no client has; an error of the scan.
pub(crate) fn find_all(db: &Db) -> std::result::Result<Found, Violation> {
    let mut found = Found::new();
    for (index, name) in (0u8..).zip(KEYSPACES) {
        let Ok(keyspace) = db.keyspace(name) else {
            continue;
        };
        for record in keyspace.iter() {
            let (key, value) = record.map_err(|error| format!("scan of {name}: {error}"))?;
            let Some((client, place)) = parse(index, &key) else {
                let key = String::from_utf8_lossy(&key).into_owned();
                let message = format!("{name} holds the key {key:?}, which nobody wrote");
                return Err(Violation::new(Promise::Right, message));
            };
            let records: &mut BTreeMap<_, _> = found.entry(client).or_default();
            records.insert(place, value.to_vec());
        }
    }
    Ok(found)
}

/// What a client's writes add up to: for each place the write that put what is there now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model(BTreeMap<Place, u64>);

impl Model {
    /// Applies write `number` of `client`.
    pub(crate) fn apply(&mut self, client: Client, number: u64) {
        for (place, is_put) in client.changes(number) {
            match is_put {
                true => self.0.insert(place, number),
                false => self.0.remove(&place),
            };
        }
    }

    /// The write that put what is at `place`.
    pub(crate) fn at(&self, place: Place) -> Option<u64> {
        self.0.get(&place).copied()
    }

    /// The records of one keyspace in the order of their keys.
    pub(crate) fn records(&self, keyspace: u8) -> impl Iterator<Item = (Place, u64)> + '_ {
        let range = self.0.range((keyspace, 0)..(keyspace + 1, 0));
        range.map(|(place, number)| (*place, *number))
    }

    /// Checks one answer of a store.
    ///
    /// # Errors
    /// What is broken by an answer that is not the model's.
    pub(crate) fn check(
        &self,
        client: Client,
        place: Place,
        found: Option<&[u8]>,
    ) -> std::result::Result<(), Violation> {
        let wanted = self.at(place);
        let promise = match (wanted, found) {
            (None, None) => return Ok(()),
            (Some(number), Some(found)) if found == client.value(number, place) => return Ok(()),
            (Some(_), None) => Promise::Kept,
            (None, Some(_)) => Promise::Gone,
            // An older value is in its place: the write is lost.
            (Some(number), Some(found)) if number_of(found).is_some_and(|old| old < number) => {
                Promise::Kept
            }
            _ => Promise::Right,
        };
        let of = |number: Option<u64>| match number {
            Some(number) => format!("write {number}"),
            None => "none".to_owned(),
        };
        let message = format!(
            "{}/{} should be of {} and is of {}",
            KEYSPACES.get(usize::from(place.0)).unwrap_or(&"?"),
            client.key(place),
            of(wanted),
            match found {
                None => "none".to_owned(),
                Some(found) =>
                    number_of(found).map_or("no write at all".to_owned(), |n| of(Some(n))),
            },
        );
        Err(Violation::new(promise, message))
    }

    /// Checks a scan of all records that a client has in one keyspace.
    ///
    /// # Errors
    /// What is broken by the first record that is not the model's; an error of the scan.
    pub(crate) fn check_range(
        &self,
        client: Client,
        keyspace: u8,
        range: Range,
    ) -> std::result::Result<(), Violation> {
        let mut wanted = self.records(keyspace);
        for record in range {
            let (key, value) = record.map_err(|error| format!("scan: {error}"))?;
            let next = wanted.next().map(|(place, _)| place);
            match next {
                Some(place) if *key == *client.key(place).as_bytes() => {
                    self.check(client, place, Some(&value))?;
                }
                _ => {
                    let wanted = next.map(|place| client.key(place));
                    // If the key is past the wanted one, that one is missing. If it is before, it
                    // is one too many.
                    let promise = match &wanted {
                        Some(wanted) if *key > *wanted.as_bytes() => Promise::Kept,
                        _ => Promise::Gone,
                    };
                    let key = String::from_utf8_lossy(&key).into_owned();
                    let message = format!("a scan has {key} where {wanted:?} is next");
                    return Err(Violation::new(promise, message));
                }
            }
        }
        match wanted.next() {
            None => Ok(()),
            Some((place, _)) => self.check(client, place, None),
        }
    }

    /// Checks all records of a client.
    ///
    /// # Errors
    /// The first record that is lost, wrong or resurrected.
    pub(crate) fn check_all(
        &self,
        client: Client,
        found: &BTreeMap<Place, Vec<u8>>,
    ) -> std::result::Result<(), Violation> {
        let mut places: Vec<Place> = self.0.keys().chain(found.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        places
            .into_iter()
            .try_for_each(|place| self.check(client, place, found.get(&place).map(Vec::as_slice)))
    }
}

/// How many of its writes there are, as a client's counter says.
pub(crate) fn counter(found: &BTreeMap<Place, Vec<u8>>) -> u64 {
    let counter = found.get(&(0, COUNTER));
    counter.and_then(|value| number_of(value)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Client = Client {
        seed: 7,
        index: 1,
        keys: KEYS,
    };

    #[test]
    fn answers_are_told_apart_by_the_promise_that_they_break() {
        let mut model = Model::default();
        (1..=300).for_each(|number| model.apply(CLIENT, number));
        let (place, number) = model.records(1).next().unwrap();
        let older = CLIENT.value(number - 1, place);
        let absent = (0..KEYS)
            .map(|key| (1, key))
            .find(|place| model.at(*place).is_none())
            .unwrap();
        let broken =
            |place, found: Option<&[u8]>| model.check(CLIENT, place, found).unwrap_err().promise;
        let right = CLIENT.value(number, place);
        assert!(model.check(CLIENT, place, Some(&right)).is_ok());
        assert!(model.check(CLIENT, absent, None).is_ok());
        assert_eq!(broken(place, None), Promise::Kept);
        assert_eq!(broken(place, Some(&older)), Promise::Kept);
        assert_eq!(broken(place, Some(b"x")), Promise::Right);
        assert_eq!(broken(absent, Some(&older)), Promise::Gone);
    }

    #[test]
    fn a_key_names_its_client_and_its_place() {
        let key = CLIENT.key((2, 41));
        assert_eq!(parse(2, key.as_bytes()), Some((1, (2, 41))));
        assert!(key.starts_with(&CLIENT.prefix()));
        assert_eq!(parse(0, b"other"), None);
    }
}
