//! Tests of RALT as a whole.

mod copying;
mod eviction;
mod faults;
mod inspection;
mod keyspaces;
mod model;
mod outlook;
mod reopening;
mod sessions;
mod simulation;
mod state_log;
mod weights;

use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::limits::Cut;
use super::version::Version;
use super::{Ralt, RaltParts};
use crate::ids::KeyspaceId;
use crate::key::KeyRange;
use crate::options::{HotRapOptions, TierOptions};
use crate::points::Points;
use crate::storage::{Medium, Memory};
use crate::sync::Arc;
use crate::tier::Tier;
use crate::version::edit::PlacedBy;

const DATABASE: u128 = 0xda7a;
const CAPACITY: u64 = 1 << 20;
/// The keyspaces that there are.
const KEYSPACES: Range<KeyspaceId> = 0..10;

/// A RALT with the tier and the medium below it.
struct Fixture {
    fast: Arc<Tier>,
    medium: Arc<dyn Medium>,
    points: Points,
    ralt: Ralt,
}

fn dir() -> PathBuf {
    PathBuf::from("fast/ralt")
}

fn range(first: &[u8], last: &[u8]) -> KeyRange {
    KeyRange {
        first: Bytes::copy_from_slice(first),
        last: Bytes::copy_from_slice(last),
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("user{number:08}").into_bytes()
}

fn parts(
    database: u128,
    before: Option<PlacedBy>,
    medium: Arc<dyn Medium>,
    capacity: u64,
    options: HotRapOptions,
) -> RaltParts {
    let tables = Memory::new().table_store(Path::new("fast"), true).unwrap();
    let tier = TierOptions::fast("fast").capacity(capacity);
    RaltParts {
        database,
        options,
        fast: Arc::new(Tier::new(0, tier, tables, None)),
        medium,
        path: dir(),
        points: Points::default(),
        keyspaces: KEYSPACES.collect(),
        reads_only: false,
        before,
    }
}

impl Fixture {
    fn new() -> Self {
        Self::on(Arc::new(Memory::new()), CAPACITY, HotRapOptions::default())
    }

    fn on(medium: Arc<dyn Medium>, capacity: u64, options: HotRapOptions) -> Self {
        Self::of(DATABASE, None, medium, capacity, options)
    }

    fn of(
        database: u128,
        before: Option<PlacedBy>,
        medium: Arc<dyn Medium>,
        capacity: u64,
        options: HotRapOptions,
    ) -> Self {
        Self::open(parts(database, before, medium, capacity, options))
    }

    fn open(parts: RaltParts) -> Self {
        let (fast, medium) = (Arc::clone(&parts.fast), Arc::clone(&parts.medium));
        let points = parts.points.clone();
        let ralt = Ralt::open(parts);
        // As much as the tests read from, and more than any hot set.
        ralt.set_data(10 * fast.options.capacity);
        Self {
            fast,
            medium,
            points,
            ralt,
        }
    }

    /// Logs one access, and does the work that it makes due.
    fn read(&self, keyspace: KeyspaceId, number: u64, value_len: usize) {
        if self.ralt.log(keyspace, &key(number), value_len, 1) {
            self.work();
        }
    }

    /// Works until nothing is due.
    fn work(&self) {
        let mut steps = 0;
        while self.ralt.work() {
            steps += 1;
            assert!(steps < 10_000, "the work does not end");
            assert!(self.ralt.shared.version.load().levels.is_kept_up());
        }
    }

    /// Brings everything that was logged into tables.
    fn flush(&self) {
        let files = self.ralt.shared.files.as_ref().unwrap();
        let mut worker = self.ralt.shared.worker.lock();
        let chunks = self.ralt.shared.buffers.take_all();
        self.ralt.shared.flush(files, &mut worker, chunks).unwrap();
    }

    /// The hot ones among `numbers`, in order.
    fn hot(&self, keyspace: KeyspaceId, numbers: Range<u64>) -> Vec<u64> {
        let all = range(&key(numbers.start), &key(numbers.end));
        let mut hot = self.ralt.hot_keys(keyspace, &all);
        numbers.filter(|number| hot.is_hot(&key(*number))).collect()
    }

    /// Bytes of the files in RALT's directory.
    fn bytes_on_disk(&self) -> u64 {
        let tables = self.medium.table_store(&dir(), true).unwrap();
        tables.list().unwrap().iter().map(|file| file.len).sum()
    }
}

impl Ralt {
    fn begin_full_merge(&self) {
        let files = self.shared.files.as_ref().unwrap();
        let mut worker = self.shared.worker.lock();
        self.shared.begin_full_merge(files, &mut worker);
    }

    /// Merges all tables into one run.
    pub(crate) fn merge_all(&self) {
        self.begin_full_merge();
        while self.work() {}
    }

    /// From now on what was read more than once is hot, however long ago, and nothing else is.
    /// Merges have shown that it is worth the fast tier.
    pub(crate) fn want_two_reads(&self) {
        self.shared.worker.lock().reuse = outlook::read_again();
        let mut hot = Cut::NONE;
        // The rank for records that were read once.
        hot.ranks[0] = f64::MAX;
        let mut version = Version::clone(&self.shared.version.load());
        (version.limits.hot, version.limits.generation) = (hot, 1);
        self.shared.put_in_force(version);
    }
}

impl Fixture {
    fn is_young(&self) -> bool {
        self.ralt.shared.version.load().is_young()
    }

    /// Has the next steps merge all tables into one run.
    fn begin_full_merge(&self) {
        self.ralt.begin_full_merge();
    }

    /// Merges all tables into one run.
    fn merge_all(&self) {
        self.begin_full_merge();
        self.work();
    }
}
