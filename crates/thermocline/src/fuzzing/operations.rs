//! Bytes as a script of operations, checked against an ordered map.

use std::collections::BTreeMap;

use super::store::tiny_options;
use crate::api::{Db, Snapshot};
use crate::clock::ManualClock;
use crate::executor::Stepped;
use crate::storage::{Medium, Memory};
use crate::sync::Arc;
use crate::{Batch, Result};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Most operations of a script; longer ones find nothing that shorter ones do not.
const MOST: usize = 2000;

/// Does what `bytes` say. Each operation takes three bytes: the first names it, the others are its
/// key and its size.
///
/// # Panics
/// When the store answers other than an ordered map, or fails.
pub fn operations(bytes: &[u8]) {
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let ended = Script::open(&medium).and_then(|mut script| {
        for op in bytes.chunks_exact(3).take(MOST) {
            script = script.one(op[0], op[1], op[2], &medium)?;
        }
        script.check_whole();
        script.db.close()
    });
    assert!(ended.is_ok(), "the store failed: {ended:?}");
}

struct Script {
    db: Db,
    map: Map,
    snapshot: Option<(Snapshot, Map)>,
    written: u32,
}

fn open(medium: &Arc<dyn Medium>) -> Result<Db> {
    Db::builder(tiny_options())
        .medium(0, Arc::clone(medium))
        .medium(1, Arc::clone(medium))
        .executor(Arc::new(Stepped::new(1)))
        .clock(Arc::new(ManualClock::default()))
        .open()
}

impl Script {
    fn open(medium: &Arc<dyn Medium>) -> Result<Self> {
        Ok(Self {
            db: open(medium)?,
            map: Map::new(),
            snapshot: None,
            written: 0,
        })
    }

    /// Values differ from write to write; sizes reach from nothing to several blocks.
    fn value(&mut self, size: u8) -> Vec<u8> {
        self.written += 1;
        self.written.to_le_bytes().repeat(usize::from(size) * 3)
    }

    fn one(mut self, op: u8, key: u8, size: u8, medium: &Arc<dyn Medium>) -> Result<Self> {
        let name = vec![b'k', key >> 4, key];
        match op % 12 {
            0..=2 => {
                let value = self.value(size);
                self.db.put(&name, &value)?;
                self.map.insert(name, value);
            }
            3 => {
                self.db.delete(&name)?;
                self.map.remove(&name);
            }
            4 => self.batch(key, size)?,
            5 => self.check_key(&name)?,
            6 => self.check_range(key, size),
            7 => self.snapshot = Some((self.db.snapshot(), self.map.clone())),
            8 => self.check_snapshot(),
            9 => self.db.flush()?,
            10 if size.is_multiple_of(4) => self.db.compact_range::<&[u8]>(..)?,
            10 => self.db.wait_idle()?,
            _ if size.is_multiple_of(8) => {
                self.snapshot = None;
                self.db.close()?;
                self.db = open(medium)?;
            }
            _ => self.check_whole(),
        }
        Ok(self)
    }

    fn batch(&mut self, first: u8, count: u8) -> Result<()> {
        let mut batch = Batch::new();
        for n in 0..count % 16 {
            let key = first.wrapping_add(n.wrapping_mul(17));
            let name = vec![b'k', key >> 4, key];
            if n % 5 == 4 {
                batch.delete(&name);
                self.map.remove(&name);
            } else {
                let value = self.value(count);
                batch.put(&name, &value);
                self.map.insert(name, value);
            }
        }
        self.db.write(batch).map(|_| ())
    }

    fn check_key(&self, name: &[u8]) -> Result<()> {
        let found = self.db.get(name)?;
        assert_eq!(found.as_deref(), self.map.get(name).map(|v| &v[..]));
        let many = self.db.multi_get(&[name, b"k"])?;
        assert_eq!(many[0], found);
        assert_eq!(many[1], None);
        Ok(())
    }

    fn check_range(&self, first: u8, len: u8) {
        let from = vec![b'k', first >> 4, first];
        let last = first.saturating_add(len);
        let to = vec![b'k', last >> 4, last];
        let wanted: Vec<_> = self.map.range(from.clone()..=to.clone()).collect();
        check(
            self.db.range(from.clone()..=to.clone()),
            wanted.iter().copied(),
        );
        check(self.db.range(from..=to).rev(), wanted.into_iter().rev());
    }

    fn check_snapshot(&self) {
        if let Some((snapshot, map)) = &self.snapshot {
            check(snapshot.iter(), map.iter());
            check(snapshot.iter().rev(), map.iter().rev());
        }
    }

    fn check_whole(&self) {
        check(self.db.iter(), self.map.iter());
    }
}

fn check<'a>(
    found: impl Iterator<Item = Result<(bytes::Bytes, crate::Value)>>,
    wanted: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
) {
    let mut wanted = wanted;
    for record in found {
        let pair = record.as_ref().map(|(key, value)| (&key[..], &value[..]));
        let next = wanted.next().map(|(key, value)| (&key[..], &value[..]));
        assert_eq!(pair.ok(), next, "{record:?}");
    }
    assert_eq!(wanted.next(), None, "the store ends early");
}
