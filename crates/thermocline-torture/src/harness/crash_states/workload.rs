//! Small workloads, numbered.

use thermocline::Durability;

use crate::life::history::Write;
use crate::life::{SIDE, Step, Stop, Trial};

/// What a workload is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// One record, in the buffer only.
    Put,
    /// The same, synced.
    PutSync,
    /// Deletes a record that is there.
    Delete,
    /// Records of two keyspaces, handed to the system.
    Batch,
    /// Anything that a life is made of.
    Step(Step),
}

/// All of them.
const ACTIONS: [Action; 10] = [
    Action::Put,
    Action::PutSync,
    Action::Delete,
    Action::Batch,
    Action::Step(Step::Sync),
    Action::Step(Step::Flush),
    Action::Step(Step::Compact),
    Action::Step(Step::CreateKeyspace("later")),
    Action::Step(Step::Checkpoint),
    Action::Step(Step::Reopen),
];

/// The most actions of a workload.
const LONGEST: u32 = 3;

/// How many workloads of up to so many actions there are.
pub(super) const fn count(longest: u32) -> u64 {
    let mut sum = 0;
    let mut len = 1;
    while len <= longest {
        sum += (ACTIONS.len() as u64).pow(len);
        len += 1;
    }
    sum
}

/// How many workloads there are.
pub(super) const ALL: u64 = count(LONGEST);

/// Prime to the number of actions: steps by it reach every workload of a length, in an order in
/// which the first few are of all kinds.
const STRIDE: u64 = 37;

/// Workload `number`, shorter ones first.
pub(super) fn workload(number: u64) -> Vec<Action> {
    let kinds = ACTIONS.len() as u64;
    let mut rest = number % ALL;
    let mut len = 1;
    while rest >= kinds.pow(len) {
        rest -= kinds.pow(len);
        len += 1;
    }
    let rest = rest * STRIDE % kinds.pow(len);
    (0..len)
        .map(|position| ACTIONS[(rest / kinds.pow(position) % kinds) as usize])
        .collect()
}

/// Makes what is there before: a table on each tier that has one, and records in the log.
pub(super) fn prepare(trial: &mut Trial) -> Result<(), Stop> {
    trial.step(Step::CreateKeyspace(SIDE))?;
    write(trial, &["a", "b"], Durability::Buffered)?;
    trial.step(Step::Compact)?;
    write(trial, &["b", "c"], Durability::Sync)
}

impl Action {
    /// Does it, as number `number` of a workload.
    pub(super) fn take(self, trial: &mut Trial, number: usize) -> Result<(), Stop> {
        // Keys that are there and ones that are new.
        let keys = ["b", "d", "a", "e"];
        let key = keys[number % keys.len()];
        match self {
            Action::Put => write(trial, &[key], Durability::None),
            Action::PutSync => write(trial, &[key], Durability::Sync),
            Action::Delete => {
                let delete = vec![("default", "c".to_owned(), None)];
                apply(trial, delete, Durability::Buffered)
            }
            Action::Batch => {
                let value = value(trial);
                let record = |keyspace| (keyspace, key.to_owned(), Some(value.clone()));
                let delete = ("default", "a".to_owned(), None);
                let batch = vec![record("default"), record(SIDE), delete];
                apply(trial, batch, Durability::Buffered)
            }
            Action::Step(step) => trial.step(step),
        }
    }
}

/// A value that no other write has, and that no sector holds whole.
fn value(trial: &Trial) -> String {
    format!("{}:{}", trial.history.len(), "x".repeat(600))
}

fn write(trial: &mut Trial, keys: &[&str], durability: Durability) -> Result<(), Stop> {
    let value = value(trial);
    let record = |key: &&str| ("default", (*key).to_owned(), Some(value.clone()));
    let batch = keys.iter().map(record).collect();
    apply(trial, batch, durability)
}

fn apply(trial: &mut Trial, write: Write, durability: Durability) -> Result<(), Stop> {
    let db = trial.db()?;
    trial.history.write(&db, write, durability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_one_number() {
        let all: Vec<_> = (0..ALL).map(workload).collect();
        assert_eq!(all.len(), 10 + 100 + 1000);
        let mut seen: Vec<String> = all.iter().map(|w| format!("{w:?}")).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all.len());
        assert!(all.iter().all(|w| (1..=3).contains(&w.len())));
        assert_eq!(count(2), 110);
    }
}
