//! How much of what comes down to level f need not have come there.

use crate::placement::{Source, UP};

/// Counts what could not pass level f by, in a merge of tables of the level above f, in bytes of
/// keys and values. An ordinary job finds that out record by record, and a bypass by what it had to
/// leave.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Bytes of the present key's records from above, unless they count already.
    of_key: u64,
    bytes: u64,
}

impl Held {
    /// What was found.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Meets a record of an ordinary job. A record from above is held if it is hot, as a bypass
    /// would leave it there, or if level f has a version of its key.
    pub(super) fn meet(
        &mut self,
        is_new_key: bool,
        source: Source,
        size: u64,
        is_hot: impl FnOnce() -> bool,
    ) {
        if is_new_key {
            self.of_key = 0;
        }
        match source {
            Source::Upper if is_hot() => self.bytes += size,
            Source::Upper => self.of_key += size,
            Source::Lower => self.bytes += std::mem::take(&mut self.of_key),
        }
    }

    /// A record that a bypass sends to `output`.
    pub(super) fn send(&mut self, source: Source, size: u64, output: usize) {
        if source == Source::Upper && output == UP {
            self.bytes += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Source::{Lower, Upper};
    use super::*;

    #[test]
    fn what_level_f_has_a_version_of_is_held() {
        let mut held = Held::default();
        for (is_new_key, source, size) in [
            (true, Upper, 1),
            (true, Upper, 10),
            (false, Upper, 20),
            (false, Lower, 100),
            (false, Lower, 100),
            (true, Lower, 1000),
            (true, Upper, 10_000),
        ] {
            held.meet(is_new_key, source, size, || false);
        }
        assert_eq!(held.bytes(), 30, "both versions of the second key");
    }

    #[test]
    fn what_is_hot_is_held_once() {
        let mut held = Held::default();
        held.meet(true, Upper, 1, || true);
        held.meet(false, Lower, 10, || false);
        held.meet(true, Upper, 100, || true);
        held.meet(true, Upper, 1000, || false);
        assert_eq!(held.bytes(), 101);
    }

    #[test]
    fn what_a_bypass_leaves_above_is_held() {
        let mut held = Held::default();
        held.send(Upper, 1, UP);
        held.send(Upper, 10, 0);
        held.send(Lower, 100, UP);
        assert_eq!(held.bytes(), 1);
    }
}
