//! What RocksDB did, as far as it can tell. It cannot tell by disk. Where all of it is on one disk,
//! it is told by purpose.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use rocksdb::perf::{PerfContext, PerfMetric};
use rocksdb::statistics::Ticker;

use super::{RocksDb, Store};
use crate::accounts::{Activity, ByActivity, ByDisk, Io};
use crate::block_device::{self, DeviceIo};
use crate::counters::Counters;

/// Blocks that clients read from a device.
#[derive(Debug, Default)]
pub(super) struct Reads {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

/// What RocksDB counts for a thread. It does that by default (`PerfLevel` `kEnableCount`). Asking
/// for it is a call.
struct OfThread {
    perf: PerfContext,
    /// What had been counted when it was last added to [`Reads`].
    blocks: Cell<u64>,
    bytes: Cell<u64>,
}

impl Reads {
    /// Adds what this thread has read since the last call. Returns whether that is anything. A read
    /// from the cache asks RocksDB once.
    pub(super) fn add_of_this_thread(&self) -> bool {
        thread_local! {
            static OF_THREAD: OfThread = OfThread {
                perf: PerfContext::default(),
                blocks: Cell::new(0),
                bytes: Cell::new(0),
            };
        }
        OF_THREAD.with(|thread| {
            let blocks = thread.perf.metric(PerfMetric::BlockReadCount);
            let new = blocks - thread.blocks.replace(blocks);
            if new > 0 {
                let bytes = thread.perf.metric(PerfMetric::BlockReadByte);
                self.blocks.fetch_add(new, Ordering::Relaxed);
                let new = bytes - thread.bytes.replace(bytes);
                self.bytes.fetch_add(new, Ordering::Relaxed);
            }
            new > 0
        })
    }
}

pub(super) fn counters(store: &Store) -> Result<Counters> {
    let ticker = |ticker| store.options.get_ticker_count(ticker);
    let io = by_activity(store);
    let all = io.sum();
    let mut counters = Counters {
        gets: Some(ticker(Ticker::NumberKeysRead)),
        gets_without_device: Some(store.gets_without_device.load(Ordering::Relaxed)),
        written_bytes: Some(all.write_bytes),
        user_write_bytes: Some(store.user_write_bytes.load(Ordering::Relaxed)),
        compaction_read_bytes: Some(ticker(Ticker::CompactReadBytes)),
        compaction_write_bytes: Some(ticker(Ticker::CompactWriteBytes)),
        // Its ticker covers one thread of each group: those that wait behind it are not in it.
        stall_seconds: None,
        ..Counters::default()
    };
    (counters.fd_bytes, counters.sd_bytes) = (Some(0), Some(0));
    for dir in store.kind.used(&store.dirs) {
        let bytes = Some(size(dir)?);
        if dir == store.dirs.fast {
            counters.fd_bytes = bytes;
        } else {
            counters.sd_bytes = bytes;
        }
    }
    match store.kind {
        // RocksDB does not count by path; the kernel counts by device. Its tickers of reads by
        // temperature or of the last level give no hit rate either: paths have no temperature, more
        // than one level may lie on the slow one, and compactions count.
        RocksDb::Tiered => {
            if let Some([fast, slow]) = block_device::of_two(&store.dirs.fast, &store.dirs.slow) {
                by_device(&mut counters, fast, slow);
            }
        }
        RocksDb::FastOnly => {
            counters.gets_without_slow = counters.gets;
            on_disks(&mut counters, io, ByActivity::default());
        }
        RocksDb::SlowOnly => {
            counters.gets_without_slow = counters.gets_without_device;
            on_disks(&mut counters, ByActivity::default(), io);
        }
    }
    Ok(counters)
}

/// The I/O of all disks together, in the bytes that were asked for: direct I/O reads whole blocks
/// of the device. It does not count the operations of what it writes, nor what opening takes of its
/// log and manifest. The operations of compactions are counted by a histogram of times only, which
/// costs each operation: they are those of tables that no client's block took. So those that read
/// ahead for scans are in them, and those that open new tables. Of the bytes, those that are read
/// ahead are counted apart. What a compaction reads to open the tables that it has written is in
/// its own. What neither clients nor compactions have read has opened tables that were flushed.
fn by_activity(store: &Store) -> ByActivity<Io> {
    let ticker = |ticker| store.options.get_ticker_count(ticker);
    let read = |read_ops, read_bytes| Io {
        read_ops,
        read_bytes,
        ..Io::default()
    };
    let write = |write_bytes| Io {
        write_bytes,
        ..Io::default()
    };
    // A block that was read ahead is found in memory, so its bytes are in no client's blocks.
    let clients = read(
        store.reads.blocks.load(Ordering::Relaxed),
        store.reads.bytes.load(Ordering::Relaxed) + ticker(Ticker::PrefetchBytes),
    );
    let compaction_bytes = ticker(Ticker::CompactReadBytes);
    // Read after those of clients and compactions, which are part of it.
    let table_reads = ticker(Ticker::LastLevelReadCount) + ticker(Ticker::NonLastLevelReadCount);
    let compaction_reads = table_reads.saturating_sub(clients.read_ops);
    let table_bytes = ticker(Ticker::LastLevelReadBytes) + ticker(Ticker::NonLastLevelReadBytes);
    let opening_bytes = table_bytes.saturating_sub(clients.read_bytes + compaction_bytes);
    let mut io = ByActivity::default();
    io.add(Activity::Read, clients);
    io.add(Activity::Other, read(0, opening_bytes));
    io.add(Activity::Write, write(ticker(Ticker::WalFileBytes)));
    let ingested = store.ingested_bytes.load(Ordering::Relaxed);
    let flushed = ticker(Ticker::FlushWriteBytes) + ingested;
    io.add(Activity::Flush, write(flushed));
    io.add(
        Activity::Compaction,
        read(compaction_reads, compaction_bytes),
    );
    io.add(
        Activity::Compaction,
        write(ticker(Ticker::CompactWriteBytes)),
    );
    io
}

fn on_disks(counters: &mut Counters, fast: ByActivity<Io>, slow: ByActivity<Io>) {
    let (on_fast, on_slow) = (fast.sum(), slow.sum());
    counters.fd_read_bytes = Some(on_fast.read_bytes);
    counters.fd_write_bytes = Some(on_fast.write_bytes);
    counters.sd_read_bytes = Some(on_slow.read_bytes);
    counters.sd_read_ops = Some(on_slow.read_ops);
    counters.sd_write_bytes = Some(on_slow.write_bytes);
    counters.io = Some(ByDisk { fast, slow });
}

fn by_device(counters: &mut Counters, fast: DeviceIo, slow: DeviceIo) {
    on_disks(counters, fast.unattributed(), slow.unattributed());
}

/// Bytes of the files in `dir`. A file that is removed meanwhile counts nothing.
fn size(dir: &Path) -> Result<u64> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum())
}
