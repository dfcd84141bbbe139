//! Whether tables are worth more than records, found out by trial.
//!
//! RALT says how much is worth the fast tier as records. It cannot say whether copies of tables
//! would save more with the same room: where hot keys lie side by side, a copy has many of them,
//! and nothing is rewritten for it. So now and then a little room changes sides, and stays there if
//! the slow disk has less to do for each read. A trial that fails is not repeated soon: each costs
//! the rewriting of what changed sides, twice.

/// The part of what is paid for that a trial moves.
pub(super) const STEP: f64 = 0.05;

/// By how much a read has to become cheaper for what was moved to stay, as a part of its cost.
const GAIN: f64 = 0.03;

/// Seconds that a measurement takes at least.
const LEAST_SECONDS: f64 = 10.0;

/// Reads of the slow disk in a measurement: chance then changes their number by a hundredth or two.
const LEAST_READS: u64 = 4000;

/// Measurements without a trial after one that failed, and most of them after many that did.
const FIRST_REST: u32 = 2;
const LONGEST_REST: u32 = 64;

/// What was counted since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counted {
    /// Point reads.
    pub(super) gets: u64,
    /// Reads of slow disks for users.
    pub(super) slow_reads: u64,
    /// What else slow disks had to do, in reads of a block that take as long.
    pub(super) other_work: u64,
}

impl Counted {
    fn since(self, before: Self) -> Self {
        Self {
            gets: self.gets.saturating_sub(before.gets),
            slow_reads: self.slow_reads.saturating_sub(before.slow_reads),
            other_work: self.other_work.saturating_sub(before.other_work),
        }
    }

    /// What the slow disk had to do for a read.
    fn cost(self) -> f64 {
        (self.slow_reads + self.other_work) as f64 / self.gets.max(1) as f64
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// For so many measurements nothing is tried.
    Rests(u32),
    /// Room has changed sides, and what lies there follows. What records had given before, and what
    /// a read cost then.
    Moves { before: f64, cost: f64 },
    /// It has followed, and is measured.
    Tries { before: f64, cost: f64 },
}

/// The trials of an open store.
#[derive(Debug)]
pub(super) struct Trial {
    /// Which part of what is paid for records have given to tables.
    given: f64,
    phase: Phase,
    /// How long to rest after the next failure.
    rest: u32,
    /// Whether the next trial gives to tables.
    gives: bool,
    /// When the measurement began, in seconds of the store's clock, and what was counted by then.
    began: Option<(f64, Counted)>,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            given: 0.0,
            phase: Phase::Rests(FIRST_REST),
            rest: FIRST_REST,
            gives: true,
            began: None,
        }
    }
}

impl Trial {
    /// Which part of what is paid for records give to tables.
    pub(super) fn given(&self) -> f64 {
        self.given
    }

    /// It is `now`, in seconds, and `counted` was counted so far. Records could give up to `most`
    /// of what is paid for.
    pub(super) fn observe(&mut self, now: f64, counted: Counted, most: f64) {
        let (began, before) = *self.began.get_or_insert((now, counted));
        let measured = counted.since(before);
        if now - began < LEAST_SECONDS || measured.slow_reads < LEAST_READS {
            return;
        }
        self.began = Some((now, counted));
        self.end_measurement(measured.cost(), most);
    }

    fn end_measurement(&mut self, cost: f64, most: f64) {
        match self.phase {
            Phase::Rests(left @ 1..) => self.phase = Phase::Rests(left - 1),
            Phase::Rests(0) => self.begin(cost, most),
            Phase::Moves { before, cost } => self.phase = Phase::Tries { before, cost },
            Phase::Tries { cost: was, .. } if cost < was * (1.0 - GAIN) => {
                self.rest = FIRST_REST;
                self.begin(cost, most);
            }
            Phase::Tries { before, .. } => {
                self.given = before;
                self.gives = !self.gives;
                self.phase = Phase::Rests(self.rest);
                self.rest = (self.rest * 2).min(LONGEST_REST);
            }
        }
    }

    /// Moves a step. A read costs `cost` without it.
    fn begin(&mut self, cost: f64, most: f64) {
        let before = self.given;
        let (more, less) = (before + STEP, (before - STEP).max(0.0));
        if self.gives && more > most || !self.gives && less == before {
            self.gives = !self.gives;
        }
        let next = if self.gives { more } else { less };
        // Neither side has anything to give.
        if next == before || next > most {
            self.phase = Phase::Rests(FIRST_REST);
            return;
        }
        self.given = next;
        self.phase = Phase::Moves { before, cost };
    }
}

#[cfg(test)]
mod tests;
