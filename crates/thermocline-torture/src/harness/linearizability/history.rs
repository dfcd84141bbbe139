//! The history of one object, and whether it is linearizable.

use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History as Actions};
use todc_utils::specifications::Specification;

use crate::verdict::{Promise, Tally, Violation};

/// What an object holds: the number of the write that set it, or none when it is deleted.
pub(super) type Content = Option<u64>;

/// An operation with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Found this.
    Read(Content),
    /// A put, or a delete.
    Write(Content),
    /// Writes `new` if the object holds `expected`.
    CompareAndWrite {
        expected: Content,
        new: u64,
        /// Whether the store said that the condition held.
        met: bool,
    },
}

/// A register, as a single thread would find it.
struct Register;

impl Specification for Register {
    type State = Content;
    type Operation = Operation;

    fn init() -> Content {
        None
    }

    fn apply(operation: &Operation, state: &Content) -> (bool, Content) {
        match *operation {
            Operation::Read(found) => (found == *state, *state),
            Operation::Write(new) => (true, new),
            Operation::CompareAndWrite { expected, new, met } => {
                let holds = expected == *state;
                (met == holds, if holds { Some(new) } else { *state })
            }
        }
    }
}

/// An operation and when it was under way, by a clock that all threads share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) thread: usize,
    pub(super) invoked: u64,
    pub(super) returned: u64,
    pub(super) operation: Operation,
}

/// What happened to one object.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) name: String,
    pub(super) calls: Vec<Call>,
}

impl History {
    /// Whether the calls have an order, each within its time, that one thread could have made.
    pub(super) fn check(&self, tally: &mut Tally) -> Result<(), Violation> {
        if self.calls.is_empty() {
            return Ok(());
        }
        tally.add(
            "operations that overlapped another of their object",
            self.overlapping(),
        );
        if WGLChecker::<Register>::is_linearizable(Actions::from_actions(self.actions())) {
            return Ok(());
        }
        let message = format!("{} is not linearizable:{}", self.name, self.told());
        Err(Violation::new(Promise::Right, message))
    }

    /// Invocations and responses in the order of the clock.
    fn actions(&self) -> Vec<(usize, Action<Operation>)> {
        let mut stamped = Vec::with_capacity(2 * self.calls.len());
        for call in &self.calls {
            let (thread, operation) = (call.thread, call.operation);
            stamped.push((call.invoked, (thread, Action::Call(operation))));
            stamped.push((call.returned, (thread, Action::Response(operation))));
        }
        stamped.sort_by_key(|(at, _)| *at);
        stamped.into_iter().map(|(_, action)| action).collect()
    }

    fn overlapping(&self) -> u64 {
        let mut calls = self.calls.clone();
        calls.sort_by_key(|call| call.invoked);
        let mut latest = 0;
        let mut count = 0;
        for call in calls {
            count += u64::from(call.invoked < latest);
            latest = latest.max(call.returned);
        }
        count
    }

    /// The end of the shortest beginning that is not linearizable, from its last few calls on.
    fn told(&self) -> String {
        let mut calls = self.calls.clone();
        calls.sort_by_key(|call| call.returned);
        let fails = |count: &usize| {
            let calls = calls[..*count].to_vec();
            let name = String::new();
            let actions = History { name, calls }.actions();
            !WGLChecker::<Register>::is_linearizable(Actions::from_actions(actions))
        };
        // A call that has not returned may have taken effect already. So a beginning by response
        // only bounds the place. This text is for a reader and not for the verdict.
        let end = (1..=calls.len()).find(fails).unwrap_or(calls.len());
        let last = &calls[end.saturating_sub(12)..(end + 2).min(calls.len())];
        last.iter()
            .map(|call| {
                let Call {
                    thread,
                    invoked,
                    returned,
                    operation,
                } = call;
                format!("\n      thread {thread}, {invoked} to {returned}: {operation:?}")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::{CompareAndWrite, Read, Write};

    fn check(calls: &[(usize, u64, u64, Operation)]) -> bool {
        let call = |&(thread, invoked, returned, operation): &(usize, u64, u64, Operation)| Call {
            thread,
            invoked,
            returned,
            operation,
        };
        let history = History {
            name: "trial".to_owned(),
            calls: calls.iter().map(call).collect(),
        };
        history.check(&mut Tally::default()).is_ok()
    }

    #[test]
    fn reads_beside_a_write_may_see_the_old_or_the_new_but_never_go_back() {
        let write = (0, 3, 9, Write(Some(2)));
        let first = (0, 1, 2, Write(Some(1)));
        assert!(check(&[first, write, (1, 4, 5, Read(Some(1)))]));
        assert!(check(&[first, write, (1, 4, 5, Read(Some(2)))]));
        let new = (1, 4, 5, Read(Some(2)));
        assert!(!check(&[first, write, new, (2, 6, 7, Read(Some(1)))]));
        assert!(check(&[first, write, new, (2, 6, 7, Read(Some(2)))]));
    }

    #[test]
    fn a_stale_a_lost_and_a_resurrected_record_are_caught() {
        let put = (0, 1, 2, Write(Some(1)));
        let over = (0, 3, 4, Write(Some(2)));
        let delete = (0, 3, 4, Write(None));
        assert!(!check(&[put, over, (1, 5, 6, Read(Some(1)))]));
        assert!(!check(&[put, (1, 5, 6, Read(None))]));
        assert!(!check(&[put, delete, (1, 5, 6, Read(Some(1)))]));
        assert!(check(&[put, delete, (1, 5, 6, Read(None))]));
    }

    #[test]
    fn a_condition_is_checked_and_written_in_one_step() {
        let swap = |thread, invoked, returned, new, met| {
            let expected = Some(1);
            let operation = CompareAndWrite { expected, new, met };
            (thread, invoked, returned, operation)
        };
        let put = (0, 1, 2, Write(Some(1)));
        let (won, lost) = (swap(1, 3, 6, 2, true), swap(2, 4, 7, 3, false));
        assert!(check(&[put, won, lost, (0, 8, 9, Read(Some(2)))]));
        assert!(!check(&[put, won, swap(2, 4, 7, 3, true)]), "both won");
        assert!(!check(&[put, swap(1, 3, 6, 2, false), lost]), "neither did");
    }
}
