//! What every write asks about all keyspaces. It is counted as it changes: a look at each of
//! thousands of keyspaces would cost more than the write itself.

use crate::read::Superversion;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts over all keyspaces of a store.
#[derive(Debug)]
pub(crate) struct Tally {
    l0_stop: usize,
    frozen: AtomicUsize,
    full: AtomicUsize,
    /// The memtables that count in it hold it, too.
    retired: Arc<AtomicU64>,
}

impl Tally {
    /// Counts nothing yet. A keyspace's L0 is full at `l0_stop` tables.
    pub(crate) fn new(l0_stop: usize) -> Self {
        Self {
            l0_stop,
            frozen: AtomicUsize::new(0),
            full: AtomicUsize::new(0),
            retired: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Frozen memtables that wait for their flush.
    pub(crate) fn frozen(&self) -> usize {
        self.frozen.load(Ordering::Relaxed)
    }

    /// Keyspaces whose L0 is full.
    pub(crate) fn full(&self) -> usize {
        self.full.load(Ordering::Relaxed)
    }

    /// Bytes of the memtables that take no more records, whether they are flushed or not, for as
    /// long as anybody holds them.
    pub(crate) fn retired_bytes(&self) -> u64 {
        self.retired.load(Ordering::Relaxed)
    }

    /// Counts a keyspace as it is `after` a change, and takes off what it counted `before`, if it
    /// was there.
    pub(crate) fn count(&self, before: Option<&Superversion>, after: &Superversion) {
        let of = |superversion: &Superversion| {
            let tables = superversion.version.levels[0].tables.len();
            let is_full = usize::from(tables >= self.l0_stop);
            [superversion.immutables.len(), is_full]
        };
        let (was, is) = (before.map_or([0; 2], of), of(after));
        let counters = [&self.frozen, &self.full].into_iter();
        for (counter, (was, is)) in counters.zip(was.into_iter().zip(is)) {
            // In one step: the sum wraps to the right value.
            counter.fetch_add(is.wrapping_sub(was), Ordering::Relaxed);
        }
        if let Some(before) = before
            && !Arc::ptr_eq(&before.active, &after.active)
        {
            before.active.count_in(&self.retired);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Tree;
    use crate::options::Options;
    use crate::testing::scene::{self, Scene, everything};

    /// What a look at each keyspace gives.
    fn looked_at(scene: &Scene) -> (usize, usize) {
        let engine = scene.engine();
        let (mut frozen, mut full) = (0, 0);
        for tree in engine.all_trees() {
            let pinned = tree.pin();
            frozen += pinned.immutables.len();
            full += usize::from(pinned.version.levels[0].tables.len() >= engine.options.l0_stop);
        }
        (frozen, full)
    }

    fn counted(scene: &Scene) -> (usize, usize) {
        let engine = scene.engine();
        (
            engine.keyspaces.tally.frozen(),
            engine.keyspaces.tally.full(),
        )
    }

    fn options() -> Options {
        let mut options = scene::options();
        (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (2, 2, 3);
        options
    }

    #[test]
    fn the_counts_are_what_a_look_at_each_keyspace_gives() {
        let scene = Scene::with(options());
        let other = scene.db.create_keyspace("other").unwrap();
        let is = |expected| {
            assert_eq!(counted(&scene), expected);
            assert_eq!(looked_at(&scene), expected);
        };
        is((0, 0));
        scene.put("key", "1");
        scene.db.flush().unwrap();
        // A compaction of L0 that takes long.
        let plan = scene.pick(0, &everything(), false).unwrap();
        let job = Tree::start_compaction(&mut scene.tree().state.lock(), &plan);
        for (version, full) in [("2", 0), ("3", 1)] {
            scene.put("key", version);
            other.put("key", "value").unwrap();
            scene.freeze();
            is((2, 0));
            scene.drain();
            is((0, full));
        }
        scene.tree().end_compaction(job, &plan);
        scene.engine().schedule();
        scene.drain();
        is((0, 0));
        other.put("key", "value").unwrap();
        scene.freeze();
        is((1, 0));
        scene.db.drop_keyspace("other").unwrap();
        is((0, 0));
    }

    #[test]
    fn what_is_found_at_opening_counts() {
        let scene = Scene::new();
        for _ in 0..3 {
            scene.put("key", "value");
            scene.db.flush().unwrap();
        }
        let scene = scene.reopen(options());
        assert_eq!(counted(&scene), (0, 1));
        assert_eq!(looked_at(&scene), (0, 1));
    }
}
