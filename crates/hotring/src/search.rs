//! Searching: for readers, who only read, and for writers, who unlink what is marked.
//!
//! A ring is the bucket's part of the list, closed by its anchor: after the last item a search goes
//! on at the anchor. The anchor lies beside the head, in a cache line that was read already, so
//! whether to go round is decided at the head. When the key's order is higher than the head's, the
//! search walks on from the head. When it is lower, the search walks from the anchor, without the
//! items behind the head that the paper's search walks first. It ends at the first link of higher
//! order. So every search ends, even in a ring of one item, and an item before the smallest is no
//! special case.
//!
//! Keys of equal hash stand in the order in which they came: a new one goes behind all others of
//! its order, one that replaces stands where its predecessor stood. So the equal ones begin behind
//! the last link of lower order, and a search that begins at a head begins at one of lower order.
//!
//! **Why a miss is one.** Let the reader walk `w0, w1, …, wn`, where `wn` is the last link of order
//! at most the key's. By L3 (see [`crate::link`]) there are moments `T0 ≤ T1 ≤ … ≤ Tn` within its
//! access, `Ti` such that `wi` was linked then and `wi.next` led to `wi+1` (from `wn` to something
//! higher). The miss takes effect at `Tn`, unless the key's node was deleted before, and then at
//! that deletion or at the beginning of the access. Suppose the key had a live node `x` at `Tn`.
//! The list is ordered, so at `Tn` the node `x` stood at or before `wn`, and its orders are equal:
//! its line of versions came before that of `wn`, so there was a live version of the key at every
//! `Ti` at which `wi+1` has this order. Go back from `n`: at `Ti` it stood at or before `wi`, and
//! not at `wi`, for a live version at `wi` is a hit, and from a replaced one the walk leads to the
//! version after it. So it stood before `wi`, of the same order; in the end, before the first of
//! this order, behind `wi` of lower order, where `Ti` says there was nothing.

use std::hint::select_unpredictable;
use std::ptr::NonNull;

use crate::anchor;
use crate::core::{Core, Spot};
use crate::head::{Head, Word};
use crate::link::{At, END, Entry, Link, Next, Node, is_no_node, order_of};
use crate::period::goes_on;
use crate::reclaim::Guard;

/// What a reader's search found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'g> {
    pub(crate) at: Option<At<'g>>,
    /// How many links were read, up to the node or to the last link before its place. Anchors of
    /// another table count: they are just as far away.
    pub(crate) visits: u32,
}

/// Where a writer's search begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'g> {
    /// At the head, if that stands before what is sought.
    Head,
    /// At this link of the bucket, if it stands before what is sought and is not marked.
    Link(At<'g>),
    /// At the anchor: for those who failed once already.
    Anchor,
}

/// What a writer's search found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'g> {
    /// The last link before it that is not marked.
    pub(crate) before: At<'g>,
    /// The key's node with the `next`, unmarked, that it had; else nothing.
    pub(crate) found: Option<(At<'g>, Next<'g>)>,
    /// If nothing was found, what `before` led to: of higher order, or the list's end.
    pub(crate) after: Option<At<'g>>,
    pub(crate) visits: u32,
}

impl<E: Entry> Core<E> {
    /// Looks a key up: the node with this hash for which `is_key` holds. A hit takes effect when
    /// the node's `next` is read and has no mark; of a miss see the module.
    #[inline(always)]
    pub(crate) fn get<'g>(
        &self,
        hash: u64,
        guard: &'g Guard,
        is_key: impl Fn(NonNull<Node>) -> bool,
    ) -> Option<At<'g>> {
        let order = order_of(hash);
        let spot = self.spot(order, guard);
        if !goes_on(self.stride) {
            return self.get_and_account(order, guard, is_key);
        }
        // Nobody asks for the visits, so the compiler does not count them.
        let Seen { at, .. } = self.search(spot, order, is_key);
        if Word::of(spot.bucket).is_sampled() {
            self.sample_lookup(order, guard, at);
        }
        at
    }

    /// The lookup that ends a period.
    #[inline(never)]
    fn get_and_account<'g>(
        &self,
        order: u64,
        guard: &'g Guard,
        is_key: impl Fn(NonNull<Node>) -> bool,
    ) -> Option<At<'g>> {
        let seen = self.search(self.spot(order, guard), order, is_key);
        self.looked_up(order, guard, seen.at, seen.visits);
        seen.at
    }

    /// Finds the node of this order for which `is_key` holds. Reads only, except that it takes a
    /// stale head off.
    ///
    /// What every search does is inlined and has few instructions, of which one branch cannot be
    /// foreseen. While a request waits for memory, the processor goes on with the next requests, as
    /// far as its guesses hold and its window reaches.
    #[inline(always)]
    pub(crate) fn search<'g>(
        &self,
        spot: Spot<'g>,
        order: u64,
        is_key: impl Fn(NonNull<Node>) -> bool,
    ) -> Seen<'g> {
        let head = Word::of(spot.bucket);
        let from_head = head.is_within(spot.place);
        // The anchor of the table under this guard is never marked.
        let first = spot.first().unmarked();
        // No branch: which it is cannot be foreseen, and a wrong guess would throw away what the
        // processor has done ahead, such as the next request, while it waited for the bucket.
        let mut link = select_unpredictable(from_head, head.untagged(), first);
        let mut visits = 1;
        // Whether no link of the order sought can stand before the present one: the walk began at
        // the anchor, or has passed a link of lower order.
        let mut none_before = !from_head;
        loop {
            if !is_no_node(link) {
                // SAFETY: the head is counted, so when it was read its node was not retired;
                // nothing behind it is looked at before it is seen to be unmarked and thereby
                // linked. The anchor's successor is an `At` by L3, and so is that of every link
                // from then on. No pointer in the list is null.
                let at = unsafe { At::new(NonNull::new_unchecked(link), spot.guard) };
                let next = at.next();
                if next.marked() {
                    break;
                }
                let at_order = at.order();
                if at_order < order {
                    visits += 1;
                    none_before = true;
                    link = next.unmarked();
                    continue;
                }
                if at_order == order {
                    if is_key(at.node_ptr()) {
                        let at = Some(at);
                        return Seen { at, visits };
                    }
                    // Before a head of this order there may be others.
                    if none_before {
                        visits += 1;
                        link = next.unmarked();
                        continue;
                    }
                }
            } else if link != END && anchor::order(link) < order {
                // Only while the table changes: an anchor of the other table.
                // SAFETY: as above.
                let at = unsafe { At::new(NonNull::new_unchecked(link), spot.guard) };
                let next = at.next();
                if next.marked() {
                    break;
                }
                visits += 1;
                none_before = true;
                link = next.unmarked();
                continue;
            }
            // Behind what is sought, or the list's end.
            if none_before {
                let visits = visits - 1;
                return Seen { at: None, visits };
            }
            // The head was read in vain: it is in the same part of the bucket.
            visits += 1;
            none_before = true;
            link = first;
        }
        let (at, more) = self.search_from_anchor(order, spot.guard, is_key);
        // SAFETY: it was found.
        let at = at.map(|at| unsafe { At::new(at, spot.guard) });
        let visits = visits + more;
        Seen { at, visits }
    }

    /// The search for those that met a marked link, which is rare. Behind a marked link that is
    /// still linked they may go on; behind a stale head they may not. Takes and returns what fits
    /// registers.
    #[cold]
    #[inline(never)]
    fn search_from_anchor(
        &self,
        order: u64,
        guard: &Guard,
        is_key: impl Fn(NonNull<Node>) -> bool,
    ) -> (Option<NonNull<Link>>, u32) {
        let spot = self.spot(order, guard);
        // Takes it off if it is stale.
        self.head(spot);
        let mut visits = 0;
        let mut next = spot.anchor().next();
        while let Some(at) = next.at() {
            let at_order = at.order();
            if at_order > order {
                break;
            }
            visits += 1;
            next = at.next();
            // A marked node of the key is one that was replaced, or deleted: the key's next
            // version, if there is one, stands behind.
            if at_order == order && !next.marked() && is_key(at.node_ptr()) {
                return (NonNull::new(at.as_ptr()), visits);
            }
        }
        (None, visits)
    }

    /// How many links a lookup would read now. The link at which it ends without a hit is one of
    /// them. The bucket, and with it the anchor, is not.
    pub(crate) fn steps(
        &self,
        hash: u64,
        guard: &Guard,
        is_key: impl Fn(NonNull<Node>) -> bool,
    ) -> u32 {
        let order = order_of(hash);
        let seen = self.search(self.spot(order, guard), order, is_key);
        seen.visits + seen.at.is_none() as u32
    }

    /// Finds the node of this order for which `is_key` holds, or where one would have to be
    /// inserted: behind all links of this order. Unlinks every marked link that it meets. So when
    /// it returns, no link that was marked before it began is left from where it started up to this
    /// order.
    pub(crate) fn find<'g>(
        &self,
        spot: Spot<'g>,
        order: u64,
        mut start: Start<'g>,
        is_key: impl Fn(NonNull<Node>) -> bool,
    ) -> Place<'g> {
        let mut visits = 0;
        'again: loop {
            let (mut before, mut next) = match self.start(spot, order, start) {
                (head, Some(next)) => {
                    visits += 1;
                    (head, next)
                }
                (anchor, None) => (anchor, anchor.next()),
            };
            start = Start::Anchor;
            loop {
                let Some(at) = next.at() else {
                    return Place {
                        before,
                        found: None,
                        after: None,
                        visits,
                    };
                };
                if at.order() > order {
                    return Place {
                        before,
                        found: None,
                        after: Some(at),
                        visits,
                    };
                }
                visits += 1;
                let behind = at.next();
                if behind.marked() {
                    if !self.unlink(before, at, behind) {
                        continue 'again;
                    }
                } else if at.order() == order && is_key(at.node_ptr()) {
                    return Place {
                        before,
                        found: Some((at, behind)),
                        after: None,
                        visits,
                    };
                } else {
                    before = at;
                }
                next = behind;
            }
        }
    }

    /// The link at which a writer's search begins, with its `next`, which has no mark. At the
    /// anchor the `next` is left out.
    fn start<'g>(
        &self,
        spot: Spot<'g>,
        order: u64,
        start: Start<'g>,
    ) -> (At<'g>, Option<Next<'g>>) {
        let nearer = match start {
            Start::Head => match self.head_towards(spot) {
                Head::Live(_, head, next) => Some((head, next)),
                Head::None => None,
            },
            Start::Link(at) => Some((at, at.next())),
            Start::Anchor => None,
        };
        match nearer {
            Some((at, next)) if at.order() < order && !next.marked() => (at, Some(next)),
            // The anchor of the table under this guard is never marked.
            _ => (spot.anchor(), None),
        }
    }

    /// Leads `before` past the marked `at`, to what `at` led to. False if `before` was changed.
    pub(crate) fn unlink<'g>(&self, before: At<'g>, at: At<'g>, behind: Next<'g>) -> bool {
        // SAFETY: `behind` is the frozen successor of `at`, which `before` leads to, unmarked.
        let done = unsafe { before.exchange_next(at.as_ptr(), behind.as_ptr()) };
        if done
            && let Some(node) = at.node()
            && node.unlinked()
        {
            self.retire(at);
        }
        done
    }
}
