//! Samples of writes, of the compactions that follow, and of waits for them.

use std::fmt;

use prometheus_client::registry::Unit;

use crate::metrics::Metrics;
use crate::metrics::exposition::{Label, Writer, per_tier};

impl Writer<'_> {
    pub(super) fn cpu(&mut self, metrics: &Metrics) -> fmt::Result {
        let samples = metrics.cpu.iter().map(|cpu| {
            let label = ("activity", cpu.activity.name().to_owned());
            (vec![label], cpu.seconds)
        });
        self.counter(
            "background_cpu",
            Some(Unit::Seconds),
            "Processor time of background work",
            samples,
        )
    }

    pub(super) fn writes(&mut self, metrics: &Metrics) -> fmt::Result {
        let bytes = || Some(Unit::Bytes);
        self.counter(
            "user_written",
            bytes(),
            "Bytes of keys and values written",
            [(Vec::new(), metrics.user_write_bytes)],
        )?;
        self.one_counter("user_writes", "Records written", metrics.user_writes)?;
        self.one_counter(
            "sequence",
            "Last committed sequence number",
            metrics.last_seq,
        )?;
        let memory = &metrics.memory;
        self.one_gauge("memory_budget", bytes(), "Memory budget", memory.budget)?;
        self.gauge(
            "memory",
            bytes(),
            "Memory in use",
            [
                ("memtables", memory.memtables),
                ("pinned_memtables", memory.pinned_memtables),
                ("block_cache", memory.block_cache),
                ("record_cache", memory.record_cache),
                ("large_buffers", memory.large_buffers),
                ("pinned", memory.pinned),
            ]
            .map(|(part, value)| (vec![("part", part.to_owned())], value)),
        )?;
        self.one_gauge(
            "memory_unpinned",
            bytes(),
            "Index and filter blocks of open tables that found no room outside the block cache",
            memory.unpinned,
        )
    }

    pub(super) fn compactions(&mut self, metrics: &Metrics) -> fmt::Result {
        let each = || {
            metrics.compactions.iter().map(|c| {
                let labels: Vec<Label> =
                    vec![("from", c.from.to_string()), ("to", c.to.to_string())];
                (labels, c)
            })
        };
        self.counter(
            "compactions",
            None,
            "Compactions finished",
            each().map(|(l, c)| (l, c.jobs)),
        )?;
        self.counter(
            "compaction_moves",
            None,
            "Tables moved without rewriting",
            each().map(|(l, c)| (l, c.moves)),
        )?;
        self.counter(
            "compactions_for_hidden",
            None,
            "Compactions that brought deletes and newer records to what they hide",
            each().map(|(l, c)| (l, c.for_hidden)),
        )?;
        self.counter(
            "compactions_for_small_tables",
            None,
            "Compactions that merged small tables of one level",
            each().map(|(l, c)| (l, c.for_small_tables)),
        )?;
        self.counter(
            "compaction_read",
            Some(Unit::Bytes),
            "Bytes compactions read",
            each().flat_map(|(l, c)| per_tier(l, &c.read_bytes)),
        )?;
        self.counter(
            "compaction_written",
            Some(Unit::Bytes),
            "Bytes compactions wrote",
            each().flat_map(|(l, c)| per_tier(l, &c.write_bytes)),
        )?;
        self.counter(
            "compaction_busy",
            Some(Unit::Seconds),
            "Time of all compaction threads",
            each().map(|(l, c)| (l, c.seconds)),
        )?;
        self.one_gauge(
            "compaction_debt",
            Some(Unit::Bytes),
            "Bytes to move until every level has its target size",
            metrics.compaction_debt_bytes,
        )?;
        self.one_counter("flushes", "Memtables flushed", metrics.flushes)
    }

    pub(super) fn stalls(&mut self, metrics: &Metrics) -> fmt::Result {
        let stalls = &metrics.stalls;
        let seconds = || Some(Unit::Seconds);
        let plain = |value: f64| [(Vec::new(), value)];
        self.counter(
            "stall_slowed",
            seconds(),
            "Time writers were slowed",
            plain(stalls.slowed_seconds),
        )?;
        self.counter(
            "stall_stopped",
            seconds(),
            "Time writers were stopped",
            plain(stalls.stopped_seconds),
        )?;
        self.gauge(
            "stall_longest",
            seconds(),
            "Longest wait of a writer",
            plain(stalls.longest_seconds),
        )?;
        let reason = |reason: &str| -> Vec<Label> { vec![("reason", reason.to_owned())] };
        self.counter(
            "stall",
            seconds(),
            "Time writers waited",
            stalls.by_reason.iter().map(|(r, s)| (reason(r), *s)),
        )?;
        self.gauge(
            "stall_active",
            None,
            "The reason that holds writers back now",
            stalls.current.map(|r| (reason(r), 1u64)),
        )?;
        self.gauge(
            "write_rate_limit_bytes_per_second",
            None,
            "Present speed limit of writers, absent when there is none",
            stalls.rate_limit.map(|limit| (Vec::new(), limit)),
        )
    }
}
