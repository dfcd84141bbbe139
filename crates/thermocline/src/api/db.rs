//! [`Db`]: an open store, as programs hold it.

use std::ops::Deref;
use std::path::PathBuf;

use bytes::Bytes;

use crate::api::{DbBuilder, Keyspace, Snapshot};
use crate::batch::Batch;
use crate::copies::LogReader;
use crate::engine::{Engine, VerifyProgress, VerifyReport};
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::metrics::{CostReport, KeyspaceMetrics, Metrics};
use crate::opening::{RecoveryReport, RepairReport};
use crate::options::{Durability, Options, Target};
use crate::sync::Arc;

/// An open store. Cheap to clone. Clones, [keyspaces](Keyspace) and [snapshots](Snapshot) share the
/// store, which closes with the last of them. Nobody hears what goes wrong then: to know, call
/// [`Db::close`]. Iterators do not keep the store open. Once it is closed, an end of an iterator
/// that was not begun before gives [`Error::Closed`], and one that was may go on with what it has
/// pinned.
///
/// A `Db` is also its default keyspace: `db.put`, `db.get`, `db.range` and the other methods of
/// [`Keyspace`] work on it directly.
///
/// ```
/// # fn main() -> thermocline::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let options = thermocline::Options::two_tiers(dir.path().join("fast"), 64 << 20, dir.path().join("slow"));
/// let db = thermocline::Db::open(options)?;
/// db.put("lake", "warm above, cold below")?;
/// assert_eq!(db.get("lake")?.as_deref(), Some(&b"warm above, cold below"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    default: Keyspace,
}

/// What the handles of a store share; the store closes when the last one goes.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) engine: Arc<Engine>,
    recovery: RecoveryReport,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Errors cannot be reported from here; `Db::close` reports them.
        let _ = self.engine.close();
    }
}

impl Deref for Db {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

impl Db {
    /// Opens the store that `options` describes, creating it if it may.
    ///
    /// # Errors
    /// [`Error::InvalidOption`], [`Error::NotFound`], [`Error::Locked`], [`Error::NotWritable`],
    /// [`Error::WrongTier`], [`Error::FormatVersion`], [`Error::Corruption`],
    /// [`Error::Unfinished`], and I/O errors.
    pub fn open(options: Options) -> Result<Db> {
        DbBuilder::new(options).open()
    }

    /// For opening with storage, clock or executor of the caller's own.
    pub fn builder(options: Options) -> DbBuilder {
        DbBuilder::new(options)
    }

    pub(crate) fn new(engine: Arc<Engine>, recovery: RecoveryReport) -> Result<Db> {
        // There is one: `Shape::from_edits` refuses a manifest without it.
        let tree = engine.tree(0).ok_or_else(|| {
            let path = &engine.tiers[0].options.path;
            Error::corruption(path, 0, "the manifest names no default keyspace")
        })?;
        let handle = Arc::new(Handle { engine, recovery });
        Ok(Db {
            default: Keyspace::new(handle, tree),
        })
    }

    fn engine(&self) -> &Arc<Engine> {
        self.default.engine()
    }

    /// Writes all of `batch` or nothing, with the durability of the options.
    ///
    /// # Errors
    /// [`Error::ConditionFailed`] when a condition of the batch does not hold,
    /// [`Error::UnknownKeyspace`] when all of its writes go to keyspaces that were dropped,
    /// [`Error::ForeignKeyspace`], [`Error::TooLarge`], [`Error::NoSpace`], [`Error::Poisoned`],
    /// and I/O errors.
    pub fn write(&self, batch: Batch) -> Result<SeqNo> {
        self.write_with(batch, self.engine().options.durability)
    }

    /// As [`Db::write`], with a durability of its own. A batch that writes nothing, because it is
    /// empty or has only conditions, makes what was written before it as durable as that.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write_with(&self, batch: Batch, durability: Durability) -> Result<SeqNo> {
        self.engine().write(batch, durability)
    }

    /// The store as it is now, for reads of several keys or keyspaces.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.default.clone())
    }

    /// The keyspace called `name`.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] when there is none.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let trees = self.engine().all_trees();
        let found = trees.into_iter().find(|tree| tree.name == name.as_bytes());
        match found {
            Some(tree) => Ok(Keyspace::new(Arc::clone(self.default.handle()), tree)),
            None => Err(Error::UnknownKeyspace { name: name.into() }),
        }
    }

    /// The keyspace called `name`, created if there is none.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a name of over 255 bytes, [`Error::Poisoned`], and I/O errors.
    pub fn create_keyspace(&self, name: &str) -> Result<Keyspace> {
        let tree = self.engine().create_keyspace(name)?;
        Ok(Keyspace::new(Arc::clone(self.default.handle()), tree))
    }

    /// Removes a keyspace and everything in it. From then on handles to it, and snapshots, find
    /// nothing in it, and what a batch has for it takes no effect. Iterators that have it go on.
    /// All that was written before, to whichever keyspace, is then durable. Waits until a
    /// checkpoint or a backup has all of its tables.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`], [`Error::InvalidOption`] for the default keyspace,
    /// [`Error::Poisoned`], and I/O errors.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        let keyspace = self.keyspace(name)?;
        self.engine().drop_keyspace(keyspace.tree())
    }

    /// Names of all keyspaces, the default one first.
    pub fn keyspaces(&self) -> Vec<String> {
        let trees = self.engine().all_trees();
        let name = |name: &Bytes| String::from_utf8_lossy(name).into_owned();
        trees.iter().map(|tree| name(&tree.name)).collect()
    }

    /// Writes every memtable to tables, and returns when that is done.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::Poisoned`], and I/O errors.
    pub fn flush(&self) -> Result<()> {
        self.engine().flush_all().map(|_| ())
    }

    /// Makes every write so far durable, whatever its own durability was.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when the sync fails or one failed before (I9).
    pub fn sync(&self) -> Result<()> {
        self.engine().sync_log()
    }

    /// Returns when no flush or compaction runs, waits or is due.
    ///
    /// # Errors
    /// What keeps background work from getting done, if something does; [`Error::Closed`].
    pub fn wait_idle(&self) -> Result<()> {
        self.engine().wait_idle()
    }

    /// Makes a separate store in `paths`, one directory for each tier, with the state of one moment
    /// during the call. Tables are linked where the media can, and copied otherwise, while
    /// everything else goes on. Files that are replaced meanwhile stay until the end. What is known
    /// of hotness comes along, unless the store is closed meanwhile.
    ///
    /// Until the new store is written to, its last sequence number, `snapshot().seq()`, is that of
    /// the last write in it. [`Db::log_since`] has what came after that moment, from the next
    /// number on.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when the number of paths is not that of the tiers, two are the
    /// same, one is for the access records of the first, or one of them holds files;
    /// [`Error::Locked`] when somebody else makes a store there; I/O errors. What is left then, or
    /// after a crash, is marked. Opening or repairing it gives [`Error::Unfinished`]. The next
    /// checkpoint to the same paths removes it first, and so does [`Db::destroy`].
    pub fn checkpoint(&self, paths: &[PathBuf]) -> Result<()> {
        self.engine().checkpoint(paths)
    }

    /// Reads every table whole and checks it: checksums, order, filters, and agreement with the
    /// manifest. `progress` is called before each table. Access records are left out: what is wrong
    /// with them costs no data, and [`crate::metrics::RaltMetrics::trouble`] reports it.
    ///
    /// # Errors
    /// [`Error::Closed`]. For each table, the first thing that is damaged or cannot be read is in
    /// the report.
    pub fn verify(&self, progress: &mut dyn FnMut(VerifyProgress)) -> Result<VerifyReport> {
        self.engine().verify(progress)
    }

    /// The log from sequence number `seq` on, batch by batch: for incremental backup and for
    /// followers. It reaches back as far as recovery needs the log, and as
    /// [`Options::log_retention`] keeps it.
    ///
    /// What it returns is durable here, whatever durability it was written with: a follower is
    /// never ahead of what a loss of power leaves. So the call syncs the log, unless nothing is new
    /// since the last sync or nothing is there to read. Writes go on meanwhile, but those that ask
    /// for a sync of their own wait for this one. Where syncs are expensive, ask for many batches
    /// at a time.
    ///
    /// # Errors
    /// [`Error::LogGone`] when the log no longer holds `seq`; [`Error::LogAhead`] when there is a
    /// gap between its end and `seq`; I/O errors; [`Error::Poisoned`] when the sync fails or one
    /// failed before (I9).
    pub fn log_since(&self, seq: SeqNo) -> Result<LogReader> {
        self.engine().log_since(seq)
    }

    /// Everything the store counts, as it is now.
    pub fn metrics(&self) -> Metrics {
        self.engine().metrics()
    }

    /// What each keyspace consists of, the default one first, as [`Keyspace::metrics`] has it.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
    /// db.create_keyspace("lakes")?;
    /// let mut metrics = db.metrics();
    /// metrics.keyspaces = db.keyspace_metrics();
    /// let text = metrics.to_prometheus();
    /// assert!(text.contains("thermocline_keyspace_records{keyspace=\"lakes\"} 0"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspace_metrics(&self) -> Vec<KeyspaceMetrics> {
        let engine = self.engine();
        let trees = engine.all_trees();
        let metrics = trees.iter().map(|tree| engine.keyspace_metrics(tree));
        metrics.collect()
    }

    /// The `most` hottest keys, and how the size of the data falls with its hotness. Empty when
    /// records live by level ([`crate::Placement::ByLevel`]). Reads all access records.
    ///
    /// # Errors
    /// I/O errors, and damage of the access records.
    pub fn heat(&self, most: usize) -> Result<crate::metrics::HeatReport> {
        self.engine().heat(most)
    }

    /// Bytes of keys and values of the hot records that lie on the fast tier, whose newest version
    /// in a table is in one of the fast levels there. None unless records live by hotness
    /// ([`crate::Placement::HotRap`]). Counted by reading these tables and all access records, past
    /// the block cache: for reports, not for every second.
    ///
    /// The size of all that is hot, wherever it lies, is
    /// [`hot_set_bytes`](crate::metrics::RaltMetrics::hot_set_bytes), at no cost.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let (fast, slow) = (dir.path().join("fast"), dir.path().join("slow"));
    /// let db = thermocline::Db::open(thermocline::Options::two_tiers(fast, 64 << 20, slow))?;
    /// db.put("Grimsel", "1908 m")?;
    /// assert_eq!(db.hot_bytes_on_fast()?, Some(0), "nobody has read it");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// I/O errors, and damage of tables. What cannot be read of the access records is not hot.
    pub fn hot_bytes_on_fast(&self) -> Result<Option<u64>> {
        self.engine().hot_bytes_on_fast()
    }

    /// Sets what the store may cost, or how fast it has to be, from now on and until another target
    /// is set. It is durable on return, also over openings that name no prices. Tables then move in
    /// the background; [`Db::cost`] says how far that is. No writer waits for it.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// use thermocline::{Db, Options, Placement, Target};
    /// let (fast, slow) = (dir.path().join("fast"), dir.path().join("slow"));
    /// let mut options = Options::two_tiers(fast, 64 << 20, slow);
    /// options.placement = Placement::ByTable;
    /// options.tiers[0].price_per_gb_month = Some(0.528);
    /// options.tiers[1].price_per_gb_month = Some(0.045);
    /// let db = Db::open(options)?;
    /// db.set_target(Target::Cost(0.2))?;
    /// assert_eq!(db.cost()?.target, Target::Cost(0.2));
    /// // Less than everything on the slow tier costs is not possible.
    /// assert!(db.set_target(Target::Cost(0.01)).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidOption`] for a target that is not possible, with what would be; also if the
    /// store has one tier, its first tier has no capacity, a tier has no price, or records live by
    /// level. [`Error::ReadOnly`]; I/O errors; [`Error::Poisoned`].
    pub fn set_target(&self, target: Target) -> Result<()> {
        self.engine().set_target(target)
    }

    /// What the store costs now, what it could cost, and what that would buy.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if a tier has no price; [`Error::Closed`].
    pub fn cost(&self) -> Result<CostReport> {
        self.engine().cost()
    }

    /// What opening the store found in its log.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.default.handle().recovery
    }

    /// The settings that the store was opened with.
    pub fn options(&self) -> &Options {
        &self.engine().options
    }

    /// Flushes, waits for running work to stop, and closes the store for all its handles. Reads and
    /// writes fail from then on. Replaced files that an iterator or a call in another thread still
    /// holds are removed by the next opening.
    ///
    /// # Errors
    /// What kept the last writes from becoming durable, or else what kept them from getting into
    /// tables, for example lack of room ([`Error::NoSpace`]). In the second case the log has them
    /// all, and the next opening replays it. If the path of that error is a file of the log
    /// (`.wal`), writes that were only in the process ([`Durability::None`]) may be lost. The store
    /// is closed in any case, and whoever closes it again hears the same.
    pub fn close(&self) -> Result<()> {
        self.engine().close()
    }

    /// Makes a store that no longer opens one that does: it gets a new manifest, from what is left
    /// of the old one, the tables and the log. What cannot be saved is in the report, file by file.
    /// What is no longer used is first copied to the directory `lost` of its tier. A sound store is
    /// not changed, and with `dry_run` none is. Every file is read.
    ///
    /// If the manifest is whole, so is what it promises, except for the losses reported. If it is
    /// not, that is a loss by itself, as is a tier that was given up. Then tables and log decide,
    /// and `docs/format.md` says what that can and cannot promise. A file that is of no more use
    /// and cannot be removed is a problem in the report, and no error: the next opening removes it.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when a tier is left out, as far as what is left tells;
    /// [`Error::NotFound`] when there is nothing of a store; [`Error::Corruption`] when nothing of
    /// it says which one it is; [`Error::Locked`] when it is open; [`Error::WrongTier`] for a
    /// directory of another store, and for one without a file of the store, whose device may not be
    /// mounted ([`DbBuilder::give_up_tier`] if it is lost); [`Error::Unfinished`] for what a
    /// restore or a checkpoint that was cut short has left; [`Error::FormatVersion`] for a file of
    /// a newer release; [`Error::NoSpace`], and I/O errors.
    pub fn repair(options: &Options, dry_run: bool) -> Result<RepairReport> {
        DbBuilder::new(options.clone()).repair(dry_run)
    }

    /// Removes the store that `options` describes: its own files, nothing else. What a repair set
    /// aside in `lost/` stays, and so do the empty files that are locked while a store is open. If
    /// the call is cut short, the next one goes on. What a restore or a checkpoint that was cut
    /// short has left is removed, too. Damage is no obstacle, as long as the file `TIER` of each
    /// tier is whole.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when a tier that has tables is left out, as far as what can be read
    /// tells; [`Error::WrongTier`] for a directory of another store, and for one without a file of
    /// the store, whose device may not be mounted ([`DbBuilder::give_up_tier`] if it is lost);
    /// [`Error::NotFound`] when there is none, [`Error::Locked`] when it is open,
    /// [`Error::FormatVersion`] for a file of a newer release, I/O errors.
    pub fn destroy(options: &Options) -> Result<()> {
        DbBuilder::new(options.clone()).destroy()
    }
}
