//! How much the active memtables may hold together.
//!
//! That is one memtable's size, as long as what is frozen for want of room makes tables that are
//! worth their price: a file, its syncs, its part of a compaction. Where hundreds of keyspaces are
//! written to, the largest memtables of so little hold a few records each. Then they may hold
//! more, within the budgets (I8): memory comes from the block cache, and the log's room is free.

use super::Log;
use crate::engine::Engine;
use crate::placement::planned_log;
use crate::sync::atomic::Ordering;

/// Bytes of a memtable whose table is worth its price, whatever a memtable's size.
const WORTH_A_TABLE: u64 = 32 << 10;

/// The part of the memory, and of the fast tier, that active memtables may take: one in so many.
const PART: u64 = 8;

impl Engine {
    /// Bytes that active memtables hold when some are frozen.
    pub(crate) fn active_limit(&self) -> u64 {
        let limit = self.commit.limit.load(Ordering::Relaxed);
        limit.max(self.sizes.memtable_size)
    }

    /// What they may hold beyond a memtable's size.
    fn beyond(&self) -> u64 {
        self.active_limit() - self.sizes.memtable_size
    }

    /// What all memtables, active and frozen, may take of the memory.
    pub(crate) fn memtable_memory(&self) -> u64 {
        self.memory_of_memtables() + 2 * self.beyond()
    }

    /// Bytes of closed segments that are kept for memtables which are not large.
    pub(super) fn log_limit(&self) -> u64 {
        let beyond = self.beyond() / 2 * 3;
        let planned = planned_log(&self.sizes).saturating_add(self.options.log_retention);
        planned.saturating_add(beyond)
    }

    /// Whether the log has taken room that writers will soon have to wait for.
    pub(super) fn log_wants_room(&self) -> bool {
        self.beyond() > 0 && self.fast().free_bytes() < 2 * self.sizes.memtable_size
    }

    /// Lets the active memtables hold more, where tables of `count` of them, with `bytes` together,
    /// would not be worth their price. Returns whether they may.
    pub(super) fn grows_instead(&self, log: &mut Log, count: usize, bytes: u64) -> bool {
        let memtable = self.sizes.memtable_size;
        let worth = WORTH_A_TABLE.min(memtable / 4);
        let now = self.active_limit();
        let most = self.options.memory.min(self.fast().capacity()) / PART;
        let next = (2 * now).min(most);
        let wanted = self.compaction_margin().max(2 * memtable) + now;
        let grows =
            bytes < worth * count as u64 && next > now && self.fast().free_bytes() >= wanted;
        if grows {
            self.set_limit(log, next);
        }
        grows
    }

    /// Has the limit follow what the active memtables still hold once some are frozen.
    pub(super) fn lower_limit(&self, log: &mut Log) {
        let now = self.active_limit();
        let active = self.commit.active_bytes.load(Ordering::Relaxed);
        let next = (2 * active).clamp(self.sizes.memtable_size, now);
        if next < now {
            self.set_limit(log, next);
        }
    }

    fn set_limit(&self, log: &mut Log, limit: u64) {
        self.commit.limit.store(limit, Ordering::Relaxed);
        // The one hold goes before the other comes: the cache is not to pay for both.
        log.beyond = None;
        let beyond = usize::try_from(2 * self.beyond()).unwrap_or(usize::MAX);
        log.beyond = self.fast().large.hold(beyond);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Stepped;
    use crate::options::Options;
    use crate::storage::{Medium, Memory};
    use crate::sync::Arc;
    use crate::{Db, Keyspace};

    const MEMTABLE: u64 = 256 << 10;

    /// A store whose active memtables may hold 2 MiB at most, and so many keyspaces of it.
    fn open(
        memory: &Arc<Memory>,
        executor: &Arc<Stepped>,
        keyspaces: usize,
    ) -> (Db, Vec<Keyspace>) {
        let mut options = Options::one_tier("/fast");
        (options.memory, options.memtable_size) = (16 << 20, Some(MEMTABLE));
        let builder = Db::builder(options).medium(0, Arc::clone(memory) as Arc<_>);
        let db = builder.executor(executor.clone()).open().unwrap();
        let keyspaces = (0..keyspaces).map(|number| {
            let keyspace = db.create_keyspace(&number.to_string());
            keyspace.unwrap()
        });
        let keyspaces = keyspaces.collect();
        (db, keyspaces)
    }

    /// Bytes of the log.
    fn log_bytes(memory: &Memory) -> u64 {
        let log = memory.log_store("/fast".as_ref(), false).unwrap();
        let files = log.list().unwrap().into_iter();
        let segments = files.filter(|file| file.name.ends_with(".wal"));
        segments.map(|segment| segment.len).sum()
    }

    /// However many keyspaces were written to, all memtables together held one memtable's worth. So
    /// each became a table whenever it held a record or two.
    #[test]
    fn memtables_of_many_keyspaces_are_not_flushed_while_they_are_tiny() {
        const KEYSPACES: usize = 500;
        let memory = Arc::new(Memory::new());
        let (db, keyspaces) = open(&memory, &Arc::new(Stepped::new(1)), KEYSPACES);
        let engine = db.engine();
        for key in 0..20_000_u64 {
            let place = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let keyspace = &keyspaces[place as usize % KEYSPACES];
            keyspace.put(key.to_be_bytes(), [7; 300]).unwrap();
            let active = engine.commit.active_bytes.load(Ordering::Relaxed);
            let frozen = engine.keyspaces.tally.frozen_bytes();
            assert!(active <= (2 << 20) + 1000, "{active} bytes are active");
            assert!(active + frozen <= engine.memtable_memory());
            assert!(log_bytes(&memory) <= engine.log_limit() + active);
        }
        let flushed = db.metrics().flushes;
        // Half of 2 MiB is frozen at a time: 2 KiB of each of 500 keyspaces, at least.
        let written = 20_000 * 500;
        assert!(flushed <= written / 2000, "{flushed} flushes");
        assert!(engine.fast().large.bytes() > 0, "the memory is counted");
        db.flush().unwrap();
        assert_eq!(engine.active_limit(), MEMTABLE);
        assert_eq!(engine.fast().large.bytes(), 0);
    }

    /// What many keyspaces left in memory must not let the memtable of a busy one get larger than
    /// any other, nor the log longer than planned.
    #[test]
    fn a_busy_keyspace_beside_idle_ones_has_memtables_of_the_usual_size() {
        for idle in [20, 500] {
            let memory = Arc::new(Memory::new());
            let executor = Arc::new(Stepped::new(1));
            let (db, keyspaces) = open(&memory, &executor, idle + 1);
            let engine = db.engine();
            let (busy, idle) = keyspaces.split_first().unwrap();
            for round in 0..2000_u64 {
                for keyspace in idle.iter().filter(|_| round == 0) {
                    keyspace.put("key", [7; 1000]).unwrap();
                }
                busy.put(round.to_be_bytes(), [7; 3000]).unwrap();
                let bytes = busy.tree().peek().active.bytes();
                // It may have to wait for a flush of the idle ones, which keep the log.
                assert!(bytes <= MEMTABLE + 10_000, "{bytes} bytes in one memtable");
                executor.drain();
                // What the idle ones wrote has taken more at first. Then there are the log's limit,
                // what is active, and what is frozen and on its way.
                let log = log_bytes(&memory);
                let is_settled = idle.len() < 100 || round > 1200;
                let most = planned_log(&engine.sizes) + 4 * MEMTABLE;
                assert!(!is_settled || log <= most, "{log} bytes of log");
            }
            assert_eq!(engine.active_limit(), MEMTABLE, "with {} idle", idle.len());
        }
    }
}
