//! The states that one loss of power may leave.

use rand::RngExt;
use rand::rngs::SmallRng;
use thermocline::storage::Unsynced;

/// This many units are kept or lost in every combination.
const UNITS: usize = 12;
/// If there are more units even so, this many states are drawn.
const DRAWN: usize = 1 << UNITS;

/// How the states of a moment are covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// Every subset of names and sectors.
    Whole,
    /// Every subset of names and parts of writes. The longest writes are torn in fewer places than
    /// they have sectors.
    Coarse,
    /// Subsets of names and sectors that are drawn, because there are more changes than units.
    Drawn,
}

/// Which pieces each state keeps.
pub(super) struct States {
    pub(super) cover: Cover,
    /// The unit of each piece. The pieces of a unit are kept or lost together.
    unit_of: Vec<usize>,
    /// The units that each state keeps.
    kept: Vec<Vec<bool>>,
}

impl States {
    /// The states that a loss of `pieces` may leave.
    pub(super) fn of(pieces: &[Unsynced], rng: &mut SmallRng) -> Self {
        let single: Vec<usize> = (0..pieces.len()).collect();
        let (cover, unit_of) = match pieces.len() {
            ..=UNITS => (Cover::Whole, single),
            _ => match units(pieces) {
                Some(units) => (Cover::Coarse, units),
                None => (Cover::Drawn, single),
            },
        };
        let count = unit_of.last().map_or(0, |last| last + 1);
        let kept = match cover {
            Cover::Drawn => {
                let mut draw = || (0..count).map(|_| rng.random()).collect();
                (0..DRAWN).map(|_| draw()).collect()
            }
            _ => (0..1usize << count)
                .map(|mask| (0..count).map(|unit| mask >> unit & 1 == 1).collect())
                .collect(),
        };
        Self {
            cover,
            unit_of,
            kept,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether state `state` keeps piece `piece`.
    pub(super) fn keeps(&self, state: usize, piece: usize) -> bool {
        let unit = self.unit_of.get(piece);
        unit.is_some_and(|unit| self.kept[state][*unit])
    }
}

/// Puts neighbouring pieces of one write together until [`UNITS`] are left. Returns the unit of
/// each piece.
fn units(pieces: &[Unsynced]) -> Option<Vec<usize>> {
    let mut lens: Vec<usize> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        match lens.last_mut() {
            Some(len) if index > 0 && pieces[index - 1].change == piece.change => *len += 1,
            _ => lens.push(1),
        }
    }
    if lens.len() > UNITS {
        return None;
    }
    while lens.len() < UNITS {
        let longest = (0..lens.len()).max_by_key(|unit| lens[*unit])?;
        let half = lens[longest] / 2;
        lens[longest] -= half;
        lens.insert(longest + 1, half);
    }
    let units = lens.iter().enumerate();
    Some(units.flat_map(|(unit, len)| vec![unit; *len]).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    fn states(writes: &[usize]) -> (States, usize) {
        let piece = |change| Unsynced {
            directory: None,
            change,
        };
        let writes = writes.iter().enumerate();
        let pieces: Vec<_> = writes
            .flat_map(|(change, len)| vec![piece(change); *len])
            .collect();
        let states = States::of(&pieces, &mut SmallRng::seed_from_u64(1));
        (states, pieces.len())
    }

    /// The cover, how many different states there are, and whether the states that keep all and
    /// nothing are among them.
    fn covered(writes: &[usize]) -> (Cover, usize, bool) {
        let (states, pieces) = states(writes);
        let kept = |state| -> Vec<bool> { (0..pieces).map(|p| states.keeps(state, p)).collect() };
        let all: BTreeSet<Vec<bool>> = (0..states.len()).map(kept).collect();
        let ends = [true, false].map(|kept| all.contains(&vec![kept; pieces]));
        (states.cover, all.len(), ends == [true, true])
    }

    #[test]
    fn few_pieces_are_covered_wholly_and_long_writes_in_parts() {
        assert_eq!(covered(&[]), (Cover::Whole, 1, true));
        assert_eq!(covered(&[1, 3, 1]), (Cover::Whole, 1 << 5, true));
        assert_eq!(covered(&[6, 6]), (Cover::Whole, 1 << 12, true));
        assert_eq!(covered(&[1, 40, 1]), (Cover::Coarse, 1 << 12, true));
        assert_eq!(covered(&[2; 13]).0, Cover::Drawn);
    }
}
