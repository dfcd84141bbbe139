//! Several slow tiers under placement by hotness: the tables of the levels below f lie on each of
//! them by their heat.
//!
//! Records have the money first ([`super::governor`]), as long as they save more with it
//! ([`super::between`]). The rest goes to steps of tables: from the slowest tier to a faster one,
//! and from there to a copy on the first, each step by the time that it saves for its price.
//! Without a target there is no price, and the hottest tables lie on the faster tiers, as far as
//! these have room.

use super::HotRap;
use crate::engine::Engine;
use crate::levels::{Plan, Spread};
use crate::placement::Output;
use crate::placement::organizing::{Move, Organized, Stock, Which, organize};

/// A part of the money. A table comes up only if it is among the hottest of the rest. Heat is
/// forgotten faster here than where it alone decides, so it needs more of a difference.
const RESISTANCE: f64 = 0.05;

/// By how much the first tier may always grow, as a part of what records may take of it.
const AHEAD: f64 = 1.0 / 16.0;

impl HotRap {
    /// Whether there is a choice of slow tiers.
    pub(super) fn has_slow_tiers(engine: &Engine) -> bool {
        engine.tiers.len() > 2
    }

    /// Finds which tables of the levels below f are to move.
    pub(super) fn organize_below_f(&self, engine: &Engine) {
        if !Self::has_slow_tiers(engine) {
            return;
        }
        let since_target = self.below_f.since_target();
        let latencies = self.governor.reads.lock().latencies();
        let mut stock = Stock::take(engine, Which::BelowF, since_target, latencies);
        // Records that were promoted are data once.
        stock.bill = self.bill(engine);
        let beside = stock.beside + self.to_come(engine) + stock.tails;
        let budget = stock.budget(engine.target.dollars(), beside);
        let mut organized = organize(&stock.candidates, &stock.tiers, budget, RESISTANCE);
        self.settle_between(engine, organized.missed, mean_latency(&stock));
        copies_stay_below(&mut organized, &stock);
        self.below_f.take(&organized, &stock);
    }

    /// What the files cost that the first tier is to have next beside those that it has, in dollars
    /// times bytes per GB. Less than nothing if it has too many. Records take long to come up, and
    /// may never take all that they could be worth, so tables have the money until then, but for
    /// [`AHEAD`].
    fn to_come(&self, engine: &Engine) -> f64 {
        let (Some(wanted), Some(prices)) = (self.wanted_files(), engine.target.prices()) else {
            return 0.0;
        };
        let fast = engine.fast();
        let files = fast.file_bytes().saturating_sub(fast.unfinished_bytes()) as f64;
        let ahead = (wanted as f64 * AHEAD).max(engine.sizes.table_size as f64);
        let next = (wanted as f64).min(files + ahead);
        (next - files) * prices[0]
    }

    /// Which of the tables that `plan` writes at `output` lie on faster tiers than that.
    pub(super) fn spread_below_f(
        &self,
        engine: &Engine,
        plan: &Plan,
        output: Output,
    ) -> Option<Spread> {
        if !Self::has_slow_tiers(engine) || plan.is_migration() {
            return None;
        }
        let tree = engine.tree(plan.upper.tables().first()?.meta.keyspace)?;
        let is_below_f = output.level > tree.last_fast_level;
        is_below_f.then(|| self.below_f.spread(plan, output))
    }
}

/// How long a read of a slow tier takes, by what lies there.
fn mean_latency(stock: &Stock) -> f64 {
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for table in &stock.candidates {
        let tier = &stock.tiers[usize::from(table.tier)];
        bytes += table.raw as f64;
        seconds += table.raw as f64 * tier.latency;
    }
    if bytes > 0.0 { seconds / bytes } else { 0.0 }
}

/// A copy on the first tier belongs to a table that lies on the next tier that is worth its price.
fn copies_stay_below(organized: &mut Organized, stock: &Stock) {
    organized.thresholds.retain(|(tier, _)| *tier > 0);
    organized.left.retain(|(tier, _)| *tier > 0);
    let slowest = stock.tiers.len() as u8 - 1;
    let next = organized
        .thresholds
        .first()
        .map_or(slowest, |(tier, _)| *tier);
    let moves = std::mem::take(&mut organized.moves).into_iter();
    let moves = moves.map(|wanted| Move {
        to: if wanted.to == 0 { next } else { wanted.to },
        ..wanted
    });
    let goes = |wanted: &Move| stock.candidates[wanted.candidate].tier != wanted.to;
    organized.moves = moves.filter(goes).collect();
}

#[cfg(test)]
mod tests;
