//! Maps made of entries.

use std::hash::{BuildHasher, Hash};

use super::HotRing;
use crate::options::Options;

/// After so many entries the handle lets go of what was replaced.
const BATCH: usize = 64;

impl<K, V, S> Extend<(K, V)> for HotRing<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher,
{
    /// Stores every entry; of those with equal keys, the last one stays.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let mut ring = self.pin();
        for (stored, (key, value)) in entries.into_iter().enumerate() {
            ring.insert(key, value);
            if stored % BATCH == BATCH - 1 {
                ring.repin();
            }
        }
    }
}

impl<K, V, S> FromIterator<(K, V)> for HotRing<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Default,
{
    /// A map of these entries, with the default [`Options`].
    ///
    /// # Panics
    ///
    /// If there is no memory for 64 buckets.
    ///
    /// # Examples
    ///
    /// ```
    /// use hotring::HotRing;
    ///
    /// let born: HotRing<&str, u32> = [("Ada", 1815), ("Grace", 1906)].into_iter().collect();
    /// assert_eq!(born.pin().get("Grace"), Some(&1906));
    /// ```
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        match Self::with_options_and_hasher(Options::default(), S::default()) {
            Ok(mut map) => {
                map.extend(entries);
                map
            }
            Err(error) => panic!("hotring: {error}"),
        }
    }
}
