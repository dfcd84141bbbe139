//! The tables of a version by level, with the sums over them: both are kept up as tables come and
//! go, so that no step of work goes through all of them.

use std::ops::{Deref, Range};

use super::version::Tracked;
use crate::sync::Arc;

/// Sums over tables, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    /// HotRAP size of hot records.
    pub(super) hot: u64,
    /// HotRAP size of all records.
    pub(super) hot_rap: u64,
    /// Files.
    pub(super) physical: u64,
}

impl Sums {
    fn of(table: &Tracked) -> Self {
        Self {
            hot: table.hot,
            hot_rap: table.histogram.hot_rap(),
            physical: table.meta.len,
        }
    }

    fn add(&mut self, other: Self) {
        self.hot += other.hot;
        self.hot_rap += other.hot_rap;
        self.physical += other.physical;
    }

    fn remove(&mut self, other: Self) {
        self.hot -= other.hot;
        self.hot_rap -= other.hot_rap;
        self.physical -= other.physical;
    }
}

/// A table in its level.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    table: Arc<Tracked>,
    /// Whether it is one of the lowest run: the tables whose keys lie in no level below. While a
    /// walk takes that run to another level, a part of it lies in each of the two levels.
    pub(super) is_lowest: bool,
}

impl Deref for Placed {
    type Target = Arc<Tracked>;

    fn deref(&self) -> &Arc<Tracked> {
        &self.table
    }
}

/// Level 0, newest table first; or a level in key order without overlap.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    pub(super) tables: Vec<Placed>,
    pub(super) bytes: u64,
    /// How many of its tables are not of the lowest run.
    above: usize,
}

impl Level {
    /// Where a table is.
    fn find(&self, level: usize, table: &Tracked) -> Option<usize> {
        let is_it = |other: &Placed| other.meta.id == table.meta.id;
        let from = match level {
            0 => 0,
            _ => self.first_ending_at(&table.meta.range.last),
        };
        let at = self.tables.get(from..)?.iter().position(is_it)?;
        Some(from + at)
    }

    /// The place of the first table, of a level below level 0, whose keys end at `key` or behind.
    pub(super) fn first_ending_at(&self, key: &[u8]) -> usize {
        let before = |table: &Placed| &table.meta.range.last[..] < key;
        self.tables.partition_point(before)
    }

    /// The place of the first table, of a level below level 0, whose keys end behind `key`.
    pub(super) fn first_ending_behind(&self, key: &[u8]) -> usize {
        let until = |table: &Placed| &table.meta.range.last[..] <= key;
        self.tables.partition_point(until)
    }
}

/// The levels of a version.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    /// Shared with the versions before and after.
    all: Vec<Arc<Level>>,
    /// Over the lowest run.
    pub(super) lowest: Sums,
    /// Over the tables above it.
    pub(super) above: Sums,
}

impl Levels {
    /// Level by level, from level 0 on.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Level>> + ExactSizeIterator {
        self.all.iter()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Arc<Level>> {
        self.all.get(number)
    }

    /// The lowest level that holds a table.
    pub(super) fn bottom(&self) -> usize {
        let last = self.all.iter().rposition(|level| !level.tables.is_empty());
        last.unwrap_or(0)
    }

    /// Whether all of a level's tables are of the lowest run.
    pub(super) fn is_lowest_run(&self, number: usize) -> bool {
        self.get(number).is_none_or(|level| level.above == 0)
    }

    /// Puts a table into its level: on top of level 0, in key order below.
    pub(super) fn insert(&mut self, number: usize, table: Arc<Tracked>) {
        if self.all.len() <= number {
            self.all.resize_with(number + 1, Arc::default);
        }
        let Some(level) = self.all.get_mut(number) else {
            return;
        };
        let level = Arc::make_mut(level);
        let at = match number {
            0 => 0,
            _ => level.first_ending_at(&table.meta.range.last),
        };
        let sums = Sums::of(&table);
        let placed = Placed {
            table: Arc::clone(&table),
            is_lowest: false,
        };
        level.tables.insert(at, placed);
        level.bytes += sums.physical;
        level.above += 1;
        self.above.add(sums);
        self.look_again_around(number, &table);
    }

    /// Takes a table out of its level.
    pub(super) fn remove(&mut self, number: usize, table: &Tracked) {
        let Some(level) = self.all.get_mut(number) else {
            return;
        };
        let Some(at) = level.find(number, table) else {
            return;
        };
        let level = Arc::make_mut(level);
        let gone = level.tables.remove(at);
        let sums = Sums::of(&gone);
        level.bytes -= sums.physical;
        if gone.is_lowest {
            self.lowest.remove(sums);
        } else {
            level.above -= 1;
            self.above.remove(sums);
        }
        self.look_again_around(number, table);
    }

    /// Puts `table` where it was, with other records trimmed away.
    pub(super) fn replace(&mut self, number: usize, table: Arc<Tracked>) {
        let Some(level) = self.all.get_mut(number) else {
            return;
        };
        let Some(at) = level.find(number, &table) else {
            return;
        };
        let placed = &mut Arc::make_mut(level).tables[at];
        let sums = match placed.is_lowest {
            true => &mut self.lowest,
            false => &mut self.above,
        };
        sums.remove(Sums::of(placed));
        sums.add(Sums::of(&table));
        placed.table = Arc::clone(&table);
        self.look_again_around(number, &table);
    }

    /// Decides anew which tables are of the lowest run, among those for which `changed`, a table of
    /// level `number` that came or went, makes a difference: itself, and what lies above it.
    fn look_again_around(&mut self, number: usize, changed: &Tracked) {
        let range = &changed.meta.range;
        self.look_again(0, |level| 0..level.tables.len());
        for number in 1..=number {
            self.look_again(number, |level| {
                let from = level.first_ending_at(&range.first);
                let meets = |table: &&Placed| table.meta.range.first <= range.last;
                let count = level.tables[from..].iter().take_while(meets).count();
                from..from + count
            });
        }
    }

    fn look_again(&mut self, number: usize, part: impl Fn(&Level) -> Range<usize>) {
        let Some(level) = self.all.get(number) else {
            return;
        };
        let differs = |at: &usize| self.is_lowest(number, *at) != level.tables[*at].is_lowest;
        let changed: Vec<usize> = part(level).filter(differs).collect();
        if changed.is_empty() {
            return;
        }
        let Some(level) = self.all.get_mut(number) else {
            return;
        };
        let level = Arc::make_mut(level);
        for at in changed {
            let placed = &mut level.tables[at];
            let sums = Sums::of(placed);
            placed.is_lowest = !placed.is_lowest;
            if placed.is_lowest {
                level.above -= 1;
                self.above.remove(sums);
                self.lowest.add(sums);
            } else {
                level.above += 1;
                self.lowest.remove(sums);
                self.above.add(sums);
            }
        }
    }

    /// Whether a table of level `number` is of the lowest run, by what lies below it.
    fn is_lowest(&self, number: usize, at: usize) -> bool {
        let Some(level) = self.get(number) else {
            return false;
        };
        if number > 0 {
            let mut below = self.all.iter().skip(number + 1);
            let table = &level.tables[at];
            return !below.any(|level| table.meets_any(&level.tables));
        }
        // If no table lies below level 0, the lowest run is the oldest table.
        self.bottom() == 0 && at + 1 == level.tables.len()
    }

    /// Whether everything that is kept up is as it would be if it were worked out anew.
    #[cfg(test)]
    pub(super) fn is_kept_up(&self) -> bool {
        let (mut lowest, mut above) = (Sums::default(), Sums::default());
        self.all.iter().enumerate().all(|(number, level)| {
            let mut bytes = 0;
            let mut count = 0;
            let flags = level.tables.iter().enumerate().all(|(at, table)| {
                bytes += table.meta.len;
                match table.is_lowest {
                    true => lowest.add(Sums::of(table)),
                    false => above.add(Sums::of(table)),
                }
                count += usize::from(!table.is_lowest);
                table.is_lowest == self.is_lowest(number, at)
            });
            flags && bytes == level.bytes && count == level.above
        }) && (lowest, above) == (self.lowest, self.above)
    }
}
