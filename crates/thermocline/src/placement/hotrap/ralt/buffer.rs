//! Unsorted buffers that accesses go to first: the part of RALT that every read passes.

use std::cell::Cell;

use crossbeam_utils::CachePadded;

use super::record::{PREFIX_LEN, put_tracked_key};
use super::sizes::Sizes;
use crate::ids::KeyspaceId;
use crate::key::MAX_KEY_LEN;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Threads beyond these share a buffer with another.
const SHARDS: usize = 16;

/// Parts of a time slice that a thread counts for itself.
const SLICE_PARTS: u64 = 64;

/// An access that waits to be sorted.
#[derive(Debug, Clone, Copy)]
struct Access {
    /// Bytes accessed in the store before it: RALT's time.
    at: u64,
    key_start: u32,
    key_len: u32,
    value_len: u32,
    times: u32,
}

/// Accesses of one thread, in order.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    accesses: Vec<Access>,
    /// As RALT's tables hold them.
    keys: Vec<u8>,
}

/// An access that comes out again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Logged<'a> {
    /// As RALT's tables hold it.
    pub(super) key: &'a [u8],
    pub(super) at: u64,
    pub(super) value_len: u32,
    pub(super) times: u32,
}

impl Chunk {
    /// Half for the accesses, half for their keys: about even for keys of 20 bytes.
    fn with_room(bytes: usize) -> Self {
        Self {
            accesses: Vec::with_capacity(bytes / 2 / size_of::<Access>()),
            keys: Vec::with_capacity(bytes / 2),
        }
    }

    /// Takes in accesses to `key` of `keyspace` at `at`.
    fn push(&mut self, at: u64, keyspace: KeyspaceId, key: &[u8], value_len: usize, times: u32) {
        self.accesses.push(Access {
            at,
            key_start: self.keys.len() as u32,
            key_len: (PREFIX_LEN + key.len()) as u32,
            value_len: u32::try_from(value_len).unwrap_or(u32::MAX),
            times,
        });
        put_tracked_key(&mut self.keys, keyspace, key);
    }

    /// Whether it would have to grow for another access like the last.
    fn is_full(&self) -> bool {
        let last = self.accesses.last().map_or(0, |last| last.key_len as usize);
        self.accesses.len() == self.accesses.capacity()
            || self.keys.capacity() - self.keys.len() < last
    }

    /// Number of accesses.
    pub(super) fn count(&self) -> usize {
        self.accesses.len()
    }

    fn bytes(&self) -> u64 {
        (self.accesses.len() * size_of::<Access>() + self.keys.len()) as u64
    }

    /// The number of accesses, each counted as often as it happened.
    pub(super) fn times(&self) -> u64 {
        let times = self.accesses.iter().map(|access| u64::from(access.times));
        times.sum()
    }

    /// The accesses.
    pub(super) fn logged(&self) -> impl Iterator<Item = Logged<'_>> {
        self.accesses.iter().filter_map(|access| {
            let start = access.key_start as usize;
            let key = self.keys.get(start..start + access.key_len as usize)?;
            Some(Logged {
                key,
                at: access.at,
                value_len: access.value_len,
                times: access.times,
            })
        })
    }
}

#[derive(Debug, Default)]
struct Shard {
    chunk: Chunk,
    /// Bytes accessed that [`Buffers::accessed`] does not hold yet.
    accessed: u64,
    /// Accesses since the store was opened.
    count: u64,
}

/// Full buffers that wait for a flush.
#[derive(Debug, Default)]
struct Queue {
    chunks: Vec<Chunk>,
}

/// The buffers of all threads.
#[derive(Debug)]
pub(super) struct Buffers {
    shards: Vec<CachePadded<Mutex<Shard>>>,
    queue: Mutex<Queue>,
    queued: AtomicU64,
    accessed: AtomicU64,
    dropped: AtomicU64,
    /// Accesses that no buffer took.
    refused: AtomicU64,
    chunk: usize,
    flush: u64,
    backlog: u64,
    /// Bytes accessed that a thread counts for itself before it tells the others.
    quantum: u64,
}

impl Buffers {
    /// Empty buffers, with `accessed` bytes in the slice that has begun.
    pub(super) fn new(sizes: &Sizes, accessed: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            queue: Mutex::default(),
            queued: AtomicU64::new(0),
            accessed: AtomicU64::new(accessed),
            dropped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            chunk: sizes.chunk,
            flush: sizes.flush,
            backlog: sizes.backlog,
            quantum: sizes.slice / SLICE_PARTS,
        }
    }

    /// Takes `times` accesses to a record. Returns whether a flush became due.
    pub(super) fn push(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        value_len: usize,
        times: u32,
    ) -> bool {
        if key.len() + PREFIX_LEN > MAX_KEY_LEN {
            self.refuse(times);
            return false;
        }
        let Some(shard) = self.shards.get(thread_number() % SHARDS) else {
            return false;
        };
        let full = {
            let mut shard = shard.lock();
            let bytes = (key.len() + value_len) as u64;
            shard.count += u64::from(times);
            shard.accessed += bytes * u64::from(times);
            let mut at = self.accessed.load(Ordering::Relaxed);
            if shard.accessed >= self.quantum {
                at = self.accessed.fetch_add(shard.accessed, Ordering::Relaxed) + shard.accessed;
                shard.accessed = 0;
            }
            let chunk = &mut shard.chunk;
            if chunk.accesses.is_empty() {
                *chunk = Chunk::with_room(self.chunk);
            }
            chunk.push(at, keyspace, key, value_len, times);
            if !chunk.is_full() {
                return false;
            }
            std::mem::take(chunk)
        };
        self.enqueue(full)
    }

    /// Hands a full buffer to the next flush; drops it when flushes lag too far behind.
    fn enqueue(&self, chunk: Chunk) -> bool {
        let bytes = chunk.bytes();
        let mut queue = self.queue.lock();
        let before = self.queued.load(Ordering::Relaxed);
        if before > self.backlog {
            drop(queue);
            self.count_dropped(chunk.times());
            return true;
        }
        queue.chunks.push(chunk);
        self.queued.store(before + bytes, Ordering::Relaxed);
        before + bytes >= self.flush
    }

    /// Whether a flush is due.
    pub(super) fn is_flush_due(&self) -> bool {
        self.queued.load(Ordering::Relaxed) >= self.flush
    }

    /// Takes the full buffers, for a flush.
    pub(super) fn take_full(&self) -> Vec<Chunk> {
        let mut queue = self.queue.lock();
        self.queued.store(0, Ordering::Relaxed);
        std::mem::take(&mut queue.chunks)
    }

    /// Takes all accesses, those in buffers that are not full too.
    pub(super) fn take_all(&self) -> Vec<Chunk> {
        let mut chunks = self.take_full();
        for shard in &self.shards {
            let mut shard = shard.lock();
            self.accessed.fetch_add(shard.accessed, Ordering::Relaxed);
            shard.accessed = 0;
            chunks.push(std::mem::take(&mut shard.chunk));
        }
        chunks
    }

    /// Brings back what could not be flushed for want of space. What came in meanwhile waits behind
    /// it, and is dropped if that is too much: the more a flush writes, the harder it is to find
    /// space for it.
    pub(super) fn put_back(&self, chunks: Vec<Chunk>) {
        let mut queue = self.queue.lock();
        let came = std::mem::take(&mut queue.chunks);
        let (mut queued, mut dropped) = (0, 0);
        for chunk in chunks.into_iter().chain(came) {
            if queued > self.backlog {
                dropped += chunk.times();
            } else {
                queued += chunk.bytes();
                queue.chunks.push(chunk);
            }
        }
        self.queued.store(queued, Ordering::Relaxed);
        self.count_dropped(dropped);
    }

    /// Counts `times` accesses that no buffer takes.
    pub(super) fn refuse(&self, times: u32) {
        self.refused.fetch_add(u64::from(times), Ordering::Relaxed);
    }

    /// Counts accesses that a buffer took and that are not logged.
    pub(super) fn count_dropped(&self, accesses: u64) {
        self.dropped.fetch_add(accesses, Ordering::Relaxed);
    }

    /// Bytes of keys and values accessed since the beginning of the slice in which the store was
    /// opened, without those that threads still hold back for themselves.
    pub(super) fn accessed(&self) -> u64 {
        self.accessed.load(Ordering::Relaxed)
    }

    /// Accesses so far, and those of them that are not logged.
    pub(super) fn counts(&self) -> (u64, u64) {
        let refused = self.refused.load(Ordering::Relaxed);
        let dropped = self.dropped.load(Ordering::Relaxed);
        let taken = self.shards.iter().map(|shard| shard.lock().count);
        (taken.sum::<u64>() + refused, dropped + refused)
    }

    /// Memory that the buffers take.
    pub(super) fn memory(&self) -> u64 {
        let own = self.shards.iter().map(|shard| shard.lock().chunk.bytes());
        own.sum::<u64>() + self.queued.load(Ordering::Relaxed)
    }
}

/// A small number of this thread's own.
fn thread_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    NUMBER.with(|number| match number.get() {
        Some(own) => own,
        None => {
            let own = NEXT.fetch_add(1, Ordering::Relaxed);
            number.set(Some(own));
            own
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HotRapOptions;
    use crate::placement::hotrap::ralt::record::tracked_key;

    fn buffers() -> Buffers {
        Buffers::new(&Sizes::new(&HotRapOptions::default(), 1 << 20, 1 << 20), 0)
    }

    fn keys(chunks: &[Chunk]) -> Vec<Vec<u8>> {
        chunks
            .iter()
            .flat_map(Chunk::logged)
            .map(|l| l.key.to_vec())
            .collect()
    }

    #[test]
    fn what_goes_in_comes_out_once_and_in_order() {
        let buffers = buffers();
        let mut expected = Vec::new();
        for i in 0..103u32 {
            buffers.push(i % 3, &i.to_be_bytes(), 10, 1);
            expected.push(tracked_key(i % 3, &i.to_be_bytes()));
        }
        let mut found = keys(&buffers.take_full());
        assert!(found.len() < 103, "the last buffer is not full");
        found.extend(keys(&buffers.take_all()));
        assert_eq!(found, expected);
        assert!(keys(&buffers.take_all()).is_empty());
        assert_eq!(buffers.accessed(), 1442);
    }

    /// Regression: with keys of 24 bytes the half for the accesses was full first, and doubled.
    #[test]
    fn a_buffer_is_full_before_it_has_to_grow() {
        for len in [4, 24, 100] {
            let buffers = buffers();
            while !buffers.push(0, &vec![7; len], 10, 1) {}
            let full = buffers.take_full();
            assert!(!full.is_empty());
            for chunk in full {
                let accesses = chunk.accesses.capacity() * size_of::<Access>();
                let bytes = accesses + chunk.keys.capacity();
                assert!(bytes <= buffers.chunk, "{bytes} for keys of {len}");
            }
        }
    }

    #[test]
    fn a_flush_becomes_due_and_what_lags_behind_is_dropped_and_counted() {
        let buffers = buffers();
        let mut logged = 0;
        while !buffers.push(0, b"key", 10, 1) {
            logged += 1;
            assert!(logged < 10_000);
        }
        assert!(buffers.is_flush_due());
        for _ in 0..10_000 {
            buffers.push(0, b"key", 10, 2);
        }
        let (count, dropped) = buffers.counts();
        assert_eq!(count, logged + 1 + 20_000);
        let times = buffers.take_all();
        let kept: u32 = times.iter().flat_map(Chunk::logged).map(|l| l.times).sum();
        assert!(dropped > 0 && u64::from(kept) + dropped == count);
        assert!(!buffers.is_flush_due());
    }

    /// Such an access was counted as dropped, but not as an access: a RALT that could not be opened
    /// counted no access, and all as dropped.
    #[test]
    fn what_no_buffer_takes_is_an_access_all_the_same() {
        let buffers = buffers();
        buffers.push(0, &[7; MAX_KEY_LEN], 10, 3);
        buffers.push(0, b"key", 10, 1);
        assert_eq!(buffers.counts(), (4, 3));
    }

    #[test]
    fn what_is_put_back_waits_in_front() {
        let buffers = buffers();
        while !buffers.push(0, b"old", 10, 1) {}
        let old = buffers.take_full();
        let (before, count) = (keys(&old), old.len());
        buffers.put_back(old);
        assert!(buffers.is_flush_due());
        assert_eq!(buffers.take_full().len(), count);
        assert!(!before.is_empty());
    }

    /// The limit of what waits held between flushes only. A flush that found no space brought back
    /// what it had taken, whatever had come in since, and was larger the next time.
    #[test]
    fn what_comes_in_during_a_flush_without_space_is_dropped_where_it_is_too_much() {
        let buffers = buffers();
        let fill = || {
            for _ in 0..10_000 {
                buffers.push(0, b"key", 10, 2);
            }
        };
        let most = buffers.backlog + 2 * buffers.chunk as u64;
        for _ in 0..5 {
            fill();
            let taken = buffers.take_full();
            fill();
            buffers.put_back(taken);
            assert!(buffers.memory() <= most, "{} of {most}", buffers.memory());
        }
        let (count, dropped) = buffers.counts();
        let kept: u64 = buffers.take_all().iter().map(Chunk::times).sum();
        assert!(kept > 0 && dropped > 0);
        assert_eq!(kept + dropped, count);
    }
}
