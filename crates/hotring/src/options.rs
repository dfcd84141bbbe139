//! How a map is set up.

/// How a bucket's head finds the item that is worth pointing at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Movement {
    /// HotRing-s: when the last request of a period was not served by the head, the next accesses
    /// are counted, as many as the ring has items. Then the head goes where these would have been
    /// cheapest. Until a ring has been counted for the first time, its head moves as with
    /// [`Movement::Random`].
    #[default]
    Sampling,
    /// HotRing-r: when the last request of a period was not served by the head, the head goes to
    /// the item that the request asked for. Quicker to react, less exact, restless when a ring has
    /// two hot items.
    Random,
    /// Heads stay where they are, which is nowhere: every search begins at its bucket's anchor. For
    /// comparisons.
    Off,
}

/// How a map is set up. The defaults are right for most uses. If you know the number of entries
/// beforehand, say so with [`Options::buckets`].
///
/// # Examples
///
/// ```
/// use hotring::{HotRing, Movement, Options};
///
/// let options = Options::default().buckets(1 << 16).movement(Movement::Random);
/// let map: HotRing<u64, String> = HotRing::with_options(options)?;
/// assert_eq!(map.buckets(), 1 << 16);
/// # Ok::<(), hotring::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    pub(crate) buckets: usize,
    pub(crate) movement: Movement,
    pub(crate) period: u32,
    pub(crate) grow_above: f64,
    pub(crate) window: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            buckets: 64,
            movement: Movement::default(),
            period: 5,
            grow_above: 2.0,
            window: 128,
        }
    }
}

impl Options {
    /// How many buckets to begin with, rounded up to a power of two. A bucket takes 16 bytes.
    /// Default: 64.
    #[must_use]
    pub fn buckets(mut self, buckets: usize) -> Self {
        self.buckets = buckets;
        self
    }

    /// How heads move.
    #[must_use]
    pub fn movement(mut self, movement: Movement) -> Self {
        self.movement = movement;
        self
    }

    /// The paper's R: one in so many requests of a thread looks whether the head is right, and
    /// every fourth of these takes a sample of the access cost. Now and then one comes earlier, by
    /// chance, so that no map is left out when a thread asks several maps in turn. At least 1.
    /// Default: 5.
    #[must_use]
    pub fn period(mut self, requests: u32) -> Self {
        self.period = requests.max(1);
        self
    }

    /// The table doubles when an access visits more items than this on average. If accesses are
    /// evenly spread, an access visits about a third of a ring. If they are skewed, it visits
    /// hardly more than one item, however long the rings are: so a skewed workload needs a smaller
    /// table. The table never grows beyond two buckets an item: from there on the cost comes from
    /// keys of equal hash, which no table can part. With `f64::INFINITY` it never grows. Default:
    /// 2.
    #[must_use]
    pub fn grow_above(mut self, visits: f64) -> Self {
        self.grow_above = visits;
        self
    }

    /// Over how many sampled accesses the mean is taken. One access in four periods is sampled.
    /// Default: 128.
    #[must_use]
    pub fn window(mut self, samples: u32) -> Self {
        self.window = samples.clamp(1, 1 << 20);
        self
    }
}
