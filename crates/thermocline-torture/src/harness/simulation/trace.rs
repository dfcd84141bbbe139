//! A hash of everything that happened.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use thermocline::Result;
use xxhash_rust::xxh3::Xxh3;

/// Takes in events in their order. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Trace(Arc<Mutex<Xxh3>>);

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trace({:016x})", self.hash())
    }
}

impl Trace {
    /// Takes in `parts`, and where each of them ends.
    pub(super) fn note(&self, parts: &[&[u8]]) {
        let mut hash = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }

    /// Takes in the answer to `what`. `content` stands for a good answer.
    pub(super) fn answer<T>(
        &self,
        what: &str,
        result: &Result<T>,
        content: impl Fn(&T) -> Vec<u8>,
    ) {
        match result {
            Ok(answer) => self.note(&[what.as_bytes(), b"ok", &content(answer)]),
            Err(error) => self.note(&[what.as_bytes(), error.to_string().as_bytes()]),
        }
    }

    /// As [`Trace::answer`], for answers that are small.
    pub(super) fn outcome(&self, what: &str, result: &Result<impl Debug>) {
        self.answer(what, result, |answer| format!("{answer:?}").into_bytes());
    }

    /// The hash of everything so far.
    pub(super) fn hash(&self) -> u64 {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .digest()
    }
}
