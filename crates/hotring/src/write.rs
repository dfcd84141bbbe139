//! Storing and removing.

use std::ptr::NonNull;

use crate::core::{Core, Spot};
use crate::draft::{Draft, New};
use crate::head::Word;
use crate::link::{At, END, Entry, Node, Owned, order_of, with_mark};
use crate::options::Movement;
use crate::reclaim::Guard;
use crate::search::{Place, Start};

/// What became of an entry that was to be stored.
#[derive(Debug)]
pub(crate) enum Stored<'g, D, E: Entry> {
    /// The key was absent; here is its node.
    New(At<'g>),
    /// The first was replaced, by the second.
    Replaced(At<'g>, At<'g>),
    /// The key is there, and was not to be replaced; the unused entry.
    Kept(At<'g>, New<D, E>),
    /// The key is absent, and was not to be inserted.
    Absent,
}

impl<E: Entry> Core<E> {
    /// Stores `new`: in place of the node of the same key if there is one and `replace` says yes to
    /// it, and otherwise, if `insert`, behind the nodes of its order. Its node is made when the
    /// search has found a place for it. If none can be made, nothing has changed.
    pub(crate) fn store<'g, D: Draft<E>>(
        &self,
        order: u64,
        mut new: New<D, E>,
        guard: &'g Guard,
        insert: bool,
        is_key: impl Fn(&New<D, E>, NonNull<Node>) -> bool,
        mut replace: impl FnMut(NonNull<Node>) -> bool,
    ) -> Result<Stored<'g, D, E>, D::Error> {
        let spot = self.spot(order, guard);
        let mut start = Start::Head;
        loop {
            let place = self.find(spot, order, start, |node| is_key(&new, node));
            // When the exchange fails, what was found may be gone: then everything is searched for
            // again.
            start = Start::Anchor;
            new = match place.found {
                Some((old, _)) if !replace(old.node_ptr()) => {
                    self.updated(spot, &place);
                    return Ok(Stored::Kept(old, new));
                }
                Some((old, _)) => {
                    let node = new.made()?;
                    if let Some(new) = self.replace(&place, &node, guard) {
                        self.tally.went(Self::bytes(old));
                        self.tally.came(node.bytes());
                        node.into_raw();
                        self.inherit(spot, old, Some(new));
                        self.unlink_marked(spot, &place, new.order());
                        self.updated(spot, &place);
                        return Ok(Stored::Replaced(old, new));
                    }
                    New::Made(node)
                }
                None if !insert => {
                    self.missed(spot, place.visits);
                    return Ok(Stored::Absent);
                }
                None => {
                    let node = new.made()?;
                    if let Some(new) = self.insert(&place, &node, guard) {
                        self.tally.came(node.bytes());
                        node.into_raw();
                        self.give_head(spot, &place, new);
                        self.missed(spot, place.visits);
                        return Ok(Stored::New(new));
                    }
                    New::Made(node)
                }
            };
        }
    }

    /// Links a new node between `place.before` and `place.after`. It fails if the former was marked
    /// or leads elsewhere by now. As `place.before` is the last of its order or of a lower one, and
    /// others too are only inserted there, success shows that nobody has inserted the same key
    /// since.
    fn insert<'g>(&self, place: &Place<'g>, node: &Owned<E>, guard: &'g Guard) -> Option<At<'g>> {
        let after = place.after.map_or(END, At::as_ptr);
        node.set_next(after);
        // SAFETY: the new node leads to the successor.
        let done = unsafe { place.before.exchange_next(after, node.link()) };
        // SAFETY: linked just now.
        done.then(|| unsafe { At::new(node.node().cast(), guard) })
    }

    /// Gives a head to a ring that has none when its second item comes. The head goes to the second
    /// item of the ring, whichever of the two is the new one. Then both are found at the first
    /// step, one from the anchor and one from the head, before anybody has asked for them. A longer
    /// ring then has its head somewhere in the middle. Most rings of a table are asked so seldom
    /// that their heads would take long to find their places.
    fn give_head<'g>(&self, spot: Spot<'g>, place: &Place<'g>, new: At<'g>) {
        if self.options.movement == Movement::Off || Word::of(spot.bucket) != Word::NONE {
            return;
        }
        // A node that follows or precedes another one is in the same bucket, because the next
        // bucket's anchor stands between the buckets.
        let second = match place.before.is_node() {
            true => Some(new),
            false => place.after.filter(|after| after.is_node()),
        };
        if let Some(second) = second {
            self.swing(spot, Word::NONE, second);
        }
    }

    /// Exchanges the `next` of the node that was found, from its successor to the new node with
    /// the mark: at once the old node is deleted, and the new one linked behind it, where every
    /// search that meets the old one looks next. No moment shows neither, and none both.
    fn replace<'g>(&self, place: &Place<'g>, node: &Owned<E>, guard: &'g Guard) -> Option<At<'g>> {
        let (old, next) = place.found?;
        node.set_next(next.as_ptr());
        // SAFETY: the new node leads to the successor.
        let done = unsafe { old.exchange_next(next.as_ptr(), with_mark(node.link())) };
        // SAFETY: linked just now, behind a node that was.
        done.then(|| unsafe { At::new(node.node().cast(), guard) })
    }

    /// Removes the node of a key with this hash for which `is_key` holds, if `agrees` does too.
    /// Takes effect when the node is marked.
    pub(crate) fn remove<'g>(
        &self,
        hash: u64,
        guard: &'g Guard,
        is_key: impl Fn(NonNull<Node>) -> bool,
        mut agrees: impl FnMut(NonNull<Node>) -> bool,
    ) -> Option<At<'g>> {
        let order = order_of(hash);
        let spot = self.spot(order, guard);
        let mut start = Start::Head;
        loop {
            let place = self.find(spot, order, start, &is_key);
            start = Start::Anchor;
            let found = place.found.filter(|(at, _)| agrees(at.node_ptr()));
            let Some((old, next)) = found else {
                self.missed(spot, place.visits);
                return None;
            };
            if old.mark(next.as_ptr()) {
                self.tally.went(Self::bytes(old));
                self.inherit(spot, old, next.at());
                self.unlink_marked(spot, &place, order);
                self.missed(spot, place.visits);
                return Some(old);
            }
        }
    }

    /// Unlinks the node that was found, which the caller has marked. If one exchange does not do
    /// that, a search does, which unlinks everything marked.
    fn unlink_marked<'g>(&self, spot: Spot<'g>, place: &Place<'g>, order: u64) {
        if let Some((old, _)) = place.found
            && !self.unlink(place.before, old, old.next())
        {
            self.find(spot, order, Start::Anchor, |_| false);
        }
    }

    /// Removes every node that it meets on one walk through the list. Yields how many links it read
    /// to unlink them.
    pub(crate) fn clear(&self, guard: &Guard) -> u64 {
        let mut read = 0;
        let mut next = self.begin(guard).next();
        while let Some(at) = next.at() {
            next = at.next();
            while at.is_node() && !next.marked() {
                if at.mark(next.as_ptr()) {
                    self.tally.went(Self::bytes(at));
                    let spot = self.spot(at.order(), guard);
                    self.inherit(spot, at, None);
                    // The search ends behind it, at the first node of its order that is not marked.
                    // None of those stands before it: the walk has marked those that did, or found
                    // them marked, and new ones go behind all others of their order.
                    let place = self.find(spot, at.order(), Start::Anchor, |_| true);
                    read += u64::from(place.visits);
                }
                next = at.next();
            }
        }
        read
    }

    /// The bytes of a node's allocation.
    fn bytes(at: At<'_>) -> usize {
        // SAFETY: a node of this map, kept by the guard.
        unsafe { E::bytes(at.node_ptr()) }
    }
}
