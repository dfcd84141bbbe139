//! An ordered map for tests of the harness, with answers that can be made wrong.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use thermocline::Target;

use crate::accounts::{Activity, ByActivity, ByDisk, Io};
use crate::counters::{Counters, HotCounters};
use crate::engine::{Engine, EngineKind};
use crate::settings::{Dirs, Settings};

/// What it claims to hold of hot records, whatever is in it.
pub(crate) const HOT_BYTES_ON_FAST: u64 = 734_003;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// How answers are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// Overwrites and deletions are forgotten.
    Stale,
    /// Some keys are not found.
    Missing,
    /// Scans leave out a record.
    GapAtStart,
    /// A target cannot be set.
    NoTarget,
    /// What is hot on the fast tier cannot be counted.
    NoHotBytes,
}

pub(crate) struct Memory(pub(crate) Lie);

struct Store {
    lie: Lie,
    map: Mutex<Map>,
    gets: AtomicU64,
    /// What it claims to have written in the background: more each time it is asked.
    written: AtomicU64,
    file: std::path::PathBuf,
    /// Has a line for each target that was set.
    targets: std::path::PathBuf,
}

impl EngineKind for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn check(&self, _settings: &Settings) -> Result<()> {
        Ok(())
    }

    fn open(&self, _settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        for dir in dirs.each() {
            std::fs::create_dir_all(dir)?;
        }
        let file = dirs.fast.join("map.json");
        let records: Vec<(Vec<u8>, Vec<u8>)> = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(_) => Vec::new(),
        };
        Ok(Box::new(Store {
            lie: self.0,
            map: Mutex::new(records.into_iter().collect()),
            gets: AtomicU64::new(0),
            written: AtomicU64::new(0),
            targets: dirs.fast.join("targets"),
            file,
        }))
    }

    fn copy(&self, _settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        for dir in to.each() {
            std::fs::create_dir(dir)?;
        }
        std::fs::copy(from.fast.join("map.json"), to.fast.join("map.json"))?;
        Ok(())
    }
}

impl Engine for Store {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let gets = self.gets.fetch_add(1, Ordering::Relaxed);
        let map = self.map.lock().unwrap();
        if self.lie == Lie::Missing && gets % 100 == 99 {
            found(None);
        } else {
            found(map.get(key).map(Vec::as_slice));
        }
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut map = self.map.lock().unwrap();
        if self.lie != Lie::Stale || !map.contains_key(key) {
            map.insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        if self.lie != Lie::Stale {
            self.map.lock().unwrap().remove(key);
        }
        Ok(())
    }

    fn scan(&self, start: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let map = self.map.lock().unwrap();
        let skipped = usize::from(self.lie == Lie::GapAtStart);
        for (key, value) in map.range(start.to_vec()..).skip(skipped).take(limit) {
            each(key, value);
        }
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Writes the target down once clients have read and a sample was taken meanwhile.
    fn set_target(&self, target: Target) -> Result<()> {
        ensure!(self.lie != Lie::NoTarget, "{target} is not possible");
        let now = || {
            let gets = self.gets.load(Ordering::Relaxed);
            (gets, self.written.load(Ordering::Relaxed))
        };
        let (gets, written) = now();
        let begin = Instant::now();
        // Before the run nobody reads.
        while gets > 0 && (now().0 < gets + 10 || now().1 == written) {
            ensure!(begin.elapsed() < Duration::from_secs(60), "all wait for it");
            std::thread::yield_now();
        }
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&self.targets)?;
        Ok(writeln!(file, "{target}")?)
    }

    fn hot_bytes_on_fast(&self) -> Result<Option<u64>> {
        ensure!(self.lie != Lie::NoHotBytes, "it cannot be read");
        Ok(Some(HOT_BYTES_ON_FAST))
    }

    fn counters(&self) -> Result<Counters> {
        let gets = self.gets.load(Ordering::Relaxed);
        let map = self.map.lock().unwrap();
        let sizes = map.iter().map(|(key, value)| key.len() + value.len());
        let written = self.written.fetch_add(1, Ordering::Relaxed);
        let mut fast = ByActivity::default();
        let io = Io {
            write_bytes: written,
            ..Io::default()
        };
        fast.add(Activity::Compaction, io);
        Ok(Counters {
            gets: Some(gets),
            gets_without_slow: Some(gets / 2),
            gets_without_device: Some(gets / 4),
            fd_bytes: Some(sizes.sum::<usize>() as u64),
            sd_bytes: Some(0),
            fd_write_bytes: Some(written),
            io: Some(ByDisk {
                fast,
                slow: ByActivity::default(),
            }),
            hotness: Some(HotCounters {
                hot_set_limit_bytes: 1000,
                hot_set_bytes: gets.min(900),
                ralt_cpu_seconds: gets as f64 / 1e9,
                ..HotCounters::default()
            }),
            ..Counters::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        let records: Vec<_> = self.map.into_inner().unwrap().into_iter().collect();
        std::fs::write(self.file, serde_json::to_vec(&records)?)?;
        Ok(())
    }
}
