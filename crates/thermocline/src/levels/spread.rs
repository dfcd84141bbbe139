//! Which tier a job's tables lie on, where their heat decides it.

use super::heirs::Densities;
use crate::sync::Arc;
use crate::tier::Reservation;
use crate::version::TableHandle;

/// The tiers that the tables of one output may lie on, by how hot their records are.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    densities: Arc<Densities>,
    /// The faster tiers, the fastest first, each with the reads a second and byte from which on a
    /// table lies there, and how many bytes may. All else lies on the tier of the output.
    faster: Vec<(u8, f64, u64)>,
}

impl Spread {
    pub(crate) fn new(densities: Arc<Densities>, faster: Vec<(u8, f64, u64)>) -> Self {
        Self { densities, faster }
    }

    /// The faster tiers, the fastest first.
    pub(crate) fn tiers(&self) -> impl DoubleEndedIterator<Item = u8> {
        self.faster.iter().map(|(tier, ..)| *tier)
    }

    /// The tier for a table that begins with `key`; none if it is the output's.
    fn tier_of(&self, key: &[u8]) -> Option<u8> {
        let density = self.densities.at(key).density;
        let fits = |(_, least, _): &&(u8, f64, u64)| density >= *least;
        self.faster.iter().find(fits).map(|(tier, _, _)| *tier)
    }

    /// The faster tiers, each with about how many bytes of `inputs` will lie there. A `table` more
    /// where there are any: of what fits, the last table must not lack a few bytes.
    pub(crate) fn expected<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Arc<TableHandle>>,
        table: u64,
    ) -> Vec<(u8, u64)> {
        let mut expected: Vec<_> = self.faster.iter().map(|(tier, ..)| (*tier, 0)).collect();
        for table in inputs {
            let tier = self.tier_of(&table.meta.range.first);
            let place = expected.iter_mut().find(|(at, _)| Some(*at) == tier);
            if let Some((_, bytes)) = place {
                *bytes += table.meta.len;
            }
        }
        for ((_, bytes), (_, _, most)) in expected.iter_mut().zip(&self.faster) {
            if *bytes > 0 {
                *bytes = (*bytes).min(*most).saturating_add(table);
            }
        }
        expected
    }
}

/// The room that is reserved for an output, tier by tier.
#[derive(Debug)]
pub(crate) struct Places {
    /// First that on the tier of the output, which is enough for everything.
    space: Vec<Reservation>,
    spread: Option<Spread>,
}

impl Places {
    /// A single one.
    pub(crate) fn one(space: Reservation) -> Self {
        Self {
            space: vec![space],
            spread: None,
        }
    }

    /// `one` and those that were reserved on other tiers for what `spread` sends there.
    pub(crate) fn spread(self, others: Vec<Reservation>, spread: Spread) -> Self {
        let mut space = self.space;
        space.extend(others);
        Self {
            space,
            spread: Some(spread),
        }
    }

    /// The number of the place for a table of about `size` bytes that begins with `key`. If its
    /// tier has no room left for it, it lies on the output's.
    pub(super) fn choose(&self, key: &[u8], size: u64) -> usize {
        let tier = self.spread.as_ref().and_then(|spread| spread.tier_of(key));
        let has_room = |space: &Reservation| space.left() >= size;
        let is_it = |space: &Reservation| Some(space.tier().index) == tier && has_room(space);
        self.space.iter().position(is_it).unwrap_or(0)
    }

    /// Whether there is more than one: nobody knows how much of each a part of the job will take.
    pub(super) fn is_spread(&self) -> bool {
        self.space.len() > 1
    }

    /// Takes `of` from every `whole` bytes that are left, for a part of the job.
    pub(super) fn split(&mut self, (of, whole): (u64, u64)) -> Self {
        let take = |space: &mut Reservation| {
            let bytes = u128::from(space.left()) * u128::from(of) / u128::from(whole.max(1));
            space.split(bytes as u64)
        };
        Self {
            space: self.space.iter_mut().map(take).collect(),
            spread: self.spread.clone(),
        }
    }

    /// Bytes that are left on the tier of the output.
    #[cfg(test)]
    pub(crate) fn left(&self) -> u64 {
        self.of(0).left()
    }

    pub(super) fn of(&self, place: usize) -> &Reservation {
        &self.space[place]
    }

    pub(super) fn of_mut(&mut self, place: usize) -> &mut Reservation {
        &mut self.space[place]
    }

    pub(super) fn into_space(self) -> Vec<Reservation> {
        self.space
    }
}
