//! How much memory the indexes and filters of open tables may keep.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes that all open tables together may keep pinned (I8): their top-level indexes, without which
/// nothing can be read, and as many partitions as fit besides. A table that finds no room reads its
/// partitions through the block cache instead.
#[derive(Debug)]
pub(crate) struct PinBudget {
    limit: u64,
    taken: AtomicU64,
    refused: AtomicU64,
}

/// What one table has and has asked for. Dropping it gives everything back.
#[derive(Debug)]
pub(crate) struct Pin {
    budget: Arc<PinBudget>,
    /// Taken whether there is room or not.
    needed: u64,
    bytes: u64,
    granted: AtomicBool,
}

impl PinBudget {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            taken: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes the `needed` bytes, and asks for another `bytes`, which are granted if there is room
    /// for all of them.
    pub(crate) fn ask(self: Arc<Self>, needed: u64, bytes: u64) -> Pin {
        self.taken.fetch_add(needed, Ordering::Relaxed);
        let granted = self.take(bytes);
        if !granted {
            self.refused.fetch_add(bytes, Ordering::Relaxed);
        }
        Pin {
            budget: self,
            needed,
            bytes,
            granted: AtomicBool::new(granted),
        }
    }

    /// Takes `bytes` if there is room for all of them.
    fn take(&self, bytes: u64) -> bool {
        let with_them = |taken| self.with(taken, bytes);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_them)
            .is_ok()
    }

    /// The total with `bytes` more, if that is within the limit.
    fn with(&self, taken: u64, bytes: u64) -> Option<u64> {
        taken.checked_add(bytes).filter(|sum| *sum <= self.limit)
    }

    /// Bytes that are needed or granted at present.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Bytes that existing pins asked for and were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Pin {
    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Relaxed)
    }

    /// As [`Pin::is_granted`], but asks again for what was refused. Many threads may do so at each
    /// lookup, so nothing that they share is written before there is room.
    #[inline]
    pub(crate) fn is_granted_by_now(&self) -> bool {
        let room = self.budget.with(self.budget.taken(), self.bytes);
        self.is_granted() || (room.is_some() && self.ask_again())
    }

    #[cold]
    fn ask_again(&self) -> bool {
        if self.budget.take(self.bytes) {
            let counter = match self.granted.swap(true, Ordering::Relaxed) {
                false => &self.budget.refused,
                // Another thread was faster.
                true => &self.budget.taken,
            };
            counter.fetch_sub(self.bytes, Ordering::Relaxed);
        }
        self.is_granted()
    }

    /// Gives back what was granted and is not used. It may be asked for again.
    pub(crate) fn give_back(&self) {
        // This comes first: if somebody asks again at the same moment, they must not subtract what
        // has not been added yet.
        self.budget.refused.fetch_add(self.bytes, Ordering::Relaxed);
        let counter = match self.granted.swap(false, Ordering::Relaxed) {
            true => &self.budget.taken,
            false => &self.budget.refused,
        };
        counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.needed, Ordering::Relaxed);
        let counter = match self.is_granted() {
            true => &self.budget.taken,
            false => &self.budget.refused,
        };
        counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_never_exceeded_and_comes_back() {
        let budget = Arc::new(PinBudget::new(100));
        let ask = |bytes| Arc::clone(&budget).ask(0, bytes);
        let first = ask(60);
        assert!(first.is_granted());
        assert!(!ask(41).is_granted());
        assert!(!ask(u64::MAX).is_granted(), "an overflow is not room");
        let second = ask(40);
        assert!(second.is_granted());
        drop(first);
        assert_eq!(budget.taken(), 40);
        assert!(ask(60).is_granted());
    }

    #[test]
    fn what_is_needed_takes_the_room_of_what_is_not() {
        let budget = Arc::new(PinBudget::new(100));
        let ask = |needed, bytes| Arc::clone(&budget).ask(needed, bytes);
        let large = ask(90, 20);
        assert!(!large.is_granted());
        let small = ask(5, 5);
        assert!(small.is_granted());
        let over = ask(70, 0);
        assert_eq!((budget.taken(), budget.refused()), (170, 20));
        drop((large, over));
        assert_eq!((budget.taken(), budget.refused()), (10, 0));
    }

    #[test]
    fn what_found_no_room_is_granted_once_there_is_some() {
        let budget = Arc::new(PinBudget::new(100));
        let ask = |bytes| Arc::clone(&budget).ask(0, bytes);
        let (first, second) = (ask(80), ask(50));
        assert!(!second.is_granted_by_now());
        drop(first);
        assert!(!second.is_granted(), "nobody has asked");
        // As two threads that have both seen the room.
        assert!(second.ask_again() && second.ask_again());
        assert_eq!((budget.taken(), budget.refused()), (50, 0));
        assert!(second.is_granted_by_now());
        drop(second);
        assert_eq!((budget.taken(), budget.refused()), (0, 0));
    }

    #[test]
    fn what_is_given_back_is_granted_to_another() {
        let budget = Arc::new(PinBudget::new(100));
        let ask = |bytes| Arc::clone(&budget).ask(10, bytes);
        let (first, second) = (ask(60), ask(50));
        assert!(first.is_granted() && !second.is_granted_by_now());
        // The second time there is nothing to give.
        for _ in 0..2 {
            first.give_back();
            assert_eq!((budget.taken(), budget.refused()), (20, 110));
        }
        assert!(!first.is_granted() && second.is_granted_by_now());
        assert_eq!((budget.taken(), budget.refused()), (70, 60));
        drop((first, second));
        assert_eq!((budget.taken(), budget.refused()), (0, 0));
    }

    #[test]
    fn what_found_no_room_is_counted_while_it_is_there() {
        let budget = Arc::new(PinBudget::new(100));
        let ask = |bytes| Arc::clone(&budget).ask(0, bytes);
        let granted = ask(80);
        let refused = [ask(30), ask(50)];
        assert_eq!((budget.taken(), budget.refused()), (80, 80));
        drop(granted);
        assert_eq!((budget.taken(), budget.refused()), (0, 80));
        drop(refused);
        assert_eq!((budget.taken(), budget.refused()), (0, 0));
    }
}
