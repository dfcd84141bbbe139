//! What a harness found.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

/// A promise that a store can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Promise {
    /// An acknowledged write is still there, as its durability mode says (I5).
    Kept,
    /// A read gives the value that was written last (I1).
    Right,
    /// A key that was deleted stays away.
    Gone,
    /// The store answers, without panic and without waiting for ever.
    Alive,
    /// Anything else: files left over, an error that says the wrong thing.
    Orderly,
}

impl Promise {
    /// All promises, the three that matter most first.
    pub const ALL: [Promise; 5] = [
        Promise::Kept,
        Promise::Right,
        Promise::Gone,
        Promise::Alive,
        Promise::Orderly,
    ];

    /// How a break of the promise is counted in reports.
    pub fn broken(self) -> &'static str {
        match self {
            Promise::Kept => "lost",
            Promise::Right => "wrong",
            Promise::Gone => "resurrected",
            Promise::Alive => "panicked_or_hung",
            Promise::Orderly => "disorderly",
        }
    }

    /// Which promise a read breaks if it gives `found` where `wanted` is right.
    pub fn judge(found: Option<&[u8]>, wanted: Option<&[u8]>) -> Option<Promise> {
        match (found, wanted) {
            (found, wanted) if found == wanted => None,
            (None, Some(_)) => Some(Promise::Kept),
            (Some(_), None) => Some(Promise::Gone),
            _ => Some(Promise::Right),
        }
    }

    /// Which promise a scan breaks if it comes to the record `found` where `wanted` is next.
    pub fn judge_next(
        found: Option<(&[u8], &[u8])>,
        wanted: Option<(&[u8], &[u8])>,
        forward: bool,
    ) -> Option<Promise> {
        match (found, wanted) {
            // A record that comes too early should not be there. One that comes too late skips a
            // record.
            (Some(found), Some(wanted)) if found.0 != wanted.0 => {
                match (found.0 < wanted.0) == forward {
                    true => Some(Promise::Gone),
                    false => Some(Promise::Kept),
                }
            }
            _ => Promise::judge(found.map(|r| r.1), wanted.map(|r| r.1)),
        }
    }
}

/// A promise that a case saw broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub promise: Promise,
    /// What was seen, and where.
    pub message: String,
}

impl Violation {
    /// `promise` was broken, as `message` says.
    pub fn new(promise: Promise, message: impl Into<String>) -> Self {
        Self {
            promise,
            message: message.into(),
        }
    }

    /// Something that is out of order without being lost or wrong.
    pub fn disorder(message: impl Into<String>) -> Self {
        Self::new(Promise::Orderly, message)
    }
}

impl From<String> for Violation {
    fn from(message: String) -> Self {
        Self::disorder(message)
    }
}

impl From<&str> for Violation {
    fn from(message: &str) -> Self {
        Self::disorder(message)
    }
}

impl From<thermocline::Error> for Violation {
    /// An error for which there is no reason.
    fn from(error: thermocline::Error) -> Self {
        Self::disorder(error.to_string())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise.broken(), self.message)
    }
}

/// Each of `keys` with what one read of all of them `found` for it.
///
/// # Errors
/// When the number of answers differs from the number of keys: a missing answer must not go unseen.
pub(crate) fn each_with_its_answer<K, V>(
    keys: &[K],
    found: Vec<V>,
) -> Result<impl Iterator<Item = (&K, V)>, Violation> {
    if found.len() != keys.len() {
        let message = format!("{} keys have {} answers", keys.len(), found.len());
        return Err(Violation::new(Promise::Right, message));
    }
    Ok(keys.iter().zip(found))
}

/// What cases did, by name. It proves that a harness reached its subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    /// Adds `count` to what is counted as `what`.
    pub fn add(&mut self, what: &'static str, count: u64) {
        *self.0.entry(what).or_default() += count;
    }

    /// How much of `what` was counted.
    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Tally) {
        for (what, count) in &other.0 {
            self.add(what, *count);
        }
    }
}

/// The result of one harness.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The harness, as on the command line.
    pub harness: &'static str,
    /// Seed of the first case; case *i* has the seed plus *i*.
    pub seed: u64,
    /// Cases that ran.
    pub cases: u64,
    /// What they did.
    pub tally: Tally,
    /// Broken promises, each with the seed of its case.
    pub violations: Vec<(u64, Violation)>,
    /// What the run took.
    pub elapsed: Duration,
}

impl Verdict {
    /// In a run of `cases` cases or more, each of `whats` must have been counted: a harness that
    /// never reaches its subject proves nothing.
    #[must_use]
    pub fn having_reached(mut self, cases: u64, whats: &[&'static str]) -> Self {
        let missing = whats.iter().filter(|what| self.tally.get(what) == 0);
        if self.cases >= cases {
            let problem = |what| Violation::disorder(format!("never counted: {what}"));
            let seed = self.seed;
            self.violations
                .extend(missing.map(|what| (seed, problem(what))));
        }
        self
    }

    /// A run in which nothing was tried has kept no promise.
    #[must_use]
    pub(crate) fn having_run(mut self) -> Self {
        if self.cases == 0 {
            let nothing = Violation::disorder("no case ran: the time limit was over before");
            self.violations.push((self.seed, nothing));
        }
        self
    }

    /// Whether no promise was broken.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// How often `promise` was broken.
    pub fn broken(&self, promise: Promise) -> usize {
        let of = |(_, violation): &&(u64, Violation)| violation.promise == promise;
        self.violations.iter().filter(of).count()
    }

    /// One line of JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let broken: serde_json::Map<_, _> = Promise::ALL
            .iter()
            .map(|promise| (promise.broken().to_owned(), self.broken(*promise).into()))
            .collect();
        let violations = self.violations.iter();
        json!({
            "harness": self.harness,
            "seed": self.seed,
            "cases": self.cases,
            "seconds": self.elapsed.as_secs_f64(),
            "counted": self.tally.0,
            "broken": broken,
            "violations": violations
                .map(|(seed, violation)| json!({"seed": seed, "what": violation.to_string()}))
                .collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14} {:>8} cases", self.harness, self.cases)?;
        for promise in &Promise::ALL[..3] {
            write!(f, "  {} {}", self.broken(*promise), promise.broken())?;
        }
        let others: usize = Promise::ALL[3..].iter().map(|p| self.broken(*p)).sum();
        write!(
            f,
            "  {others} otherwise bad  {:.1} s  seed {}",
            self.elapsed.as_secs_f64(),
            self.seed
        )?;
        for (what, count) in &self.tally.0 {
            write!(f, "\n    {what}: {count}")?;
        }
        for (seed, violation) in &self.violations {
            write!(
                f,
                "\n    {violation}\n      again: thermocline torture {} --seed {seed} --cases 1",
                self.harness
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_lost_resurrected_or_wrong() {
        let judge = |found: &str, wanted: &str| {
            let record = |value: &str| (!value.is_empty()).then(|| value.as_bytes().to_vec());
            Promise::judge(record(found).as_deref(), record(wanted).as_deref())
        };
        assert_eq!(judge("a", "a"), None);
        assert_eq!(judge("", ""), None);
        assert_eq!(judge("", "a"), Some(Promise::Kept));
        assert_eq!(judge("a", ""), Some(Promise::Gone));
        assert_eq!(judge("b", "a"), Some(Promise::Right));
    }

    #[test]
    fn a_scan_that_skips_a_record_has_lost_it_and_one_that_makes_one_up_resurrected_it() {
        let next = |found: &'static str, wanted: &'static str, forward| {
            let record = |key: &'static str| Some((key.as_bytes(), &b""[..]));
            Promise::judge_next(record(found), record(wanted), forward)
        };
        assert_eq!(next("b", "b", true), None);
        assert_eq!(next("c", "b", true), Some(Promise::Kept));
        assert_eq!(next("a", "b", true), Some(Promise::Gone));
        assert_eq!(next("c", "b", false), Some(Promise::Gone));
        let end = Promise::judge_next(None, Some((b"a", b"")), true);
        assert_eq!(end, Some(Promise::Kept));
    }

    /// Regression: answers were compared with the keys as far as both went, so a list that was too
    /// short passed.
    #[test]
    fn a_read_of_several_keys_has_an_answer_for_each() {
        let promise = |found: &[u8]| {
            let answered = each_with_its_answer(&["a", "b"], found.to_vec());
            answered.map(Iterator::count).map_err(|found| found.promise)
        };
        assert_eq!(promise(&[1, 2]), Ok(2));
        assert_eq!(promise(&[1]), Err(Promise::Right));
        assert_eq!(promise(&[1, 2, 3]), Err(Promise::Right));
    }

    #[test]
    fn a_run_that_never_got_there_is_found_wanting_unless_it_was_short() {
        let mut tally = Tally::default();
        tally.add("crossings", 1);
        let verdict = Verdict {
            harness: "trial",
            seed: 1,
            cases: 5,
            tally,
            violations: Vec::new(),
            elapsed: Duration::ZERO,
        };
        let wanting = verdict.clone().having_reached(5, &["crossings", "flushes"]);
        assert_eq!(wanting.broken(Promise::Orderly), 1);
        assert!(wanting.to_string().contains("flushes"), "{wanting}");
        assert!(verdict.clone().having_reached(5, &["crossings"]).is_clean());
        assert!(verdict.having_reached(6, &["flushes"]).is_clean());
    }
}
