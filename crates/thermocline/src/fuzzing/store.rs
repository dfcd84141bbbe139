//! Two tiers in memory to put files on, and a store over them.

use bytes::Bytes;

use crate::api::Db;
use crate::clock::ManualClock;
use crate::executor::Stepped;
use crate::options::{Options, RecoveryMode, TierOptions};
use crate::points::Points;
use crate::storage::{Medium, Memory};
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::{KeyspaceMeta, VersionEdit};
use crate::version::{Manifest, identity};

/// Number of the database that every file belongs to.
pub(super) const DATABASE: u128 = 0xf0_22;

/// Options of a store that a few records fill.
pub(super) fn tiny_options() -> Options {
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast")
            .capacity(24 * (16 << 10))
            .block_size(512),
        TierOptions::slow("/slow").block_size(512),
    ]);
    options.memory = 1 << 20;
    options.memtable_size = Some(16 << 10);
    options.table_size = Some(16 << 10);
    options.l0_trigger = 2;
    options.seed = Some(1);
    options
}

/// Media in memory with the beginnings of a store.
pub(super) struct TestTiers {
    media: Vec<Arc<dyn Medium>>,
    tiers: Vec<Arc<Tier>>,
}

impl TestTiers {
    pub(super) fn new() -> Self {
        let options = tiny_options();
        let media: Vec<Arc<dyn Medium>> = vec![Arc::new(Memory::new()), Arc::new(Memory::new())];
        let tier = |(index, medium): (usize, &Arc<dyn Medium>)| {
            let options = options.tiers[index].clone();
            let tables = expect(medium.table_store(&options.path, true));
            let log = (index == 0).then(|| expect(medium.log_store(&options.path, true)));
            Arc::new(Tier::new(index as u8, options, tables, log))
        };
        let tiers = media.iter().enumerate().map(tier).collect();
        Self { media, tiers }
    }

    /// A store without records whose manifest is `number`.
    pub(super) fn with_manifest(number: u64) -> Self {
        let tiers = Self::new();
        for tier in &tiers.tiers {
            expect(identity::write(tier, DATABASE));
        }
        let fast = Arc::clone(tiers.fast());
        let edits = [first_edit()];
        expect(Manifest::create(
            fast,
            DATABASE,
            number,
            &edits,
            Points::default(),
        ));
        tiers
    }

    pub(super) fn fast(&self) -> &Arc<Tier> {
        &self.tiers[0]
    }

    pub(super) fn put_log(&self, name: &str, bytes: &[u8]) {
        if let Some(log) = &self.fast().log {
            let file = expect(log.create(name));
            expect(file.append(bytes));
        }
    }

    pub(super) fn put_table(&self, name: &str, bytes: &[u8]) {
        let tables = &self.fast().tables;
        let mut object = expect(tables.create(name, bytes.len() as u64));
        expect(object.append(bytes));
        expect(object.finish());
    }

    /// Opens the store as it is: strictly, and if that fails, tolerantly. A store that opens must
    /// be readable and writable without a panic.
    ///
    /// # Errors
    /// What kept it from opening tolerantly.
    pub(super) fn open_and_read(&self) -> crate::Result<()> {
        let mut problem = crate::Error::Closed;
        for recovery in [RecoveryMode::Strict, RecoveryMode::Tolerant] {
            let mut options = tiny_options();
            options.recovery = recovery;
            let mut builder = Db::builder(options)
                .executor(Arc::new(Stepped::new(1)))
                .clock(Arc::new(ManualClock::default()));
            for (tier, medium) in self.media.iter().enumerate() {
                builder = builder.medium(tier, Arc::clone(medium));
            }
            match builder.open() {
                Ok(db) => {
                    let _ = db.put("key", "value");
                    let _ = db.iter().count();
                    let _ = db.flush();
                    return db.close();
                }
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }
}

/// The edit that a new store's manifest begins with.
pub(super) fn first_edit() -> VersionEdit {
    VersionEdit {
        created: vec![KeyspaceMeta {
            id: 0,
            name: Bytes::from_static(b"default"),
            last_fast_level: 2,
        }],
        next_file: Some(10),
        flushed_through: vec![(0, 0)],
        ..VersionEdit::default()
    }
}

/// Putting the store together is not what is tested.
#[allow(clippy::panic, reason = "a fuzz target reports by panicking")]
fn expect<T>(result: crate::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("memory refuses: {error}"))
}

/// Where a corpus lies.
#[cfg(test)]
pub(super) fn corpus_dir(target: &str) -> std::path::PathBuf {
    std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}
