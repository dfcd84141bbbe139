//! Processor time by activity, from what the engine counts, what the clients estimate, and what
//! the process has used.

use anyhow::Result;

use super::{Activity, Amount, ByActivity};
use crate::usage::Usage;

/// Processor time used so far, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Clock {
    /// By the whole process.
    pub(crate) process: f64,
    /// By the client threads, for everything that they do.
    pub(crate) clients: f64,
    /// By their reads and scans.
    pub(crate) reads: f64,
    /// By their writes.
    pub(crate) writes: f64,
}

impl Clock {
    /// The clock as of now, without the clients.
    ///
    /// # Errors
    /// The system does not tell.
    pub(crate) fn of_process() -> Result<Self> {
        Ok(Self {
            process: Usage::now()?.cpu_seconds,
            ..Self::default()
        })
    }

    /// What was used since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            process: self.process.since(earlier.process),
            clients: self.clients.since(earlier.clients),
            reads: self.reads.since(earlier.reads),
            writes: self.writes.since(earlier.writes),
        }
    }
}

/// Splits what was `used` by activity. `engine` is what the engine reports of its own threads. If
/// it reports nothing, or has `silent_threads` beside those, what is left without the clients is
/// theirs.
pub(crate) fn split(
    used: &Clock,
    engine: Option<&ByActivity<f64>>,
    silent_threads: bool,
) -> ByActivity<f64> {
    let mut split = engine.copied().unwrap_or_default();
    let told = split.sum();
    // The times of calls are estimated and those of their threads are not, so a part must not
    // exceed the whole.
    let within = (used.clients / (used.reads + used.writes).max(1e-9)).min(1.0);
    split.add(Activity::Read, used.reads * within);
    split.add(Activity::Write, used.writes * within);
    if engine.is_none() || silent_threads {
        let rest = used.process.since(used.clients + told);
        split.add(Activity::Background, rest);
    }
    split.add(Activity::Other, used.process.since(split.sum()));
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: Clock = Clock {
        process: 10.0,
        clients: 7.0,
        reads: 4.0,
        writes: 1.0,
    };

    fn named(split: &ByActivity<f64>) -> Vec<(&'static str, f64)> {
        let each = split.iter();
        each.map(|(activity, spent)| (activity.name(), spent))
            .collect()
    }

    #[test]
    fn what_nobody_claims_is_other() {
        let mut engine = ByActivity::default();
        engine.add(Activity::Compaction, 2.0);
        engine.add(Activity::Ralt, 0.5);
        let split = split(&USED, Some(&engine), false);
        let expected = [
            ("read", 4.0),
            ("write", 1.0),
            ("compaction", 2.0),
            ("ralt", 0.5),
            ("other", 2.5),
        ];
        assert_eq!(named(&split), expected);
        assert_eq!(split.sum(), USED.process);
    }

    #[test]
    fn an_estimate_above_what_the_clients_used_is_cut_to_it() {
        let used = Clock {
            clients: 2.5,
            ..USED
        };
        let split = split(&used, Some(&ByActivity::default()), false);
        let expected = [("read", 2.0), ("write", 0.5), ("other", 7.5)];
        assert_eq!(named(&split), expected);
    }

    #[test]
    fn the_threads_of_an_engine_that_says_nothing_are_background() {
        let split = split(&USED, None, false);
        let expected = [
            ("read", 4.0),
            ("write", 1.0),
            ("background", 3.0),
            ("other", 2.0),
        ];
        assert_eq!(named(&split), expected);
    }
}
