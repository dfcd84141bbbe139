//! The write path: group commit into one log, then the memtables, then publication.
//!
//! Writers queue, and whoever finds no leader leads. The leader takes all that wait as one group
//! and appends it to the log as one record. It hands the record over or syncs it once, as the most
//! demanding member asks. Then it inserts the group into the memtables and publishes its last
//! sequence number. What arrives meanwhile is the next group.
//!
//! The leader inserts for its whole group. If members inserted for themselves, each would be woken
//! twice. A group's inserts take a few microseconds, less than one wake-up.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

use bytes::Bytes;

use super::gathering::Gathering;
use super::group::{Groups, Member};
use super::ingest::Request as IngestRequest;
use crate::batch::{Batch, Condition, Expect, Ops, detached};
use crate::engine::{Engine, Tree, said};
use crate::error::{Error, Result};
use crate::key::{MAX_SEQ, SeqNo};
use crate::options::Durability;
use crate::points::point;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};
use crate::value::Value;
use crate::wal::{Wal, WalSync};

/// Most bytes of batches in one record of the log, except for a single batch that is longer. Nobody
/// is to be refused for the size of their group, and the log's buffer grows to the size of a
/// record.
const MAX_RUN_LEN: usize = 64 << 20;

/// The queue of writers, and the log that the leader of each group writes.
#[derive(Debug)]
pub(crate) struct Commit {
    groups: Groups<Pending>,
    gathering: Gathering,
    /// Held by the leader of a group, and by whoever freezes memtables (I10).
    pub(crate) log: Mutex<Log>,
    /// Syncs and trims the log without holding up its leader.
    pub(crate) log_sync: WalSync,
    /// Bytes of all active memtables, and those in the current segment of the log that nobody will
    /// flush.
    pub(crate) active_bytes: AtomicU64,
    /// While above 0 no memtable freezes: a checkpoint is being taken. Raised under the log's lock.
    pub(crate) freeze_holds: AtomicUsize,
}

/// The log, in the hands of one leader at a time.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) wal: Wal,
    /// Sequence number of the last record in the log.
    pub(crate) last_seq: SeqNo,
    /// Bytes in its current segment that were written for keyspaces which are gone.
    pub(crate) unowned: u64,
}

/// A write that waits for its group.
#[derive(Debug)]
struct Pending {
    batch: Bytes,
    count: u64,
    user_bytes: u64,
    conditions: Vec<Condition>,
    /// Whether it names another keyspace than the default one, which is never dropped.
    names_keyspaces: bool,
    /// Whether it writes to several keyspaces.
    is_spread: bool,
    durability: Durability,
    /// For an ingestion, which writes no batch.
    ingestion: Option<Arc<IngestRequest>>,
    result: OnceLock<Result<SeqNo>>,
}

impl Pending {
    fn new(batch: Batch, durability: Durability) -> Self {
        let names_keyspaces = batch.keyspaces().next().is_some();
        Self {
            count: batch.len() as u64,
            user_bytes: batch.user_bytes(),
            conditions: batch.conditions().to_vec(),
            names_keyspaces,
            is_spread: batch.is_spread(),
            batch: batch.into_bytes(),
            durability,
            ingestion: None,
            result: OnceLock::new(),
        }
    }
}

impl Member for Pending {
    type Outcome = Result<SeqNo>;

    fn outcome(&self) -> Option<Result<SeqNo>> {
        self.result.get().cloned()
    }
}

impl Commit {
    pub(crate) fn new(wal: Wal, last_seq: SeqNo) -> Self {
        Self {
            groups: Groups::default(),
            gathering: Gathering::default(),
            log_sync: wal.handle(),
            log: Mutex::new(Log {
                wal,
                last_seq,
                unowned: 0,
            }),
            freeze_holds: AtomicUsize::new(0),
            active_bytes: AtomicU64::new(0),
        }
    }
}

impl Engine {
    /// Commits `batch`. Returns the sequence number of its last record once readers see it and it
    /// is as durable as asked (I5).
    pub(crate) fn write(&self, batch: Batch, durability: Durability) -> Result<SeqNo> {
        batch.validate()?;
        self.check_keyspaces(&batch)?;
        self.check_writable()?;
        if batch.is_empty() && batch.conditions().is_empty() {
            let seq = self.visible();
            let mut log = self.commit.log.lock();
            let kept = self.keep_what_is_written(&mut log, durability);
            return kept
                .inspect_err(|error| self.background.note_poison(error))
                .map(|()| seq);
        }
        let started = self.clock.now();
        let bytes = batch.byte_len() as u64;
        self.make_room(bytes)
            .inspect_err(|error| self.refusals.note(error, Some(bytes)))?;
        // The leader looks the conditions' keys up while all writers wait for it. So anything that
        // this needs from a disk is read, and counted, here. Only the leader can say whether the
        // conditions hold: it sees what comes before the batch.
        let _ = self.check_conditions(batch.conditions(), |tree, key| self.get(tree, key));
        let pending = Arc::new(Pending::new(batch, durability));
        let mut more = self.commit.gathering.wait_for_more(&*self.clock);
        let result = self.commit.groups.join(
            pending,
            |waiting| durability == Durability::Sync && more(waiting),
            |group| self.commit_group_whatever_comes(group),
        );
        drop(more);
        self.stats
            .write_latency
            .record(self.clock.now().saturating_sub(started));
        result
    }

    /// Installs the tables of an ingestion, once those that are before it in the queue are written.
    /// Returns the number that its records have; they are durable, and readers see them.
    ///
    /// # Errors
    /// As [`Engine::install_ingestion`].
    pub(crate) fn ingest(&self, request: &Arc<IngestRequest>) -> Result<SeqNo> {
        let mut pending = Pending::new(Batch::new(), Durability::Sync);
        pending.ingestion = Some(Arc::clone(request));
        let queue = &self.commit.groups;
        queue.join(
            Arc::new(pending),
            |_| false,
            |group| self.commit_group_whatever_comes(group),
        )
    }

    /// Refuses a batch that names a keyspace which is not this store's. What it wrote would be
    /// acknowledged and nowhere (I5), and a log that writes to a keyspace without an edit reads as
    /// damage. A batch gets its keyspaces only from handles. If a handle of this opening named one,
    /// it is the store's, or was until it was dropped.
    fn check_keyspaces(&self, batch: &Batch) -> Result<()> {
        match batch.foreign_to(self.identity.opening) {
            Some(number) => Err(Error::ForeignKeyspace { number }),
            None => Ok(()),
        }
    }

    /// As [`Engine::commit_group`]. A panic poisons the store: nobody knows what is half done, and
    /// everybody in the group has to hear of it.
    fn commit_group_whatever_comes(&self, group: &[Arc<Pending>]) {
        let led = catch_unwind(AssertUnwindSafe(|| self.commit_group(group)));
        let Err(panic) = led else { return };
        let cause = format!("a commit panicked: {}", said(&*panic)).into();
        let error = Error::Poisoned { cause };
        self.background.note_poison(&error);
        for pending in group {
            // Those that were done already have their outcome.
            let _ = pending.result.set(Err(error.clone()));
        }
        resume_unwind(panic)
    }

    /// Writes one group, run by run, each run as one record. A batch with conditions comes first in
    /// its run, so that it sees what came before it.
    fn commit_group(&self, group: &[Arc<Pending>]) {
        // An ingestion comes alone: it takes the log's lock itself, and gives it back while it
        // waits for flushes.
        let is_ingestion = |pending: &Arc<Pending>| pending.ingestion.is_some();
        for part in group.chunk_by(|a, b| !is_ingestion(a) && !is_ingestion(b)) {
            match part {
                [one] if is_ingestion(one) => {
                    let installed = one.ingestion.iter().map(|i| self.install_ingestion(i));
                    for outcome in installed {
                        let _ = one.result.set(outcome);
                    }
                }
                batches => self.commit_runs(batches, MAX_RUN_LEN),
            }
        }
    }

    /// As [`Engine::commit_group`], with runs of at most `most` bytes.
    fn commit_runs(&self, group: &[Arc<Pending>], most: usize) {
        let mut log = self.commit.log.lock();
        let mut rest = group;
        while let Some(first) = rest.first() {
            let (run, next) = rest.split_at(self.run_len(rest, most));
            rest = next;
            let checked = self.check_owned(first);
            let look = |tree: &Tree, key: &[u8]| self.get_again(tree, key);
            let checked = checked.and_then(|()| self.check_conditions(&first.conditions, look));
            let run = if checked.is_err() { &run[1..] } else { run };
            if let Err(error) = checked {
                let _ = first.result.set(Err(error));
            }
            let written = self.commit_run(&mut log, run);
            if let Err(error) = &written {
                // Its writers hear of an error that may pass, and it keeps nobody else from
                // anything.
                self.background.note_poison(error);
                self.refusals.note(error, None);
            }
            // Each learns the number of its own last record, not of its group's.
            let mut behind: u64 = run.iter().map(|p| p.count).sum();
            for pending in run {
                behind -= pending.count;
                let own = written.as_ref().map(|last| last - behind);
                let _ = pending.result.set(own.map_err(Error::clone));
            }
        }
    }

    /// How many batches of `group` make one run: at least one, and then those before the next that
    /// may be refused, up to `most` bytes.
    fn run_len(&self, group: &[Arc<Pending>], most: usize) -> usize {
        let may_be_refused =
            |p: &Arc<Pending>| !p.conditions.is_empty() || self.check_owned(p).is_err();
        let mut bytes = 0;
        let end = group.iter().enumerate().position(|(at, pending)| {
            bytes += pending.batch.len();
            at > 0 && (bytes > most || may_be_refused(pending))
        });
        end.unwrap_or(group.len())
    }

    fn commit_run(&self, log: &mut Log, run: &[Arc<Pending>]) -> Result<SeqNo> {
        let durability = run.iter().map(|p| p.durability).max_by_key(|d| *d as u8);
        let Some(durability) = durability else {
            return Ok(log.last_seq);
        };
        self.check_writable()?;
        if run.iter().all(|p| p.count == 0) {
            self.keep_what_is_written(log, durability)?;
            return Ok(log.last_seq);
        }
        self.freeze_if_full(log)?;
        let first_seq = log.last_seq + 1;
        let count: u64 = run.iter().map(|p| p.count).sum();
        let last_seq = first_seq + count - 1;
        if last_seq >= MAX_SEQ {
            return Err(Error::TooLarge {
                what: "sequence number",
                len: last_seq as usize,
                limit: MAX_SEQ as usize,
            });
        }
        let batches: Vec<Bytes> = run.iter().map(|p| p.batch.clone()).collect();
        log.wal.append(first_seq, &batches)?;
        match durability {
            Durability::None => {}
            Durability::Buffered => log.wal.hand_over()?,
            Durability::Sync => {
                let started = self.clock.now();
                log.wal.sync()?;
                let took = self.clock.now().saturating_sub(started);
                self.commit.gathering.note(run.len(), took);
            }
        }
        // From here on the group is in the log and must become visible: an error that left it
        // half applied would be a lie to its writers.
        log.last_seq = last_seq;
        let inserted = self.apply(first_seq, run);
        // I10: published only now that every insert is complete.
        self.sequence.visible.store(last_seq, Ordering::Release);
        self.refusals.clear();
        let user_bytes = run.iter().map(|p| p.user_bytes).sum();
        self.stats.count_write(count, user_bytes);
        let (inserted, unowned) = inserted?;
        log.unowned += unowned;
        self.commit
            .active_bytes
            .fetch_add(inserted + unowned, Ordering::Relaxed);
        if self.keyspaces.tally.frozen() >= self.max_immutables() {
            self.update_memtable_pressure();
        }
        point!(self.points, "commit.published")?;
        Ok(last_seq)
    }

    /// Does what a batch that writes nothing asks for: makes what comes before it as durable as the
    /// batch wants to be itself (I5).
    fn keep_what_is_written(&self, log: &mut Log, durability: Durability) -> Result<()> {
        match durability {
            Durability::None => Ok(()),
            Durability::Buffered => log.wal.hand_over_all(),
            Durability::Sync => log.wal.sync_all(),
        }
    }

    /// Inserts a group's records. Returns the memory that they take, and the bytes of those whose
    /// keyspace is gone.
    fn apply(&self, first_seq: SeqNo, run: &[Arc<Pending>]) -> Result<(u64, u64)> {
        let trees = self.keyspaces.trees.load();
        let mut current: Option<(&Arc<Tree>, Arc<crate::read::Superversion>)> = None;
        let mut seq = first_seq;
        let (mut bytes, mut unowned) = (0, 0);
        for pending in run {
            let refused =
                |at: usize| Error::corruption("batch", at as u64, "a batch does not decode");
            for op in Ops::new(pending.batch.clone()).map_err(|bad| refused(bad.at))? {
                let op = op.map_err(|bad| refused(bad.at))?;
                if current
                    .as_ref()
                    .is_none_or(|(tree, _)| tree.id != op.keyspace)
                {
                    // A keyspace that was dropped meanwhile takes no more writes; its log
                    // records are skipped by recovery too.
                    current = trees.get(&op.keyspace).map(|tree| (tree, tree.pin()));
                }
                if let Some((_, superversion)) = &current {
                    // Memtables go at different times. If each held slices of the batch, it would
                    // keep what was written to the others, without counting it (I8).
                    let (key, value) = match pending.is_spread {
                        true => detached(&op.key, &op.value),
                        false => (op.key, op.value),
                    };
                    bytes += superversion.active.insert(key, seq, op.kind, value);
                    point!(self.points, "commit.inserting")?;
                } else {
                    unowned += (op.key.len() + op.value.len()) as u64;
                }
                seq += 1;
            }
        }
        Ok((bytes, unowned))
    }

    /// Refuses a batch if all of its writes go to keyspaces that are gone. They would do nothing
    /// but make the log longer, and no flush would ever let that part of it go. Checked under the
    /// log's lock, which a drop takes.
    fn check_owned(&self, pending: &Pending) -> Result<()> {
        if !pending.names_keyspaces {
            return Ok(());
        }
        let trees = self.keyspaces.trees.load();
        let mut gone = None;
        // A batch that does not decode is refused where it is applied.
        let ops = Ops::new(pending.batch.clone()).into_iter();
        for op in ops.flatten().flatten() {
            if trees.contains_key(&op.keyspace) {
                return Ok(());
            }
            gone = Some(op.keyspace);
        }
        let Some(gone) = gone else { return Ok(()) };
        let name = self.keyspaces.dropped.lock().name_of(gone);
        Err(Error::UnknownKeyspace { name })
    }

    /// Whether `conditions` hold by what `look` finds. They are checked in their order, up to the
    /// first that does not hold. What counts is what the leader finds: everything before this
    /// batch.
    fn check_conditions(
        &self,
        conditions: &[Condition],
        look: impl Fn(&Tree, &[u8]) -> Result<Option<Value>>,
    ) -> Result<()> {
        for (index, condition) in conditions.iter().enumerate() {
            let found = match self.tree(condition.keyspace) {
                Some(tree) => look(&tree, &condition.key)?,
                None => None,
            };
            let holds = match &condition.expect {
                Expect::Absent => found.is_none(),
                Expect::Present => found.is_some(),
                Expect::Equals(value) => found.is_some_and(|f| f == value[..]),
            };
            if !holds {
                return Err(Error::ConditionFailed { index });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::options::Options;
    use crate::points::Points;
    use crate::storage::{Fault, Faulty, Memory, Operation};

    /// A group was one record, however much its writers brought together. Beyond 4 GiB all of them
    /// were refused, though none of them was over a limit.
    #[test]
    fn a_group_is_cut_into_records_of_a_bounded_length() {
        let points = Points::default();
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        let db = builder.points(points.clone()).open().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        points.set("commit.published", move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let pending = |(n, len): (usize, usize)| {
            let mut batch = Batch::new();
            batch.put(format!("key{n}"), vec![7u8; len]);
            Arc::new(Pending::new(batch, Durability::Buffered))
        };
        // Two together, one that is too long by itself, one that does not fit with the next.
        let lens = [400, 400, 5000, 700, 700];
        let group: Vec<_> = lens.into_iter().enumerate().map(pending).collect();
        db.engine().commit_runs(&group, 1000);
        assert_eq!(runs.load(Ordering::Relaxed), 4);
        for (pending, seq) in group.iter().zip(1..) {
            assert_eq!(pending.outcome().unwrap().unwrap(), seq);
        }
        assert_eq!(db.iter().count(), lens.len());
    }

    /// Memtables held slices of whole batches. So the short records of an index kept the long
    /// values that were written with them, though these had long been flushed. The index counted
    /// only its own bytes, so its memtable was never the largest, and grew to gigabytes (I8).
    #[test]
    fn a_batch_for_several_keyspaces_is_kept_by_none_of_them() {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        let index = db.create_keyspace("index").unwrap();
        let commit = |batch: Batch| {
            let pending = Arc::new(Pending::new(batch, Durability::Buffered));
            let group = [Arc::clone(&pending)];
            db.engine().commit_runs(&group, MAX_RUN_LEN);
            pending.outcome().unwrap().unwrap();
            pending
        };
        let mut batch = Batch::new();
        batch.put("key", vec![7u8; 64 << 10]);
        let of_one = commit(batch.clone());
        assert!(!of_one.batch.is_unique(), "the only memtable shares it");
        batch.put_in(&index, "place", "key");
        let of_two = commit(batch);
        assert!(of_two.batch.is_unique(), "a memtable keeps it");
        assert_eq!(index.get("place").unwrap().as_deref(), Some(&b"key"[..]));
        assert_eq!(db.get("key").unwrap().unwrap().len(), 64 << 10);
    }

    /// The leader read the keys of conditions with the log's lock held. On a slow disk, the writers
    /// of all keyspaces waited for one such read after the other.
    #[test]
    fn no_writer_waits_for_the_disk_that_has_a_conditions_key() {
        let disk = Faulty::new(1);
        let open = || {
            let medium = Arc::new(disk.clone());
            let builder = Db::builder(Options::one_tier("/db")).medium(0, medium);
            builder.open().unwrap()
        };
        let db = open();
        db.put("key", "value").unwrap();
        db.close().unwrap();
        let db = open();
        let (engine, looks) = (Arc::clone(db.engine()), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&looks);
        // Called at each operation, and lets all of them succeed.
        let look = move |operation, name: &str| {
            if operation == Operation::Read && name.ends_with(".sst") {
                seen.lock().push(engine.commit.log.try_lock().is_some());
            }
            false
        };
        disk.fail_where(look, Fault::Io);
        let mut batch = Batch::new();
        batch.require(&db, "key", Expect::Present);
        batch.put("other", "value");
        db.write(batch).unwrap();
        disk.heal();
        let looks = looks.lock();
        let are_free = looks.iter().all(|is_free| *is_free);
        assert!(!looks.is_empty() && are_free, "{looks:?}");
        assert_eq!(db.metrics().hits.gets, 1, "both looks are one read");
    }
}
