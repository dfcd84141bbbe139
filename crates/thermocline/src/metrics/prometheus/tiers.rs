//! Samples of tiers and levels.

use std::fmt;

use prometheus_client::registry::Unit;

use crate::metrics::exposition::{Writer, per_tier, tier};
use crate::metrics::{IoMetrics, Metrics, TierMetrics};

impl Writer<'_> {
    pub(super) fn tiers(&mut self, metrics: &Metrics) -> fmt::Result {
        let tiers = &metrics.tiers;
        // Not of the type `info`: a reader of the older text format refuses all that comes with it.
        let info = tiers.iter().enumerate().map(|(i, t)| {
            let path = t.path.display().to_string();
            (vec![tier(i), ("path", path)], 1u64)
        });
        self.gauge("tier_info", None, "Directory of a tier", info)?;
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
        sizes(
            "tier_copied",
            "Bytes of copies of slower tables in room that nothing else uses",
            |t| t.copied_bytes,
        )?;
        self.gauge(
            "tier_price_dollars_per_gb_month",
            None,
            "Price of a tier",
            tiers
                .iter()
                .enumerate()
                .filter_map(|(i, t)| Some((vec![tier(i)], t.price_per_gb_month?))),
        )?;
        self.io(metrics)
    }

    fn io(&mut self, metrics: &Metrics) -> fmt::Result {
        type Of = fn(&IoMetrics) -> u64;
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

    pub(super) fn levels(&mut self, metrics: &Metrics) -> fmt::Result {
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
            "level_raw",
            bytes(),
            "Bytes of keys and values of a level, before compression",
            each().map(|(l, level)| (vec![l], level.raw_bytes)),
        )?;
        self.one_gauge(
            "raw",
            bytes(),
            "Bytes of keys and values in all tables, before compression",
            metrics.raw_bytes(),
        )?;
        self.one_gauge(
            "live_raw",
            bytes(),
            "Bytes of them that are live, by a sample of keys",
            metrics.live_raw_bytes,
        )?;
        self.gauge(
            "level",
            bytes(),
            "Bytes of a level",
            each().map(|(l, level)| (vec![l], level.bytes)),
        )?;
        let limited = each().filter(|(_, level)| level.target_bytes < u64::MAX);
        self.gauge(
            "level_target",
            bytes(),
            "Size a level is kept at, 0 if it is not in use, absent if it takes what comes",
            limited.map(|(l, level)| (vec![l], level.target_bytes)),
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
}
