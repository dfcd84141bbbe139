//! fjall, an LSM tree in Rust, on the slow disk alone, with the sizes of our engine. It reads and
//! writes through the page cache, so the harness limits its memory from outside.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{
    AbstractTree, Database, DatabaseBuilder, Keyspace, KeyspaceCreateOptions, PersistMode, SeqNo,
};

use crate::accounts::{ByActivity, ByDisk};
use crate::block_device;
use crate::counters::Counters;
use crate::engine::{Engine, EngineKind, Ingestion};
use crate::memory_limit::drop_page_cache;
use crate::settings::{Compression, Dirs, Durability, Settings};

/// Two compactions and a flush at the same time, as many as our engine has by default.
const WORKERS: usize = 3;

/// fjall has no way to wait for its background work. If none is seen in this many looks, there is
/// none.
const QUIET_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// With 30 runs in L0, fjall 3.1.13 halts writers until a compaction comes. But only a flush asks
/// for one, and its request is lost if a compaction is working on L0, if the queue is full, or if
/// the request is spent on another level that is fuller. Then writers wait for ever. So they wait
/// here before it comes to that, and have L0 compacted themselves. At 20 runs fjall begins to slow
/// writers down, and what is frozen by then adds only a few tables.
const FULL_L0: usize = 20;

/// A compaction that writers run keeps all versions from this one on, which means all. Those of
/// fjall drop versions that nobody sees.
const KEPT_FROM: SeqNo = 0;

/// One keyspace on the slow disk.
pub(super) struct Fjall;

impl EngineKind for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn uses_page_cache(&self) -> bool {
        true
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        settings.refuse_what_is_ours(self.name())?;
        ensure!(
            !settings.emulates(),
            "engine `fjall`: the --slow flags emulate a slow disk inside our engine only; put --slow \
             on a slow disk"
        );
        ensure!(
            settings.compression == Compression::None,
            "engine `fjall`: built without compressions; use --compression none"
        );
        // Outside of this range fjall panics.
        ensure!(
            (1 << 10..=1 << 20).contains(&settings.block_size_slow),
            "engine `fjall`: --block-size-slow must be 1 KiB to 1 MiB"
        );
        Ok(())
    }

    fn check_ingestion(&self) -> Result<()> {
        Ok(())
    }

    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        let dir = &dirs.slow;
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        // Every engine begins cold. No page that loading or copying left may be read from.
        drop_page_cache(dir)?;
        Ok(Box::new(Store::open(
            Database::builder(dir),
            settings,
            dirs,
        )?))
    }

    fn copy(&self, _settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        link(&from.slow, &to.slow)
    }
}

fn options(settings: &Settings) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(settings.memtable)
        .compaction_strategy(Arc::new(
            Leveled::default().with_table_target_size(settings.memtable),
        ))
        .data_block_size_policy(BlockSizePolicy::all(settings.block_size_slow as u32))
        .data_block_compression_policy(CompressionPolicy::disabled())
        // This is stored with the keyspace, so whoever made it would decide. The bench therefore
        // persists by itself, as each run's settings ask.
        .manual_journal_persist(true)
}

struct Store {
    db: Database,
    keyspace: Keyspace,
    dirs: Dirs,
    durability: Durability,
    /// Held by the writer that compacts because L0 is full.
    turn: Mutex<()>,
    gets: AtomicU64,
    user_write_bytes: AtomicU64,
}

impl Store {
    fn open(builder: DatabaseBuilder<Database>, settings: &Settings, dirs: &Dirs) -> Result<Self> {
        let db = builder
            .cache_size(settings.cache)
            .worker_threads(WORKERS)
            .open()?;
        let keyspace = db.keyspace("bench", || options(settings))?;
        Ok(Self {
            db,
            keyspace,
            dirs: dirs.clone(),
            durability: settings.durability,
            turn: Mutex::new(()),
            gets: AtomicU64::new(0),
            user_write_bytes: AtomicU64::new(0),
        })
    }

    /// Makes what was written as durable as the settings ask.
    fn persist(&self) -> Result<()> {
        match self.durability {
            Durability::None => {}
            Durability::Buffered => self.db.persist(PersistMode::Buffer)?,
            Durability::Sync => self.db.persist(PersistMode::SyncData)?,
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        self.db.active_compactions() > 0 || self.db.outstanding_flushes() > 0
    }

    /// Waits while L0 is full, and compacts when nobody else does. It does so as often as it takes,
    /// since each time the fullest level is chosen.
    fn wait_for_room(&self) -> Result<()> {
        while self.keyspace.l0_table_count() >= FULL_L0 {
            if !self.is_busy()
                && let Ok(_turn) = self.turn.try_lock()
            {
                let strategy = Arc::clone(&self.keyspace.config.compaction_strategy);
                self.keyspace.tree.compact(strategy, KEPT_FROM)?;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }
}

/// Takes a record, or none to end.
type Take<'a> = Box<dyn FnMut(Option<(&[u8], &[u8])>) -> fjall::Result<()> + 'a>;

/// Sorted records on their way into tables of 64 MiB, which is fjall's own choice.
struct Tables<'a> {
    /// Holds fjall's ingestion, whose type has no public name.
    take: Take<'a>,
    /// Of keys and values.
    bytes: u64,
    store: &'a Store,
}

impl Ingestion for Tables<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        (self.take)(Some((key, value)))?;
        self.bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        (self.take)(None)?;
        let counter = &self.store.user_write_bytes;
        counter.fetch_add(self.bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Engine for Store {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        found(self.keyspace.get(key)?.as_deref());
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.wait_for_room()?;
        self.keyspace.insert(key, value)?;
        self.persist()?;
        let bytes = (key.len() + value.len()) as u64;
        self.user_write_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.wait_for_room()?;
        self.keyspace.remove(key)?;
        self.persist()?;
        self.user_write_bytes
            .fetch_add(key.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn scan(&self, start: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.keyspace.range(start..).take(limit) {
            let (key, value) = record.into_inner()?;
            each(&key, &value);
        }
        Ok(())
    }

    fn ingestion(&self) -> Result<Box<dyn Ingestion + '_>> {
        let mut tables = Some(self.keyspace.start_ingestion()?);
        Ok(Box::new(Tables {
            take: Box::new(move |record| match record {
                Some((key, value)) => tables.as_mut().map_or(Ok(()), |to| to.write(key, value)),
                None => tables.take().map_or(Ok(()), |tables| tables.finish()),
            }),
            bytes: 0,
            store: self,
        }))
    }

    fn settle(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        let mut quiet = 0;
        let mut completed = self.db.compactions_completed();
        while quiet < QUIET_LOOKS {
            thread::sleep(BETWEEN_LOOKS);
            let now = self.db.compactions_completed();
            quiet = if self.is_busy() || now != completed {
                0
            } else {
                quiet + 1
            };
            completed = now;
        }
        Ok(())
    }

    /// fjall counts no hits and no bytes. The bytes of the disk come from the kernel.
    fn counters(&self) -> Result<Counters> {
        let mut counters = Counters {
            gets: Some(self.gets.load(Ordering::Relaxed)),
            fd_bytes: Some(0),
            fd_read_bytes: Some(0),
            fd_write_bytes: Some(0),
            sd_bytes: Some(self.db.disk_space()?),
            user_write_bytes: Some(self.user_write_bytes.load(Ordering::Relaxed)),
            ..Counters::default()
        };
        if let Some([_, slow]) = block_device::of_two(&self.dirs.fast, &self.dirs.slow) {
            counters.sd_read_bytes = Some(slow.read_bytes);
            counters.sd_read_ops = Some(slow.read_ops);
            counters.sd_write_bytes = Some(slow.write_bytes);
            counters.io = Some(ByDisk {
                fast: ByActivity::default(),
                slow: slow.unattributed(),
            });
        }
        Ok(counters)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}

/// Copies a closed store: tables never change and are linked, the rest is copied.
fn link(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot create {}", to.display()))?;
    let are_tables = from.file_name().is_some_and(|name| name == "tables");
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            link(&source, &target)?;
            continue;
        }
        let done = if are_tables {
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
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Sender, channel};

    use fjall::compaction::filter::{
        CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
    };

    use crate::plan::tests::parse;
    use crate::run;

    fn dirs(root: &Path) -> Dirs {
        Dirs::two(root.join("fast"), root.join("slow"))
    }

    #[test]
    fn answers_are_right_and_a_copy_is_a_store_of_its_own() {
        let flags = "--engine fjall --data-size 4MiB --memory 4MiB --ops 2000 --workload uh";
        let plan = parse(flags).unwrap().plan().unwrap();
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (dirs(&root.path().join("a")), dirs(&root.path().join("b")));
        let engine = plan.engine.open(&plan.settings, &first).unwrap();
        run::load(&plan, engine.as_ref(), &mut ()).unwrap();
        let loaded = engine.counters().unwrap();
        assert!(loaded.sd_bytes > Some(4 << 20), "{loaded:?}");
        assert_eq!(loaded.user_write_bytes, Some(4 << 20));
        engine.close().unwrap();
        fs::create_dir(root.path().join("b")).unwrap();
        plan.engine.copy(&plan.settings, &first, &second).unwrap();
        for dirs in [second, first] {
            let engine = plan.engine.open(&plan.settings, &dirs).unwrap();
            let measured = run::measure(&plan, engine.as_ref(), &mut ()).unwrap();
            assert_eq!(measured.wrongs.count(), 0, "{:?}", measured.wrongs);
            assert!(measured.counters.gets > Some(0));
            engine.close().unwrap();
            assert!(!dirs.fast.exists());
            let [fast, slow] = [&dirs.fast, &dirs.slow].map(|dir| block_device::device(dir));
            assert!(fast.is_some() && fast == slow, "its disk is known");
        }
    }

    /// Regression: fjall stores with a keyspace whether it hands each write to the system. So a run
    /// had the durability of whoever had loaded its state, whatever its own settings and its report
    /// said.
    #[test]
    fn writes_are_as_durable_as_the_run_wants_them() {
        let key = b"of the run";
        for (loaded, run, is_handed_over) in
            [("none", "buffered", true), ("buffered", "none", false)]
        {
            let plan = |durability: &str| {
                let flags = "--engine fjall --data-size 1MiB --memory 4MiB --durability";
                parse(&format!("{flags} {durability}"))
                    .unwrap()
                    .plan()
                    .unwrap()
            };
            let (loads, runs) = (plan(loaded), plan(run));
            let root = tempfile::tempdir().unwrap();
            let dirs = dirs(root.path());
            let engine = loads.engine.open(&loads.settings, &dirs).unwrap();
            run::load(&loads, engine.as_ref(), &mut ()).unwrap();
            engine.close().unwrap();
            let engine = runs.engine.open(&runs.settings, &dirs).unwrap();
            engine.put(key, b"value").unwrap();
            // What others can see of the write while the store is open.
            let files = fs::read_dir(&dirs.slow).unwrap();
            let mut journals = files
                .map(|file| file.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
            let is_there = journals.any(|path| {
                let journal = fs::read(path).unwrap();
                journal.windows(key.len()).any(|part| part == key)
            });
            assert_eq!(
                is_there, is_handed_over,
                "loaded with {loaded}, run with {run}"
            );
            engine.close().unwrap();
        }
    }

    /// A filter that, once that is wanted, holds a compaction until it is let go.
    struct Held {
        begun: Sender<()>,
        until: Arc<Barrier>,
        is_wanted: Arc<AtomicBool>,
    }

    impl Factory for Held {
        fn name(&self) -> &str {
            "held"
        }

        fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
            Box::new(Self {
                begun: self.begun.clone(),
                until: Arc::clone(&self.until),
                is_wanted: Arc::clone(&self.is_wanted),
            })
        }
    }

    impl CompactionFilter for Held {
        fn filter_item(&mut self, _: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
            if self.is_wanted.swap(false, Ordering::Relaxed) {
                self.begun.send(()).unwrap();
                self.until.wait();
            }
            Ok(Verdict::Keep)
        }
    }

    /// Regression: a load of 11 GB stood still after 6.6: L0 was full, and every flush had already
    /// asked for a compaction. This test makes that state, with tables that come while a compaction
    /// has L0. Another load stood still after 9 GB, though a writer continued to have more flushed:
    /// what that asked for went to another level, and fjall halted the writer.
    #[test]
    fn writers_are_not_halted_for_good() {
        let flags = "--engine fjall --data-size 4MiB --memory 4MiB";
        let plan = parse(flags).unwrap().plan().unwrap();
        let root = tempfile::tempdir().unwrap();
        let (begun, begins) = channel();
        let until = Arc::new(Barrier::new(2));
        let is_wanted = Arc::new(AtomicBool::new(false));
        let held: Arc<dyn Factory> = Arc::new(Held {
            begun,
            until: Arc::clone(&until),
            is_wanted: Arc::clone(&is_wanted),
        });
        let builder = Database::builder(root.path())
            .with_compaction_filter_factories(Arc::new(move |_| Some(Arc::clone(&held))));
        let store = Store::open(builder, &plan.settings, &dirs(root.path())).unwrap();
        let add_tables = |count| {
            for _ in 0..count {
                let mut table = store.keyspace.start_ingestion().unwrap();
                table.write("key", "value").unwrap();
                table.finish().unwrap();
            }
        };
        // In an empty tree tables are only moved, and nothing could hold that.
        add_tables(4);
        store.settle().unwrap();
        let other = store.db.keyspace("other", KeyspaceCreateOptions::default);
        let other = other.unwrap();
        // Repeated, in case a late request was heard.
        while store.keyspace.l0_table_count() < 30 {
            is_wanted.store(true, Ordering::Relaxed);
            add_tables(4);
            begins.recv_timeout(Duration::from_secs(30)).unwrap();
            add_tables(40);
            // Requests are answered in turn: once this one is flushed, little of that is left.
            other.insert("key", "value").unwrap();
            other.rotate_memtable_and_wait().unwrap();
            until.wait();
            store.settle().unwrap();
        }

        let store = Arc::new(store);
        let (done, end) = channel();
        for _ in 0..2 {
            let (store, done) = (Arc::clone(&store), done.clone());
            thread::spawn(move || done.send(store.put(b"key", b"value").is_ok()));
        }
        for _ in 0..2 {
            assert!(end.recv_timeout(Duration::from_secs(30)).unwrap());
        }
        assert!(store.keyspace.l0_table_count() < FULL_L0);
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        for (flags, expected) in [
            ("--slow-iops 5", "--slow flags"),
            ("--compression lz4", "without compressions"),
            ("--block-size-slow 512", "1 KiB to 1 MiB"),
        ] {
            let plan = parse(&format!("--engine fjall {flags}")).unwrap().plan();
            let error = plan.err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
