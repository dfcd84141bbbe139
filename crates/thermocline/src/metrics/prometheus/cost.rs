//! Samples of what the store costs.

use std::fmt;

use prometheus_client::registry::Unit;

use crate::metrics::CostReport;
use crate::metrics::exposition::{Label, Writer};
use crate::options::Target;

fn direction(name: &str) -> Vec<Label> {
    vec![("direction", name.to_owned())]
}

impl Writer<'_> {
    pub(super) fn cost(&mut self, cost: &CostReport) -> fmt::Result {
        let target = match cost.target {
            Target::Cost(dollars) => Some(dollars),
            _ => None,
        };
        let bounds = cost.bounds();
        for (name, help, value) in [
            (
                "cost_dollars_per_gb_month",
                "Dollars per GB of live keys and values and month",
                Some(cost.now),
            ),
            (
                "cost_target",
                "What that may be, absent when there is no target in dollars",
                target,
            ),
            (
                "cost_budget",
                "What the target allows at present, absent when there is none",
                cost.budget,
            ),
            (
                "cost_floor",
                "The least that it can be, absent when that is not known",
                bounds.map(|(floor, _)| floor),
            ),
            (
                "cost_ceiling",
                "The most that it can be, absent when that is not known",
                bounds.map(|(_, ceiling)| ceiling),
            ),
        ] {
            self.gauge(name, None, help, value.map(|value| (Vec::new(), value)))?;
        }
        self.one_gauge(
            "cost_moving",
            Some(Unit::Bytes),
            "Bytes of tables that are to move to another tier",
            cost.moving_bytes,
        )?;
        self.counter(
            "migrated",
            Some(Unit::Bytes),
            "Bytes of tables that were written anew on another tier, compactions apart",
            [
                (direction("up"), cost.migrated_up_bytes),
                (direction("down"), cost.migrated_down_bytes),
            ],
        )
    }
}
