//! The metrics as text for people.

mod cost;
mod hotrap;

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::human::{bytes, percent, time};
use super::section::Section;
use super::{CostReport, Metrics, RecordCacheMetrics};

impl Metrics {
    /// The metrics as tables for people: sizes in binary units, times in the unit that
    /// fits, shares in percent. The layout may change; programs read the fields, or
    /// [`Metrics::to_prometheus`].
    ///
    /// ```
    /// let text = thermocline::metrics::Metrics::default().to_text();
    /// assert!(text.contains("Reads"));
    /// ```
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for section in self.sections() {
            section.render(&mut out);
        }
        out
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![
            self.text_overview(),
            self.text_tiers(),
            self.text_io(),
            self.text_levels(),
            self.text_reads(),
        ];
        if let Some(hotrap) = &self.hotrap {
            sections.push(hotrap.text_hotness());
            sections.push(hotrap.text_promotion());
        }
        sections.extend(self.cost.as_ref().map(CostReport::text));
        sections.extend(self.record_cache.as_ref().map(text_record_cache));
        sections.extend([
            self.text_cpu(),
            self.text_compactions(),
            self.text_stalls(),
            self.text_latencies(),
            self.text_memory(),
        ]);
        sections
    }

    fn text_overview(&self) -> Section {
        let mut section = Section::new("Store");
        section.pair("uptime", time(self.uptime));
        section.pair(
            "written by users",
            format!(
                "{} records, {}",
                self.user_writes,
                bytes(self.user_write_bytes)
            ),
        );
        section.pair("last sequence number", self.last_seq.to_string());
        section.pair(
            "write amplification",
            format!("{:.2}", self.write_amplification()),
        );
        section.pair(
            "space amplification",
            format!("{:.2}", self.space_amplification()),
        );
        section.pair(
            "compression ratio",
            format!("{:.2}", self.compression_ratio()),
        );
        section.pair(
            "snapshots",
            match self.oldest_snapshot {
                Some(seq) => format!("{}, oldest at sequence {seq}", self.snapshots),
                None => self.snapshots.to_string(),
            },
        );
        if let Some(age) = self.oldest_pin {
            section.pair("oldest obsolete file held", time(age));
        }
        if let Some(error) = &self.background_error {
            section.pair("ERROR", error.clone());
        }
        section
    }

    fn text_tiers(&self) -> Section {
        let mut section = Section::new("Tiers");
        section.row([
            "tier",
            "used",
            "capacity",
            "full",
            "tables",
            "reserved",
            "pinned",
            "copies",
            "$/GB/month",
            "read",
            "written",
        ]);
        for (index, tier) in self.tiers.iter().enumerate() {
            let full = if tier.capacity == u64::MAX {
                0
            } else {
                tier.capacity
            };
            section.row([
                format!("{index} {}", tier.path.display()),
                bytes(tier.file_bytes),
                bytes(tier.capacity),
                percent(tier.file_bytes, full),
                bytes(tier.table_bytes),
                bytes(tier.reserved_bytes),
                bytes(tier.pinned_obsolete_bytes),
                bytes(tier.copied_bytes),
                tier.price_per_gb_month
                    .map_or_else(|| "-".into(), |price| format!("{price:.3}")),
                bytes(tier.read_bytes()),
                bytes(tier.write_bytes()),
            ]);
        }
        section
    }

    fn text_io(&self) -> Section {
        let mut section = Section::new("Device I/O by purpose");
        section.row(["tier and purpose", "reads", "read", "writes", "written"]);
        let idle = |tier: &&super::IoMetrics| tier.read_ops + tier.write_ops == 0;
        for (index, tier) in self.tiers.iter().enumerate() {
            for io in tier.io.iter().filter(|io| !idle(io)) {
                section.row([
                    format!("{index} {}", io.purpose.name()),
                    io.read_ops.to_string(),
                    bytes(io.read_bytes),
                    io.write_ops.to_string(),
                    bytes(io.write_bytes),
                ]);
            }
        }
        section
    }

    fn text_cpu(&self) -> Section {
        let mut section = Section::new("Processor time of background work");
        for cpu in &self.cpu {
            section.pair(cpu.activity.name(), seconds(cpu.seconds));
        }
        section
    }

    fn text_levels(&self) -> Section {
        let mut section = Section::new("Levels");
        let mut head: Vec<String> = ["level", "tables", "size", "target", "hits", "of reads"]
            .map(str::to_owned)
            .to_vec();
        head.extend((0..self.tiers.len()).map(|tier| format!("on tier {tier}")));
        section.row(head);
        for (index, level) in self.levels.iter().enumerate() {
            let mut row = vec![
                format!("L{index}"),
                level.tables.to_string(),
                bytes(level.bytes),
                match level.target_bytes {
                    0 => "-".to_owned(),
                    target => bytes(target),
                },
                level.hits.to_string(),
                percent(level.hits, self.hits.gets),
            ];
            row.extend(level.tier_bytes.iter().map(|&b| bytes(b)));
            section.row(row);
        }
        section
    }

    fn text_reads(&self) -> Section {
        let hits = &self.hits;
        let mut section = Section::new("Reads");
        section.row(["", "reads", "share"]);
        let mut line = |what: String, count: u64| {
            section.row([what, count.to_string(), percent(count, hits.gets)]);
        };
        line("all".to_owned(), hits.gets);
        line("memtable".to_owned(), hits.memtable);
        if self.record_cache.is_some() {
            line("record cache".to_owned(), hits.record_cache);
        }
        if self.hotrap.is_some() {
            line("promotion cache".to_owned(), hits.promotion_cache);
        }
        for (tier, &count) in hits.tier.iter().enumerate() {
            line(format!("tier {tier}"), count);
        }
        line("absent".to_owned(), hits.absent);
        line("without a device".to_owned(), hits.without_device);
        line("without a slow device".to_owned(), hits.without_slow_device);
        let lookups = hits.block_cache_hits + hits.block_cache_misses;
        section.pair(
            "block cache hits",
            format!(
                "{} of {lookups} ({})",
                hits.block_cache_hits,
                percent(hits.block_cache_hits, lookups)
            ),
        );
        // The percentage is that of false positives among the tables that do not hold the key.
        let negatives = hits.filter_skips + hits.filter_false_positives;
        section.pair(
            "filter",
            format!(
                "{} skipped, {} false positives ({})",
                hits.filter_skips,
                hits.filter_false_positives,
                percent(hits.filter_false_positives, negatives)
            ),
        );
        section.pair("passed by iterators", hits.passed.to_string());
        section
    }

    fn text_compactions(&self) -> Section {
        let mut section = Section::new("Flushes and compactions");
        section.pair("flushes", self.flushes.to_string());
        section.pair("debt", bytes(self.compaction_debt_bytes));
        if self.compactions.is_empty() {
            return section;
        }
        let mut head: Vec<String> = ["levels", "jobs", "moves", "for hidden", "merges", "time"]
            .map(str::to_owned)
            .to_vec();
        for tier in 0..self.tiers.len() {
            head.extend([format!("read tier {tier}"), format!("written tier {tier}")]);
        }
        section.row(head);
        for job in &self.compactions {
            let mut row = vec![
                format!("L{} > L{}", job.from, job.to),
                job.jobs.to_string(),
                job.moves.to_string(),
                job.for_hidden.to_string(),
                job.for_small_tables.to_string(),
                seconds(job.seconds),
            ];
            for (&read, &written) in job.read_bytes.iter().zip(&job.write_bytes) {
                row.extend([bytes(read), bytes(written)]);
            }
            section.row(row);
        }
        section
    }

    fn text_stalls(&self) -> Section {
        let stalls = &self.stalls;
        let mut section = Section::new("Stalls of writers");
        section.pair("slowed", seconds(stalls.slowed_seconds));
        section.pair("stopped", seconds(stalls.stopped_seconds));
        section.pair("longest wait", seconds(stalls.longest_seconds));
        for (reason, time) in &stalls.by_reason {
            section.pair(&format!("because of {reason}"), seconds(*time));
        }
        section.pair("now", stalls.current.unwrap_or("not held back").to_owned());
        if let Some(limit) = stalls.rate_limit {
            section.pair("speed limit", format!("{}/s", bytes(limit)));
        }
        section
    }

    fn text_latencies(&self) -> Section {
        let mut section = Section::new("Latencies");
        section.row(["operation", "measured", "p50", "p99", "p99.9", "max"]);
        for latency in &self.latencies {
            section.row([
                latency.operation.to_owned(),
                latency.count.to_string(),
                time(latency.p50),
                time(latency.p99),
                time(latency.p999),
                time(latency.max),
            ]);
        }
        section
    }

    fn text_memory(&self) -> Section {
        let memory = &self.memory;
        let mut section = Section::new("Memory");
        section.pair("budget", bytes(memory.budget));
        section.pair("memtables", bytes(memory.memtables));
        if memory.pinned_memtables > 0 {
            section.pair("flushed, held by iterators", bytes(memory.pinned_memtables));
        }
        section.pair("block cache", bytes(memory.block_cache));
        if self.record_cache.is_some() {
            section.pair("record cache", bytes(memory.record_cache));
        }
        if memory.large_buffers > 0 {
            section.pair("buffers of large values", bytes(memory.large_buffers));
        }
        section.pair("pinned index and filters", bytes(memory.pinned));
        if memory.unpinned > 0 {
            section.pair("unpinned for want of room", bytes(memory.unpinned));
        }
        section
    }
}

fn text_record_cache(cache: &RecordCacheMetrics) -> Section {
    let mut section = Section::new("Record cache");
    let share = percent(cache.bytes, cache.capacity_bytes);
    section.pair(
        "filled",
        format!(
            "{} records, {} of {} ({share})",
            cache.entries,
            bytes(cache.bytes),
            bytes(cache.capacity_bytes)
        ),
    );
    let asked = cache.hits + cache.misses;
    section.pair(
        "hits",
        format!("{} of {asked} ({})", cache.hits, percent(cache.hits, asked)),
    );
    section.pair(
        "taken in",
        format!("{}, {} refused", cache.fills, cache.refused_fills),
    );
    section.pair(
        "taken out",
        format!(
            "{} for others, {} for newer versions",
            cache.evictions, cache.invalidations
        ),
    );
    section.pair("refreshed", cache.refreshes.to_string());
    section
}

fn seconds(seconds: f64) -> String {
    // What is no duration (NaN, negative) is shown as nothing spent.
    time(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
