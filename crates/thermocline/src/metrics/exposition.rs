//! Writes metric families in the exposition format, one sample per set of labels.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

pub(super) type Label = (&'static str, String);

pub(super) fn tier(index: usize) -> Label {
    ("tier", index.to_string())
}

pub(super) struct Writer<'a>(pub(super) DescriptorEncoder<'a>);

impl Writer<'_> {
    /// One counter with a sample per set of labels. The encoder appends unit and `_total`.
    pub(super) fn counter<V: EncodeCounterValue>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label>, V)>,
    ) -> fmt::Result {
        let mut metric =
            self.0
                .encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in samples {
            // A family with no labels would be written as `name{}`.
            if labels.is_empty() {
                metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            } else {
                metric
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
        }
        Ok(())
    }

    /// As [`Writer::counter`], for values that can also fall.
    pub(super) fn gauge<V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label>, V)>,
    ) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in samples {
            if labels.is_empty() {
                metric.encode_gauge(&value)?;
            } else {
                metric.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    pub(super) fn one_counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counter(name, None, help, [(Vec::new(), value)])
    }

    pub(super) fn one_gauge(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        value: u64,
    ) -> fmt::Result {
        self.gauge(name, unit, help, [(Vec::new(), value)])
    }
}

/// One sample per tier, `labels` and the tier's number on each.
pub(super) fn per_tier(
    labels: Vec<Label>,
    values: &[u64],
) -> impl Iterator<Item = (Vec<Label>, u64)> {
    values.iter().enumerate().map(move |(index, &value)| {
        let mut labels = labels.clone();
        labels.push(tier(index));
        (labels, value)
    })
}
