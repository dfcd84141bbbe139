//! Objects: keys that are written together, in two keyspaces.

use thermocline::{Batch, Db, Keyspace, Snapshot, Value};

use super::history::Content;
use crate::verdict::{Promise, Violation, each_with_its_answer};

/// How an object is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// One of its keys, by a point read.
    OneKey(usize),
    /// All keys of one keyspace, as of one moment.
    MultiGet,
    /// All keys, from a snapshot.
    Snapshot,
    /// All keys, by ranges over a snapshot.
    Range,
}

/// Keys that one batch writes, each in a keyspace.
#[derive(Debug)]
pub(super) struct Object {
    number: u64,
    /// How many keys.
    width: usize,
}

/// The keyspaces that an object's keys lie in by turns.
pub(super) type Keyspaces = [Keyspace; 2];

impl Object {
    /// Every third object has three keys, the others one.
    pub(super) fn new(number: usize) -> Self {
        let width = if number.is_multiple_of(3) { 3 } else { 1 };
        let number = number as u64;
        Self { number, width }
    }

    pub(super) fn name(&self) -> String {
        format!("object{:05}", self.number)
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    fn key(&self, member: usize) -> String {
        format!("{}/{member}", self.name())
    }

    /// The value of every key after write `number`.
    pub(super) fn value(&self, number: u64) -> Vec<u8> {
        let mut value = format!("{number}/{}/", self.number).into_bytes();
        value.resize(value.len() + 150 + (self.number as usize * 37) % 500, b'.');
        value
    }

    /// Adds the writing of `content` to `batch`.
    pub(super) fn write(&self, batch: &mut Batch, keyspaces: &Keyspaces, content: Content) {
        for member in 0..self.width {
            let keyspace = &keyspaces[member % 2];
            match content {
                Some(number) => batch.put_in(keyspace, self.key(member), self.value(number)),
                None => batch.delete_in(keyspace, self.key(member)),
            }
        }
    }

    /// The key that a condition is about. One of several decides for all.
    pub(super) fn condition(&self, member: usize) -> (usize, String) {
        let member = member % self.width;
        (member % 2, self.key(member))
    }

    /// Reads the object.
    ///
    /// # Errors
    /// A batch that is seen in part, and a value that nobody wrote.
    pub(super) fn read(
        &self,
        db: &Db,
        keyspaces: &Keyspaces,
        way: Way,
    ) -> Result<Content, Violation> {
        let found = match way {
            Way::OneKey(member) => {
                let member = member % self.width;
                vec![keyspaces[member % 2].get(self.key(member))?]
            }
            Way::MultiGet => {
                let keys: Vec<_> = (0..self.width).step_by(2).map(|m| self.key(m)).collect();
                let found = keyspaces[0].multi_get(&keys)?;
                let found = each_with_its_answer(&keys, found)?;
                found.map(|(_, found)| found).collect()
            }
            Way::Snapshot => {
                let snapshot = db.snapshot();
                let get = |m: usize| snapshot.get_in(&keyspaces[m % 2], self.key(m));
                (0..self.width).map(get).collect::<Result<_, _>>()?
            }
            Way::Range => self.scan(&db.snapshot(), keyspaces)?,
        };
        self.content(&found)
    }

    /// The keys of the object as ranges over both keyspaces give them.
    fn scan(
        &self,
        snapshot: &Snapshot,
        keyspaces: &Keyspaces,
    ) -> Result<Vec<Option<Value>>, Violation> {
        let mut found: Vec<Option<Value>> = (0..self.width).map(|_| None).collect();
        for (which, keyspace) in keyspaces.iter().enumerate() {
            for record in snapshot.range_in(keyspace, self.key(0)..self.key(9)) {
                let (key, value) = record?;
                let member = (0..self.width).find(|m| m % 2 == which && key == self.key(*m));
                match member {
                    Some(member) => found[member] = Some(value),
                    None => {
                        let message = format!("a range found {key:?}, which nobody wrote");
                        return Err(Violation::new(Promise::Right, message));
                    }
                }
            }
        }
        Ok(found)
    }

    /// What the values of several keys together say.
    fn content(&self, found: &[Option<Value>]) -> Result<Content, Violation> {
        let mut contents = Vec::new();
        for value in found {
            contents.push(value.as_deref().map(|v| self.number_of(v)).transpose()?);
        }
        match contents.split_first() {
            Some((first, rest)) if rest.iter().all(|content| content == first) => Ok(*first),
            _ => {
                let message = format!("{}: a batch seen in part: {contents:?}", self.name());
                Err(Violation::new(Promise::Right, message))
            }
        }
    }

    /// The write that put `value`.
    fn number_of(&self, value: &[u8]) -> Result<u64, Violation> {
        let text = String::from_utf8_lossy(value);
        let number = text
            .split('/')
            .next()
            .and_then(|number| number.parse().ok());
        match number {
            Some(number) if value == self.value(number) => Ok(number),
            _ => {
                let message = format!("{} has a value that nobody wrote", self.name());
                Err(Violation::new(Promise::Right, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::{memory, open_on, small_options};

    /// Tests that prove that the harness can see its subject: a batch that is not one.
    #[test]
    fn an_object_that_is_written_in_parts_is_seen_torn_by_every_read_of_several_keys() {
        let db = open_on(&small_options(), &memory()).unwrap();
        let keyspaces = [
            db.keyspace("default").unwrap(),
            db.create_keyspace("b").unwrap(),
        ];
        let object = Object::new(3);
        let mut batch = Batch::new();
        object.write(&mut batch, &keyspaces, Some(7));
        db.write(batch).unwrap();
        for way in [Way::MultiGet, Way::Snapshot, Way::Range, Way::OneKey(1)] {
            assert_eq!(object.read(&db, &keyspaces, way), Ok(Some(7)), "{way:?}");
        }
        db.put(object.key(0), object.value(8)).unwrap();
        for way in [Way::MultiGet, Way::Snapshot, Way::Range] {
            let torn = object.read(&db, &keyspaces, way).unwrap_err();
            assert!(torn.message.contains("in part"), "{way:?}: {torn}");
        }
        db.put(object.key(0), "7/4/").unwrap();
        let foreign = object.read(&db, &keyspaces, Way::OneKey(0)).unwrap_err();
        assert_eq!(foreign.promise, Promise::Right);
    }
}
