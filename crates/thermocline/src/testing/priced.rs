//! A store with prices, whose clock the test turns.

use std::time::Duration;

use crate::api::Db;
use crate::clock::ManualClock;
use crate::executor::Stepped;
use crate::options::{Options, Placement, TierOptions};
use crate::points::Points;
use crate::storage::{Medium, Memory};
use crate::sync::Arc;
use crate::testing::scene::open_stepped;
use crate::version::TableHandle;

const VALUE: usize = 500;
pub(crate) const RECORDS: u32 = 9000;

/// Of a first tier at 0.5 $/GB/month and a last one at 0.1.
pub(crate) const PRICES: [f64; 2] = [0.5, 0.1];

/// A store of some 5 MB in tables of 16 KiB, whose clock the test turns. Every read is one of a
/// device.
pub(crate) struct Store {
    pub(crate) db: Db,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) stepped: Arc<Stepped>,
    pub(crate) points: Points,
    pub(crate) medium: Arc<dyn Medium>,
}

pub(crate) fn options() -> Options {
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast")
            .capacity(12 << 20)
            .price(PRICES[0]),
        TierOptions::slow("/slow").price(PRICES[1]),
    ]);
    options.placement = Placement::ByTable;
    options.memory = 8 << 20;
    options.memtable_size = Some(32 << 10);
    options.table_size = Some(16 << 10);
    options.block_cache = Some(0);
    options.record_cache = Some(0);
    options.seed = Some(1);
    options
}

pub(crate) fn key(number: u32) -> String {
    format!("key{number:05}")
}

impl Store {
    pub(crate) fn on(medium: Arc<dyn Medium>, options: Options) -> Self {
        let (clock, stepped) = (Arc::new(ManualClock::default()), Arc::new(Stepped::new(1)));
        let points = Points::default();
        let db = open_stepped(&medium, options, &stepped, Arc::clone(&clock), &points);
        Self {
            db,
            clock,
            stepped,
            points,
            medium,
        }
    }

    /// A store with all records in tables below L0, old enough to move.
    pub(crate) fn filled() -> Self {
        Self::filled_with(options())
    }

    pub(crate) fn filled_with(options: Options) -> Self {
        Self::on(Arc::new(Memory::new()), options).fill()
    }

    pub(crate) fn fill(self) -> Self {
        let store = self;
        for number in 0..RECORDS {
            // In an order that has each flush meet all tables below.
            let number = number * 7 % RECORDS;
            store.db.put(key(number), value(number)).unwrap();
        }
        store.db.compact_range::<&[u8]>(..).unwrap();
        store.clock.advance(Duration::from_secs(60));
        store.settle();
        store
    }

    pub(crate) fn reopen(self, options: Options) -> Self {
        self.db.close().unwrap();
        Self::on(Arc::clone(&self.medium), options)
    }

    /// Ends the epoch, and does all that is due.
    pub(crate) fn settle(&self) {
        self.clock.advance(Duration::from_secs(1));
        let engine = self.db.engine();
        engine.placement.tick(engine, engine.clock.now());
        self.db.wait_idle().unwrap();
    }

    /// Reads each of `numbers` once a second, for so many seconds.
    pub(crate) fn read(&self, numbers: std::ops::Range<u32>, seconds: u32) {
        for _ in 0..seconds {
            for number in numbers.clone() {
                self.check(number);
            }
            self.settle();
        }
    }

    pub(crate) fn check(&self, number: u32) {
        let found = self.db.get(key(number)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(number)[..]), "{number}");
    }

    pub(crate) fn check_all(&self) {
        (0..RECORDS).for_each(|number| self.check(number));
    }

    /// The tier of the table below L0 that holds a record.
    pub(crate) fn tier_of(&self, number: u32) -> u8 {
        self.table_of(number).meta.tier
    }

    pub(crate) fn table_of(&self, number: u32) -> Arc<TableHandle> {
        let version = self.db.tree().version();
        let mut levels = version.levels.iter().skip(1);
        let found = levels.find_map(|level| level.find(key(number).as_bytes()));
        Arc::clone(found.expect("a table"))
    }

    pub(crate) fn share_of_target(&self, target: f64) -> f64 {
        self.db.cost().unwrap().now / target
    }
}

/// What does not compress.
pub(crate) fn value(number: u32) -> Vec<u8> {
    let mut rng = <rand::rngs::SmallRng as rand::SeedableRng>::seed_from_u64(number.into());
    let mut value = vec![0; VALUE];
    rand::RngExt::fill(&mut rng, &mut value[..]);
    value
}
