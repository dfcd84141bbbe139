//! What a keyspace's compactions found of late.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::version::edit::Learned;

/// Averages over the last jobs at level f and above it. The sizes of levels and the ways of records
/// follow from them. The manifest remembers them: if they began anew at each opening, the slow
/// levels would take one shape before it and another after it.
#[derive(Debug)]
pub(crate) struct Averages {
    /// p: the part of its input from Lf that a crossing brings down, 0 to 1 (HotRAP, §3.6). The
    /// bits of an `f64`.
    cold: AtomicU64,
    /// Of what came down from the level above f, the part that level f had no version of and that
    /// was not hot, 0 to 1. The bits of an `f64`.
    fresh: AtomicU64,
}

impl Averages {
    /// Averages that begin with `learned`.
    pub(crate) fn new(learned: Learned) -> Self {
        let bits =
            |part: u16| AtomicU64::new((f64::from(part) / f64::from(Learned::WHOLE)).to_bits());
        Self {
            cold: bits(learned.cold),
            fresh: bits(learned.fresh),
        }
    }

    /// As the manifest remembers them.
    pub(crate) fn learned(&self) -> Learned {
        let parts = |average: &AtomicU64| (get(average) * f64::from(Learned::WHOLE)).round() as u16;
        Learned {
            cold: parts(&self.cold),
            fresh: parts(&self.fresh),
        }
    }

    /// p, but at least a quarter: with less, the first slow level would be too small to be worth
    /// its own rewriting.
    pub(crate) fn cold(&self) -> f64 {
        get(&self.cold).max(0.25)
    }

    /// The part of what comes down from the level above f that may pass level f by.
    pub(crate) fn fresh(&self) -> f64 {
        get(&self.fresh)
    }

    /// Notes a crossing that kept `kept` of `input` bytes of Lf. The average changes with the
    /// crossings, and so do the sizes that follow from it: without crossings there is nothing to
    /// gain.
    pub(crate) fn note_crossing(&self, kept: u64, input: u64) {
        follow(&self.cold, kept, input, 32.0);
    }

    /// Notes a job that found `held` of `input` bytes from the level above f unable to pass level f
    /// by. Both kinds of jobs, those that pass level f by and those that do not, measure the same
    /// thing: when one kind finds little that is fresh, the other has its turn.
    pub(crate) fn note_fresh(&self, held: u64, input: u64) {
        follow(&self.fresh, held, input, 8.0);
    }
}

fn get(average: &AtomicU64) -> f64 {
    f64::from_bits(average.load(Ordering::Relaxed))
}

/// Moves `average` by one part in `inertia` toward the part of `input` that is not `held`.
fn follow(average: &AtomicU64, held: u64, input: u64, inertia: f64) {
    let measured = 1.0 - (held as f64 / input.max(1) as f64).min(1.0);
    let before = get(average);
    average.store(
        (before + (measured - before) / inertia).to_bits(),
        Ordering::Relaxed,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::opening::Shape;
    use crate::testing::scene::{KEYS, Scene, options};
    use crate::version::Manifest;

    /// What an opening after a loss of power would find.
    fn remembered(engine: &Engine) -> Learned {
        let found = Manifest::recover(engine.fast()).unwrap().unwrap();
        Shape::from_edits(found.edits).unwrap().learned[&0]
    }

    /// Regression: p began with 1 at every opening. Until some crossings had shown otherwise, the
    /// slow levels were brought into a shape of which nothing was to stay.
    #[test]
    fn an_opening_goes_on_with_what_was_learned() {
        let scene = Scene::with_old(&KEYS);
        for round in 0..2 {
            scene.put_all(&KEYS, "new");
            scene.to_last_fast();
            scene.heat(&KEYS[..5]);
            let before = scene.tree().averages.learned();
            scene.cross();
            let after = scene.tree().averages.learned();
            assert!(after.cold < before.cold, "{round}: {after:?}");
            assert_eq!(remembered(&scene.engine()), before, "{round}: a job behind");
        }
        let before = scene.tree().averages.learned();
        assert!(before.fresh > 0, "{before:?}");
        let scene = scene.reopen(options());
        assert_eq!(scene.tree().averages.learned(), before);
        assert_eq!(remembered(&scene.engine()), before, "already");
    }
}
