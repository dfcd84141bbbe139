//! Accesses fitted to a cluster of caches: a working set that moves on through the records.
//!
//! A cache drops keys when their time to live is over, and new ones take their place. So only a
//! part of the keys, the window, is in use at one time. Each place in the window has a popularity,
//! by Zipf's law. A key keeps its place until a new key takes it, which is written then. There are
//! records here instead of an endless supply of keys, so the new key is the record that has been
//! out of use longest. Keys with one access lie outside of the window and are accessed in turn.
//!
//! Apart from that, the order of the recorded accesses is not modelled: within the window every
//! access is drawn independently of the ones before.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::{Rng, RngExt};
use rand_distr::Zipf;

use super::Cluster;
use super::chooser::{rank, zipf};
use crate::keys::Permutation;

/// A working set that moves on through the records.
#[derive(Debug)]
pub(super) struct Window {
    ranks: Zipf<f64>,
    /// Place in the window of each rank.
    places: Permutation,
    len: u64,
    /// How many records the window moves through: those before [`Window::once`].
    moving: u64,
    /// Records with one access.
    once: u64,
    /// The share of accesses that go to records with one access.
    once_share: f64,
    /// How many records have come into the window since the beginning.
    entered: AtomicU64,
    /// How many accesses went to records with one access.
    visited: AtomicU64,
}

impl Window {
    /// The window of `cluster` over `records` records, at least one.
    pub(super) fn new(cluster: &Cluster, records: u64, seed: u64) -> Self {
        let part = |of: u64, share: f64| (of as f64 * share).round() as u64;
        let once = part(records, cluster.one_hit_share).min(records - 1);
        let moving = records - once;
        let len = part(moving, cluster.working_share).clamp(1, moving);
        Self {
            ranks: zipf(len, cluster.zipf_alpha),
            places: Permutation::new(len, seed),
            len,
            moving,
            once,
            once_share: if once > 0 {
                cluster.one_hit_accesses()
            } else {
                0.0
            },
            entered: AtomicU64::new(0),
            visited: AtomicU64::new(0),
        }
    }

    /// Draws a record to read or update.
    pub(super) fn choose(&self, rng: &mut impl Rng) -> u64 {
        if rng.random_bool(self.once_share) {
            return self.moving + self.visited.fetch_add(1, Ordering::Relaxed) % self.once;
        }
        let place = self.places.get(rank(&self.ranks, rng, self.len));
        let first = self.entered.load(Ordering::Relaxed);
        // The one record of the window whose number leaves `place` as its rest.
        (first + (place + self.len - first % self.len) % self.len) % self.moving
    }

    /// The record that comes into the window now, and has to be written.
    pub(super) fn enter(&self) -> u64 {
        (self.entered.fetch_add(1, Ordering::Relaxed) + self.len) % self.moving
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use crate::trace::Sinking;
    use crate::workload::{Operation, Workload};

    fn window() -> Window {
        let cluster = Cluster {
            zipf_alpha: 1.0,
            mean_frequency: 4.0,
            one_hit_share: 0.4,
            working_share: 0.5,
            ..Cluster::built_in("17").unwrap()
        };
        Window::new(&cluster, 1000, 7)
    }

    fn counts(window: &Window) -> Vec<u32> {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut counts = vec![0; 1000];
        for _ in 0..40_000 {
            counts[window.choose(&mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn keys_with_one_access_are_taken_in_turn() {
        let counts = counts(&window());
        // A share of 0.4 / 4 of 40,000 accesses, on 400 records.
        let once = &counts[600..];
        let sum: u32 = once.iter().sum();
        assert!((3800..4200).contains(&sum), "{sum}");
        let (least, most) = (once.iter().min().unwrap(), once.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}");
    }

    #[test]
    fn only_the_window_is_in_use_and_by_zipf() {
        let counts = counts(&window());
        assert!(counts[300..600].iter().all(|&count| count == 0));
        let hottest = f64::from(*counts[..300].iter().max().unwrap()) / 36_000.0;
        let zeta: f64 = (1..=300).map(|k| 1.0 / f64::from(k)).sum();
        assert!((hottest - 1.0 / zeta).abs() < 0.01, "{hottest}");
    }

    /// Shares of reads of sunk and of hot records under the fitted workload of a cluster.
    fn sinking(name: &str) -> (f64, f64) {
        const RECORDS: u64 = 20_000;
        let cluster = Cluster::built_in(name).unwrap();
        let workload = Workload::fitted(&cluster);
        let window = Window::new(&cluster, RECORDS, 7);
        let mut rng = SmallRng::seed_from_u64(1);
        // 5 % of the data. All records are alike.
        let mut sinking = Sinking::new(RECORDS as usize, RECORDS / 20);
        // The beginning, when all records are as they were loaded, is left out.
        for begin in [true, false] {
            if !begin {
                sinking.found = Default::default();
            }
            for _ in 0..20 * RECORDS {
                match workload.choose(&mut rng) {
                    Operation::Read => sinking.read(window.choose(&mut rng) as usize, 1),
                    Operation::Update => sinking.write(window.choose(&mut rng) as usize, 1),
                    Operation::Insert => sinking.write(window.enter() as usize, 1),
                    other => panic!("{other:?}"),
                }
            }
        }
        let shares = sinking.found;
        (shares.sunk().unwrap(), shares.hot().unwrap())
    }

    /// The paper finds a high share of reads of sunk records in clusters 11 and 17, a middle one in
    /// 19, 16 and 53, and a low one in 10 and 29, which here means a twentieth at most. The table
    /// does not tell enough for 11 and 16: here their hottest keys are written as often as they are
    /// popular.
    #[test]
    fn fitted_clusters_read_sunk_records_as_the_paper_found() {
        for (name, least, most) in [
            ("17", 0.95, 1.0),
            ("19", 0.2, 0.7),
            ("53", 0.2, 0.7),
            ("10", 0.0, 0.05),
            ("29", 0.0, 0.05),
            ("11", 0.1, 0.2),
            ("16", 0.0, 0.05),
        ] {
            let (sunk, hot) = sinking(name);
            println!("cluster {name}: sunk {sunk:.3}, hot {hot:.3}");
            assert!((least..=most).contains(&sunk), "{name}: {sunk}");
        }
    }

    #[test]
    fn the_window_moves_and_a_key_keeps_its_popularity() {
        let window = window();
        let before = counts(&window);
        let entered: Vec<u64> = (0..100).map(|_| window.enter()).collect();
        assert_eq!(entered, (300..400).collect::<Vec<_>>());
        let after = counts(&window);
        assert!(after[..100].iter().all(|&count| count == 0));
        assert_eq!(before[100..300], after[100..300]);
        // The new keys took the places of the old.
        assert_eq!(before[..100], after[300..400]);
        // Past the last of the moving records it begins again.
        let last = (0..301).map(|_| window.enter()).last();
        assert_eq!(last, Some(100));
        assert!(counts(&window)[..101].iter().all(|&count| count > 0));
    }
}
