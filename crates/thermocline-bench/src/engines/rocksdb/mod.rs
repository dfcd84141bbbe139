//! RocksDB, with the sizes of our engine: level tiering by `db_paths`, on the fast disk alone, and
//! on the slow one alone. All of them use direct I/O, so that no side has the page cache as a
//! second cache.

mod counters;
mod ingestion;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail, ensure};
use rocksdb::statistics::StatsLevel;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBPath, Options, ReadOptions,
    WaitForCompactOptions, WriteOptions,
};

use self::counters::Reads;
use self::ingestion::Files;
use crate::counters::Counters;
use crate::engine::{Engine, EngineKind, Ingestion};
use crate::settings::{Compression, Dirs, Durability, Settings};

/// Two compactions and a flush at the same time, as many as our engine has by default.
const BACKGROUND_JOBS: i32 = 3;

/// Bits per key of its Bloom filters, which take as much memory as our filters.
const FILTER_BITS: f64 = 10.0;

/// Where its levels lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RocksDb {
    /// Upper levels on the fast disk, lower ones on the slow disk.
    Tiered,
    /// Everything on the fast disk.
    FastOnly,
    /// Everything on the slow disk, the log too: what any use of a fast disk is measured against.
    SlowOnly,
}

impl EngineKind for RocksDb {
    fn name(&self) -> &'static str {
        match self {
            RocksDb::Tiered => "rocksdb",
            RocksDb::FastOnly => "rocksdb-fast-only",
            RocksDb::SlowOnly => "rocksdb-slow-only",
        }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        settings.refuse_what_is_ours(self.name())?;
        ensure!(
            *self == RocksDb::FastOnly || !settings.emulates(),
            "engine `{}`: the --slow flags emulate a slow disk inside our engine only; \
             put --slow on a slow disk",
            self.name()
        );
        ensure!(
            settings.compression == Compression::None,
            "engine `{}`: built without compressions; use --compression none",
            self.name()
        );
        Ok(())
    }

    /// Files come to the first path, whatever level they are of (`GetIngestedFileInfo` gives each
    /// path 0): all of a store by tiers would lie on its fast disk.
    fn check_ingestion(&self) -> Result<()> {
        if *self == RocksDb::Tiered {
            bail!(
                "engine `{}`: RocksDB ingests to the fast disk, whatever its capacity; \
                 --ingest is for rocksdb-fast-only and rocksdb-slow-only",
                self.name()
            );
        }
        Ok(())
    }

    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        for dir in self.used(dirs) {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        let options = options(*self, settings, dirs)?;
        let home = self.home(dirs);
        let db = DB::open(&options, home)?;
        let mut write = WriteOptions::default();
        write.set_sync(settings.durability == Durability::Sync);
        Ok(Box::new(Store {
            db,
            options,
            read: ReadOptions::default(),
            write,
            dirs: dirs.clone(),
            kind: *self,
            gets_without_device: AtomicU64::new(0),
            user_write_bytes: AtomicU64::new(0),
            ingested_bytes: AtomicU64::new(0),
            reads: Reads::default(),
        }))
    }

    fn copy(&self, _settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        let pairs = self.used(from).into_iter().zip(self.used(to));
        pairs.into_iter().try_for_each(|(from, to)| link(from, to))
    }
}

impl RocksDb {
    /// The directory of its log, and of the tables that have no other.
    fn home(self, dirs: &Dirs) -> &Path {
        match self {
            RocksDb::Tiered | RocksDb::FastOnly => &dirs.fast,
            RocksDb::SlowOnly => &dirs.slow,
        }
    }

    /// The directories that it has files in.
    fn used(self, dirs: &Dirs) -> Vec<&Path> {
        match self {
            RocksDb::Tiered => vec![&dirs.fast, &dirs.slow],
            RocksDb::FastOnly => vec![&dirs.fast],
            RocksDb::SlowOnly => vec![&dirs.slow],
        }
    }
}

fn options(kind: RocksDb, settings: &Settings, dirs: &Dirs) -> Result<Options> {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(settings.cache as usize));
    table.set_bloom_filter(FILTER_BITS, false);
    // One block size for all levels: the one for the disk where most of the data lies.
    let block_size = match kind {
        RocksDb::Tiered | RocksDb::SlowOnly => settings.block_size_slow,
        RocksDb::FastOnly => settings.block_size_fast,
    };
    table.set_block_size(block_size as usize);

    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_write_buffer_size(settings.memtable as usize);
    options.set_max_write_buffer_number(3);
    options.set_target_file_size_base(settings.memtable);
    options.set_compression_type(DBCompressionType::None);
    options.set_use_direct_reads(true);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_max_background_jobs(BACKGROUND_JOBS);
    options.set_manual_wal_flush(settings.durability == Durability::None);
    options.enable_statistics();
    // By default each read takes two readings of the clock and an entry in a histogram of times,
    // and this is for a report that times operations itself. This level has no times, whatever its
    // name. The crate's numbers of the lowest levels are one above RocksDB's own, so its tickers
    // alone cannot be had.
    options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    if kind == RocksDb::Tiered {
        // A level goes to the first path that its target and those above fit into. With a
        // base of a twelfth, L1 and L2 take eleven twelfths of the fast tier; a larger base
        // would put L2, or a varying one any level, silently on the slow disk.
        let base = settings.fast_capacity / 12;
        options.set_level_compaction_dynamic_level_bytes(false);
        options.set_max_bytes_for_level_base(base);
        let fast = settings.rocksdb_fast_levels;
        let fast = fast.map_or(settings.fast_capacity, |levels| holding(levels, base));
        options.set_db_paths(&[
            DBPath::new(&dirs.fast, fast)?,
            DBPath::new(&dirs.slow, u64::MAX)?,
        ]);
    } else {
        options.set_max_bytes_for_level_base(4 * settings.memtable);
    }
    Ok(options)
}

/// The size of a path with room for the targets of `levels` levels and not of one more, where L1
/// has `base` bytes. RocksDB takes L0 for as large as L1 (`LevelCompactionBuilder::GetPathId`), and
/// each level below for ten times the one above.
fn holding(levels: u32, base: u64) -> u64 {
    let below_l0 = (1..levels).map(|level| 10u64.saturating_pow(level - 1));
    base.saturating_mul(1 + below_l0.sum::<u64>())
}

struct Store {
    db: DB,
    /// Holds the statistics.
    options: Options,
    /// Made once, because otherwise the crate makes and frees them for each read.
    read: ReadOptions,
    write: WriteOptions,
    dirs: Dirs,
    kind: RocksDb,
    gets_without_device: AtomicU64,
    /// Counted here, because its own ticker also counts what its log puts around a record.
    user_write_bytes: AtomicU64,
    /// Bytes of ingested files. No ticker has them.
    ingested_bytes: AtomicU64,
    reads: Reads,
}

impl Engine for Store {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let value = self.db.get_pinned_opt(key, &self.read)?;
        if !self.reads.add_of_this_thread() {
            self.gets_without_device.fetch_add(1, Ordering::Relaxed);
        }
        found(value.as_deref());
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.write)?;
        let bytes = (key.len() + value.len()) as u64;
        self.user_write_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete_opt(key, &self.write)?;
        self.user_write_bytes
            .fetch_add(key.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn scan(&self, start: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut records = self.db.raw_iterator();
        records.seek(start);
        for _ in 0..limit {
            let Some((key, value)) = records.item() else {
                break;
            };
            each(key, value);
            records.next();
        }
        self.reads.add_of_this_thread();
        Ok(records.status()?)
    }

    fn ingestion(&self) -> Result<Box<dyn Ingestion + '_>> {
        Ok(Box::new(Files::new(self)))
    }

    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self
            .db
            .wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn counters(&self) -> Result<Counters> {
        counters::counters(self)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.flush_wal(true)?;
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}

/// Copies a closed store's directory: tables never change and are linked, the rest is copied.
fn link(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let source: PathBuf = entry?.path();
        let Some(name) = source.file_name() else {
            continue;
        };
        let target = to.join(name);
        let is_table = source
            .extension()
            .is_some_and(|extension| extension == "sst");
        let done = if is_table {
            fs::hard_link(&source, &target)
        } else {
            fs::copy(&source, &target).map(|_| ())
        };
        done.with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rocksdb::statistics::{Histogram, Ticker};

    use super::*;
    use crate::accounts::{Activity, Io};
    use crate::plan::tests::parse;
    use crate::run;

    fn dirs(root: &Path) -> Dirs {
        Dirs::two(root.join("fast"), root.join("slow"))
    }

    #[test]
    fn answers_are_right_and_a_copy_is_a_store_of_its_own() {
        let plan =
            parse("--engine rocksdb --data-size 4MiB --memory 4MiB --ops 2000 --workload uh")
                .unwrap()
                .plan()
                .unwrap();
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (dirs(&root.path().join("a")), dirs(&root.path().join("b")));
        let engine = plan.engine.open(&plan.settings, &first).unwrap();
        run::load(&plan, engine.as_ref(), &mut ()).unwrap();
        let loaded = engine.counters().unwrap();
        assert_eq!(loaded.user_write_bytes, Some(4 << 20));
        engine.close().unwrap();
        fs::create_dir(root.path().join("b")).unwrap();
        plan.engine.copy(&plan.settings, &first, &second).unwrap();
        let engine = plan.engine.open(&plan.settings, &second).unwrap();
        let measured = run::measure(&plan, engine.as_ref(), &mut ()).unwrap();
        assert_eq!(measured.wrongs.count(), 0);
        assert!(
            measured.counters.sd_bytes > Some(1 << 20),
            "the lowest level is slow"
        );
        assert!(measured.counters.dram_hit_rate() < Some(1.0));
        engine.close().unwrap();
    }

    #[test]
    fn the_levels_that_are_asked_for_lie_on_the_fast_disk() {
        for fast_levels in [1, 2, 3, 4] {
            // L1 has 128 KiB, L2 1.25 MiB, L3 the rest.
            let flags = format!(
                "--engine rocksdb --rocksdb-fast-levels {fast_levels} --data-size 8MiB \
                 --fast-capacity 1536KiB --memory 4MiB --memtable 64KiB"
            );
            let plan = parse(&flags).unwrap().plan().unwrap();
            let root = tempfile::tempdir().unwrap();
            let dirs = dirs(root.path());
            let engine = plan.engine.open(&plan.settings, &dirs).unwrap();
            run::load(&plan, engine.as_ref(), &mut ()).unwrap();
            let counters = engine.counters().unwrap();
            engine.close().unwrap();

            let options = options(RocksDb::Tiered, &plan.settings, &dirs).unwrap();
            let db = DB::open_for_read_only(&options, &dirs.fast, false).unwrap();
            let (mut levels, mut slow_bytes) = ([0; 7], 0);
            for file in db.live_files().unwrap() {
                let name = file.name.trim_start_matches('/');
                let places = [&dirs.fast, &dirs.slow].map(|dir| dir.join(name).exists());
                let is_fast = file.level < fast_levels;
                let found = format!("{fast_levels} fast: {name} of L{}", file.level);
                assert_eq!(places, [is_fast, !is_fast], "{found}");
                levels[file.level as usize] += 1;
                slow_bytes += u64::from(!is_fast) * file.size as u64;
            }
            assert!(
                levels[1] > 0 && levels[2] > 0 && levels[3] > 0,
                "{levels:?}"
            );
            // Files that are not needed any more may still be there.
            assert!(counters.sd_bytes >= Some(slow_bytes), "{counters:?}");
            assert!(counters.fd_bytes > Some(0));
        }
    }

    /// As RocksDB adds them up: L0 and L1 have the base, L2 ten times that.
    #[test]
    fn a_path_has_room_for_its_levels_and_not_for_one_more() {
        let sizes = [1, 2, 3, 4, 6].map(|levels| holding(levels, 7));
        assert_eq!(sizes, [1, 2, 12, 112, 11_112].map(|bases| 7 * bases));
    }

    #[test]
    fn what_it_has_not_is_refused() {
        for (flags, words) in [
            ("--fast a --slow b --slow c", "has one slow tier at most"),
            ("--slow-capacity 1GB", "leave out --slow-capacity"),
        ] {
            for engine in ["rocksdb", "rocksdb-slow-only", "fjall"] {
                let flags = format!("--engine {engine} {flags}");
                let error = parse(&flags).unwrap().plan().err().unwrap().to_string();
                assert!(error.contains(words) && error.contains(engine), "{error}");
            }
        }
    }

    #[test]
    fn on_the_slow_disk_alone_nothing_is_on_the_fast_one() {
        let flags = "--engine rocksdb-slow-only --data-size 4MiB --memory 4MiB --ops 1000";
        let plan = parse(flags).unwrap().plan().unwrap();
        let root = tempfile::tempdir().unwrap();
        let dirs = dirs(root.path());
        let engine = plan.engine.open(&plan.settings, &dirs).unwrap();
        run::load(&plan, engine.as_ref(), &mut ()).unwrap();
        let counters = engine.counters().unwrap();
        assert!(counters.sd_bytes > Some(4 << 20), "{counters:?}");
        assert_eq!(counters.fd_bytes, Some(0));
        let measured = run::measure(&plan, engine.as_ref(), &mut ()).unwrap();
        assert_eq!(measured.wrongs.count(), 0);
        let counters = measured.counters;
        assert_eq!(counters.fd_hit_rate(), counters.dram_hit_rate());
        assert!(counters.fd_hit_rate() < Some(1.0));
        engine.close().unwrap();
        assert!(!dirs.fast.exists(), "the log too is on the slow disk");
    }

    #[test]
    fn on_one_disk_it_tells_what_its_io_is_for() {
        let flags =
            "--engine rocksdb-fast-only --data-size 8MiB --memory 4MiB --ops 2000 --workload uh";
        let plan = parse(flags).unwrap().plan().unwrap();
        let root = tempfile::tempdir().unwrap();
        let dirs = dirs(root.path());
        let engine = plan.engine.open(&plan.settings, &dirs).unwrap();
        run::load(&plan, engine.as_ref(), &mut ()).unwrap();
        let loaded = engine.counters().unwrap();
        let io = loaded.io.unwrap();
        let of = |activity| io.fast.get(activity).unwrap();
        for activity in [Activity::Write, Activity::Flush] {
            assert!(of(activity).write_bytes > 8 << 20, "{activity:?}: {io:?}");
        }
        let compaction = of(Activity::Compaction);
        assert!(compaction.read_bytes > 1 << 20 && compaction.read_ops > 0);
        assert!(compaction.write_bytes > 1 << 20, "{io:?}");
        assert_eq!(of(Activity::Read), Io::default(), "nothing was asked for");
        assert_eq!(io.slow.iter().count(), 0);

        let measured = run::measure(&plan, engine.as_ref(), &mut ()).unwrap();
        let counters = measured.counters;
        let read = counters.io.unwrap().fast.get(Activity::Read).unwrap();
        let missed = counters.gets.unwrap() - counters.gets_without_device.unwrap();
        assert!(missed > 0 && read.read_ops >= missed, "{missed}, {read:?}");
        assert!(read.read_bytes / read.read_ops > 1 << 10, "{read:?}");
        assert_eq!(
            (counters.sd_read_ops, counters.sd_write_bytes),
            (Some(0), Some(0))
        );
        engine.close().unwrap();
    }

    /// Regression: RocksDB counts a client's blocks where it reads them from the disk, and not
    /// where it finds what it has read ahead. A scan of 100 KiB seemed to read half of that or
    /// less, and the rest was attributed to nobody.
    #[test]
    fn what_scans_read_ahead_is_counted() {
        const SCANS: u64 = 200;
        let flags = format!(
            "--engine rocksdb-fast-only --data-size 4MiB --memory 4MiB --memtable 1MiB --cache 64KiB \
             --workload scan --distribution uniform --scan-length 100 --ops {SCANS}"
        );
        let plan = parse(&flags).unwrap().plan().unwrap();
        let root = tempfile::tempdir().unwrap();
        let dirs = dirs(root.path());
        let engine = plan.engine.open(&plan.settings, &dirs).unwrap();
        run::load(&plan, engine.as_ref(), &mut ()).unwrap();
        engine.close().unwrap();
        let engine = plan.engine.open(&plan.settings, &dirs).unwrap();
        let measured = run::measure(&plan, engine.as_ref(), &mut ()).unwrap();
        assert_eq!(measured.wrongs.count(), 0, "{:?}", measured.wrongs);
        // The few scans that begin near the last record return less, and a little lies in the
        // cache.
        let least = SCANS * 100 * 1024 * 9 / 10;
        let counters = measured.counters;
        assert!(counters.fd_read_bytes >= Some(least), "{counters:?}");
        let of_clients = counters.io.unwrap().fast.get(Activity::Read).unwrap();
        assert!(of_clients.read_bytes >= least, "{of_clients:?}");
        engine.close().unwrap();
    }

    /// Regression: each read took two readings of the clock and entries in histograms, for nothing
    /// that is reported.
    #[test]
    fn rocksdb_times_no_operation() {
        let plan = parse("--engine rocksdb-fast-only --data-size 1MiB --memory 4MiB --ops 10")
            .unwrap()
            .plan()
            .unwrap();
        let root = tempfile::tempdir().unwrap();
        let options = options(RocksDb::FastOnly, &plan.settings, &dirs(root.path())).unwrap();
        let db = DB::open(&options, root.path()).unwrap();
        db.put(b"key", b"value").unwrap();
        db.get(b"key").unwrap();
        for timed in [Histogram::DbGet, Histogram::DbWrite] {
            assert_eq!(options.get_histogram_data(timed).count(), 0);
        }
        assert_eq!(options.get_ticker_count(Ticker::NumberKeysRead), 1);
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        for (flags, expected) in [
            ("--engine rocksdb --slow-iops 5", "--slow flags"),
            ("--engine rocksdb-slow-only --slow-iops 5", "--slow flags"),
            (
                "--engine rocksdb-fast-only --compression lz4",
                "without compressions",
            ),
        ] {
            let error = parse(flags).unwrap().plan().err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
