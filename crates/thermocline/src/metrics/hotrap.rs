//! What placement by hotness counts.

/// Why a record read from the slow tier was not taken into the promotion cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// A compaction that crosses to the slow tier was under way over the key.
    Claimed,
    /// One was installed since the reader had pinned the store's state.
    Overtaken,
    /// The read was of an older moment: a newer version may lie on the slow tier.
    OldSnapshot,
    /// The cache was full, or the value has 256 KiB or more, and is longer than an eighth of what
    /// the cache may be.
    Full,
}

impl Refusal {
    /// Every reason, in the order of the counters.
    pub const ALL: &[Refusal] = &[
        Refusal::Claimed,
        Refusal::Overtaken,
        Refusal::OldSnapshot,
        Refusal::Full,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Claimed => "claimed",
            Refusal::Overtaken => "overtaken",
            Refusal::OldSnapshot => "old_snapshot",
            Refusal::Full => "full",
        }
    }
}

/// RALT: the table of recent accesses that says what is hot.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RaltMetrics {
    /// Keys and values of the records that are hot, in bytes (HotRAP size).
    pub hot_set_bytes: u64,
    /// What `hot_set_bytes` is kept below.
    pub hot_set_limit_bytes: u64,
    /// Access records on the fast tier, in bytes.
    pub physical_bytes: u64,
    /// What `physical_bytes` is kept below.
    pub physical_limit_bytes: u64,
    /// Filters, indexes, and the used part of buffers in memory, in bytes.
    pub memory_bytes: u64,
    /// Access records in tables. A key that lies in several counts once for each.
    pub records: u64,
    /// The score, as of now, from which on a record is hot. It holds for the class of records that
    /// the limit divides; every other class is hot or not as a whole.
    pub hot_threshold: f64,
    /// The score, as of now, below which the last eviction forgot records. It holds for the class
    /// of records that the eviction divided; it forgot or left every other class as a whole.
    pub evicted_threshold: f64,
    /// Whether nothing was ever evicted: RALT has had room for every record read so far.
    pub is_young: bool,
    /// Whether every record that is read counts as hot. That is so while RALT is young and has not
    /// seen yet that all are read alike, or while what is read was read before so often that a
    /// hotspot is being learnt.
    pub is_generous: bool,
    /// The time slice: bytes accessed so far by the slice's size.
    pub tick: u64,
    /// Accesses since the store was opened.
    pub accesses: u64,
    /// Those of them that were not logged: buffers were full, writing them failed, or the key has
    /// more than 65,531 bytes.
    pub dropped_accesses: u64,
    /// Evictions since the store was opened.
    pub evictions: u64,
    /// Processor time of the background work, in seconds.
    pub cpu_seconds: f64,
    /// Bytes read from the fast tier for RALT.
    pub read_bytes: u64,
    /// Bytes written to the fast tier for RALT.
    pub write_bytes: u64,
    /// Why RALT was found unusable when the store was opened, or stopped working since, if so.
    pub trouble: Option<String>,
    /// Whether it has stopped for good, until the store is opened again.
    pub has_stopped: bool,
}

/// Placement by hotness: what it knows, and what it moved since the store was opened.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct HotRapMetrics {
    /// The table of recent accesses.
    pub ralt: RaltMetrics,
    /// Records read from the slow tier that wait in memory for their promotion, in bytes.
    pub promotion_cache_bytes: u64,
    /// Bytes of records that became tables of L0.
    pub promoted_flush_bytes: u64,
    /// Bytes of records that a crossing compaction brought up to the last fast level.
    pub promoted_compaction_bytes: u64,
    /// Bytes of records that compactions to a slower tier kept on the fast one: in the last fast
    /// level, or in the one above while they sent others past it.
    pub retained_bytes: u64,
    /// Bytes of records that a compaction of the level above the last fast one sent past the last
    /// fast one, to a slower tier.
    pub bypassed_bytes: u64,
    /// Records that a read from the slow tier offered to the promotion cache.
    pub admission_attempts: u64,
    /// Those that it did not take, by reason, in the order of [`Refusal::ALL`].
    pub admission_refused: Vec<(Refusal, u64)>,
    /// Records that left the promotion cache because they were not hot.
    pub dropped_cold: u64,
    /// Promotions by flush whose place in L0 had been overtaken by a compaction.
    pub voided_flushes: u64,
    /// Crossings under way.
    pub crossings: u64,
}

impl HotRapMetrics {
    /// Admissions refused, for all reasons.
    pub fn refused(&self) -> u64 {
        self.admission_refused.iter().map(|(_, count)| count).sum()
    }
}

/// A hot key, with how hot it is.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct HotKey {
    /// The keyspace's name.
    pub keyspace: String,
    /// The key.
    pub key: Vec<u8>,
    /// Length of its value when it was accessed last, in bytes.
    pub value_len: u64,
    /// Its score as of now.
    pub score: f64,
    /// Whether it was accessed again while it was tracked, and not too long ago (§3.7).
    pub is_stable: bool,
    /// Whether its score reaches the threshold.
    pub is_hot: bool,
}

/// The size of the set of all records that have at least a given score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct HeatPoint {
    /// The score, as of now.
    pub score: f64,
    /// Records that have at least this score.
    pub records: u64,
    /// Their keys and values, in bytes.
    pub bytes: u64,
}

/// What is hot, and what is not: the hottest keys, and how size falls with hotness.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct HeatReport {
    /// The hottest keys, hottest first.
    pub hottest: Vec<HotKey>,
    /// Points from the highest score to the lowest; each includes all before it. Records that are
    /// not tracked are colder than the last point.
    pub curve: Vec<HeatPoint>,
    /// Keys and values in all tables of the store, in bytes before compression: what `curve` is a
    /// part of. Versions that compactions have yet to drop count too.
    pub data_bytes: u64,
}
