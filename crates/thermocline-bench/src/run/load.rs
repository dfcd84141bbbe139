//! Filling a store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};

use super::shared::{StopOnDrop, start};
use super::{Watch, ingest};
use crate::accounts::{ByActivity, Clock, split};
use crate::counters::Counters;
use crate::engine::Engine;
use crate::keys::Permutation;
use crate::plan::Plan;
use crate::value;

/// Records that a client takes at once.
const CHUNK: u64 = 64;

/// Seed of the order of loading. It is not the run's, because one kept state serves runs of every
/// seed.
const ORDER_SEED: u64 = 0x6c6f_6164;

/// How long filling took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Time until the last write was acknowledged.
    pub(crate) seconds: f64,
    /// Time from then until no background work was left.
    pub(crate) settle_seconds: f64,
    /// Records per second until the last acknowledgement.
    pub(crate) ops_s: f64,
    /// Bytes written to all devices per byte handed in, background work included.
    pub(crate) write_amplification: Option<f64>,
}

/// What filling took, background work included.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loading {
    /// What the engine counted.
    pub(crate) counters: Counters,
    /// Processor time. That of the clients is among the rest.
    pub(crate) cpu: ByActivity<f64>,
}

/// As [`load_and_count`], without the counts.
pub(crate) fn load(plan: &Plan, engine: &dyn Engine, watch: &mut dyn Watch) -> Result<Load> {
    load_and_count(plan, engine, watch).map(|(load, _)| load)
}

/// Writes every record of the plan once, shuffled or by ingestion, and waits for background work to
/// end.
pub(crate) fn load_and_count(
    plan: &Plan,
    engine: &dyn Engine,
    watch: &mut dyn Watch,
) -> Result<(Load, Loading)> {
    let ingested = plan.ingest == Some(true);
    // Whoever ingests has the records sorted.
    let sorted = ingested.then(|| ingest::sorted(plan));
    let before = engine.counters()?;
    let (begin, clock) = (Instant::now(), Clock::of_process()?);
    match sorted {
        Some(sorted) => ingest::ingest(plan, &sorted, engine, watch)?,
        None => put_all(plan, engine, watch)?,
    }
    watch.loaded(plan.records, plan.records);
    let seconds = begin.elapsed().as_secs_f64();
    watch.settling();
    engine.settle()?;
    let counters = engine.counters()?.since(&before);
    let used = Clock::of_process()?.since(&clock);
    let load = Load {
        seconds,
        settle_seconds: begin.elapsed().as_secs_f64() - seconds,
        ops_s: plan.records as f64 / seconds.max(1e-9),
        write_amplification: counters.write_amplification(),
    };
    let cpu = split(&used, counters.cpu.as_ref(), counters.silent_threads);
    Ok((load, Loading { counters, cpu }))
}

/// Writes every record, shuffled, from all threads.
fn put_all(plan: &Plan, engine: &dyn Engine, watch: &mut dyn Watch) -> Result<()> {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let keys = plan.source.key_space();
    let order = Permutation::new(plan.records, ORDER_SEED);
    let (ended, finished) = mpsc::channel::<()>();
    let client = || -> Result<()> {
        let mut bytes = vec![0; plan.value_lens.greatest()];
        while !stop.load(Ordering::Relaxed) {
            let first = next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= plan.records {
                break;
            }
            let end = plan.records.min(first + CHUNK);
            for index in first..end {
                let record = order.get(index);
                let key = keys.key(record);
                let value = bytes.get_mut(..plan.value_lens.of(record));
                let value = value.unwrap_or_default();
                value::fill(value, &key, 0);
                engine.put(&key, value)?;
            }
            done.fetch_add(end - first, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<()> {
        let _stop = StopOnDrop(&stop);
        let clients = (0..plan.threads)
            .map(|_| {
                let (client, stop, ended) = (&client, &stop, ended.clone());
                start(scope, move || {
                    let result = client();
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    drop(ended);
                    result
                })
            })
            .collect::<Result<Vec<_>>>()?;
        drop(ended);
        while finished.recv_timeout(Duration::from_millis(200))
            != Err(RecvTimeoutError::Disconnected)
        {
            watch.loaded(done.load(Ordering::Relaxed), plan.records);
        }
        for client in clients {
            client
                .join()
                .unwrap_or_else(|_| Err(anyhow!("a client panicked")))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::tests::store;
    use super::super::{Second, measure};
    use super::*;
    use crate::engines::memory::Lie;
    use crate::keys::KeySpace;
    use crate::plan::tests::parse;

    fn plan(flags: &str) -> Plan {
        let plan = parse(&format!("--record-size 100 --threads 3 {flags}"));
        plan.unwrap().plan().unwrap()
    }

    struct Panics;

    impl Watch for Panics {
        fn loaded(&mut self, _records: u64, _of: u64) {
            panic!("cannot show it");
        }

        fn second(&mut self, _second: &Second, _progress: f64) {
            panic!("cannot show it");
        }
    }

    /// Regression: the clients went on, and the scope waited for them. When a line was printed to a
    /// closed pipe, the demo became endless.
    #[test]
    fn a_watch_that_panics_ends_the_clients() {
        let long = plan("--data-size 10kB --duration 1h");
        let (_dir, engine) = store(&long, Lie::None);
        let engine = engine.as_ref();
        load(&long, engine, &mut ()).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            measure(&long, engine, &mut Panics).map(|_| ())
        }));
        assert!(panicked.is_err());
        let much = plan("--data-size 1GB");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            load(&much, engine, &mut Panics).map(|_| ())
        }));
        assert!(panicked.is_err());
    }

    struct Gone;

    impl Watch for Gone {
        fn is_gone(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_run_ends_when_nobody_is_told_any_more() {
        let plan = plan("--data-size 10kB --duration 1h");
        let (_dir, engine) = store(&plan, Lie::None);
        load(&plan, engine.as_ref(), &mut ()).unwrap();
        let measured = measure(&plan, engine.as_ref(), &mut Gone).unwrap();
        assert!(measured.seconds < 600.0);
    }

    #[test]
    fn every_record_is_there_afterwards() {
        let plan = plan("--data-size 10kB");
        let (_dir, engine) = store(&plan, Lie::None);
        load(&plan, engine.as_ref(), &mut ()).unwrap();
        let mut count = 0;
        engine.scan(b"", 1000, &mut |_, _| count += 1).unwrap();
        assert_eq!(count, 100);
        for id in 0..100 {
            let key = KeySpace::Ycsb.key(id);
            let mut verified = None;
            let mut found =
                |value: Option<&[u8]>| verified = value.map(|v| value::verify(v, &key, 76));
            engine.get(&key, &mut found).unwrap();
            assert_eq!(verified, Some(Ok(0)));
        }
    }
}
