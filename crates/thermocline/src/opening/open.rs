//! Opening a store.

use std::collections::BTreeMap;
use std::sync::Weak;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::begin::Begun;
use super::file_numbers::check_numbers;
use super::founding::{FIRST_FILE, check_first_is_there, found_new_store, new_shape};
use super::more_tiers::{check_new_tiers, divide_levels};
use super::orphans::{FoundManifest, Orphans, survey_tables};
use super::recovery::{build_trees, open_tables};
use super::request::Request;
use super::{RecoveryReport, Shape, unfinished};
use crate::batch::detached;
use crate::cache::{BlockCache, PinBudget, RecordCache};
use crate::engine::{
    Background, Caches, Closing, Engine, Files, Identity, Keyspaces, Sequence, Tally,
};
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::metrics::CpuTimes;
use crate::options::{Options, Resolved, dir_conflict};
use crate::placement::Targeting;
use crate::placement::{check_flash_cache, open_flash_cache};
use crate::points::point;
use crate::storage::{StoreLock, is_one_dir};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;
use crate::version::edit::{KeyspaceMeta, VersionEdit};
use crate::version::{
    Graveyard, MAX_LEVELS, Manifest, identity, manifest_file_name, manifest_number,
};
use crate::wal::{self, Surveyed, segment_number};
use crate::write::Commit;

/// More than the log's process buffer holds, in bytes.
const LOG_BUFFER: u64 = 128 << 10;

pub(crate) fn open(request: &Request) -> Result<(Arc<Engine>, RecoveryReport)> {
    let sizes = request.options.resolve()?;
    let creates = request.options.create_if_missing && !request.reads_only;
    let (tiers, locks) = open_tiers(request, creates)?;
    let found = Manifest::recover(&tiers[0]);
    if matches!(found, Ok(None) | Err(Error::Corruption { .. })) {
        // A later tier that was put in the first one's place has no manifest either. Nothing is
        // damaged or missing then.
        identity::check_place(&tiers[0])?;
        unfinished::refuse(&tiers[0], &tiers[..1])?;
    }
    let mut new_tiers = Vec::new();
    let (database, shape, manifest) = match found? {
        Some(found) => {
            point!(request.points, "recovery.begun")?;
            let mut unmarked = Vec::new();
            for tier in &tiers {
                // A new tier has no identity yet.
                if tier.index > 0 && identity::is_missing(tier)? {
                    unmarked.push(Arc::clone(tier));
                } else {
                    identity::check(tier, found.database)?;
                }
            }
            let fast = &tiers[0].options.path;
            let manifest = FoundManifest {
                path: fast.join(manifest_file_name(found.number)),
                number: found.number,
                end: found.len,
                torn: found.torn,
                is_closed: found.edits.last().is_some_and(VersionEdit::is_closing),
            };
            let places = found.places();
            let mut shape = Shape::from_edits(found.edits).map_err(|misfit| {
                let offset = found.offsets.get(misfit.index).copied().unwrap_or(0);
                Error::corruption(&manifest.path, offset, misfit.what)
            })?;
            if let Some((tables, what)) = shape.disorder() {
                let places = tables.iter().filter_map(|id| places.get(id));
                let offset = places.max().copied().unwrap_or(0);
                return Err(Error::corruption(&manifest.path, offset, what));
            }
            check_tier_count(&shape, tiers.len())?;
            check_new_tiers(&unmarked, found.database, &shape, &request.options)?;
            new_tiers = unmarked;
            let on_fast = shape.tables.values().filter(|table| table.tier == 0);
            check_flash_cache(&request.options, on_fast.count())?;
            divide_levels(shape.keyspaces.values_mut(), &request.options, &sizes);
            (found.database, shape, manifest)
        }
        None if creates => {
            let database = found_new_store(request, &tiers)?;
            point!(request.points, "recovery.founded")?;
            let manifest = FoundManifest {
                path: tiers[0].options.path.clone(),
                number: 0,
                end: 0,
                torn: false,
                is_closed: false,
            };
            (database, new_shape(request, &sizes), manifest)
        }
        None => {
            // Otherwise a user who reads that there is no store may allow one to be made.
            check_first_is_there(&tiers)?;
            return Err(Error::NotFound {
                path: tiers[0].options.path.clone(),
            });
        }
    };
    let known = shape.next_file.max(manifest.number);
    check_numbers(&tiers, known)?;
    let (orphans, highest) = survey_tables(&tiers, &shape, database, known)?;
    let logs = highest_log_number(&tiers[0])?;
    let next_file = shape
        .next_file
        .max(highest.saturating_add(1))
        .max(logs.saturating_add(1))
        .max(FIRST_FILE);
    let parts = Parts {
        request,
        sizes,
        tiers,
        locks,
        database,
        shape,
        manifest,
        new_tiers,
        orphans,
        next_file,
    };
    let (engine, report) = parts.start()?;
    engine.placement.opened(&engine);
    engine.schedule();
    engine.update_pressure();
    engine.placement.after_change(&engine);
    Ok((engine, report))
}

/// A number that no other opening in this process has. The files alone do not tell a store from its
/// checkpoint, which may be open beside it.
fn next_opening() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// The locks held while the store is open: one for each tier, and the log's.
pub(crate) type Locks = Vec<Box<dyn StoreLock>>;

/// Everything needed to bring a store up.
pub(crate) struct Parts<'a> {
    pub(crate) request: &'a Request,
    sizes: Resolved,
    pub(crate) tiers: Vec<Arc<Tier>>,
    locks: Locks,
    pub(crate) database: u128,
    pub(crate) shape: Shape,
    pub(crate) manifest: FoundManifest,
    /// Tiers that the store is given in addition to the one that it had.
    pub(crate) new_tiers: Vec<Arc<Tier>>,
    pub(crate) orphans: Orphans,
    next_file: u64,
}

/// A record of the log that is not in tables yet.
type Replayed = (SeqNo, KeyspaceId, Kind, Bytes, Bytes);

impl Parts<'_> {
    /// Reads the log. Returns what it holds, and those of its records that are not in tables.
    /// Changes nothing.
    fn survey_log(&self) -> Result<(Surveyed, Vec<Replayed>)> {
        let mut replayed = Vec::new();
        let flushed = &self.shape.flushed_through;
        let manifest = &self.manifest;
        let surveyed = wal::survey(
            &self.tiers[0],
            self.database,
            self.request.options.recovery,
            &self.shape.log_bounds(),
            &mut |seq, keyspace, kind, key, value| {
                // I5: what is in tables already is skipped, keyspace by keyspace; what belongs
                // to a dropped keyspace has no entry here.
                match flushed.get(&keyspace) {
                    Some(through) if seq > *through => {
                        // As slices, few of them would keep all of the log in memory (I8).
                        let (key, value) = detached(&key, &value);
                        replayed.push((seq, keyspace, kind, key, value));
                    }
                    // The edit that makes a keyspace says that all numbers up to the keyspace's own
                    // are taken.
                    None if u64::from(keyspace) >= self.shape.next_file => {
                        let what = format!(
                            "the log writes to keyspace {keyspace}, the edit that made it is gone"
                        );
                        return Err(Error::corruption(&manifest.path, manifest.end, what));
                    }
                    _ => {}
                }
                Ok(())
            },
        )?;
        Ok((surveyed, replayed))
    }

    /// Replays the log and begins what the store goes on with. Tables are opened when they are
    /// needed; after a crash they are opened now.
    fn start(mut self) -> Result<(Arc<Engine>, RecoveryReport)> {
        let request = self.request;
        let next_file = AtomicU64::new(self.next_file);
        let new_file = || next_file.fetch_add(1, Ordering::Relaxed);
        let (surveyed, replayed) = self.survey_log()?;
        // Before anything is changed: a store that is refused is left as it was.
        let aside = self
            .orphans
            .check(&self.shape, &surveyed.recovered, &self.manifest)?;
        let flash = match request.reads_only {
            true => None,
            false => open_flash_cache(&request.options, &self.sizes, &self.tiers[0])?,
        };
        let block_sizes = self.tiers.iter().map(|tier| tier.options.block_size as u64);
        let block_size = block_sizes.max().unwrap_or_default();
        let cache = BlockCache::for_blocks_of(block_size, self.sizes.block_cache).above(flash);
        let cache = Arc::new(cache);
        let buffers = self.sizes.buffers(request.options.memory);
        self.tiers[0].large.take_from(&cache, buffers);
        let pins = Arc::new(PinBudget::new(self.sizes.pinned));
        // After a crash the tables are opened before anything is removed: the files removed next
        // may be all that is left of records whose table did not get to the device, whatever the
        // device said. After a clean close nothing is removed but what the tables are known to
        // hold.
        let removes = !self.manifest.is_closed || !self.orphans.is_empty();
        let ends = removes && !request.reads_only;
        let opened = open_tables(
            &mut self.shape,
            &self.tiers,
            self.database,
            &cache,
            &pins,
            ends,
        )?;
        point!(request.points, "recovery.tables_opened")?;
        let Begun {
            recovered,
            found_log,
            placement,
            hotness,
            manifest,
            wal,
            orphans,
            set_aside,
        } = match request.reads_only {
            true => self.begin_nothing(surveyed, &new_file)?,
            false => self.begin(surveyed, &aside, &new_file)?,
        };
        // Numbers go on from the log, not from the manifest. The number that the manifest names may
        // be that of a write which no log holds: one from before a loss of power, or one of the
        // store that this one is a copy of. No record has that number (I5), and the log has to go
        // on without a gap.
        let last_seq = recovered.last_seq;
        let executor = request.make_executor()?;
        let clock = Arc::clone(&request.clock);
        let cpu = Arc::new(CpuTimes::default());
        let engine = Arc::new_cyclic(|me: &Weak<Engine>| Engine {
            me: me.clone(),
            graveyard: Arc::new(Graveyard::new(
                me.clone(),
                Arc::clone(&executor),
                Arc::clone(&clock),
                Arc::clone(&cpu),
                request.points.clone(),
            )),
            options: request.options.clone(),
            sizes: self.sizes,
            identity: Identity {
                database: self.database,
                opening: next_opening(),
                opened: request.clock.now(),
            },
            tiers: self.tiers,
            media: (0..request.options.tiers.len())
                .map(|t| request.medium_of(t))
                .collect(),
            caches: Caches {
                blocks: cache,
                records: open_record_cache(&request.options, &self.sizes),
                pins,
            },
            clock,
            executor,
            points: request.points.clone(),
            keyspaces: Keyspaces {
                trees: ArcSwap::from_pointee(BTreeMap::new()),
                dropped: Mutex::default(),
                tally: Arc::new(Tally::new(request.options.l0_stop)),
            },
            commit: Commit::new(wal, last_seq),
            ingestions: Default::default(),
            sequence: Sequence {
                visible: AtomicU64::new(last_seq),
                log_floor: AtomicU64::new(self.shape.log_floor),
                found_log,
            },
            snapshots: Default::default(),
            files: Files {
                manifest: Mutex::new(manifest),
                next: next_file,
            },
            background: Background::new(request.reads_only),
            stall: Default::default(),
            refusals: Default::default(),
            target: Targeting::open(&request.options, self.shape.target.take()),
            placement,
            stats: Default::default(),
            cpu,
            closing: Closing {
                is_closed: AtomicBool::new(false),
                outcome: Mutex::default(),
                locks: Mutex::new(self.locks),
            },
        });
        let trees = build_trees(&engine, &self.shape, opened);
        let count = replayed.len() as u64;
        for (seq, keyspace, kind, key, value) in replayed {
            if let Some(tree) = trees.get(&keyspace) {
                let bytes = tree.replay(key, seq, kind, value);
                engine
                    .commit
                    .active_bytes
                    .fetch_add(bytes, Ordering::Relaxed);
            }
        }
        engine.keyspaces.trees.store(Arc::new(trees));
        let mut report = RecoveryReport::new(count, &recovered, orphans);
        report.hotness = hotness;
        report.target = engine.target.changed().map(str::to_owned);
        report.set_aside = set_aside;
        Ok((engine, report))
    }
}

/// The record cache, if one is wanted and there is memory for its index.
fn open_record_cache(options: &Options, sizes: &Resolved) -> Option<RecordCache> {
    let seed = options.seed.unwrap_or_else(rand::random);
    RecordCache::new(sizes.record_cache, seed)
}

pub(crate) fn open_tiers(request: &Request, create: bool) -> Result<(Vec<Arc<Tier>>, Locks)> {
    // What the process buffer of the log may hold, and as much for edits of the manifest.
    let for_logs = 2 * request.options.resolve()?.memtable_size.min(LOG_BUFFER);
    let large = Arc::default();
    let mut tiers = Vec::new();
    let mut locks = Vec::new();
    for (index, options) in request.options.tiers.iter().enumerate() {
        let medium = request.medium_of(index);
        let log = match index {
            0 => Some(medium.log_store(&options.path, create)?),
            _ => None,
        };
        if let Some(log) = &log {
            locks.push(request.lock_by(|| log.lock())?);
        }
        let tables = medium.table_store(&options.path, create)?;
        let before = request.options.tiers[..index].iter().map(|t| &t.path);
        // A directory that was given under two names can be recognised only now. Otherwise the lock
        // of the tier that has it already would be taken for another process's.
        if let Some(reason) = dir_conflict(&options.path, before, is_one_dir) {
            return Err(Error::InvalidOption {
                option: "tiers",
                reason,
            });
        }
        locks.push(request.lock_by(|| tables.lock())?);
        let tier = Tier::new(index as u8, options.clone(), tables, log).counting_in(&large);
        tiers.push(Arc::new(match index {
            0 => tier.keeping_free(for_logs),
            _ => tier,
        }));
    }
    Ok((tiers, locks))
}

/// Refuses fewer tiers than there are tables on. Of a store of several tiers it refuses a single
/// one even if the others hold no tables: what is on them, and the access records, still belongs to
/// the store.
///
/// # Errors
/// [`Error::InvalidOption`].
pub(crate) fn check_tier_count(shape: &Shape, tiers: usize) -> Result<()> {
    let needed = shape
        .tables
        .values()
        .map(|table| usize::from(table.tier) + 1)
        .max();
    if let Some(needed) = needed.filter(|needed| *needed > tiers) {
        return Err(Error::InvalidOption {
            option: "tiers",
            reason: format!("the store has tables on {needed} tiers, {tiers} given; name them all"),
        });
    }
    // Only a keyspace that was made on a single tier has all its levels there.
    let has_slow_levels =
        |keyspace: &KeyspaceMeta| usize::from(keyspace.last_fast_level) < MAX_LEVELS - 1;
    if tiers == 1 && shape.keyspaces.values().any(has_slow_levels) {
        return Err(Error::InvalidOption {
            option: "tiers",
            reason: "the store has more tiers than the one given; name them all, the fastest first"
                .into(),
        });
    }
    Ok(())
}

fn highest_log_number(tier: &Tier) -> Result<u64> {
    let Some(log) = &tier.log else { return Ok(0) };
    let files = log.list()?;
    let number = |name: &str| segment_number(name).or_else(|| manifest_number(name));
    Ok(files
        .iter()
        .filter_map(|file| number(&file.name))
        .max()
        .unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Db;
    use crate::executor::Stepped;
    use crate::storage::Faulty;

    /// Replayed records were slices of their segments. After a crash, one short record that no
    /// flush had reached kept all of its segment in memory until its keyspace was flushed. A
    /// keyspace that is seldom written to leaves such a record in each segment (I8).
    #[test]
    fn a_replayed_record_does_not_keep_its_segment() {
        let open = |disk: &Faulty| {
            let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
            builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
        };
        let disk = Faulty::new(1);
        let db = open(&disk);
        let index = db.create_keyspace("index").unwrap();
        index.put("key", "value").unwrap();
        db.put("large", vec![7u8; 1 << 20]).unwrap();
        let mut log = db.engine().commit.log.lock();
        db.engine().freeze(&mut log, db.tree()).unwrap();
        drop(log);
        db.wait_idle().unwrap();

        let db = open(&disk.image(|_| true));
        assert_eq!(db.recovery().replayed, 1);
        let value = db.keyspace("index").unwrap().get("key").unwrap();
        let value = value.unwrap().into_bytes();
        // After this nothing else holds a part of the memory.
        db.close().unwrap();
        drop(db);
        let memory = value.try_into_mut().unwrap();
        assert_eq!(&memory[..], b"value");
        assert!(memory.capacity() < 1000, "{} bytes", memory.capacity());
    }
}
