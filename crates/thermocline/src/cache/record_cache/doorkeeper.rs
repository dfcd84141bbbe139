//! Which records may come in: those that are asked for twice within some time.
//!
//! If every miss filled the cache, each record that an even or scanning reader touches once would
//! be copied in, at the cost of what others read often.

use crate::sync::atomic::{AtomicU16, Ordering};

/// Fingerprints of keys that were missed recently, one per place. A key is forgotten when another
/// one takes its place: after about as many misses as there are places.
#[derive(Debug)]
pub(super) struct Doorkeeper(Box<[AtomicU16]>);

impl Doorkeeper {
    /// Makes one that remembers about `keys` keys.
    pub(super) fn new(keys: u64) -> Self {
        let places = keys.max(16).next_power_of_two();
        Self((0..places).map(|_| AtomicU16::new(0)).collect())
    }

    /// Whether a key of this hash was here before. Remembers it.
    #[inline]
    pub(super) fn knows(&self, hash: u64) -> bool {
        // The lower half of the hash chooses the place, and bits of the upper half are the print.
        // The index of the cache goes by the upper bits, and neighbours there should not be
        // neighbours here.
        let place = (hash as usize) & (self.0.len() - 1);
        // Never 0, which marks an empty place.
        let print = (hash >> 40) as u16 | 1;
        let Some(place) = self.0.get(place) else {
            return false;
        };
        if place.load(Ordering::Relaxed) == print {
            return true;
        }
        place.store(print, Ordering::Relaxed);
        false
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&*self.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn hashes(keys: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        keys.map(|key| xxh3_64(&key.to_le_bytes()))
    }

    #[test]
    fn a_key_is_known_the_second_time() {
        let door = Doorkeeper::new(1 << 12);
        assert!(!door.knows(0) && door.knows(0), "0 is a hash like any");
        let strangers = hashes(0..200).filter(|&hash| door.knows(hash)).count();
        assert!(strangers <= 1, "{strangers} of 200 seen once were known");
        let known = hashes(0..200).filter(|&hash| door.knows(hash)).count();
        assert!(known > 180, "{known} of 200 seen twice");
    }

    #[test]
    fn a_key_is_forgotten_when_many_others_came_since() {
        let door = Doorkeeper::new(1 << 8);
        let came = hashes(0..10_000).filter(|&hash| !door.knows(hash)).count();
        assert!(came > 9_900);
        let known = hashes(0..100).filter(|&hash| door.knows(hash)).count();
        assert!(known <= 2, "{known}");
    }
}
