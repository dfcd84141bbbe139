//! The flash cache, by the crate `foyer`. Its block engine appends blocks to large regions of the
//! disk, and gives up the oldest region first; blocks that are read shortly before that are written
//! anew. There is one index entry in memory per block and a checksum with each block, and I/O is
//! direct.

use std::io;
use std::path::Path;

use bytes::Bytes;
use foyer::{
    Age, BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCache, HybridCacheBuilder,
    HybridCachePolicy, Load, PsyncIoEngineConfig, RecoverMode, Spawner,
};
use tokio::runtime::{Builder, Runtime};

use super::block_cache::Place;
use super::flash::{Flash, FlashIo, FlashPlan};

/// Regions are the unit of eviction. There are at least this many, within these sizes in bytes.
const REGIONS: u64 = 64;
const LEAST_REGION: u64 = 64 << 10;
const LARGEST_REGION: u64 = 16 << 20;

/// Most threads that wait for the disk: one for each client's read, and one for the writer.
const IO_THREADS: usize = 32;

/// Entries that its own level in memory may hold. That level stays empty, because our cache is
/// above it.
const MEMORY_ENTRIES: usize = 8;

/// A cache on disk and the threads that it runs on.
#[derive(Debug)]
pub(super) struct Foyer {
    cache: HybridCache<u128, Bytes>,
    runtime: Option<Runtime>,
}

impl Foyer {
    /// An empty cache in `dir`.
    pub(super) fn open(dir: &Path, plan: &FlashPlan<'_>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(IO_THREADS)
            .thread_name("flash-cache")
            .build()?;
        let device = FsDeviceBuilder::new(dir).with_capacity(plan.capacity as usize);
        #[cfg(target_os = "linux")]
        let device = device.with_direct(plan.direct_io);
        let region = (plan.capacity / REGIONS).clamp(LEAST_REGION, LARGEST_REGION);
        let engine = BlockEngineConfig::new(device.build().map_err(io::Error::other)?)
            .with_block_size(region as usize)
            .with_buffer_pool_size(plan.buffer as usize)
            .with_submit_queue_size_threshold(plan.buffer as usize);
        let build = HybridCacheBuilder::new()
            .with_policy(HybridCachePolicy::WriteOnInsertion)
            .with_flush_on_close(false)
            .memory(MEMORY_ENTRIES)
            .storage()
            .with_io_engine_config(PsyncIoEngineConfig::new())
            .with_engine_config(engine)
            .with_recover_mode(RecoverMode::None)
            .with_spawner(Spawner::from(runtime.handle().clone()))
            .build();
        // `Runtime::block_on` is not used, here and below: the caller may be a thread of another
        // runtime.
        let cache = pollster::block_on(build).map_err(io::Error::other)?;
        Ok(Self {
            cache,
            runtime: Some(runtime),
        })
    }
}

/// Both parts of a place in one number, because the cache encodes numbers.
fn key((table, offset): Place) -> u128 {
    u128::from(table) << 64 | u128::from(offset)
}

impl Flash for Foyer {
    fn get(&self, place: Place) -> Option<Bytes> {
        match pollster::block_on(self.cache.storage().load(&key(place))) {
            Ok(Load::Entry {
                value, populated, ..
            }) => {
                if populated.age == Age::Old {
                    self.insert(place, value.clone());
                }
                Some(value)
            }
            // The block is on its way to the disk.
            Ok(Load::Piece { piece, .. }) => Some(piece.value().clone()),
            Ok(Load::Throttled | Load::Miss) | Err(_) => None,
        }
    }

    fn insert(&self, place: Place, block: Bytes) {
        // The entry that this returns is for foyer's level in memory.
        let _ = self.cache.storage_writer(key(place)).insert(block);
    }

    fn io(&self) -> FlashIo {
        let disk = self.cache.statistics();
        FlashIo {
            read_ops: disk.disk_read_ios() as u64,
            read_bytes: disk.disk_read_bytes() as u64,
            write_ops: disk.disk_write_ios() as u64,
            write_bytes: disk.disk_write_bytes() as u64,
        }
    }
}

impl Drop for Foyer {
    fn drop(&mut self) {
        // What is not written yet need not be, because the next opening begins empty. The shutdown
        // is in the background, because this may be a thread of another runtime, which must not
        // wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
