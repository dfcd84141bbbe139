//! Wrong answers: how many, and the first of them in words.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::value::Wrong;

/// How many wrong answers are described.
const DESCRIBED: u64 = 10;

/// Wrong answers of a run.
#[derive(Debug, Default)]
pub(crate) struct Wrongs {
    count: AtomicU64,
    examples: Mutex<Vec<String>>,
}

impl Wrongs {
    /// Counts a wrong answer for `key`.
    pub(crate) fn add(&self, key: &[u8], wrong: Wrong) {
        if self.count.fetch_add(1, Ordering::Relaxed) < DESCRIBED {
            let line = format!("{}: {wrong}", String::from_utf8_lossy(key));
            self.lock().push(line);
        }
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The first ones.
    pub(crate) fn examples(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.examples
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_described() {
        let wrongs = Wrongs::default();
        for _ in 0..100 {
            wrongs.add(b"user1", Wrong::Missing);
        }
        assert_eq!(wrongs.count(), 100);
        assert_eq!(wrongs.examples().len(), 10);
        assert_eq!(wrongs.examples()[0], "user1: the key is missing");
    }
}
