//! Our engine, over two tiers and over the fast one alone.

use std::sync::Arc;

use anyhow::Result;
use thermocline::metrics::{Metrics, TierMetrics};
use thermocline::storage::{Disk, Limits, Throttled};
use thermocline::{Db, Options, SystemClock, TierOptions};

use crate::engine::{Counters, Engine, EngineKind};
use crate::settings::{Compression, Dirs, Durability, Settings, SlowDevice};

/// Level tiering: upper levels on the fast disk, lower ones on the slow disk.
pub(super) struct Leveled;

/// Everything on the fast disk, whatever its capacity: what tiering is measured against.
pub(super) struct FastOnly;

impl EngineKind for Leveled {
    fn name(&self) -> &'static str {
        "leveled"
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        check(settings, true)
    }

    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        open(settings, dirs, true)
    }

    fn copy(&self, settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        copy(settings, from, to, true)
    }
}

impl EngineKind for FastOnly {
    fn name(&self) -> &'static str {
        "fast-only"
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        check(settings, false)
    }

    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        open(settings, dirs, false)
    }

    fn copy(&self, settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        copy(settings, from, to, false)
    }
}

fn options(settings: &Settings, dirs: &Dirs, tiered: bool) -> Options {
    let fast = TierOptions::fast(&dirs.fast).block_size(settings.block_size_fast as usize);
    let tiers = if tiered {
        let slow = TierOptions::slow(&dirs.slow)
            .block_size(settings.block_size_slow as usize)
            .compression(match settings.compression {
                Compression::None => thermocline::Compression::None,
                Compression::Lz4 => thermocline::Compression::Lz4,
                Compression::Zstd(level) => thermocline::Compression::Zstd(level),
            });
        vec![fast.capacity(settings.fast_capacity), slow]
    } else {
        vec![fast]
    };
    Options {
        memory: settings.memory,
        block_cache: Some(settings.cache),
        memtable_size: Some(settings.memtable),
        table_size: Some(settings.memtable),
        durability: match settings.durability {
            Durability::None => thermocline::Durability::None,
            Durability::Buffered => thermocline::Durability::Buffered,
            Durability::Sync => thermocline::Durability::Sync,
        },
        ..Options::with_tiers(tiers)
    }
}

fn check(settings: &Settings, tiered: bool) -> Result<()> {
    let names = Dirs {
        fast: "fast".into(),
        slow: "slow".into(),
    };
    Ok(options(settings, &names, tiered).validate()?)
}

fn limits(device: &SlowDevice) -> Limits {
    // 0 is no limit.
    let (iops, bandwidth) = (device.iops.unwrap_or(0), device.bandwidth.unwrap_or(0));
    Limits {
        read_iops: iops,
        write_iops: iops,
        read_bandwidth: bandwidth,
        write_bandwidth: bandwidth,
        latency: device.latency.unwrap_or_default(),
    }
}

fn open_db(settings: &Settings, dirs: &Dirs, tiered: bool) -> Result<Db> {
    let mut builder = Db::builder(options(settings, dirs, tiered));
    if tiered && settings.slow_device.is_limited() {
        let medium = Throttled::new(
            Arc::new(Disk::default()),
            limits(&settings.slow_device),
            Arc::new(SystemClock::default()),
        );
        builder = builder.medium(1, Arc::new(medium));
    }
    Ok(builder.open()?)
}

fn open(settings: &Settings, dirs: &Dirs, tiered: bool) -> Result<Box<dyn Engine>> {
    let db = open_db(settings, dirs, tiered)?;
    Ok(Box::new(Store { db }))
}

/// A checkpoint, made without the emulated slow disk: copying is not what is measured.
fn copy(settings: &Settings, from: &Dirs, to: &Dirs, tiered: bool) -> Result<()> {
    let mut settings = settings.clone();
    settings.slow_device = SlowDevice::default();
    let db = open_db(&settings, from, tiered)?;
    let mut targets = vec![to.fast.clone()];
    if tiered {
        targets.push(to.slow.clone());
    }
    db.checkpoint(&targets)?;
    db.close()?;
    Ok(())
}

struct Store {
    db: Db,
}

impl Engine for Store {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let value = self.db.get(key)?;
        found(value.as_deref());
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put(key, value)?;
        Ok(())
    }

    fn scan(&self, start: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.db.range(start..).take(limit) {
            let (key, value) = record?;
            each(&key, &value);
        }
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_idle()?)
    }

    fn counters(&self) -> Result<Counters> {
        Ok(counters(&self.db.metrics()))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}

fn counters(metrics: &Metrics) -> Counters {
    let fast = metrics.tiers.first();
    // A store without a slow tier reads nothing from it, which is not unknown.
    let slow = |value: fn(&TierMetrics) -> u64| Some(metrics.tiers.get(1).map_or(0, value));
    Counters {
        gets: Some(metrics.hits.gets),
        gets_without_slow: Some(metrics.hits.without_slow_device),
        gets_without_device: Some(metrics.hits.without_device),
        fd_bytes: fast.map(|tier| tier.file_bytes),
        sd_bytes: slow(|tier| tier.file_bytes),
        fd_read_bytes: fast.map(TierMetrics::read_bytes),
        fd_write_bytes: fast.map(TierMetrics::write_bytes),
        sd_read_bytes: slow(TierMetrics::read_bytes),
        sd_read_ops: slow(TierMetrics::read_ops),
        sd_write_bytes: slow(TierMetrics::write_bytes),
        written_bytes: Some(metrics.tiers.iter().map(TierMetrics::write_bytes).sum()),
        user_write_bytes: Some(metrics.user_write_bytes),
        stall_seconds: Some(metrics.stalls.slowed_seconds + metrics.stalls.stopped_seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::parse;
    use crate::engine;
    use crate::run;

    fn dirs(root: &std::path::Path, name: &str) -> Dirs {
        Dirs {
            fast: root.join(format!("{name}-fast")),
            slow: root.join(format!("{name}-slow")),
        }
    }

    /// Loads, copies, and runs updates on the copy; the counters of the run.
    fn run(engine: &str, slow: bool) -> Counters {
        let flags = "--data-size 4MiB --memory 2MiB --cache 64KiB --ops 3000 --workload uh";
        let mut plan = parse(flags).unwrap().plan().unwrap();
        plan.engine = engine::find(engine).unwrap();
        if slow {
            plan.settings.slow_device.iops = Some(100_000);
        }
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (dirs(root.path(), "a"), dirs(root.path(), "b"));
        let engine = plan.engine.open(&plan.settings, &first).unwrap();
        run::load(&plan, engine.as_ref(), &mut ()).unwrap();
        engine.close().unwrap();
        plan.engine.copy(&plan.settings, &first, &second).unwrap();
        let engine = plan.engine.open(&plan.settings, &second).unwrap();
        let measured = run::measure(&plan, engine.as_ref(), &mut ()).unwrap();
        assert_eq!(measured.wrongs.count(), 0, "{:?}", measured.wrongs);
        engine.close().unwrap();
        // The run changed its copy only.
        let engine = plan.engine.open(&plan.settings, &first).unwrap();
        let again = run::measure(&plan, engine.as_ref(), &mut ()).unwrap();
        assert_eq!(again.wrongs.count(), 0, "{:?}", again.wrongs);
        measured.counters
    }

    #[test]
    fn two_tiers_answer_right_and_count_by_tier() {
        let counters = run("leveled", true);
        assert!(counters.sd_bytes > Some(1 << 20) && counters.fd_bytes > Some(0));
        assert!(counters.sd_read_ops > Some(0));
        assert!(counters.fd_hit_rate() > counters.dram_hit_rate());
        assert!(counters.fd_hit_rate() < Some(1.0));
        assert!(counters.user_write_bytes > Some(1 << 20));
    }

    #[test]
    fn one_tier_never_touches_a_slow_disk() {
        let counters = run("fast-only", false);
        assert_eq!(counters.fd_hit_rate(), Some(1.0));
        assert_eq!(
            (counters.sd_bytes, counters.sd_read_ops),
            (Some(0), Some(0))
        );
        assert!(counters.dram_hit_rate() < Some(1.0));
    }

    #[test]
    fn settings_that_the_store_refuses_are_refused_before_anything_is_made() {
        let error = parse("--memory 1MiB --memtable 1MiB")
            .unwrap()
            .plan()
            .err()
            .unwrap();
        assert!(error.to_string().contains("memtable_size"), "{error}");
    }
}
