//! Prometheus exposition of the metrics.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::exposition::{Label, Writer, per_tier, tier};
use super::{Metrics, TierMetrics};

impl Metrics {
    /// The metrics in the text format that Prometheus scrapes: names start with
    /// `thermocline_`, sizes are in bytes and times in seconds.
    ///
    /// ```
    /// let text = thermocline::metrics::Metrics::default().to_prometheus();
    /// assert!(text.contains("# TYPE thermocline_reads counter"));
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut registry = Registry::with_prefix("thermocline");
        registry.register_collector(Box::new(Exposition(self.clone())));
        let mut out = String::new();
        text::encode(&mut out, &registry).expect("writing into a string does not fail");
        out
    }
}

#[derive(Debug)]
struct Exposition(Metrics);

impl Collector for Exposition {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Writer(encoder);
        let metrics = &self.0;
        out.tiers(metrics)?;
        out.levels(metrics)?;
        out.hits(metrics)?;
        out.compactions(metrics)?;
        out.stalls(metrics)?;
        out.latencies(metrics)?;
        out.writes(metrics)?;
        out.health(metrics)
    }
}

impl Writer<'_> {
    fn tiers(&mut self, metrics: &Metrics) -> fmt::Result {
        let tiers = &metrics.tiers;
        let info: Vec<Vec<Label>> = tiers
            .iter()
            .enumerate()
            .map(|(i, t)| vec![tier(i), ("path", t.path.display().to_string())])
            .collect();
        let mut metric =
            self.0
                .encode_descriptor("tier", "Directory of a tier", None, MetricType::Info)?;
        for labels in &info {
            metric.encode_info(labels)?;
        }
        let limited = tiers
            .iter()
            .enumerate()
            .filter(|(_, t)| t.capacity < u64::MAX);
        self.gauge(
            "tier_capacity",
            Some(Unit::Bytes),
            "Bytes the store may occupy, absent when unlimited",
            limited.map(|(i, t)| (vec![tier(i)], t.capacity)),
        )?;
        let mut sizes = |name, help, of: fn(&TierMetrics) -> u64| {
            let samples = tiers.iter().enumerate();
            let samples = samples.map(|(i, t)| (vec![tier(i)], of(t)));
            self.gauge(name, Some(Unit::Bytes), help, samples)
        };
        sizes("tier_file", "Bytes of all files", |t| t.file_bytes)?;
        sizes(
            "tier_reserved",
            "Bytes set aside for output in flight",
            |t| t.reserved_bytes,
        )?;
        sizes("tier_table", "Bytes of live tables", |t| t.table_bytes)?;
        sizes(
            "tier_pinned_obsolete",
            "Bytes of obsolete files that a reader pins",
            |t| t.pinned_obsolete_bytes,
        )?;
        self.gauge(
            "tier_price_dollars_per_gb_month",
            None,
            "Price of a tier",
            tiers
                .iter()
                .enumerate()
                .map(|(i, t)| (vec![tier(i)], t.price_per_gb_month)),
        )?;
        self.io(metrics)
    }

    fn io(&mut self, metrics: &Metrics) -> fmt::Result {
        type Of = fn(&super::IoMetrics) -> u64;
        let families: [(&str, Option<Unit>, &str, Of); 4] = [
            ("io_read_operations", None, "Reads from the device", |io| {
                io.read_ops
            }),
            (
                "io_read",
                Some(Unit::Bytes),
                "Bytes read from the device",
                |io| io.read_bytes,
            ),
            ("io_write_operations", None, "Writes to the device", |io| {
                io.write_ops
            }),
            (
                "io_written",
                Some(Unit::Bytes),
                "Bytes written to the device",
                |io| io.write_bytes,
            ),
        ];
        for (name, unit, help, of) in families {
            let samples = metrics.tiers.iter().enumerate().flat_map(|(i, t)| {
                t.io.iter().map(move |io| {
                    (
                        vec![tier(i), ("purpose", io.purpose.name().to_owned())],
                        of(io),
                    )
                })
            });
            self.counter(name, unit, help, samples)?;
        }
        Ok(())
    }

    fn levels(&mut self, metrics: &Metrics) -> fmt::Result {
        let each = || {
            let levels = metrics.levels.iter().enumerate();
            levels.map(|(i, level)| (("level", i.to_string()), level))
        };
        let bytes = || Some(Unit::Bytes);
        self.gauge(
            "level_tables",
            None,
            "Tables of a level",
            each().map(|(l, level)| (vec![l], level.tables)),
        )?;
        self.gauge(
            "level",
            bytes(),
            "Bytes of a level",
            each().map(|(l, level)| (vec![l], level.bytes)),
        )?;
        self.gauge(
            "level_target",
            bytes(),
            "Size a level is kept at, 0 if it has none",
            each().map(|(l, level)| (vec![l], level.target_bytes)),
        )?;
        self.gauge(
            "level_tier",
            bytes(),
            "Bytes of a level on a tier",
            each().flat_map(|(l, level)| per_tier(vec![l], &level.tier_bytes)),
        )?;
        self.counter(
            "level_hits",
            None,
            "Point reads answered by a level",
            each().map(|(l, level)| (vec![l], level.hits)),
        )
    }

    fn hits(&mut self, metrics: &Metrics) -> fmt::Result {
        let hits = &metrics.hits;
        self.one_counter("reads", "Point reads", hits.gets)?;
        self.one_counter(
            "memtable_hits",
            "Point reads answered by a memtable",
            hits.memtable,
        )?;
        self.counter(
            "tier_hits",
            None,
            "Point reads answered by a table of a tier",
            per_tier(Vec::new(), &hits.tier),
        )?;
        self.one_counter(
            "absent_reads",
            "Point reads of keys that do not exist",
            hits.absent,
        )?;
        self.one_counter(
            "reads_without_device",
            "Point reads answered from memory",
            hits.without_device,
        )?;
        self.one_counter(
            "reads_without_slow_device",
            "Point reads answered without a device slower than the first tier",
            hits.without_slow_device,
        )?;
        self.one_counter(
            "block_cache_hits",
            "Blocks found in the cache",
            hits.block_cache_hits,
        )?;
        self.one_counter(
            "block_cache_misses",
            "Blocks not found in the cache",
            hits.block_cache_misses,
        )?;
        self.one_counter(
            "filter_skips",
            "Tables a filter excluded",
            hits.filter_skips,
        )?;
        self.one_counter(
            "filter_false_positives",
            "Tables a filter let pass in vain",
            hits.filter_false_positives,
        )
    }

    fn compactions(&mut self, metrics: &Metrics) -> fmt::Result {
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

    fn stalls(&mut self, metrics: &Metrics) -> fmt::Result {
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

    fn latencies(&mut self, metrics: &Metrics) -> fmt::Result {
        let operation = |name: &str| -> Label { ("operation", name.to_owned()) };
        self.counter(
            "measured_operations",
            None,
            "Operations whose latency was measured",
            metrics
                .latencies
                .iter()
                .map(|l| (vec![operation(l.operation)], l.count)),
        )?;
        self.gauge(
            "latency",
            Some(Unit::Seconds),
            "Latency since the store was opened; quantile 1 is the longest",
            metrics.latencies.iter().flat_map(|l| {
                [
                    ("0.5", l.p50),
                    ("0.99", l.p99),
                    ("0.999", l.p999),
                    ("1", l.max),
                ]
                .map(|(quantile, time)| {
                    let quantile = ("quantile", quantile.to_owned());
                    (vec![operation(l.operation), quantile], time.as_secs_f64())
                })
            }),
        )
    }

    fn writes(&mut self, metrics: &Metrics) -> fmt::Result {
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
                ("block_cache", memory.block_cache),
                ("pinned", memory.pinned),
            ]
            .map(|(part, value)| (vec![("part", part.to_owned())], value)),
        )
    }

    fn health(&mut self, metrics: &Metrics) -> fmt::Result {
        let seconds = || Some(Unit::Seconds);
        self.one_gauge("snapshots", None, "Snapshots open", metrics.snapshots)?;
        self.gauge(
            "oldest_snapshot_sequence",
            None,
            "Sequence number of the oldest snapshot, absent when there is none",
            metrics.oldest_snapshot.map(|seq| (Vec::new(), seq)),
        )?;
        self.gauge(
            "oldest_pin",
            seconds(),
            "Age of the oldest reader that pins obsolete files, absent when there is none",
            metrics
                .oldest_pin
                .map(|age| (Vec::new(), age.as_secs_f64())),
        )?;
        self.one_gauge(
            "background_error",
            None,
            "1 when writes are refused or background work is held up",
            u64::from(metrics.background_error.is_some()),
        )?;
        self.gauge(
            "uptime",
            seconds(),
            "Time since the store was opened",
            [(Vec::new(), metrics.uptime.as_secs_f64())],
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::super::fixture;
    use super::*;

    /// Every sample by its name and labels, after checking the form of each line.
    fn samples(text: &str) -> HashMap<String, f64> {
        let mut types = HashSet::new();
        let mut samples = HashMap::new();
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(comment) = line.strip_prefix("# ") {
                let (kind, rest) = comment.split_once(' ').expect("a kind");
                assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
                if kind == "TYPE" {
                    let (name, _) = rest.split_once(' ').expect("a name");
                    assert!(types.insert(name.to_owned()), "{name} is described twice");
                }
                continue;
            }
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let family = name.split('{').next().expect("a name");
            let family = family.trim_end_matches("_total").trim_end_matches("_info");
            assert!(types.contains(family), "{line} has no TYPE");
            assert!(family.starts_with("thermocline_"), "{line}");
            let value = value.parse().expect("a number");
            assert_eq!(samples.insert(name.to_owned(), value), None, "{name} twice");
        }
        samples
    }

    struct Checker(HashMap<String, f64>);

    impl Checker {
        fn take(&mut self, name: &str, value: f64) {
            let full = format!("thermocline_{name}");
            assert_eq!(self.0.remove(&full), Some(value), "{full}");
        }
    }

    #[test]
    fn every_field_appears_with_its_labels_and_nothing_else() {
        let metrics = fixture::metrics();
        let text = metrics.to_prometheus();
        assert!(text.ends_with("# EOF\n"));
        let mut check = Checker(samples(&text));

        for (i, t) in metrics.tiers.iter().enumerate() {
            check.take(&format!("tier_info{{tier=\"{i}\",path=\"/tier{i}\"}}"), 1.0);
            let mut size = |name: &str, value: u64| {
                check.take(&format!("{name}{{tier=\"{i}\"}}"), value as f64);
            };
            size("tier_file_bytes", t.file_bytes);
            size("tier_reserved_bytes", t.reserved_bytes);
            size("tier_table_bytes", t.table_bytes);
            size("tier_pinned_obsolete_bytes", t.pinned_obsolete_bytes);
            check.take(
                &format!("tier_price_dollars_per_gb_month{{tier=\"{i}\"}}"),
                t.price_per_gb_month,
            );
            for io in &t.io {
                let labels = format!("{{tier=\"{i}\",purpose=\"{}\"}}", io.purpose.name());
                check.take(
                    &format!("io_read_operations_total{labels}"),
                    io.read_ops as f64,
                );
                check.take(
                    &format!("io_read_bytes_total{labels}"),
                    io.read_bytes as f64,
                );
                check.take(
                    &format!("io_write_operations_total{labels}"),
                    io.write_ops as f64,
                );
                check.take(
                    &format!("io_written_bytes_total{labels}"),
                    io.write_bytes as f64,
                );
            }
        }
        for (i, level) in metrics.levels.iter().enumerate() {
            let labels = format!("level=\"{i}\"");
            check.take(&format!("level_tables{{{labels}}}"), level.tables as f64);
            check.take(&format!("level_bytes{{{labels}}}"), level.bytes as f64);
            check.take(
                &format!("level_target_bytes{{{labels}}}"),
                level.target_bytes as f64,
            );
            check.take(&format!("level_hits_total{{{labels}}}"), level.hits as f64);
            for (tier, &bytes) in level.tier_bytes.iter().enumerate() {
                check.take(
                    &format!("level_tier_bytes{{{labels},tier=\"{tier}\"}}"),
                    bytes as f64,
                );
            }
        }
        for (name, value) in [
            ("tier_capacity_bytes{tier=\"0\"}", (1u64 << 30) as f64),
            ("reads_total", 501.0),
            ("memtable_hits_total", 502.0),
            ("tier_hits_total{tier=\"0\"}", 503.0),
            ("tier_hits_total{tier=\"1\"}", 504.0),
            ("absent_reads_total", 505.0),
            ("reads_without_device_total", 506.0),
            ("reads_without_slow_device_total", 507.0),
            ("block_cache_hits_total", 508.0),
            ("block_cache_misses_total", 509.0),
            ("filter_skips_total", 510.0),
            ("filter_false_positives_total", 511.0),
            ("compactions_total{from=\"0\",to=\"1\"}", 601.0),
            ("compaction_moves_total{from=\"0\",to=\"1\"}", 602.0),
            (
                "compaction_read_bytes_total{from=\"0\",to=\"1\",tier=\"0\"}",
                603.0,
            ),
            (
                "compaction_read_bytes_total{from=\"0\",to=\"1\",tier=\"1\"}",
                604.0,
            ),
            (
                "compaction_written_bytes_total{from=\"0\",to=\"1\",tier=\"0\"}",
                605.0,
            ),
            (
                "compaction_written_bytes_total{from=\"0\",to=\"1\",tier=\"1\"}",
                606.0,
            ),
            ("compaction_busy_seconds_total{from=\"0\",to=\"1\"}", 607.5),
            ("compaction_debt_bytes", 701.0),
            ("flushes_total", 702.0),
            ("stall_slowed_seconds_total", 801.5),
            ("stall_stopped_seconds_total", 802.5),
            ("stall_longest_seconds", 803.5),
            ("stall_seconds_total{reason=\"l0 tables\"}", 804.5),
            ("stall_seconds_total{reason=\"fast tier full\"}", 805.5),
            ("stall_active{reason=\"l0 tables\"}", 1.0),
            ("write_rate_limit_bytes_per_second", 806.0),
            ("measured_operations_total{operation=\"get\"}", 901.0),
            ("latency_seconds{operation=\"get\",quantile=\"0.5\"}", 0.002),
            (
                "latency_seconds{operation=\"get\",quantile=\"0.99\"}",
                0.003,
            ),
            (
                "latency_seconds{operation=\"get\",quantile=\"0.999\"}",
                0.004,
            ),
            ("latency_seconds{operation=\"get\",quantile=\"1\"}", 0.005),
            ("memory_budget_bytes", 1101.0),
            ("memory_bytes{part=\"memtables\"}", 1102.0),
            ("memory_bytes{part=\"block_cache\"}", 1103.0),
            ("memory_bytes{part=\"pinned\"}", 1104.0),
            ("user_written_bytes_total", 1201.0),
            ("user_writes_total", 1202.0),
            ("snapshots", 1203.0),
            ("oldest_snapshot_sequence", 1204.0),
            ("sequence_total", 1205.0),
            ("oldest_pin_seconds", 1206.0),
            ("background_error", 1.0),
            ("uptime_seconds", 1207.0),
        ] {
            check.take(name, value);
        }
        assert!(check.0.is_empty(), "not a field: {:?}", check.0);
    }

    #[test]
    fn what_does_not_hold_has_no_sample() {
        let text = Metrics::default().to_prometheus();
        let samples = samples(&text);
        assert!(!samples.contains_key("thermocline_oldest_pin_seconds"));
        assert!(!samples.contains_key("thermocline_write_rate_limit_bytes_per_second"));
        assert_eq!(samples.get("thermocline_background_error"), Some(&0.0));
    }
}
