//! Which batches the fast tier can never hold, and the least capacity with which it can (I8).
//!
//! A batch is in the log before it is anywhere else, and the log is on the fast tier. All tables
//! there can give way: a flush or a compaction that finds no room there writes to the last tier.
//! What cannot give way is counted here. The rest of the capacity has to hold the batch, and beside
//! it a memtable's worth for other writers ([`Engine::needed_for`]). With one tier, the table that
//! the batch becomes lies beside the log, too.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::log_format::FILE_HEADER_LEN;
use crate::options::Options;
use crate::version::Manifest;

/// More rounds than any least capacity takes: what is needed beside the batch grows by a small part
/// of the capacity.
const MOST_ROUNDS: u32 = 64;

/// What stays on the fast tier, whatever leaves it.
struct Staying {
    /// What the manifest began with, in bytes.
    manifest: u64,
    /// Bytes of the access records.
    records: u64,
}

impl Engine {
    /// Refuses a batch of `bytes` that the fast tier cannot hold, whatever leaves it.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`]; with a flash cache, which grows with the capacity,
    /// [`Error::NoSpace`].
    pub(crate) fn check_fits(&self, bytes: u64) -> Result<()> {
        let capacity = self.fast().capacity();
        // A memtable's worth always fits: a lower capacity is refused when the store is opened.
        if bytes <= self.sizes.memtable_size || self.fast().is_unlimited() {
            return Ok(());
        }
        if self.level_tiers()[0] != self.fast().index {
            return match self.needed_for(bytes) > capacity {
                true => Err(self.no_space()),
                false => Ok(()),
            };
        }
        let stays = Staying {
            manifest: self.files.manifest.lock().began_with(),
            records: self.placement.file_bytes(),
        };
        if self.needed_with(capacity, self.sizes.memtable_size, bytes, &stays) <= capacity {
            return Ok(());
        }
        Err(Error::DoesNotFit {
            path: self.fast().options.path.clone(),
            len: bytes,
            capacity,
            least_capacity: self.least_capacity(bytes, &stays),
        })
    }

    /// What a capacity has to hold for a batch of `bytes` to be written, with memtables of
    /// `memtable` bytes.
    fn needed_with(&self, capacity: u64, memtable: u64, bytes: u64, stays: &Staying) -> u64 {
        let batch = match self.tiers.len() {
            // Other writers' records, a memtable's worth, are with it in the log and in the table.
            1 => bytes.saturating_mul(2).saturating_add(memtable),
            _ => bytes,
        };
        let manifest = Manifest::allotment(stays.manifest, capacity);
        let log = self
            .options
            .log_retention
            .saturating_add(FILE_HEADER_LEN as u64);
        [memtable, log, manifest, stays.records]
            .into_iter()
            .fold(batch, u64::saturating_add)
    }

    /// The least capacity of the fast tier with which a batch of `bytes` can be written. Defaults
    /// that follow from the capacity are taken to be those that come with it.
    fn least_capacity(&self, bytes: u64, stays: &Staying) -> u64 {
        let mut options = self.options.clone();
        let mut capacity = bytes;
        for _ in 0..MOST_ROUNDS {
            let memtable = self.memtable_size_with(&mut options, capacity);
            let needed = self.needed_with(capacity, memtable, bytes, stays);
            if needed <= capacity {
                break;
            }
            capacity = needed;
        }
        capacity
    }

    fn memtable_size_with(&self, options: &mut Options, capacity: u64) -> u64 {
        if options.memtable_size.is_none()
            && let Some(first) = options.tiers.first_mut()
        {
            first.capacity = capacity;
            // A capacity that is too little for any memtable is too little for this batch.
            let resolved = options.resolve();
            return resolved.map_or(self.sizes.memtable_size, |sizes| sizes.memtable_size);
        }
        self.sizes.memtable_size
    }

    /// For when room is all that is missing: begins a new manifest if the present one is longer
    /// than what is kept free for it.
    pub(crate) fn shorten_manifest(&self) -> Result<()> {
        let capacity = self.fast().capacity();
        self.roll_manifest_if(|manifest| {
            manifest.len() > Manifest::allotment(manifest.began_with(), capacity)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::executor::Stepped;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::{Db, Error, Options};

    const CAPACITY: u64 = 6 << 20;

    struct Store(Arc<Memory>, Arc<Memory>);

    impl Store {
        fn open(&self, capacity: u64) -> Db {
            let mut options = Options::two_tiers("/fast", capacity, "/slow");
            options.memory = 16 << 20;
            let builder = Db::builder(options).executor(Arc::new(Stepped::new(1)));
            let builder = builder.medium(0, Arc::clone(&self.0) as Arc<_>);
            builder
                .medium(1, Arc::clone(&self.1) as Arc<_>)
                .open()
                .unwrap()
        }
    }

    /// The length of the batch, the capacity that it would take, and the capacity there is.
    fn refusal(db: &Db, key: &str, value: usize) -> (u64, u64, u64) {
        match db.put(key, vec![1; value]) {
            Err(Error::DoesNotFit {
                len,
                capacity,
                least_capacity,
                ..
            }) => (len, least_capacity, capacity),
            other => panic!("{value} bytes: {other:?}"),
        }
    }

    /// The longest value for `key` that fits.
    fn longest(db: &Db, key: &str) -> usize {
        let (mut fits, mut does_not) = (0, CAPACITY as usize);
        while does_not - fits > 1 {
            let middle = fits.midpoint(does_not);
            match db.engine().check_fits(batch_len(key, middle)) {
                Ok(()) => fits = middle,
                Err(_) => does_not = middle,
            }
        }
        fits
    }

    fn batch_len(key: &str, value: usize) -> u64 {
        let mut batch = crate::Batch::new();
        batch.put(key, vec![0; value]);
        batch.byte_len() as u64
    }

    /// A batch that could never fit was refused as if space had to be freed. At the boundary that
    /// went on for ever: the room that the manifest and access records take was not counted.
    #[test]
    fn the_longest_value_that_fits_is_written_again_and_again_and_one_byte_more_is_refused() {
        let store = Store(Arc::default(), Arc::default());
        let db = store.open(CAPACITY);
        let longest = longest(&db, "key0");
        assert!(longest as u64 > CAPACITY / 10 * 9, "{longest}");
        for round in 0..30u8 {
            let key = format!("key{}", round % 3);
            let value = vec![round; longest];
            db.put(&key, &value)
                .unwrap_or_else(|e| panic!("round {round}: {e}"));
            db.put("small", [round; 100]).unwrap();
            if round % 2 == 0 {
                db.flush().unwrap();
            }
            if round % 5 == 0 {
                db.compact_range::<&[u8]>(..).unwrap();
            }
            assert!(
                db.get(&key).unwrap().as_deref() == Some(&value[..]),
                "round {round}"
            );
            refusal(&db, &key, longest + 1);
            let fast = &db.metrics().tiers[0];
            assert!(
                fast.file_bytes + fast.reserved_bytes <= CAPACITY,
                "{fast:?}"
            );
        }
        assert_eq!(
            db.metrics().background_error,
            None,
            "other writes are accepted"
        );
        db.close().unwrap();
    }

    #[test]
    fn with_the_least_capacity_that_is_named_it_fits_and_with_one_byte_less_it_does_not() {
        let store = Store(Arc::default(), Arc::default());
        let db = store.open(CAPACITY);
        let (len, least, capacity) = refusal(&db, "key", CAPACITY as usize);
        assert_eq!(
            (len, capacity),
            (batch_len("key", CAPACITY as usize), CAPACITY)
        );
        db.close().unwrap();
        let db = store.open(least - 1);
        refusal(&db, "key", CAPACITY as usize);
        assert_eq!(db.get("key").unwrap(), None);
        db.close().unwrap();
        let db = store.open(least);
        db.put("key", vec![1; CAPACITY as usize]).unwrap();
        db.flush().unwrap();
        db.close().unwrap();
    }

    /// With one tier, a batch that did not fit was logged, and every flush failed from then on.
    #[test]
    fn with_one_tier_there_is_room_for_log_and_table() {
        let mut options = Options::one_tier("/fast");
        options.tiers[0].capacity = CAPACITY;
        options.memory = 16 << 20;
        let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        let longest = longest(&db, "key0");
        assert!(longest as u64 > CAPACITY / 10 * 4, "{longest}");
        db.put("key0", vec![1; longest]).unwrap();
        db.flush().unwrap();
        refusal(&db, "key0", longest + 1);
        db.put("key0", "short").unwrap();
        db.flush().unwrap();
    }
}
