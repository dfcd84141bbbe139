//! Every field has its sample, and no sample is without a field. Of the fields of a keyspace and of
//! the cost only some have samples.

use std::collections::{HashMap, HashSet};

use crate::metrics::{Metrics, fixture};
use crate::options::Target;

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
        let family = family.trim_end_matches("_total");
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
        size("tier_copied_bytes", t.copied_bytes);
        check.take(
            &format!("tier_price_dollars_per_gb_month{{tier=\"{i}\"}}"),
            t.price_per_gb_month.unwrap(),
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
            &format!("level_raw_bytes{{{labels}}}"),
            level.raw_bytes as f64,
        );
        check.take(&format!("level_hits_total{{{labels}}}"), level.hits as f64);
        for (tier, &bytes) in level.tier_bytes.iter().enumerate() {
            check.take(
                &format!("level_tier_bytes{{{labels},tier=\"{tier}\"}}"),
                bytes as f64,
            );
        }
    }
    // What would end a label or a line is escaped.
    let names = ["default", r#"the \"new\" one\nis C:\\new"#];
    for (keyspace, name) in metrics.keyspaces.iter().zip(names) {
        let mut size = |family: &str, more: &str, value: u64| {
            check.take(
                &format!("{family}{{keyspace=\"{name}\"{more}}}"),
                value as f64,
            );
        };
        size("keyspace_records", "", keyspace.records);
        size("keyspace_memtable_bytes", "", keyspace.memtable_bytes);
        size("keyspace_hot_bytes", "", keyspace.hot_bytes.unwrap());
        for (tier, &bytes) in keyspace.table_bytes.iter().enumerate() {
            size("keyspace_table_bytes", &format!(",tier=\"{tier}\""), bytes);
        }
    }
    for (name, value) in [
        ("tier_capacity_bytes{tier=\"0\"}", (1u64 << 30) as f64),
        // The last level has no target, and was said to be kept at 2^64 - 1 bytes.
        ("level_target_bytes{level=\"0\"}", 10_003.0),
        ("reads_total", 501.0),
        ("memtable_hits_total", 502.0),
        ("record_cache_hits_total", 513.0),
        ("promotion_cache_hits_total", 512.0),
        ("tier_hits_total{tier=\"0\"}", 503.0),
        ("tier_hits_total{tier=\"1\"}", 504.0),
        ("absent_reads_total", 505.0),
        ("reads_without_device_total", 506.0),
        ("reads_without_slow_device_total", 507.0),
        ("block_cache_hits_total", 508.0),
        ("block_cache_misses_total", 509.0),
        ("filter_skips_total", 510.0),
        ("filter_false_positives_total", 511.0),
        ("iterator_passed_total", 514.0),
        ("record_cache_limit_bytes", 1601.0),
        ("record_cache_entries", 1603.0),
        ("record_cache_misses_total", 1604.0),
        ("record_cache_fills_total", 1605.0),
        ("record_cache_refused_fills_total", 1606.0),
        ("record_cache_evictions_total", 1607.0),
        ("record_cache_refreshes_total", 1609.0),
        ("record_cache_invalidations_total", 1608.0),
        ("hot_set_bytes", 1301.0),
        ("hot_set_limit_bytes", 1302.0),
        ("ralt_table_bytes", 1303.0),
        ("ralt_table_limit_bytes", 1304.0),
        ("ralt_memory_bytes", 1305.0),
        ("ralt_records", 1306.0),
        ("ralt_hot_threshold", 1307.5),
        ("ralt_evicted_threshold", 1308.5),
        ("ralt_young", 1.0),
        ("ralt_generous", 1.0),
        ("ralt_slices_total", 1309.0),
        ("ralt_accesses_total", 1310.0),
        ("ralt_dropped_accesses_total", 1311.0),
        ("ralt_evictions_total", 1312.0),
        ("ralt_cpu_seconds_total", 1313.5),
        ("ralt_read_bytes_total", 1314.0),
        ("ralt_written_bytes_total", 1315.0),
        ("ralt_trouble", 1.0),
        ("promotion_cache_bytes", 1401.0),
        ("promoted_bytes_total{by=\"flush\"}", 1402.0),
        ("promoted_bytes_total{by=\"compaction\"}", 1403.0),
        ("retained_bytes_total", 1404.0),
        ("bypassed_bytes_total", 1413.0),
        ("admission_attempts_total", 1405.0),
        ("admission_refused_total{reason=\"claimed\"}", 1406.0),
        ("admission_refused_total{reason=\"overtaken\"}", 1407.0),
        ("admission_refused_total{reason=\"old_snapshot\"}", 1408.0),
        ("admission_refused_total{reason=\"full\"}", 1409.0),
        ("promotion_dropped_cold_total", 1410.0),
        ("promotion_voided_flushes_total", 1411.0),
        ("crossings", 1412.0),
        ("background_cpu_seconds_total{activity=\"flush\"}", 1501.5),
        (
            "background_cpu_seconds_total{activity=\"compaction\"}",
            1502.5,
        ),
        (
            "background_cpu_seconds_total{activity=\"promotion\"}",
            1503.5,
        ),
        ("background_cpu_seconds_total{activity=\"ralt\"}", 1504.5),
        (
            "background_cpu_seconds_total{activity=\"placement\"}",
            1505.5,
        ),
        ("compactions_total{from=\"0\",to=\"1\"}", 601.0),
        ("compaction_moves_total{from=\"0\",to=\"1\"}", 602.0),
        ("compactions_for_hidden_total{from=\"0\",to=\"1\"}", 608.0),
        (
            "compactions_for_small_tables_total{from=\"0\",to=\"1\"}",
            609.0,
        ),
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
        ("memory_budget_bytes", u64::MAX as f64),
        ("memory_bytes{part=\"memtables\"}", 1102.0),
        ("memory_bytes{part=\"pinned_memtables\"}", 1107.0),
        ("memory_bytes{part=\"block_cache\"}", 1103.0),
        ("memory_bytes{part=\"record_cache\"}", 1105.0),
        ("memory_bytes{part=\"large_buffers\"}", 1108.0),
        ("memory_bytes{part=\"pinned\"}", 1104.0),
        ("memory_unpinned_bytes", 1106.0),
        ("user_written_bytes_total", 1201.0),
        ("user_writes_total", 1202.0),
        ("cost_dollars_per_gb_month", 0.375),
        ("cost_target", 0.3125),
        ("cost_budget", 0.2),
        ("cost_floor", 0.125),
        ("cost_ceiling", 0.5),
        ("cost_moving_bytes", 1804.0),
        ("migrated_bytes_total{direction=\"up\"}", 1806.0),
        ("migrated_bytes_total{direction=\"down\"}", 1810.0),
        ("snapshots", 1203.0),
        ("oldest_snapshot_sequence", 1204.0),
        ("sequence_total", 1205.0),
        ("oldest_pin_seconds", 1206.0),
        ("raw_bytes", 30_014.0),
        ("live_raw_bytes", 15_007.0),
        ("background_error", 1.0),
        ("background_error_info{error=\"a sync failed\"}", 1.0),
        ("uptime_seconds", 1207.0),
    ] {
        check.take(name, value);
    }
    assert!(check.0.is_empty(), "not a field: {:?}", check.0);
}

/// The directories of tiers were of the type `info`, which only OpenMetrics has: a reader of the
/// text format 0.0.4 refused every metric of the store, not only that one.
#[test]
fn every_type_is_one_of_the_older_text_format() {
    let text = fixture::metrics().to_prometheus();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for family in types {
        let (_, kind) = family.split_once(' ').expect("a type");
        let known = ["counter", "gauge", "histogram", "summary", "untyped"];
        assert!(known.contains(&kind), "{family}");
    }
}

#[test]
fn what_does_not_hold_has_no_sample() {
    let text = Metrics::default().to_prometheus();
    let samples = samples(&text);
    assert!(!samples.contains_key("thermocline_oldest_pin_seconds"));
    assert!(!samples.contains_key("thermocline_hot_set_bytes"));
    assert!(!samples.contains_key("thermocline_write_rate_limit_bytes_per_second"));
    assert!(
        !text.contains("thermocline_keyspace"),
        "nobody asked for them"
    );
    assert_eq!(samples.get("thermocline_background_error"), Some(&0.0));
    assert!(!text.contains("cost") && !text.contains("migrated"));
}

#[test]
fn a_cost_without_target_and_bounds_has_no_samples_of_them() {
    let mut metrics = fixture::metrics();
    let cost = metrics.cost.as_mut().expect("there are prices");
    (cost.target, cost.floor, cost.ceiling) = (Target::HitRate(0.5), 0.0, 0.0);
    let samples = samples(&metrics.to_prometheus());
    let has = |name: &str| samples.contains_key(&format!("thermocline_cost_{name}"));
    assert!(has("dollars_per_gb_month") && has("moving_bytes"));
    assert!(!has("target") && !has("floor") && !has("ceiling"));
}
