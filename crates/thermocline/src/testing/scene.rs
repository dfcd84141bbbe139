//! A small store in which the test makes every move. The tests of races play in it.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::api::{Db, Keyspace, Snapshot};
use crate::clock::ManualClock;
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::executor::Stepped;
use crate::ids::KeyspaceId;
use crate::key::{KeyRange, MAX_SEQ};
use crate::levels::{Manual, Meant, Plan};
use crate::metrics::Refusal;
use crate::options::{Options, TierOptions};
use crate::points::Points;
use crate::read::{Moment, Superversion};
use crate::storage::{Medium, Memory};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};
use crate::table::{HashedKey, ReadTrace};
use crate::tier::Reservation;
use crate::value::Value;

/// Length of every value: ten records are worth a table, and too few to fill the promotion cache.
pub(crate) const VALUE: usize = 500;

/// *f* of every scene.
pub(crate) const F: usize = 2;

/// The slow level that scenes use.
pub(crate) const SLOW: usize = 6;

/// More accesses than RALT needs to learn anything, with so small a fast tier.
const MOST_ACCESSES: u32 = 1 << 20;

/// Keys of ten records.
pub(crate) const KEYS: [&str; 10] = [
    "k00", "k01", "k02", "k03", "k04", "k05", "k06", "k07", "k08", "k09",
];

/// What a store should hold: the version of each key.
pub(crate) type Model = BTreeMap<String, String>;

/// A store in which nothing happens by itself.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) db: Db,
    pub(crate) points: Points,
    pub(crate) stepped: Arc<Stepped>,
    medium: Arc<dyn Medium>,
}

/// Tables of 16 KiB, and levels so large that no compaction is due by itself.
pub(crate) fn options() -> Options {
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast")
            .capacity(4 << 20)
            .block_size(1024),
        TierOptions::slow("/slow").block_size(2048),
    ]);
    options.memory = 8 << 20;
    options.memtable_size = Some(40 << 10);
    options.table_size = Some(16 << 10);
    (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (100, 200, 300);
    options.seed = Some(1);
    options
}

/// Opens a store on `medium` for all tiers, whose work and time are the caller's to move.
pub(crate) fn open_stepped(
    medium: &Arc<dyn Medium>,
    options: Options,
    stepped: &Arc<Stepped>,
    clock: Arc<ManualClock>,
    points: &Points,
) -> Db {
    let tiers = options.tiers.len();
    let builder = Db::builder(options)
        .executor(Arc::clone(stepped) as Arc<_>)
        .clock(clock)
        .points(points.clone());
    let builder = (0..tiers).fold(builder, |b, tier| b.medium(tier, Arc::clone(medium)));
    builder.open().unwrap()
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: Options) -> Self {
        Self::on(Arc::new(Memory::new()), options)
    }

    pub(crate) fn on(medium: Arc<dyn Medium>, options: Options) -> Self {
        let points = Points::default();
        let stepped = Arc::new(Stepped::new(1));
        // What is asserted of time must not depend on what else the machine does.
        let clock = Arc::new(ManualClock::default());
        let db = open_stepped(&medium, options, &stepped, clock, &points);
        Self {
            db,
            points,
            stepped,
            medium,
        }
    }

    /// A scene with all `keys` at the version `old`, on the slow tier alone.
    pub(crate) fn with_old(keys: &[&str]) -> Self {
        let scene = Self::new();
        scene.put_all(keys, "old");
        scene.to_slow();
        scene
    }

    /// Closes the store and opens it again with `options`.
    pub(crate) fn reopen(self, options: Options) -> Self {
        self.db.close().unwrap();
        Self::on(Arc::clone(&self.medium), options)
    }

    pub(crate) fn engine(&self) -> Arc<Engine> {
        Arc::clone(Keyspace::engine(&self.db))
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        self.db.tree()
    }

    pub(crate) fn put(&self, key: &str, version: &str) {
        self.db.put(key, value(version)).unwrap();
    }

    pub(crate) fn put_all(&self, keys: &[&str], version: &str) {
        keys.iter().for_each(|key| self.put(key, version));
    }

    /// Writes `records` that do not compress, a hundred to a table of L0.
    pub(crate) fn fill_l0(&self, records: usize) {
        for key in 1..=records {
            let value: [u8; VALUE] = rand::random();
            self.db.put(format!("{key:05}"), value).unwrap();
            if key % 100 == 0 {
                self.freeze();
                self.drain();
            }
        }
    }

    pub(crate) fn delete(&self, key: &str) {
        self.db.delete(key).unwrap();
    }

    /// The version of `key` that a read finds now.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        version(self.db.get(key).unwrap())
    }

    /// Runs all background work that is queued.
    pub(crate) fn drain(&self) {
        self.stepped.drain();
    }

    /// Does `act` while no compaction begins by itself: all places are taken.
    pub(crate) fn without_compactions(&self, act: impl FnOnce()) {
        let engine = self.engine();
        let threads = engine.options.compaction_threads;
        (0..threads).for_each(|_| engine.background.compactions.begin());
        act();
        (0..threads).for_each(|_| engine.background.compactions.end());
    }

    /// Freezes the memtable; its flush is queued, and not run.
    pub(crate) fn freeze(&self) {
        self.engine().freeze_all().unwrap();
    }

    /// What a compaction by hand would take of level `from`.
    pub(crate) fn pick(&self, from: usize, range: &KeyRange, is_urgent: bool) -> Option<Plan> {
        self.pick_in(self.tree(), from, range, is_urgent)
    }

    /// As [`Scene::pick`], in the keyspace `tree`.
    pub(crate) fn pick_in(
        &self,
        tree: &Tree,
        from: usize,
        range: &KeyRange,
        is_urgent: bool,
    ) -> Option<Plan> {
        let state = tree.state.lock();
        tree.with_picker(&self.engine(), &state, is_urgent, |picker| {
            match picker.pick_range(from, &Meant::all_of(range)) {
                Manual::Start(plan) => Some(*plan),
                Manual::Wait | Manual::Done => None,
            }
        })
    }

    /// Starts `plan` without running it.
    pub(crate) fn start(&self, plan: Plan) {
        self.engine().start(self.tree(), plan).unwrap();
    }

    /// Brings all of level `from`, one above f, down by one.
    pub(crate) fn lower(&self, from: usize) {
        while let Some(plan) = self.pick(from, &everything(), true) {
            self.start(plan);
            self.drain();
        }
    }

    /// Brings everything down to level f.
    pub(crate) fn to_last_fast(&self) {
        self.db.flush().unwrap();
        (0..F).for_each(|level| self.lower(level));
    }

    /// A crossing of what comes first on level f.
    pub(crate) fn crossing(&self) -> Plan {
        self.pick(F, &everything(), true).expect("a table to cross")
    }

    /// Crosses every table that lies on level f now, once.
    pub(crate) fn cross(&self) {
        let pinned = self.tree().pin();
        for table in pinned.version.levels[F].tables.iter() {
            let plan = self.pick(F, &table.meta.range, true);
            self.start(plan.expect("a table to cross"));
            self.drain();
        }
    }

    /// Crosses what comes first on level f to level `to`, where nothing lies below the keys.
    pub(crate) fn cross_to(&self, to: usize) {
        self.cross_as(self.crossing(), to);
    }

    /// Makes `plan` a crossing to level `to`, as above, and runs it.
    pub(crate) fn cross_as(&self, mut plan: Plan, to: usize) {
        plan.to = to;
        plan.outputs[0].level = to as u8;
        plan.lower = Vec::new();
        let before = self.tree().pin().waiting.crossings;
        self.start(plan);
        while self.tree().pin().waiting.crossings == before {
            assert!(self.stepped.step(), "the crossing has failed");
        }
    }

    /// Brings everything down to the slow tier.
    pub(crate) fn to_slow(&self) {
        self.to_last_fast();
        self.cross();
    }

    /// Makes `keys` hot.
    pub(crate) fn heat(&self, keys: &[&str]) {
        self.heat_in(self.tree().id, keys);
    }

    /// Makes `keys` of the keyspace `id` hot.
    pub(crate) fn heat_in(&self, id: KeyspaceId, keys: &[&str]) {
        let engine = self.engine();
        let ralt = &engine.hotrap().ralt;
        for key in keys {
            ralt.log(id, key.as_bytes(), VALUE, 1);
        }
        let is_hot = |key: &&str| {
            let key = Bytes::copy_from_slice(key.as_bytes());
            let range = KeyRange {
                first: key.clone(),
                last: key.clone(),
            };
            ralt.hot_keys(id, &range).is_hot(&key)
        };
        // Accesses may wait in a buffer until it is full.
        let mut others = 0;
        while !keys.iter().all(is_hot) {
            if ralt.log(id, b"zzz", 1, 1) {
                while ralt.work() {}
            }
            others += 1;
            assert!(others < MOST_ACCESSES, "{keys:?} do not become hot");
        }
    }

    /// From now on only what was made hot counts as hot, as it does once the fast tier is full and
    /// more was read than is tracked.
    pub(crate) fn be_selective(&self) {
        let engine = self.engine();
        engine
            .hotrap()
            .has_spare_room
            .store(false, Ordering::Relaxed);
        let (ralt, id) = (&engine.hotrap().ralt, self.tree().id);
        let mut others = 0;
        while ralt.is_generous() {
            if ralt.log(id, format!("other{others}").as_bytes(), VALUE, 1) {
                while ralt.work() {}
            }
            others += 1;
            assert!(others < MOST_ACCESSES, "all that is read counts as hot");
        }
    }

    /// Brings what was logged so far into tables of access records.
    pub(crate) fn track(&self) {
        let engine = self.engine();
        let (ralt, id) = (&engine.hotrap().ralt, self.tree().id);
        while !ralt.log(id, b"zzz", 1, 1) {}
        while ralt.work() {}
    }

    /// Promotes what the cache holds now.
    pub(crate) fn promote(&self) -> Result<()> {
        self.engine()
            .hotrap()
            .promote(&self.engine(), self.tree())
            .map(|_| ())
    }

    /// The version of `key` in the promotion caches.
    pub(crate) fn cached(&self, key: &str) -> Option<String> {
        let record = self.tree().pin().waiting.get(key.as_bytes(), MAX_SEQ);
        version(record.map(|record| record.value))
    }

    /// Reads `keys` from the slow tier into the promotion cache.
    pub(crate) fn read_into_cache(&self, keys: &[&str]) {
        for key in keys {
            assert!(self.get(key).is_some());
            assert!(self.cached(key).is_some(), "{key} is not admitted");
        }
    }

    /// Levels that hold a version of `key`, with the newest there.
    pub(crate) fn levels_of(&self, key: &str) -> Vec<(u8, String)> {
        let pinned = self.tree().pin();
        let mut found = Vec::new();
        for table in pinned.runs().filter_map(|run| run.find(key.as_bytes())) {
            let record = table.table().unwrap().get(
                &HashedKey::new(key.as_bytes()),
                MAX_SEQ,
                &mut ReadTrace::default(),
            );
            if let Some(record) = record.unwrap() {
                let put = record.kind == crate::key::Kind::Put;
                let version = version(put.then_some(record.value));
                found.push((table.meta.level, version.unwrap_or_else(|| "gone".into())));
            }
        }
        found
    }

    /// Takes all space of the fast tier that a job could get.
    pub(crate) fn take_all_space(&self) -> Reservation {
        let engine = self.engine();
        let free = engine.fast().free_for_jobs();
        engine.fast().reserve(free).unwrap()
    }

    /// How often the promotion cache refused a record for `why`.
    pub(crate) fn refused(&self, why: Refusal) -> u64 {
        self.engine().hotrap().promotions.refused[why as usize].load(Ordering::Relaxed)
    }

    /// A read that pins the store's state and takes its time now.
    pub(crate) fn reader(&self) -> Reader {
        Reader {
            scene: self.clone(),
            pinned: self.tree().pin(),
            moment: Moment::Latest(self.engine().visible()),
        }
    }

    /// A read of `snapshot` that pins the store's state now.
    pub(crate) fn reader_of(&self, snapshot: &Snapshot) -> Reader {
        Reader {
            moment: Moment::Past(snapshot.seq()),
            ..self.reader()
        }
    }

    /// Lets `action` happen when `point` is reached next.
    pub(crate) fn at(
        &self,
        point: &'static str,
        action: impl FnOnce(&Scene) -> Result<()> + Send + 'static,
    ) -> Hook {
        let has_run = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&has_run);
        let once = Mutex::new(Some((self.clone(), action)));
        self.points.set(point, move || {
            let Some((scene, action)) = once.lock().take() else {
                return Ok(());
            };
            mark.store(true, Ordering::Relaxed);
            action(&scene)
        });
        Hook { point, has_run }
    }

    /// Checks that every way of reading finds exactly `model` among `keys`.
    pub(crate) fn check(&self, model: &Model, keys: &[&str], at: &str) {
        let wanted: Vec<_> = keys.iter().map(|key| model.get(*key).cloned()).collect();
        let single: Vec<_> = keys.iter().map(|key| self.get(key)).collect();
        assert_eq!(single, wanted, "{at}: get");
        let many = self.db.multi_get(keys).unwrap();
        let many: Vec<_> = many.into_iter().map(version).collect();
        assert_eq!(many, wanted, "{at}: multi_get");
        check_scan(self.db.iter(), model, at);
    }

    /// As [`Scene::check`], of `snapshot`.
    pub(crate) fn check_snapshot(
        &self,
        snapshot: &Snapshot,
        model: &Model,
        keys: &[&str],
        at: &str,
    ) {
        let wanted: Vec<_> = keys.iter().map(|key| model.get(*key).cloned()).collect();
        let single: Vec<_> = keys
            .iter()
            .map(|key| version(snapshot.get(key).unwrap()))
            .collect();
        assert_eq!(single, wanted, "{at}: get of a snapshot");
        let many = snapshot.multi_get_in(&self.db, keys).unwrap();
        let many: Vec<_> = many.into_iter().map(version).collect();
        assert_eq!(many, wanted, "{at}: multi_get of a snapshot");
        check_scan(snapshot.iter(), model, at);
        let backwards = snapshot.iter().rev();
        let backwards: Vec<_> = backwards.map(|record| record.unwrap().0).collect();
        assert!(
            backwards
                .iter()
                .rev()
                .eq(model.keys().map(String::as_bytes)),
            "{at}: a snapshot backwards"
        );
    }
}

fn check_scan(range: crate::read::Range, model: &Model, at: &str) {
    let mut left: Vec<_> = model.iter().collect();
    // From both ends in turn, so that the ends meet.
    let mut range = range;
    for turn in 0.. {
        let (found, wanted) = if turn % 2 == 0 && !left.is_empty() {
            (range.next(), Some(left.remove(0)))
        } else {
            (range.next_back(), left.pop())
        };
        let found = found.map(|record| record.unwrap());
        let found = found.map(|(key, value)| (key, version(Some(value)).unwrap()));
        let found = found.as_ref().map(|(key, version)| (&key[..], version));
        assert_eq!(found, wanted.map(|(k, v)| (k.as_bytes(), v)), "{at}: scan");
        if found.is_none() {
            return;
        }
    }
}

/// A read under way: it has pinned the store's state and goes on later.
#[derive(Debug)]
pub(crate) struct Reader {
    scene: Scene,
    pub(crate) pinned: Arc<Superversion>,
    moment: Moment,
}

impl Reader {
    /// Reads `key` by what was pinned.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let (engine, tree) = (self.scene.engine(), self.scene.tree());
        let found = engine.get_in(
            tree,
            &self.pinned,
            key.as_bytes(),
            self.moment,
            &mut ReadTrace::default(),
        );
        version(found.unwrap())
    }
}

/// Makes sure that what was to happen at a point did happen.
#[must_use]
pub(crate) struct Hook {
    point: &'static str,
    has_run: Arc<AtomicBool>,
}

impl Hook {
    /// Whether the point was reached.
    pub(crate) fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        let unwinds = std::thread::panicking();
        assert!(unwinds || self.has_run(), "{} is not reached", self.point);
    }
}

/// The range of all keys.
pub(crate) fn everything() -> KeyRange {
    range("", "~")
}

/// The range of keys from `first` through `last`.
pub(crate) fn range(first: &str, last: &str) -> KeyRange {
    KeyRange {
        first: Bytes::copy_from_slice(first.as_bytes()),
        last: Bytes::copy_from_slice(last.as_bytes()),
    }
}

/// A model with all `keys` at `version`.
pub(crate) fn model(keys: &[&str], version: &str) -> Model {
    let record = |key: &&str| ((*key).to_owned(), version.to_owned());
    keys.iter().map(record).collect()
}

/// The value that stands for `version`.
pub(crate) fn value(version: &str) -> Vec<u8> {
    let mut value = format!("{version}/").into_bytes();
    value.resize(VALUE, b'.');
    value
}

/// The version that `value` stands for.
pub(crate) fn version(value: Option<Value>) -> Option<String> {
    let value = value?;
    let end = value.iter().position(|byte| *byte == b'/').unwrap();
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}
