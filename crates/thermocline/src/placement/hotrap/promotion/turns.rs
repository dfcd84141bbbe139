//! Which of very many keyspaces may gather records for their promotion.
//!
//! The memory for promotion caches is divided by keyspace. Among hundreds of keyspaces the part of
//! one is a few records, and so would be each table of L0 that they become. So a keyspace of a
//! small part takes turns with the others of that kind. While it has its turn it has a part that is
//! worth a table, and the others gather nothing.

use std::collections::VecDeque;

use super::super::HotRap;
use crate::engine::{Engine, Tree};
use crate::ids::KeyspaceId;
use crate::sync::Mutex;

/// Bytes of a promotion cache that is worth a table.
const WORTH_A_TABLE: u64 = 16 << 10;

/// The least part of the memory for promotion caches that is worth one where that memory is little:
/// one of so many.
const FEW_PARTS: u64 = 16;

/// The keyspaces whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Round>);

#[derive(Debug, Default)]
struct Round {
    /// The first has had its turn longest.
    holders: VecDeque<KeyspaceId>,
    /// How many may be holders at once; none counts as one.
    most: usize,
    /// Bytes that others would have gathered since the last turn began.
    refused: u64,
}

/// What a keyspace is told that has something to gather.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// It has its turn, and the keyspace of this number has no longer.
    Yes(Option<KeyspaceId>),
    No,
}

impl Round {
    /// Asks for `keyspace`, which has `bytes` to gather. When `patience` bytes were refused, the
    /// longest turn ends: its keyspace is read too seldom to fill its cache.
    fn ask(&mut self, keyspace: KeyspaceId, bytes: u64, patience: u64) -> Answer {
        if self.holders.contains(&keyspace) {
            return Answer::Yes(None);
        }
        let mut ended = None;
        if self.holders.len() >= self.most.max(1) {
            self.refused = self.refused.saturating_add(bytes);
            if self.refused < patience {
                return Answer::No;
            }
            ended = self.holders.pop_front();
        }
        self.refused = 0;
        self.holders.push_back(keyspace);
        Answer::Yes(ended)
    }
}

/// Bytes of all promotion caches together.
fn whole(engine: &Engine) -> u64 {
    engine.sizes.table_size / 2
}

/// Bytes of the least one that is worth having.
fn least(engine: &Engine) -> u64 {
    WORTH_A_TABLE.min(whole(engine) / FEW_PARTS)
}

impl HotRap {
    /// Bytes at which the promotion cache of `tree` is full: its part of half a table's, and no
    /// less than is worth a table. At times there are two caches, a frozen one and the next, and
    /// small tables are good enough for L0.
    pub(crate) fn promotion_capacity(&self, engine: &Engine, tree: &Tree) -> u64 {
        let part = tree.placed.promotion_share.of(whole(engine));
        part.max(least(engine))
    }

    /// Whether `tree` may gather `bytes` for its promotion now. If that ends the turn of another
    /// keyspace, what that one has gathered is dropped.
    pub(crate) fn may_gather(&self, engine: &Engine, tree: &Tree, bytes: u64) -> bool {
        let least = least(engine);
        if tree.placed.promotion_share.of(whole(engine)) >= least {
            return true;
        }
        // As much as would have filled every keyspace's cache.
        let patience = engine.keyspaces.trees.load().len() as u64 * least;
        let answer = self.turns.0.lock().ask(tree.id, bytes, patience);
        match answer {
            Answer::No => false,
            Answer::Yes(None) => true,
            Answer::Yes(Some(ended)) => {
                if let Some(other) = engine.tree(ended) {
                    self.empty_promotion_cache(engine, &other, &other.placed.gate.mutable());
                }
                true
            }
        }
    }

    /// Sets how many turns there are: those that all small parts together are worth. `shares` are
    /// the parts of all keyspaces, 0 to 1.
    pub(crate) fn set_turns(&self, engine: &Engine, shares: impl Iterator<Item = f64>) {
        let parts = whole(engine) as f64 / least(engine) as f64;
        let small: f64 = shares.filter(|share| share * parts < 1.0).sum();
        // Rounded to the nearest: sums of shares are not exact.
        self.turns.0.lock().most = (small * parts).round() as usize;
    }

    /// Ends the turn of the keyspace numbered `keyspace`, if it has one.
    pub(crate) fn end_turn(&self, keyspace: KeyspaceId) {
        let mut round = self.turns.0.lock();
        round.holders.retain(|holder| *holder != keyspace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::executor::Stepped;
    use crate::options::Options;
    use crate::points::Points;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_turn_ends_when_others_have_waited_long() {
        let mut round = Round {
            most: 2,
            ..Round::default()
        };
        assert_eq!(round.ask(1, 10, 30), Answer::Yes(None));
        assert_eq!(round.ask(2, 10, 30), Answer::Yes(None));
        assert_eq!(round.ask(3, 10, 30), Answer::No);
        assert_eq!(round.ask(1, 10, 30), Answer::Yes(None));
        assert_eq!(round.ask(4, 10, 30), Answer::No);
        assert_eq!(round.ask(3, 10, 30), Answer::Yes(Some(1)));
        assert_eq!(round.ask(1, 10, 30), Answer::No);
        assert_eq!(round.holders, [2, 3]);
    }

    /// Each of very many keyspaces had its part of the memory for promotion caches, which was a
    /// record or two. Each became a table of L0 by itself.
    #[test]
    fn promoted_tables_of_very_many_keyspaces_are_worth_their_price() {
        const KEYSPACES: usize = 100;
        const RECORDS: u64 = 50;
        let memory = Arc::new(Memory::new());
        let mut options = Options::two_tiers("/fast", 8 << 20, "/slow");
        options.record_cache = Some(0);
        options.seed = Some(1);
        let (points, stepped) = (Points::default(), Arc::new(Stepped::new(1)));
        let builder = Db::builder(options).medium(0, Arc::clone(&memory) as Arc<_>);
        let builder = builder.medium(1, memory).points(points.clone());
        let db = builder.executor(stepped.clone()).open().unwrap();
        let keyspaces: Vec<_> = (0..KEYSPACES)
            .map(|number| db.create_keyspace(&number.to_string()).unwrap())
            .collect();
        for keyspace in &keyspaces {
            for key in 0..RECORDS {
                let mut value = [0; 300];
                rand::fill(&mut value);
                keyspace.put(key.to_be_bytes(), value).unwrap();
            }
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let engine = db.engine();
        while engine.start_crossing() {
            stepped.drain();
        }
        let tables = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&tables);
        points.set("promotion.installed", move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let waiting = |keyspaces: &[crate::Keyspace]| {
            let caches = keyspaces
                .iter()
                .map(|k| k.tree().placed.gate.mutable().bytes());
            caches.sum::<u64>()
        };
        for round in 0..20 {
            for key in 0..RECORDS {
                for keyspace in &keyspaces {
                    assert!(keyspace.get(key.to_be_bytes()).unwrap().is_some());
                }
                stepped.drain();
                let most = engine.sizes.table_size / 2 / 4 * 5;
                let waiting = waiting(&keyspaces);
                assert!(waiting <= most, "{waiting} bytes wait in round {round}");
            }
        }
        let bytes = db.metrics().hotrap.unwrap().promoted_flush_bytes;
        let tables = tables.load(Ordering::Relaxed);
        // A cache is frozen if half of it turns out to be hot. A part of that is not the table's.
        let least = least(engine) / 2;
        assert!(
            tables > 0 && bytes / tables >= least / 2,
            "{bytes} bytes in {tables} tables"
        );
    }
}
