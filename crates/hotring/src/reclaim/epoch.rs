//! Reclamation by the epochs of `crossbeam-epoch`.
//!
//! A thread puts what it retires into a bag, and full bags into the queue of all threads. This
//! frees nothing. What frees is a *turn*, which moves the epoch on and frees some bags. The epochs
//! take a turn by themselves with every 128th guard of a thread. That is none while one guard is
//! renewed, and too few where more than a few objects are retired under each guard.
//!
//! So a thread counts what it retires. It owes a turn for each bag of it, and for a table at once.
//! It takes that turn when it lets go of all that it has seen: before its first guard, or as it
//! renews one. It does not take it as it retires something, because a turn runs destructors, which
//! may panic. A turn adds two bags at most and frees eight, so that what a guard has held up for
//! long gets less again when the guard is gone.
//!
//! A turn that frees nothing pays for nothing: some guard may keep all that is due. The epoch has
//! to move on twice before something is freed. So after two such turns what is owed is *put off*,
//! lest each guard look at all threads in vain. It is owed again when a turn that was not owed
//! frees something, such as one that the epochs take by themselves. It is also owed again after as
//! many renewals as a bag has room for objects, because the epochs take no turns while a guard is
//! renewed.
//!
//! Turns free things in the order in which they were retired, whoever retired them. So the turns
//! that a thread takes for a table may free what others have retired before it. They pay for
//! nothing as long as any table waits, and the thread takes as many as it needs.
//!
//! Each bag that is freed leaves a place of the queue behind. Places are put into bags too, and
//! stand in the queue before what is retired next. Whoever waits for that has to see that the
//! places go. So a thread leaves a *marker* with them, and whoever frees them calls it. With a
//! marker for each turn there would be no end, as the places of a bag of places are a bag again.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::sync::counting::{AtomicUsize, Ordering};

/// How many objects a bag has room for.
const BAG: usize = 64;

/// Bags that a turn frees at most.
const BAGS: usize = 8;

/// The most turns that are taken at once. A thread that has retired very much frees it by and by.
const TURNS: usize = 4;

/// After so many turns in a row that free nothing, what is owed is put off.
const IN_VAIN: usize = 2;

/// Large objects of all threads that were handed over and are not freed yet. If a destructor panics
/// before one in the same bag, that object counts for ever. Then the turns of those who wait for
/// large objects never pay, and what they owe is put off.
static LARGE: AtomicUsize = AtomicUsize::new(0);

/// What a thread has to do with freeing.
struct Share {
    /// Objects that it has retired and owes turns for.
    owed: Cell<usize>,
    /// How much of that, or of what is put off, is for large objects that may not be freed yet.
    for_large: Cell<usize>,
    /// Objects that it will owe turns for again when a turn may free something.
    put_off: Cell<usize>,
    /// Renewals of a guard while something is put off.
    renewals: Cell<usize>,
    /// Objects that it has freed, whoever retired them.
    freed: Cell<u64>,
    /// Markers that it has called, whoever left them.
    cleared: Cell<u64>,
    /// Bags that it has freed since it left a marker, as far as it knows. A marker counts as one
    /// bag. An object counts as the most bags that a turn frees.
    unmarked: Cell<usize>,
    /// Whether it is taking turns, or runs a destructor. Destructors may use maps too, and take no
    /// turns.
    freeing: Cell<bool>,
}

thread_local! {
    static SHARE: Share = const { Share::none() };
}

impl Share {
    const fn none() -> Self {
        Self {
            owed: Cell::new(0),
            for_large: Cell::new(0),
            put_off: Cell::new(0),
            renewals: Cell::new(0),
            freed: Cell::new(0),
            cleared: Cell::new(0),
            unmarked: Cell::new(0),
            freeing: Cell::new(false),
        }
    }

    fn owes_a_turn(&self) -> bool {
        self.owed.get() >= BAG
    }

    fn owe(&self, objects: usize) {
        self.owed.set(self.owed.get() + objects);
    }

    /// Owes a turn for a large object.
    fn owe_for_large(&self) {
        self.for_large.set(self.for_large.get() + BAG);
        self.owe(BAG);
    }

    /// Pays with a turn, and says for how many objects. It pays for none while it waits for a large
    /// one, as the turn may come before that is due.
    fn pay(&self) -> usize {
        self.pay_for_large();
        if self.for_large.get() > 0 {
            return 0;
        }
        self.take_off(BAG)
    }

    /// Pays for large objects when all of them are freed, whoever freed them.
    fn pay_for_large(&self) {
        // What is put off is paid for when it is owed again.
        if self.owes_a_turn() && LARGE.load(Ordering::Relaxed) == 0 {
            self.take_off(self.for_large.take());
        }
    }

    /// Takes up to `most` objects off what it owes, and says how many.
    fn take_off(&self, most: usize) -> usize {
        let paid = self.owed.get().min(most);
        self.owed.set(self.owed.get() - paid);
        paid
    }

    fn put_off(&self) {
        self.put_off.set(self.put_off.get() + self.owed.take());
    }

    fn owe_what_was_put_off(&self) {
        self.owe(self.put_off.take());
    }

    /// Notes that an object is being freed.
    fn note_freed(&self) {
        self.freed.set(self.freed.get() + 1);
        self.unmarked.set(BAGS);
        // By a turn that was not owed: so what was in the way is gone. One that was owed may have
        // freed only what was retired since.
        if !self.freeing.get() {
            self.owe_what_was_put_off();
        }
    }

    /// Notes that a marker was called.
    fn note_cleared(&self) {
        self.cleared.set(self.cleared.get() + 1);
        self.unmarked.set(self.unmarked.get() + 1);
    }

    /// Whether it is to leave a marker with the places that it hands over now. If it has freed no
    /// object since the last marker, it must have called as many markers as a turn frees bags. So
    /// markers of markers are fewer by that factor each time, and end.
    fn leaves_a_marker(&self) -> bool {
        let leaves = self.unmarked.get() >= BAGS;
        if leaves {
            self.unmarked.set(0);
        }
        leaves
    }

    /// Objects that it has freed, and markers of what freeing has left.
    fn progress(&self) -> u64 {
        self.freed.get() + self.cleared.get()
    }

    /// Notes a renewal; says whether a turn is owed.
    fn renewed(&self) -> bool {
        if self.put_off.get() > 0 {
            self.renewals.set(self.renewals.get() + 1);
            if self.renewals.get() >= BAG {
                self.renewals.set(0);
                self.owe_what_was_put_off();
            }
        }
        self.owes_a_turn()
    }

    /// Takes some of the turns that are owed.
    fn take_turns(&self, mut turn: impl FnMut()) {
        // Not while the thread unwinds: another panic would end the process.
        if std::thread::panicking() || self.freeing.get() {
            return;
        }
        let _freeing = Freeing::begin();
        let mut in_vain = 0;
        for _ in 0..TURNS {
            if !self.owes_a_turn() {
                break;
            }
            let freed = self.freed.get();
            turn();
            if self.freed.get() != freed {
                in_vain = 0;
                continue;
            }
            in_vain += 1;
            if in_vain == IN_VAIN {
                self.put_off();
                break;
            }
        }
    }
}

/// A time in which destructors run. A panic ends it too.
struct Freeing {
    /// Whether it lies within another one.
    within: bool,
}

impl Freeing {
    fn begin() -> Self {
        let within = SHARE.try_with(|share| share.freeing.replace(true));
        Self {
            within: within.unwrap_or(false),
        }
    }
}

impl Drop for Freeing {
    fn drop(&mut self) {
        let _ = SHARE.try_with(|share| share.freeing.set(self.within));
    }
}

/// Keeps what is reachable now, or was since it was taken, from being freed.
#[derive(Debug)]
pub(crate) struct Guard(crossbeam_epoch::Guard);

/// Takes a guard. If it is the thread's only one, frees some of what is due before.
#[inline]
pub(crate) fn pin() -> Guard {
    if owes_a_turn() {
        turn_unless_pinned();
    }
    Guard(crossbeam_epoch::pin())
}

/// Whether this thread owes a turn. A guard of a thread that has retired nothing costs no more than
/// this.
#[inline(always)]
fn owes_a_turn() -> bool {
    SHARE.try_with(Share::owes_a_turn).unwrap_or(false)
}

/// Takes turns, each under a guard of its own. Under a guard that the thread already has, the epoch
/// would not move on.
#[cold]
#[inline(never)]
fn turn_unless_pinned() {
    if crossbeam_epoch::is_pinned() {
        return;
    }
    let _ = SHARE.try_with(|share| {
        share.take_turns(|| Guard(crossbeam_epoch::pin()).flush());
    });
}

impl Guard {
    /// Lets go of everything and begins anew. Frees some of what is due.
    pub(crate) fn repin(&mut self) {
        self.0.repin();
        if SHARE.try_with(Share::renewed).unwrap_or(false) {
            self.turn_renewed();
        }
    }

    /// Takes turns under this guard.
    #[cold]
    #[inline(never)]
    fn turn_renewed(&mut self) {
        let _ = SHARE.try_with(|share| {
            share.take_turns(|| {
                self.flush();
                // The next turn would wait for this guard.
                self.0.repin();
            });
        });
    }

    /// Hands what this thread has retired to all threads, and takes a turn.
    pub(crate) fn flush(&self) {
        if SHARE.try_with(Share::leaves_a_marker).unwrap_or(false) {
            // This stands behind the places, so it is called when they are freed, by the thread
            // that frees them.
            self.0.defer(|| SHARE.try_with(Share::note_cleared));
        }
        let before = SHARE.try_with(|share| share.freed.get());
        // Paid first: the turn may end with a destructor's panic, and has freed something then.
        let paid = SHARE.try_with(Share::pay).unwrap_or(0);
        self.0.flush();
        let _ = SHARE.try_with(|share| {
            let has_freed = before.is_ok_and(|before| share.freed.get() != before);
            if !has_freed {
                share.owe(paid);
            }
            share.pay_for_large();
        });
    }

    /// Hands what this thread has retired to all threads. The thread owes turns for it until it is
    /// freed, however few objects it is, because the last of them is large.
    pub(crate) fn hand_over(&self) {
        LARGE.fetch_add(1, Ordering::Relaxed);
        let _ = SHARE.try_with(Share::owe_for_large);
        // This stands behind the large object, so it is called when that is freed.
        self.0.defer(|| LARGE.fetch_sub(1, Ordering::Relaxed));
        // This turn does not pay: it comes too early for what was retired under this guard.
        self.0.flush();
    }
}

/// Notes that `guard` reaches the object at `at`; the models check it.
#[inline(always)]
pub(crate) fn reached<T>(_guard: &Guard, _at: NonNull<T>) {}

/// Calls `free` on the object at `at` when every guard that exists now is gone. `parts` are
/// the addresses by which it is reached; only the models need them.
///
/// # Safety
///
/// No guard taken later can reach the object, it is retired once, and `free` may be called
/// on it from any thread at any later time.
pub(crate) unsafe fn retire<T: 'static>(
    guard: &Guard,
    at: NonNull<T>,
    _parts: impl Iterator<Item = usize>,
    free: unsafe fn(NonNull<T>),
) {
    let _ = SHARE.try_with(|share| share.owe(1));
    // SAFETY: the caller's promise is the one `defer_unchecked` and `free` ask for.
    unsafe {
        guard.0.defer_unchecked(move || {
            let _ = SHARE.try_with(Share::note_freed);
            let _freeing = Freeing::begin();
            free(at);
        });
    }
}

/// How much this thread has freed so far: objects, and what freeing them has left in the queue.
/// Turns free things in the order in which they were retired: as long as this grows, what waits
/// behind others comes nearer. It ceases to grow when nothing more is retired, or a guard is in the
/// way.
pub(crate) fn freed() -> u64 {
    SHARE.try_with(Share::progress).unwrap_or(0)
}

/// Calls `then` when every guard that exists now is gone.
pub(crate) fn after_grace(guard: &Guard, then: impl FnOnce() + Send + 'static) {
    guard.0.defer(then);
    guard.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of each kind.
    const MANY: usize = 1_000_000;

    /// The markers that wait in the queue, of one thread alone.
    struct Queue {
        share: Share,
        markers: usize,
    }

    impl Queue {
        fn new() -> Self {
            Self {
                share: Share::none(),
                markers: 0,
            }
        }

        /// A turn that frees `bags` bags with markers, and an object if `frees_an_object`. Says
        /// whether it made progress.
        fn turn(&mut self, bags: usize, frees_an_object: bool) -> bool {
            self.markers += usize::from(self.share.leaves_a_marker());
            let before = self.share.progress();
            if frees_an_object {
                self.share.note_freed();
            }
            let called = self.markers.min(bags);
            (0..called).for_each(|_| self.share.note_cleared());
            self.markers -= called;
            self.share.progress() != before
        }
    }

    /// Regression: turns counted what they left in the queue. A turn that freed an object added
    /// one, and only turns that freed none took some off. But turns that free objects also free
    /// what was left before, and so do the epochs by themselves and other threads. So the count
    /// grew for as long as a thread wrote. A thread that then changed the size of a table while a
    /// handle was held took a turn in vain for each five hundred writes that there had ever been,
    /// and had the change's lock for as long.
    #[test]
    fn turns_that_free_nothing_are_in_vain_whatever_was_freed_before() {
        let mut queue = Queue::new();
        for _ in 0..MANY {
            assert!(queue.turn(BAGS, true));
        }
        let turns = (0..MANY).take_while(|_| queue.turn(BAGS, false)).count();
        assert!(turns < BAGS, "{turns}");
    }

    /// A bag of places leaves a place again. If each were marked, whoever waited for something that
    /// does not come would wait for ever.
    #[test]
    fn what_freeing_leaves_comes_to_an_end() {
        let mut queue = Queue::new();
        for _ in 0..MANY {
            queue.turn(0, true);
        }
        let turns = (0..MANY).take_while(|_| queue.turn(BAGS, false)).count();
        let least = MANY / BAGS;
        assert!((least..2 * least).contains(&turns), "{turns}");
    }
}
