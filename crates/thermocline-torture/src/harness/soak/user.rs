//! A client of the soak. It reads a moving hotspot and skewed keys, writes, deletes, scans, and
//! holds snapshots. Each answer is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::SmallRng;
use thermocline::{Db, Durability, Error, Keyspace, Snapshot};

use super::weather::Sky;
use crate::client::{Client, KEYSPACES, Model, Place};
use crate::verdict::{Promise, Violation, each_with_its_answer};

/// A call that takes longer than this needs a reason.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// How often the hotspot moves.
const MOVES: Duration = Duration::from_secs(20);

/// For how many steps a snapshot is held.
const HELD: u32 = 400;

/// What users have done, for the series.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) reads: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) scans: AtomicU64,
    pub(super) refused: AtomicU64,
    /// The longest call since it was last looked at, in microseconds.
    pub(super) longest: AtomicU64,
    /// Calls longer than [`LONGEST`].
    pub(super) slow: AtomicU64,
}

/// What holds for all users of a store between two openings.
pub(super) struct Scene<'a> {
    pub(super) db: &'a Db,
    pub(super) keyspaces: &'a [Keyspace],
    pub(super) sky: &'a Sky,
    pub(super) done: &'a Done,
    /// Time lost because the machine ran something else.
    pub(super) starved: &'a AtomicU64,
    pub(super) stop: &'a AtomicBool,
    pub(super) begun: Instant,
}

/// Time that has a reason: writers held back, waits for the log, a busy machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reasons(pub(super) Duration);

impl Scene<'_> {
    /// All of it so far.
    pub(super) fn reasons(&self) -> Reasons {
        let stalls = self.db.metrics().stalls;
        let stalled = Duration::from_secs_f64(stalls.slowed_seconds + stalls.stopped_seconds);
        let starved = Duration::from_micros(self.starved.load(Ordering::Relaxed));
        Reasons(stalled + self.sky.busy() + starved)
    }
}

/// A user and what it knows.
pub(super) struct User {
    pub(super) client: Client,
    pub(super) model: Model,
    pub(super) next: u64,
    /// A write of unknown outcome: a sync failed under it (I9).
    pub(super) unknown: Option<u64>,
    pub(super) rng: SmallRng,
    held: Option<(Snapshot, Arc<Model>, u32)>,
}

impl User {
    pub(super) fn new(client: Client, rng: SmallRng) -> Self {
        Self {
            client,
            model: Model::default(),
            next: 1,
            unknown: None,
            rng,
            held: None,
        }
    }

    /// Works until it is to stop, or a sync has failed.
    pub(super) fn work(&mut self, scene: &Scene<'_>) -> Result<(), Violation> {
        let mut reasons = (Instant::now(), scene.reasons());
        let mut ended = Ok(());
        while ended.is_ok() && !scene.stop.load(Ordering::Relaxed) && self.unknown.is_none() {
            // The reasons are counted from a moment before every call.
            if reasons.0.elapsed() > Duration::from_millis(200) {
                reasons = (Instant::now(), scene.reasons());
            }
            ended = self.step(scene, reasons.1);
        }
        self.held = None;
        ended
    }

    fn step(&mut self, scene: &Scene<'_>, before: Reasons) -> Result<(), Violation> {
        match self.rng.random_range(0..100) {
            0..30 => self.write(scene, before),
            30..92 => self.read(scene),
            92..97 => self.scan(scene, None),
            97..99 => self.multi_get(scene),
            _ => self.hold(scene),
        }
    }

    fn write(&mut self, scene: &Scene<'_>, before: Reasons) -> Result<(), Violation> {
        let number = self.next;
        self.next += 1;
        let durability = match self.rng.random_range(0..50) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        let batch = self.client.batch(number, scene.keyspaces);
        let begun = Instant::now();
        let written = scene.db.write_with(batch, durability);
        self.took(scene, begun, Some(before))?;
        scene.done.writes.fetch_add(1, Ordering::Relaxed);
        match written {
            Ok(_) => self.model.apply(self.client, number),
            Err(Error::Poisoned { .. }) if scene.sky.syncs_failed() > 0 => {
                self.unknown = Some(number);
            }
            Err(error) => self.refused(scene, "write", &error)?,
        }
        Ok(())
    }

    /// An error that was not planted is disorder.
    fn refused(&self, scene: &Scene<'_>, what: &str, error: &Error) -> Result<(), Violation> {
        let is_planted = match error {
            Error::NoSpace { .. } => true,
            Error::Io { .. } => scene.sky.planted() > 0,
            Error::Poisoned { .. } => scene.sky.syncs_failed() > 0,
            _ => false,
        };
        scene.done.refused.fetch_add(1, Ordering::Relaxed);
        match is_planted {
            true => Ok(()),
            false => Err(format!("{what}: {error}").into()),
        }
    }

    /// Notes that a call that began at `begun` has ended. A call that writes must have a reason if
    /// it was long.
    fn took(
        &self,
        scene: &Scene<'_>,
        begun: Instant,
        before: Option<Reasons>,
    ) -> Result<(), Violation> {
        let took = begun.elapsed();
        let micros = took.as_micros() as u64;
        scene.done.longest.fetch_max(micros, Ordering::Relaxed);
        if took <= LONGEST {
            return Ok(());
        }
        scene.done.slow.fetch_add(1, Ordering::Relaxed);
        let Some(Reasons(before)) = before else {
            return Ok(());
        };
        let Reasons(now) = scene.reasons();
        let reasons = now.saturating_sub(before);
        if reasons * 5 < took * 4 {
            let message =
                format!("a write took {took:?}, with a reason for {reasons:?} of it only");
            return Err(Violation::new(Promise::Alive, message));
        }
        Ok(())
    }

    /// Four of five reads are of a hotspot that moves. The others are of keys that are the less
    /// likely the higher they are.
    fn place(&mut self, scene: &Scene<'_>) -> Place {
        let keys = self.client.keys;
        let keyspace = self.rng.random_range(0..KEYSPACES.len() as u8);
        let key = if self.rng.random_bool(0.8) {
            let moves = scene.begun.elapsed().as_secs() / MOVES.as_secs();
            let base = (moves as u32).wrapping_mul(7919) % keys;
            (base + self.rng.random_range(0..keys.div_ceil(20))) % keys
        } else {
            let skewed = self.rng.random_range(0.0..1.0f64).powi(3);
            (skewed * f64::from(keys)) as u32
        };
        (keyspace, key)
    }

    fn read(&mut self, scene: &Scene<'_>) -> Result<(), Violation> {
        let place = self.place(scene);
        let begun = Instant::now();
        let found = scene.keyspaces[usize::from(place.0)].get(self.client.key(place));
        self.took(scene, begun, None)?;
        scene.done.reads.fetch_add(1, Ordering::Relaxed);
        match found {
            Ok(found) => self.model.check(self.client, place, found.as_deref()),
            Err(error) => self.refused(scene, "get", &error),
        }
    }

    fn multi_get(&mut self, scene: &Scene<'_>) -> Result<(), Violation> {
        let (keyspace, _) = self.place(scene);
        let keys: Vec<u32> = (0..20).map(|_| self.place(scene).1).collect();
        let names: Vec<String> = keys
            .iter()
            .map(|key| self.client.key((keyspace, *key)))
            .collect();
        let found = scene.keyspaces[usize::from(keyspace)].multi_get(&names);
        scene.done.reads.fetch_add(20, Ordering::Relaxed);
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.refused(scene, "multi_get", &error),
        };
        for (key, found) in each_with_its_answer(&keys, found)? {
            let place = (keyspace, *key);
            self.model.check(self.client, place, found.as_deref())?;
        }
        Ok(())
    }

    /// Reads a stretch of keys, of the store as it is now or as it was.
    fn scan(
        &mut self,
        scene: &Scene<'_>,
        then: Option<(&Snapshot, &Model)>,
    ) -> Result<(), Violation> {
        let (index, first) = self.place(scene);
        let last = (first + 60).min(self.client.keys);
        let (from, to) = (
            self.client.key((index, first)),
            self.client.key((index, last)),
        );
        let keyspace = &scene.keyspaces[usize::from(index)];
        let range = match then {
            Some((snapshot, _)) => snapshot.range_in(keyspace, from..to),
            None => keyspace.range(from..to),
        };
        scene.done.scans.fetch_add(1, Ordering::Relaxed);
        let model = then.map_or(&self.model, |(_, model)| model);
        let mut found = std::collections::BTreeMap::new();
        for record in range {
            match record {
                Ok((key, value)) => found.insert(key.to_vec(), value.to_vec()),
                Err(error) => return self.refused(scene, "scan", &error),
            };
        }
        for key in first..last {
            let place = (index, key);
            let value = found.remove(self.client.key(place).as_bytes());
            model.check(self.client, place, value.as_deref())?;
        }
        match found.keys().next() {
            None => Ok(()),
            Some(key) => {
                let key = String::from_utf8_lossy(key);
                let message = format!("a scan found {key}, which nobody wrote");
                Err(Violation::new(Promise::Right, message))
            }
        }
    }

    /// Takes a snapshot, looks at the one that is held, or lets go of it.
    fn hold(&mut self, scene: &Scene<'_>) -> Result<(), Violation> {
        match self.held.take() {
            None => {
                let model = Arc::new(self.model.clone());
                self.held = Some((scene.db.snapshot(), model, HELD / 100));
                Ok(())
            }
            Some((snapshot, model, looks)) => {
                self.scan(scene, Some((&snapshot, &model)))?;
                if looks > 0 {
                    self.held = Some((snapshot, model, looks - 1));
                }
                Ok(())
            }
        }
    }
}
