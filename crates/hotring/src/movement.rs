//! Moving heads to where the accesses are, and what else is done once a period.
//!
//! A *period* of a thread is R requests (see [`crate::period`]). The last request of each period
//! looks whether the head served it. If not, the head moves to the item at once (HotRing-r), or a
//! round of sampling begins (HotRing-s): the ring's `k` items are counted and their counts cleared,
//! and the next `k` accesses to the ring are counted, each at its item. Whoever takes the last
//! sample moves the head to the cheapest place, see [`crate::income`]. An update by replacement
//! counts at the *predecessor*, whose `next` it changes: a head at the item itself would be of no
//! use to it. The first item's predecessor is the anchor, which no head makes quicker to reach;
//! such an update only takes a sample.
//!
//! A ring whose rounds gain little is left alone for longer and longer. Until a ring's first round
//! has ended, its head moves as in HotRing-r. See [`crate::calm`].
//!
//! Misses and new items begin no round and take no sample: there is no item to turn to the head.
//! But a new item gives a ring its first head, see [`crate::write`].

use std::ptr::NonNull;

use crate::core::{Core, Spot};
use crate::head::{Head, Word, part_of};
use crate::income::Income;
use crate::link::{At, Entry, MOST, Node};
use crate::options::Movement;
use crate::period::{self, Ended, goes_on};
use crate::reclaim::Guard;
use crate::search::Place;
use crate::sync::atomic::Ordering;

/// In one of two to this power of a thread's periods, the cost of the last request is recorded.
/// Growing is not so urgent that every period would have to pay for it.
const COSTS: u32 = 2;

impl<E: Entry> Core<E> {
    /// After a lookup that ends a period. A lookup that found its item at the first step was
    /// served: by the head, or because the item is the ring's first.
    pub(crate) fn looked_up<'g>(
        &self,
        order: u64,
        guard: &'g Guard,
        found: Option<At<'g>>,
        visits: u32,
    ) {
        let spot = self.spot(order, guard);
        if found.is_some() {
            self.take_sample(spot, found);
        }
        self.end_period(spot, found.filter(|_| visits > 1), visits);
    }

    /// After another lookup that met a round of sampling.
    #[inline(never)]
    pub(crate) fn sample_lookup<'g>(&self, order: u64, guard: &'g Guard, found: Option<At<'g>>) {
        if found.is_some() {
            // Takes the parts of a spot, not a whole one: handing that over would cost every
            // lookup.
            self.take_sample(self.spot(order, guard), found);
        }
    }

    /// After an access that found nothing, or that no head serves.
    #[inline]
    pub(crate) fn missed(&self, spot: Spot<'_>, visits: u32) {
        if !goes_on(self.stride) {
            self.end_period(spot, None, visits);
        }
    }

    /// After an update that searched for a node and its predecessor.
    pub(crate) fn updated<'g>(&self, spot: Spot<'g>, place: &Place<'g>) {
        let item = Some(place.before).filter(|before| before.is_node());
        self.take_sample(spot, item);
        if !goes_on(self.stride) {
            self.end_period(spot, item.filter(|&item| !spot.heads(item)), place.visits);
        }
    }

    /// The last request of a period; `unserved` is the item that the head should have been at.
    #[inline]
    fn end_period<'g>(&self, spot: Spot<'g>, unserved: Option<At<'g>>, visits: u32) {
        let Some(period) = period::end(self.stride) else {
            return;
        };
        if self.rehashing.load(Ordering::Relaxed) {
            self.work(spot.guard);
        }
        if period.is_one_of(COSTS) {
            self.note_cost(visits, spot.guard);
        }
        if let Some(item) = unserved {
            self.turn(spot, item, period);
        }
    }

    /// Does what the movement asks for when a period ends with an access to `item`, which the head
    /// did not serve.
    fn turn<'g>(&self, spot: Spot<'g>, item: At<'g>, period: Ended) {
        let word = Word::of(spot.bucket);
        match self.options.movement {
            Movement::Off => {}
            // The head was removed without an heir: there is nothing to lose.
            _ if word == Word::NONE => {
                self.swing(spot, word, item);
            }
            // Another thread has moved it there meanwhile.
            _ if word.leads_to(item) => {}
            Movement::Sampling if !word.calm().passes(period) => self.begin_sampling(spot),
            Movement::Sampling if !word.calm().is_unsampled => {}
            _ => {
                if let Head::Live(word, ..) = self.head(spot) {
                    self.swing(spot, word, item);
                }
            }
        }
    }

    /// Begins a round with as many samples as the ring has items, as far as they can be counted,
    /// unless one runs or the ring has no head.
    pub(crate) fn begin_sampling(&self, spot: Spot<'_>) {
        let Head::Live(word, head, _) = self.head(spot) else {
            return;
        };
        if word.is_sampled() {
            return;
        }
        let mut items = 0;
        self.walk_ring(spot, |item| {
            items = MOST.min(items + 1);
            if let Some(node) = item.node() {
                node.clear_count();
            }
        });
        if let Some(node) = head.node() {
            node.set_lacking(items);
        }
        // Of several threads that begin a round, one succeeds.
        spot.bucket.note(word, word.with_round());
    }

    /// Counts an access, and ends the round if its sample was the last.
    pub(crate) fn take_sample<'g>(&self, spot: Spot<'g>, item: Option<At<'g>>) {
        let word = Word::of(spot.bucket);
        if !word.is_sampled() {
            return;
        }
        if let Some(node) = item.and_then(At::node) {
            node.count_access();
        }
        // The counts are relaxed: a count that is not seen yet is one sample less. If the head has
        // moved, it took the number of samples along, and the round ends with another sample.
        let goes_on = word
            .at(spot.guard)
            .and_then(At::node)
            .is_some_and(Node::take_sample);
        if !goes_on && spot.bucket.note(word, word.without_round()) {
            self.adjust(spot);
        }
    }

    /// Moves the head to the cheapest place by the counts. Called by the one thread that took a
    /// round's last sample.
    pub(crate) fn adjust(&self, spot: Spot<'_>) {
        let (mut total, mut cost, mut items) = (0u64, 0i128, 0i128);
        self.walk_ring(spot, |item| {
            let count = item.node().map_or(0, |node| node.count());
            items += 1;
            total += u64::from(count);
            cost += items * i128::from(count);
        });
        if total == 0 {
            return;
        }
        let word = Word::of(spot.bucket);
        let present = word.link();
        let mut income = Income::new(total);
        // Having no head costs as much as a head at the first item.
        let mut at_present = 0;
        let mut best: Option<(i128, At<'_>)> = None;
        self.walk_ring(spot, |item| {
            let part = part_of(spot.table.slot_of(item.order()).place);
            let income = income.next(part, item.node().map_or(0, |node| node.count()));
            if Some(item.as_ptr()) == present.map(NonNull::as_ptr) {
                at_present = income;
            }
            if best.is_none_or(|(least, _)| income < least) {
                best = Some((income, item));
            }
        });
        let Some((least, item)) = best else { return };
        let calm = word.calm().gained(at_present - least, cost + at_present);
        if present.is_some() {
            spot.bucket.note(word, word.with_calm(calm));
        }
        // At equal cost the head stays.
        if least < at_present {
            self.swing(spot, self.head(spot).word(), item);
        }
    }

    /// Calls `visit` for the items of a ring, in their order.
    fn walk_ring<'g>(&self, spot: Spot<'g>, mut visit: impl FnMut(At<'g>)) {
        let last = spot.table.last(spot.index);
        let mut next = spot.anchor().next();
        while let Some(at) = next.at()
            && at.order() <= last
        {
            next = at.next();
            if at.is_node() && !next.marked() {
                visit(at);
            }
        }
    }
}
