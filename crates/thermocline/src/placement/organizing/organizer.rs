//! Which table lies on which tier: the hottest on the fastest, as far as the money goes (Mutant,
//! §3.1.2).
//!
//! A table of S bytes that is read with density T (reads a second and byte) costs T·S·L of its
//! readers' time each second on a tier of latency L, and S·P on a tier of price P. Tiers that are
//! dearer and no faster than others, or than a mix of others, are good for nothing. What is left
//! lies on a convex curve: of each step from one to the next faster one, a dollar buys less time
//! than of the step before. So all steps of all tables can be bought in the order of what they are
//! worth, T times the step's time for its price, until the money is spent. The result is a
//! threshold of T for each tier.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What the organizer knows of a tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::placement) struct TierOffer {
    /// In dollars per GB and month.
    pub(in crate::placement) price: f64,
    /// Of one read, in seconds.
    pub(in crate::placement) latency: f64,
    /// Bytes of tables that it may hold.
    pub(in crate::placement) room: u64,
    /// How long a table gets there, for each byte of its keys and values: tiers differ in blocks
    /// and compression.
    pub(in crate::placement) expansion: f64,
}

/// A table that may lie on any tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::placement) struct Candidate {
    /// Its file, in bytes.
    pub(in crate::placement) len: u64,
    /// Its keys and values, in bytes.
    pub(in crate::placement) raw: u64,
    /// Reads a second. What nobody reads goes nowhere for the sake of its readers.
    pub(in crate::placement) rate: f64,
    /// Where it lies.
    pub(in crate::placement) tier: u8,
    /// Whether it may come to a faster tier now.
    pub(in crate::placement) may_rise: bool,
}

impl Candidate {
    fn density(&self) -> f64 {
        self.rate / self.raw.max(1) as f64
    }

    /// How long it is on the tier of `rung`.
    fn len_on(&self, rung: &Rung) -> u64 {
        match rung.tier == self.tier {
            true => self.len,
            false => (self.raw as f64 * rung.offer.expansion) as u64,
        }
    }
}

/// The tiers that are worth having, the slowest first.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::placement) struct Ladder {
    rungs: Vec<Rung>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Rung {
    tier: u8,
    offer: TierOffer,
    /// Seconds saved for each read by the step up to here, for its price. 0 for the first.
    worth: f64,
}

impl Ladder {
    /// The lower convex hull of `tiers` by price and latency.
    pub(in crate::placement) fn new(tiers: &[TierOffer]) -> Self {
        let mut by_price: Vec<(u8, TierOffer)> = (0..).zip(tiers.iter().copied()).collect();
        // Of those that cost the same the fastest comes first. A stable order keeps the slower of
        // two equal ones, which is the later tier.
        by_price.reverse();
        by_price.sort_by(|(_, a), (_, b)| {
            let price = a.price.total_cmp(&b.price);
            price.then(a.latency.total_cmp(&b.latency))
        });
        let mut rungs: Vec<Rung> = Vec::new();
        for (tier, offer) in by_price {
            let worth = loop {
                let Some(below) = rungs.last() else {
                    break Some(0.0);
                };
                let (saved, price) = (
                    below.offer.latency - offer.latency,
                    offer.price - below.offer.price,
                );
                if saved <= 0.0 || price <= 0.0 {
                    break None;
                }
                let worth = saved / price;
                // A step that is worth more than the one before makes that one worthless.
                if rungs.len() > 1 && worth >= below.worth {
                    rungs.pop();
                } else {
                    break Some(worth);
                }
            };
            if let Some(worth) = worth {
                rungs.push(Rung { tier, offer, worth });
            }
        }
        Self { rungs }
    }

    /// The rung of `tier`. A tier without one counts as the next dearer one that has, so that what
    /// lies there is brought down if it costs more than it is worth.
    fn of(&self, tier: u8, tiers: &[TierOffer]) -> usize {
        let price = tiers.get(usize::from(tier)).map_or(0.0, |t| t.price);
        let rung = self.rungs.iter().position(|rung| rung.tier == tier);
        let dearer = || self.rungs.iter().position(|rung| rung.offer.price >= price);
        rung.or_else(dearer).unwrap_or(self.rungs.len() - 1)
    }

    /// What `candidates` cost beyond what they cost on the first rung if all lie as high as there
    /// is room.
    pub(in crate::placement) fn most(&self, candidates: &[Candidate]) -> f64 {
        let mut left: Vec<u64> = self.rungs.iter().map(|rung| rung.offer.room).collect();
        let most = candidates.iter().map(|candidate| {
            let mut rungs = (1..self.rungs.len()).rev();
            let rung = rungs.find(|rung| candidate.len_on(&self.rungs[*rung]) <= left[*rung]);
            rung.map_or(0.0, |rung| {
                left[rung] -= candidate.len_on(&self.rungs[rung]);
                self.extra(candidate, rung)
            })
        });
        most.sum()
    }

    /// What `candidate` costs at least, in dollars times bytes per GB.
    pub(in crate::placement) fn least(&self, candidate: &Candidate) -> f64 {
        candidate.len_on(&self.rungs[0]) as f64 * self.rungs[0].offer.price
    }

    /// What `candidate` costs on rung `rung` beyond what it costs on the first, in dollars times
    /// bytes per GB.
    fn extra(&self, candidate: &Candidate, rung: usize) -> f64 {
        let here = &self.rungs[rung];
        candidate.len_on(here) as f64 * here.offer.price - self.least(candidate)
    }
}

/// Where tables are to lie.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::placement) struct Assignment {
    /// The rung of each candidate.
    rungs: Vec<usize>,
    /// What they cost beyond what they would cost on the first rung.
    spent: f64,
    /// Whether a step that is worth something was left for want of money or room.
    is_short: bool,
    /// What the best step is worth that was left for want of money.
    missed: f64,
}

impl Assignment {
    /// Reads a second of `candidates` that do not lie on the top rung.
    pub(in crate::placement) fn rate_below_top(
        &self,
        candidates: &[Candidate],
        ladder: &Ladder,
    ) -> f64 {
        let top = ladder.rungs.len() - 1;
        let each = candidates.iter().zip(&self.rungs);
        each.filter(|(_, rung)| **rung < top)
            .map(|(c, _)| c.rate)
            .sum()
    }
}

/// A step up, ordered by what it is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    worth: f64,
    candidate: usize,
    to: usize,
}

impl Eq for Step {}

impl Ord for Step {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let worth = self.worth.total_cmp(&other.worth);
        worth.then_with(|| Reverse(self.candidate).cmp(&Reverse(other.candidate)))
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Assigns `candidates` to the rungs of `ladder`, for at most `budget` beyond what they cost on the
/// first rung. Greedy by density alone may be as bad as one part in very many, when a small hot
/// table keeps out a large one that is read much more; with the best single table beside it, it is
/// at least half as good as the best.
pub(in crate::placement) fn assign(
    candidates: &[Candidate],
    ladder: &Ladder,
    budget: f64,
) -> Assignment {
    let greedy = greedy(candidates, ladder, budget);
    let saved = |assignment: &Assignment| -> f64 {
        let first = ladder.rungs[0].offer.latency;
        let each = candidates.iter().zip(&assignment.rungs);
        each.map(|(c, rung)| c.rate * (first - ladder.rungs[*rung].offer.latency))
            .sum()
    };
    let top = ladder.rungs.len() - 1;
    let fits = |c: &&Candidate| {
        ladder.extra(c, top) <= budget
            && c.len_on(&ladder.rungs[top]) <= ladder.rungs[top].offer.room
    };
    let numbered = candidates.iter().enumerate();
    let most_read = numbered
        .filter(|(_, c)| fits(c))
        .max_by(|(_, a), (_, b)| a.rate.total_cmp(&b.rate));
    let Some((number, table)) = most_read.filter(|_| greedy.is_short) else {
        return greedy;
    };
    let mut single = Assignment {
        rungs: vec![0; candidates.len()],
        spent: ladder.extra(table, top),
        is_short: true,
        missed: greedy.missed,
    };
    single.rungs[number] = top;
    match saved(&single) > saved(&greedy) {
        true => single,
        false => greedy,
    }
}

fn greedy(candidates: &[Candidate], ladder: &Ladder, budget: f64) -> Assignment {
    let mut rungs = vec![0; candidates.len()];
    let mut room: Vec<u64> = ladder.rungs.iter().map(|rung| rung.offer.room).collect();
    let (mut spent, mut is_short, mut missed) = (0.0, false, 0.0_f64);
    let step = |candidate: usize, to: usize| {
        let rung = ladder.rungs.get(to)?;
        let worth = candidates[candidate].density() * rung.worth;
        (worth > 0.0).then_some(Step {
            worth,
            candidate,
            to,
        })
    };
    let mut steps: BinaryHeap<Step> = (0..candidates.len()).filter_map(|c| step(c, 1)).collect();
    // Those that found a rung full, the hottest first. When one leaves it, the next comes.
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); ladder.rungs.len()];
    while let Some(next) = steps.pop() {
        let (candidate, to) = (next.candidate, next.to);
        let (table, from) = (&candidates[candidate], rungs[candidate]);
        let (len, leaves) = (
            table.len_on(&ladder.rungs[to]),
            table.len_on(&ladder.rungs[from]),
        );
        let price = ladder.extra(table, to) - ladder.extra(table, from);
        if spent + price > budget {
            (is_short, missed) = (true, missed.max(next.worth));
            continue;
        }
        if len > room[to] {
            is_short = true;
            waiting[to].push(candidate);
            continue;
        }
        rungs[candidate] = to;
        spent += price;
        room[to] -= len;
        if from > 0 {
            room[from] += leaves;
            let freed = std::mem::take(&mut waiting[from]).into_iter();
            steps.extend(freed.filter_map(|c| step(c, from)));
        }
        steps.extend(step(candidate, to + 1));
    }
    Assignment {
        rungs,
        spent,
        is_short,
        missed,
    }
}

/// A table that is to be written anew on another tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::placement) struct Move {
    /// Which of the candidates.
    pub(in crate::placement) candidate: usize,
    pub(in crate::placement) to: u8,
}

/// What the organizer found.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::placement) struct Organized {
    /// The faster tiers, the fastest first, each with the density from which on a table belongs
    /// there or higher up.
    pub(in crate::placement) thresholds: Vec<(u8, f64)>,
    /// Bytes of tables that each of these may still take.
    pub(in crate::placement) left: Vec<(u8, u64)>,
    /// What is to move, the most urgent first.
    pub(in crate::placement) moves: Vec<Move>,
    /// Whether the tables cost more than they may, or a tier holds more than it may.
    pub(in crate::placement) is_over: bool,
    /// What the best step up is worth that there is no money for: the seconds of reading that it
    /// would save in a second, for each dollar times bytes per GB. 0 if there is none.
    pub(in crate::placement) missed: f64,
}

/// Says where `candidates` belong, for at most `budget` beyond what they cost on the cheapest tier,
/// in dollars times bytes per GB.
///
/// Migrations cost reads and writes, so a table comes up only if it is among the hottest of
/// `1 - resistance` of the budget, and another goes down for it only if that one is colder by more
/// than `resistance`. What costs too much goes at once, the coldest first.
pub(in crate::placement) fn organize(
    candidates: &[Candidate],
    tiers: &[TierOffer],
    budget: f64,
    resistance: f64,
) -> Organized {
    let ladder = Ladder::new(tiers);
    let keep = assign(candidates, &ladder, budget);
    let now: Vec<usize> = candidates
        .iter()
        .map(|c| ladder.of(c.tier, tiers))
        .collect();
    let mut held = Held::new(candidates, &now, &ladder);
    let is_over = held.spent > budget || held.is_over_room(&ladder);
    let mut moves = Vec::new();
    // From the coldest on: what lies higher than it belongs.
    let mut downs: Vec<usize> = (0..candidates.len())
        .filter(|&c| now[c] > keep.rungs[c] || !ladder.is_home(&candidates[c], now[c]))
        .collect();
    downs.sort_by(|a, b| {
        candidates[*a]
            .density()
            .total_cmp(&candidates[*b].density())
    });
    let mut downs = downs.into_iter().peekable();
    while held.spent > budget || held.is_over_room(&ladder) {
        let Some(c) = downs.next() else { break };
        held.shift(&candidates[c], now[c], keep.rungs[c], &ladder);
        moves.push(ladder.to(c, keep.rungs[c]));
    }
    let come = assign(candidates, &ladder, budget * (1.0 - resistance));
    let mut ups: Vec<usize> = (0..candidates.len())
        .filter(|&c| come.rungs[c] > now[c] && candidates[c].may_rise)
        .collect();
    ups.sort_by(|a, b| {
        candidates[*b]
            .density()
            .total_cmp(&candidates[*a].density())
    });
    for c in ups {
        let (table, to) = (&candidates[c], come.rungs[c]);
        let is_worth =
            |colder: &usize| table.density() > candidates[*colder].density() * (1.0 + resistance);
        while !held.has_room_for(table, now[c], to, budget, &ladder) {
            let Some(colder) = downs.next_if(is_worth) else {
                break;
            };
            held.shift(
                &candidates[colder],
                now[colder],
                keep.rungs[colder],
                &ladder,
            );
            moves.push(ladder.to(colder, keep.rungs[colder]));
        }
        if !held.has_room_for(table, now[c], to, budget, &ladder) {
            break;
        }
        held.shift(table, now[c], to, &ladder);
        moves.push(ladder.to(c, to));
    }
    // On a tier that is worth nothing, nothing stays.
    let strays = downs.filter(|&c| !ladder.is_home(&candidates[c], now[c]));
    moves.extend(strays.map(|c| ladder.to(c, keep.rungs[c])));
    Organized {
        thresholds: thresholds(candidates, &keep, &ladder),
        left: left(&keep, &held, budget, &ladder),
        moves,
        is_over,
        missed: keep.missed,
    }
}

/// What the tables cost and hold while moves are chosen.
struct Held {
    spent: f64,
    on: Vec<u64>,
}

impl Held {
    fn new(candidates: &[Candidate], rungs: &[usize], ladder: &Ladder) -> Self {
        let mut held = Self {
            spent: 0.0,
            on: vec![0; ladder.rungs.len()],
        };
        for (candidate, rung) in candidates.iter().zip(rungs) {
            held.spent += ladder.extra(candidate, *rung);
            held.on[*rung] += candidate.len_on(&ladder.rungs[*rung]);
        }
        held
    }

    fn is_over_room(&self, ladder: &Ladder) -> bool {
        let mut rungs = self.on.iter().zip(&ladder.rungs);
        rungs.any(|(bytes, rung)| *bytes > rung.offer.room)
    }

    fn shift(&mut self, table: &Candidate, from: usize, to: usize, ladder: &Ladder) {
        self.spent += ladder.extra(table, to) - ladder.extra(table, from);
        self.on[from] -= table.len_on(&ladder.rungs[from]);
        self.on[to] += table.len_on(&ladder.rungs[to]);
    }

    fn has_room_for(
        &self,
        table: &Candidate,
        from: usize,
        to: usize,
        budget: f64,
        ladder: &Ladder,
    ) -> bool {
        let price = ladder.extra(table, to) - ladder.extra(table, from);
        let len = table.len_on(&ladder.rungs[to]);
        self.spent + price <= budget && self.on[to] + len <= ladder.rungs[to].offer.room
    }
}

impl Ladder {
    fn is_home(&self, table: &Candidate, rung: usize) -> bool {
        self.rungs[rung].tier == table.tier
    }

    fn to(&self, candidate: usize, rung: usize) -> Move {
        Move {
            candidate,
            to: self.rungs[rung].tier,
        }
    }
}

fn thresholds(candidates: &[Candidate], keep: &Assignment, ladder: &Ladder) -> Vec<(u8, f64)> {
    let faster = ladder.rungs.iter().enumerate().skip(1).rev();
    let of_rung = |(number, rung): (usize, &Rung)| {
        let here = candidates.iter().zip(&keep.rungs);
        let here = here.filter(|(_, assigned)| **assigned >= number);
        let least = here.map(|(c, _)| c.density()).fold(f64::INFINITY, f64::min);
        // While there is room for all that is read, there is room for the rest, too.
        (rung.tier, if keep.is_short { least } else { 0.0 })
    };
    faster.map(of_rung).collect()
}

fn left(keep: &Assignment, held: &Held, budget: f64, ladder: &Ladder) -> Vec<(u8, u64)> {
    let spent = held.spent.max(keep.spent);
    let faster = ladder.rungs.iter().enumerate().skip(1).rev();
    let of_rung = |(number, rung): (usize, &Rung)| {
        let price = rung.offer.price - ladder.rungs[0].offer.price;
        let for_money = ((budget - spent).max(0.0) / price) as u64;
        let room = rung.offer.room.saturating_sub(held.on[number]);
        (rung.tier, for_money.min(room))
    };
    faster.map(of_rung).collect()
}

#[cfg(test)]
mod tests;
