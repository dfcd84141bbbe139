//! The measurements of a probe.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::{Medium, TableFile};

use super::{DiskProbe, RandomReads};

/// Name of the file that is written and read.
const FILE: &str = "1.probe";

/// Bytes of one sequential piece.
const PIECE: usize = 1 << 20;

/// Threads that read at random.
const RANDOM_THREADS: u64 = 16;

/// Threads that read one piece after the other. A single one would wait for each piece.
const SEQUENTIAL_THREADS: u64 = 4;

/// How much a probe does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// How many pieces the file that is read has. It is larger than what a device's own cache
    /// holds.
    pub(super) pieces: u64,
    /// How long each kind of reading takes. Writing ends after twice as long.
    pub(super) each: Duration,
}

impl Effort {
    /// What quoted figures are measured with.
    pub(super) const WHOLE: Self = Self {
        pieces: 256,
        each: Duration::from_secs(2),
    };

    /// For tests.
    #[cfg(test)]
    pub(super) const SHORT: Self = Self {
        pieces: 8,
        each: Duration::from_millis(150),
    };
}

/// Whether reads in `dir` go around the page cache. If so, the device moves whole blocks.
pub(super) fn is_direct(medium: &dyn Medium, dir: &Path) -> Result<bool> {
    let store = medium.table_store(dir, true)?;
    let mut writer = store.create(FILE, 0)?;
    writer.append(&[7; 4096])?;
    writer.finish()?;
    let is_direct = store.open(FILE)?.read(1, 1)?.device_bytes() > 1;
    store.remove(FILE)?;
    Ok(is_direct)
}

/// Makes all measurements in `dir`.
pub(super) fn all(medium: &dyn Medium, dir: &Path, effort: Effort) -> Result<DiskProbe> {
    let store = medium.table_store(dir, true)?;
    let mut rng = SmallRng::seed_from_u64(1);
    let mut piece = vec![0; PIECE];
    rng.fill(&mut piece[..]);
    let begin = Instant::now();
    let mut writer = store.create(FILE, effort.pieces * PIECE as u64)?;
    let mut pieces = 0;
    // At least as many pieces as there are readers.
    while pieces < effort.pieces
        && (pieces < SEQUENTIAL_THREADS || begin.elapsed() < effort.each * 2)
    {
        // No two pieces are alike, in case the device looks for equal ones.
        rng.fill(&mut piece[..4096]);
        writer.append(&piece)?;
        pieces += 1;
    }
    writer.finish()?;
    let written = (pieces * PIECE as u64) as f64 / begin.elapsed().as_secs_f64();
    let file = store.open(FILE)?;
    let file = file.as_ref();
    let probe = DiskProbe {
        sequential_write_bytes_s: Some(written),
        random_read_4k: Some(random_reads(file, 4 << 10, effort.each)?),
        random_read_16k: Some(random_reads(file, 16 << 10, effort.each)?),
        sequential_read_bytes_s: Some(sequential_reads(file, effort.each)?),
        ..DiskProbe::default()
    };
    store.remove(FILE)?;
    Ok(probe)
}

fn random_reads(file: &dyn TableFile, len: usize, time: Duration) -> Result<RandomReads> {
    let blocks = (file.len() / len as u64).max(1);
    let reads = read(RANDOM_THREADS, time, |thread| {
        let mut rng = SmallRng::seed_from_u64(thread);
        move || {
            let offset = rng.random_range(0..blocks) * len as u64;
            file.read(offset, len).map(drop)
        }
    })?;
    let iops = reads.count as f64 / reads.seconds;
    Ok(RandomReads {
        iops,
        bytes_s: iops * len as f64,
        mean_us: reads.waited * 1e6 / reads.count.max(1) as f64,
    })
}

fn sequential_reads(file: &dyn TableFile, time: Duration) -> Result<f64> {
    let pieces = (file.len() / PIECE as u64).max(1);
    let next = &AtomicU64::new(0);
    let reads = read(SEQUENTIAL_THREADS, time, |_| {
        move || {
            let piece = next.fetch_add(1, Ordering::Relaxed) % pieces;
            file.read(piece * PIECE as u64, PIECE).map(drop)
        }
    })?;
    Ok((reads.count * PIECE as u64) as f64 / reads.seconds)
}

/// What several threads read together.
struct Reads {
    count: u64,
    /// Time that the reads took, of all threads.
    waited: f64,
    /// Time from the first to the last.
    seconds: f64,
}

/// Has `threads` read for this long, each with its own reader.
fn read<R>(threads: u64, time: Duration, reader: impl Fn(u64) -> R) -> Result<Reads>
where
    R: FnMut() -> thermocline::Result<()> + Send,
{
    let begin = Instant::now();
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let mut read = reader(number);
                scope.spawn(move || -> Result<(u64, f64)> {
                    let (mut count, mut waited) = (0, 0.0);
                    while begin.elapsed() < time {
                        let started = Instant::now();
                        read()?;
                        waited += started.elapsed().as_secs_f64();
                        count += 1;
                    }
                    Ok((count, waited))
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(anyhow!("a reader panicked")))
        });
        ended.collect::<Result<Vec<_>>>()
    })?;
    Ok(Reads {
        count: parts.iter().map(|(count, _)| count).sum(),
        waited: parts.iter().map(|(_, waited)| waited).sum(),
        seconds: begin.elapsed().as_secs_f64(),
    })
}
