//! Mixed load for a long time, in weather: random disk faults that pass, failed syncs after which
//! the store is reopened, and checkpoints and reopenings in between. Every answer is checked.
//! Memory stays flat, files stay within the fast tier's capacity (I8), and no write takes over a
//! second without a reason.

mod medium;
mod user;
mod watch;
mod weather;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::Disk;
use thermocline::{Db, Options, Placement, TierOptions};

use self::medium::Outdoors;
use self::user::{Done, Scene, User};
use self::watch::Watch;
use self::weather::{Sky, Weather};
use super::Harness;
use crate::cases::{self, Plan};
use crate::client::{Client, keyspaces};
use crate::verdict::{Promise, Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "soak",
    about: "mixed load in passing faults for 10 seconds, or for --minutes",
    small: 1,
    long: 6,
    run,
};

/// A soak without `--minutes`.
const SHORT: Duration = Duration::from_secs(10);

/// How often the weather may change and the machine is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Users of the store.
const USERS: u8 = 3;

fn run(plan: &Plan) -> Verdict {
    let mut plan = plan.clone();
    let length = plan.limit.take();
    if length.is_some() {
        plan.cases = 1;
    }
    // One case at a time, because memory and time are measured for the whole process.
    plan.jobs = 1;
    cases::run(HARNESS.name, &plan, |seed, tally| {
        let mut soak = Soak::new(&plan, seed, length)?;
        let ended = soak.run();
        soak.count(tally);
        ended?;
        match soak.sky.planted() {
            0 => Err("no fault was planted".into()),
            _ => Ok(()),
        }
    })
}

struct Soak {
    options: Options,
    copy: Vec<PathBuf>,
    length: Duration,
    /// The most time between two openings.
    epoch: Duration,
    sky: Arc<Sky>,
    done: Done,
    starved: AtomicU64,
    users: Vec<User>,
    watch: Watch,
    rng: SmallRng,
    openings: u64,
    checkpoints: u64,
    counted: Vec<(&'static str, u64)>,
    /// Removed at the end, unless the tiers' directories were given.
    _home: tempfile::TempDir,
}

impl Soak {
    fn new(plan: &Plan, seed: u64, length: Option<Duration>) -> Result<Self, Violation> {
        let home = plan.places.home()?;
        let place = |given: &Option<PathBuf>, name: &str| {
            given.clone().unwrap_or_else(|| home.path().join(name))
        };
        let tiers = [
            place(&plan.places.fast, "fast"),
            place(&plan.places.slow, "slow"),
        ];
        // A quarter of what users write stays within the fast tier.
        let (keys, capacity, epoch) = match length {
            Some(_) => (20_000, 48 << 20, Duration::from_secs(120)),
            None => (1_000, 3 << 20, Duration::from_secs(3)),
        };
        let mut options = Options::with_tiers(vec![
            TierOptions::fast(tiers[0].join("store")).capacity(capacity),
            TierOptions::slow(tiers[1].join("store")),
        ]);
        options.memory = 32 << 20;
        options.memtable_size = Some(capacity / 48);
        let watch = Watch::new(plan.places.series.as_deref(), &options.tiers[0].path);
        let mut rng = SmallRng::seed_from_u64(seed);
        let users = (0..USERS).map(|index| {
            let client = Client { seed, index, keys };
            User::new(client, SmallRng::seed_from_u64(rng.random()))
        });
        let users = users.collect();
        Ok(Self {
            copy: tiers.iter().map(|tier| tier.join("copy")).collect(),
            options,
            length: length.unwrap_or(SHORT),
            epoch,
            sky: Arc::new(Sky::new(seed)),
            done: Done::default(),
            starved: AtomicU64::new(0),
            users,
            watch: watch.map_err(|error| format!("the series: {error}"))?,
            rng,
            openings: 0,
            checkpoints: 0,
            counted: Vec::new(),
            _home: home,
        })
    }

    fn run(&mut self) -> Result<(), Violation> {
        let begun = Instant::now();
        while begun.elapsed() < self.length {
            let db = self.open()?;
            let until = Instant::now()
                + self
                    .epoch
                    .min(self.length - begun.elapsed().min(self.length));
            self.work(&db, begun, until)?;
            self.take_down(&db)?;
        }
        let db = self.open()?;
        self.check_all(&db)?;
        self.watch.check_memory()?;
        db.close()
            .map_err(|error| format!("the last close: {error}"))?;
        Ok(())
    }

    /// Opens the store in calm weather, and settles which writes of unknown outcome it holds.
    fn open(&mut self) -> Result<Db, Violation> {
        self.sky.set(Weather::Calm);
        self.openings += 1;
        // Now and then records are placed by their level.
        let mut options = self.options.clone();
        if self.rng.random_bool(0.1) {
            options.placement = Placement::ByLevel;
        }
        let mut builder = Db::builder(options);
        for tier in 0..self.options.tiers.len() {
            builder = builder.medium(
                tier,
                Arc::new(Outdoors {
                    disk: Disk::default(),
                    sky: Arc::clone(&self.sky),
                }),
            );
        }
        let db = builder.open().map_err(|error| format!("open: {error}"))?;
        for user in &mut self.users {
            let key = user.client.counter();
            let found = db.get(key).map_err(|error| format!("counter: {error}"))?;
            let number = found.as_deref().and_then(crate::client::number_of);
            if let Some(unknown) = user.unknown.take()
                && number == Some(unknown)
            {
                user.model.apply(user.client, unknown);
            }
        }
        if self.openings.is_multiple_of(5) {
            self.check_all(&db)?;
        }
        Ok(db)
    }

    /// Compares all records, one by one, because they do not fit into the memory that must stay
    /// flat.
    fn check_all(&self, db: &Db) -> Result<(), Violation> {
        let keyspaces = keyspaces(db).map_err(|error| format!("keyspaces: {error}"))?;
        for user in &self.users {
            for (index, keyspace) in (0u8..).zip(&keyspaces) {
                let range = keyspace.prefix(user.client.prefix());
                user.model.check_range(user.client, index, range)?;
            }
        }
        Ok(())
    }

    /// Users work in changing weather until the epoch ends or a sync fails.
    fn work(&mut self, db: &Db, begun: Instant, until: Instant) -> Result<(), Violation> {
        let keyspaces = keyspaces(db).map_err(|error| format!("keyspaces: {error}"))?;
        let stop = AtomicBool::new(false);
        let syncs_failed = self.sky.syncs_failed();
        let scene = Scene {
            db,
            keyspaces: &keyspaces,
            sky: &self.sky,
            done: &self.done,
            starved: &self.starved,
            stop: &stop,
            begun,
        };
        let (users, watch, rng) = (&mut self.users, &mut self.watch, &mut self.rng);
        let (sky, done, openings) = (&self.sky, &self.done, self.openings);
        std::thread::scope(|scope| {
            let working: Vec<_> = users
                .iter_mut()
                .map(|user| {
                    let scene = &scene;
                    scope.spawn(move || user.work(scene))
                })
                .collect();
            let mut watched = Ok(());
            let mut sampled = Instant::now();
            while watched.is_ok()
                && Instant::now() < until
                && sky.syncs_failed() == syncs_failed
                && working.iter().all(|user| !user.is_finished())
            {
                let slept = Instant::now();
                std::thread::sleep(TICK);
                let late = slept.elapsed().saturating_sub(TICK);
                self.starved
                    .fetch_add(late.as_micros() as u64, Ordering::Relaxed);
                if let Some(weather) = change(rng) {
                    sky.set(weather);
                }
                if sampled.elapsed() >= Duration::from_secs(1) {
                    sampled = Instant::now();
                    watched = watch.sample(&db.metrics(), sky, done, openings);
                }
            }
            sky.set(Weather::Calm);
            stop.store(true, Ordering::Relaxed);
            let mut ended = watched;
            for user in working {
                let user = user
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                ended = ended.and(user);
            }
            ended
        })
    }

    /// Makes a checkpoint and opens it, and closes the store.
    fn take_down(&mut self, db: &Db) -> Result<(), Violation> {
        let is_poisoned = self.users.iter().any(|user| user.unknown.is_some());
        if is_poisoned || self.sky.syncs_failed() > 0 && db.sync().is_err() {
            // Writing is over (I9). What was acknowledged has been handed to the system.
            let _ = db.close();
            self.count_metrics(db);
            return Ok(());
        }
        for path in &self.copy {
            if path.exists() {
                std::fs::remove_dir_all(path)
                    .map_err(|error| format!("old checkpoint: {error}"))?;
            }
        }
        db.checkpoint(&self.copy)
            .map_err(|error| format!("checkpoint in calm weather: {error}"))?;
        self.checkpoints += 1;
        if self.checkpoints % 4 == 1 {
            let mut options = self.options.clone();
            options.create_if_missing = false;
            for (tier, path) in options.tiers.iter_mut().zip(&self.copy) {
                tier.path.clone_from(path);
            }
            let copy = Db::open(options).map_err(|error| format!("open checkpoint: {error}"))?;
            self.check_all(&copy)?;
        }
        self.count_metrics(db);
        db.close()
            .map_err(|error| Violation::new(Promise::Alive, format!("close: {error}")))
    }

    fn count_metrics(&mut self, db: &Db) {
        let metrics = db.metrics();
        self.counted.push(("flushes", metrics.flushes));
        let compactions = metrics.compactions.iter().map(|c| c.jobs).sum();
        self.counted.push(("compactions", compactions));
        if let Some(hotrap) = metrics.hotrap {
            self.counted
                .push(("evictions of access records", hotrap.ralt.evictions));
        }
    }

    fn count(&self, tally: &mut Tally) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (what, count) in [
            ("reads", load(&self.done.reads)),
            ("writes", load(&self.done.writes)),
            ("scans", load(&self.done.scans)),
            ("refused calls", load(&self.done.refused)),
            ("calls over a second", load(&self.done.slow)),
            ("faults planted", self.sky.planted()),
            ("syncs failed", self.sky.syncs_failed()),
            ("openings", self.openings),
            ("checkpoints", self.checkpoints),
        ] {
            tally.add(what, count);
        }
        for (what, count) in &self.counted {
            tally.add(what, *count);
        }
    }
}

/// The weather from now on, if it changes.
fn change(rng: &mut SmallRng) -> Option<Weather> {
    match rng.random_range(0..1000) {
        0..100 => Some(Weather::Calm),
        100..120 => Some(Weather::Errors),
        120..140 => Some(Weather::Full),
        140..160 => Some(Weather::ShortWrites),
        160..163 => Some(Weather::SyncFails),
        _ => None,
    }
}
