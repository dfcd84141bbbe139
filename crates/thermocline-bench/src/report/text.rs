//! The report for people.

use std::fmt;

use bytesize::ByteSize;

use super::Report;
use crate::run::{CostResult, StageResult};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} {}: {} records of {} B, {} threads",
            self.engine,
            self.workload,
            self.distribution,
            self.records,
            self.record_bytes,
            self.threads
        )?;
        if let Some(rate) = self.rate {
            write!(f, ", {rate} operations/s offered")?;
        }
        if let Some(target) = &self.target {
            write!(f, ", target {target}")?;
        }
        writeln!(f)?;
        if let (Some(ops_s), Some(seconds), Some(settle)) =
            (self.load_ops_s, self.load_seconds, self.load_settle_seconds)
        {
            writeln!(
                f,
                "  load          {ops_s:.0} records/s, {seconds:.1} s and {settle:.1} s of background work"
            )?;
        }
        if let Some(seconds) = self.warm_up_seconds {
            writeln!(f, "  warm-up       {seconds:.1} s, not measured")?;
        }
        if let (Some(ops), Some(seconds), Some(ops_s), Some(last)) =
            (self.ops, self.seconds, self.ops_s, self.last_tenth_ops_s)
        {
            writeln!(
                f,
                "  run           {ops_s:.0} operations/s, {last:.0} in the last tenth ({ops} in {seconds:.1} s)"
            )?;
        }
        for latency in &self.latencies {
            writeln!(
                f,
                "  {:<13} p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us",
                latency.operation.replace('_', "-"),
                latency.p50_us,
                latency.p99_us,
                latency.p999_us,
                latency.max_us
            )?;
        }
        for (place, rate) in [
            ("the slow disk", self.fd_hit_rate),
            ("any disk", self.dram_hit_rate),
        ] {
            if let Some(rate) = rate {
                writeln!(f, "  reads         {:.1} % without {place}", rate * 100.0)?;
            }
        }
        if let (Some(last), Some(seconds)) = (&self.last_tenth, self.seconds_to_90_percent)
            && let Some(rate) = last.fd_hit_rate
        {
            writeln!(
                f,
                "  last tenth    {:.1} % without the slow disk, {:.1} us on average; nine tenths of that after {seconds:.1} s",
                rate * 100.0,
                last.mean_us
            )?;
        }
        if self.stages.len() > 1 {
            for stage in &self.stages {
                write_stage(f, stage)?;
            }
        }
        if let Some(cost) = &self.cost {
            write_bill(f, cost)?;
        }
        if let (Some(fast), Some(slow)) = (self.fd_bytes, self.sd_bytes) {
            writeln!(
                f,
                "  on disk       {} fast, {} slow",
                ByteSize(fast),
                ByteSize(slow)
            )?;
        }
        write_tiers(f, self)?;
        if let Some(cache) = &self.record_cache {
            let asked = (cache.hits + cache.misses).max(1);
            writeln!(
                f,
                "  record cache  {} records in {} of {}; {:.1} % hits; {} filled, {} evicted, {} refreshed, {} invalidated",
                cache.entries,
                ByteSize(cache.bytes),
                ByteSize(cache.capacity_bytes),
                cache.hits as f64 * 100.0 / asked as f64,
                cache.fills,
                cache.evictions,
                cache.refreshes,
                cache.invalidations
            )?;
        }
        write!(f, "{}", self.hotness)?;
        if let Some(hot) = self.hotness.hot_bytes_on_fast {
            let capacity = self.settings.fast_capacity.max(1);
            writeln!(
                f,
                "  hot and fast  {} of records, {:.1} % of the fast tier's capacity",
                ByteSize(hot),
                hot as f64 * 100.0 / capacity as f64
            )?;
        }
        if let Some(amplification) = self.write_amplification {
            write!(f, "  writes        amplified {amplification:.1} times")?;
            if let Some(stalls) = self.stall_seconds {
                write!(f, ", held back {stalls:.1} s")?;
            }
            let reasons = self.stall_by_reason.iter().flatten();
            let worth_saying = reasons.filter(|(_, seconds)| **seconds >= 0.05);
            let said: Vec<String> = worth_saying
                .map(|(why, s)| format!("{why} {s:.1} s"))
                .collect();
            if !said.is_empty() {
                write!(f, " ({})", said.join(", "))?;
            }
            writeln!(f)?;
        }
        if let (Some(cpu), Some(each)) = (self.cpu_seconds, self.cpu_us_per_op) {
            writeln!(
                f,
                "  used          {cpu:.1} s of processor time ({each:.1} us an operation), {} of memory at most",
                ByteSize(self.max_rss_bytes)
            )?;
        }
        write_cpu(f, self)?;
        write!(f, "  wrong answers {}", self.wrong_answers)?;
        for example in &self.wrong_examples {
            write!(f, "\n    {example}")?;
        }
        Ok(())
    }
}

/// What the store cost in the last stage.
fn write_bill(f: &mut fmt::Formatter<'_>, cost: &CostResult) -> fmt::Result {
    if let (Some(mean), Some(most)) = (cost.bill_mean, cost.bill_max) {
        write!(
            f,
            "  bill          ${mean:.4} per GB of records and month, ${most:.4} at most"
        )?;
        if let Some(by_tables) = cost.bill_by_tables {
            write!(f, "; ${by_tables:.4} by live tables")?;
        }
        if let Some(target) = cost.target_cost {
            match cost.seconds_to_target {
                Some(seconds) => write!(f, ", target ${target} kept after {seconds:.1} s")?,
                None => write!(f, ", target ${target} not kept")?,
            }
        }
        writeln!(f)?;
    }
    if let (Some(tables), Some(up), Some(down), Some(others)) = (
        cost.migrations,
        cost.tables_up_bytes,
        cost.tables_down_bytes,
        cost.migrations_by_compaction,
    ) && tables + others > 0
    {
        writeln!(
            f,
            "  tables moved  {tables}: {} up, {} down; {others} by compactions",
            ByteSize(up),
            ByteSize(down)
        )?;
    }
    match &cost.held_up_by {
        Some(why) => writeln!(f, "  held up by    {why}"),
        None => Ok(()),
    }
}

/// Each tier, if there are more than the two that have figures of their own.
fn write_tiers(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let tiers = report.tiers.as_deref().unwrap_or_default();
    if tiers.len() <= 2 {
        return Ok(());
    }
    for (number, tier) in tiers.iter().enumerate() {
        write!(f, "  tier {number:<8} {}", ByteSize(tier.bytes))?;
        if let Some(io) = tier.io_by_activity.map(|io| io.sum()) {
            let (read, written) = (ByteSize(io.read_bytes), ByteSize(io.write_bytes));
            let ops = io.read_ops;
            write!(f, "; read {read} in {ops} operations, wrote {written}")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Shares of the processor time. What took nothing is left out.
fn write_cpu(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let Some(cpu) = &report.cpu_by_activity else {
        return Ok(());
    };
    let all = cpu.sum().max(1e-9);
    let shares = cpu.iter().filter(|(_, seconds)| *seconds > 0.0);
    let shares = shares
        .map(|(activity, seconds)| format!("{} {:.1} %", activity.name(), seconds / all * 100.0));
    writeln!(
        f,
        "  of that time  {}",
        shares.collect::<Vec<_>>().join(", ")
    )
}

fn write_stage(f: &mut fmt::Formatter<'_>, stage: &StageResult) -> fmt::Result {
    let name = stage.target.as_ref().unwrap_or(&stage.distribution);
    write!(f, "  {name:<13} {:.0} operations/s", stage.ops_s)?;
    if let Some(rate) = stage.last_tenth_fd_hit_rate {
        write!(
            f,
            ", at its end {:.1} % without the slow disk",
            rate * 100.0
        )?;
    }
    if let Some(bill) = stage.cost.as_ref().and_then(|cost| cost.bill_mean) {
        write!(f, ", ${bill:.4}")?;
    }
    match stage.seconds_to_steady {
        Some(seconds) => write!(f, ", steady after {seconds:.1} s of {:.1}", stage.seconds)?,
        None => write!(f, ", not steady within {:.1} s", stage.seconds)?,
    }
    if let (Some(hot), Some(limit)) = (stage.hot_set_bytes, stage.hot_set_limit_bytes) {
        write!(f, ", {} of {} hot", ByteSize(hot), ByteSize(limit))?;
    }
    writeln!(f)
}
