//! What the organizer looks at: which tables may move, and what the rest costs.

use std::time::Duration;

use super::organizer::{Candidate, Ladder, TierOffer};
use crate::engine::{Engine, Tree};
use crate::ids::{FileId, KeyspaceId};
use crate::options::MAX_TIERS;
use crate::placement::SpacePlan;
use crate::placement::price::Bill;
use crate::version::TableHandle;

/// A table that was just flushed stays where it is for so long: most of its reads come from the
/// caches yet, and its heat is not known (so does Mutant's code).
const YOUNG: Duration = Duration::from_secs(30);

/// A table that has just changed its tier does not come up again for so long. How long a table gets
/// on another tier is an estimate: else one that takes a little more than there is money for would
/// go up and down without end.
const AT_REST: Duration = Duration::from_secs(30);

/// Which tables move by their heat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::placement) enum Which {
    /// All below L0.
    All,
    /// Those of the levels below f, between the slower tiers. Of the first tier they may have
    /// copies.
    BelowF,
}

impl Which {
    fn may_move(self, tree: &Tree, level: usize, table: &TableHandle) -> bool {
        match self {
            Self::All => true,
            Self::BelowF => level > usize::from(tree.last_fast_level) && table.meta.tier > 0,
        }
    }
}

/// All tables of a store, at one moment.
pub(in crate::placement) struct Stock {
    /// Those that may move, and which table each of them is.
    pub(in crate::placement) candidates: Vec<Candidate>,
    pub(in crate::placement) names: Vec<(KeyspaceId, FileId)>,
    pub(in crate::placement) tiers: Vec<TierOffer>,
    /// The bill, if prices are known.
    pub(in crate::placement) bill: Option<Bill>,
    /// What is paid for the other tables below L0, in dollars times bytes per GB. Jobs merge them
    /// now, or they are young. What jobs have written so far is not in it: it takes their place.
    fixed: f64,
    /// What is paid for all else but copies: the log and the manifest, L0, and what readers hold
    /// for long.
    pub(in crate::placement) beside: f64,
    /// What is paid for copies.
    pub(in crate::placement) copies: f64,
    /// What copies of the tails would cost that memory does not hold.
    pub(in crate::placement) tails: f64,
}

impl Stock {
    /// Takes stock of `engine`'s tables, of which `which` move. The target was set before those
    /// were written whose numbers are `since_target` or higher. A read of a tier takes `latencies`
    /// seconds.
    pub(in crate::placement) fn take(
        engine: &Engine,
        which: Which,
        since_target: FileId,
        latencies: [f64; MAX_TIERS],
    ) -> Self {
        let now = engine.clock.now();
        let mut stock = Self {
            candidates: Vec::new(),
            names: Vec::new(),
            tiers: Vec::new(),
            bill: engine.target.prices().map(|prices| engine.bill(prices)),
            fixed: 0.0,
            beside: 0.0,
            copies: 0.0,
            tails: 0.0,
        };
        let (mut fixed, mut tails) = (vec![0; engine.tiers.len()], 0);
        for tree in engine.all_trees() {
            // A short look: jobs that begin meanwhile are met when a migration is to start.
            let state = tree.state.lock();
            let version = tree.version();
            let below_l0 = version.levels.iter().skip(1);
            let tables = (1..).zip(below_l0).flat_map(|(number, level)| {
                let here = level.tables.iter();
                here.map(move |table| (number, table))
            });
            for (_, table) in tables.filter(|(level, table)| which.may_move(&tree, *level, table)) {
                let is_young = table.lazy.heat().age(now).is_some_and(|age| age < YOUNG);
                if is_young || state.running.has_input(table) {
                    fixed[usize::from(table.meta.tier)] += table.meta.len;
                    continue;
                }
                // Placement by table pays for those that are there.
                if which == Which::BelowF {
                    tails += tail_of(table);
                }
                let at_rest = table.lazy.heat().settled_for(now);
                let is_at_rest = at_rest.is_none_or(|time| time >= AT_REST);
                stock.names.push((tree.id, table.meta.id));
                stock.candidates.push(Candidate {
                    len: table.meta.len,
                    raw: table.raw_bytes(),
                    rate: table.lazy.heat().get().known().unwrap_or(0.0),
                    tier: table.meta.tier,
                    may_rise: table.meta.id < since_target || is_at_rest,
                });
            }
        }
        let mut movable = vec![Movable::default(); engine.tiers.len()];
        for candidate in &stock.candidates {
            let here = &mut movable[usize::from(candidate.tier)];
            here.len += candidate.len;
            here.raw += candidate.raw;
        }
        stock.tiers = offers(engine, which, &movable, latencies);
        for (tier, bytes) in stock.tiers.iter_mut().zip(&fixed) {
            tier.room = tier.room.saturating_sub(*bytes);
        }
        if let Some(bill) = &stock.bill {
            let at = |bytes: &dyn Fn(usize) -> u64| -> f64 {
                let tiers = stock.tiers.iter().enumerate();
                tiers
                    .map(|(number, tier)| tier.price * bytes(number) as f64)
                    .sum()
            };
            stock.fixed = at(&|tier| fixed[tier]);
            stock.tails = bill.first_price() * tails as f64;
            let rest = bill.amount() - at(&|tier| movable[tier].len) - stock.fixed;
            // Readers of a moment hold what a job has just replaced.
            let briefly = |tier: usize| {
                let (held, long) = engine.held_on(tier as u8);
                held.saturating_sub(long)
            };
            let passing = |tier: usize| engine.tiers[tier].unfinished_bytes() + briefly(tier);
            stock.copies = at(&|tier| engine.tiers[tier].copied_bytes());
            stock.beside = rest - at(&passing) - stock.copies;
        }
        stock
    }

    /// What all costs when every candidate lies on the cheapest tier.
    pub(in crate::placement) fn floor(&self, ladder: &Ladder) -> f64 {
        let least = self
            .candidates
            .iter()
            .map(|candidate| ladder.least(candidate));
        self.beside + self.fixed + least.sum::<f64>()
    }

    /// What copies, and the candidates beyond what they cost on the cheapest tier, may cost
    /// together when all else costs `beside`.
    pub(in crate::placement) fn budget(&self, dollars: Option<f64>, beside: f64) -> f64 {
        let ladder = Ladder::new(&self.tiers);
        match (dollars, &self.bill) {
            (Some(dollars), Some(bill)) => {
                let floor = self.floor(&ladder) - self.beside + beside;
                (dollars * bill.data as f64 - floor).max(0.0)
            }
            _ => f64::INFINITY,
        }
    }
}

impl Engine {
    /// Bytes of obsolete files on a tier that readers hold, and of those that they have held for
    /// long.
    fn held_on(&self, tier: u8) -> (u64, u64) {
        (
            self.graveyard.pinned(tier).0,
            self.graveyard.long_held(tier),
        )
    }
}

/// Bytes of the tail of `table`, if it is on a slow device.
fn tail_of(table: &TableHandle) -> u64 {
    let opened = table.lazy.opened().filter(|_| table.meta.tier > 0);
    let start = opened.and_then(|table| table.tail_on_device());
    start.map_or(0, |start| table.meta.len.saturating_sub(start))
}

/// Tables that may move and lie on one tier, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Movable {
    len: u64,
    raw: u64,
}

/// What each tier offers to tables that may move, of which it holds `movable`. Without prices
/// the faster one counts as the dearer one.
fn offers(
    engine: &Engine,
    which: Which,
    movable: &[Movable],
    latencies: [f64; MAX_TIERS],
) -> Vec<TierOffer> {
    let prices = engine.target.prices();
    let count = engine.tiers.len();
    let sizes = &engine.sizes;
    // The output of a job lies beside its inputs.
    let job = (engine.options.level_ratio + 2) * sizes.table_size;
    let offer = |(number, movable): (usize, &Movable)| {
        let tier = &engine.tiers[number];
        let price = prices.as_ref().map(|prices| prices[number]);
        let room = match (number, tier.is_unlimited()) {
            (_, true) => u64::MAX,
            (0, _) if which == Which::BelowF => u64::MAX,
            (0, _) => SpacePlan::new(&engine.options, sizes, tier.planned_bytes()).levels,
            _ => {
                let others = tier.file_bytes().saturating_sub(movable.len);
                tier.capacity().saturating_sub(others + job)
            }
        };
        TierOffer {
            price: price.unwrap_or((count - number) as f64),
            latency: latencies[number],
            room,
            expansion: match movable.raw {
                0 => 1.0,
                raw => movable.len as f64 / raw as f64,
            },
        }
    };
    let mut offers: Vec<TierOffer> = movable.iter().enumerate().map(offer).collect();
    if let (Which::BelowF, [first, second, ..]) = (which, &mut offers[..]) {
        // A copy is paid for beside the table. Without prices there is no money for any: a tier
        // that is no faster than the next is worth nothing.
        first.price += second.price;
        first.expansion = second.expansion;
        if prices.is_none() {
            first.latency = second.latency;
        }
    }
    offers
}
