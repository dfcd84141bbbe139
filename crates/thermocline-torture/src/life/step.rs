//! The steps of a life, and the lives that are made of them.

/// The keyspace beside the default one that batches reach into.
pub const SIDE: &str = "side";

/// What a store is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This many writes, of every durability in turn.
    Write(usize),
    /// Reads every key, and checks what it finds.
    Read,
    /// Puts what is in memory into tables.
    Flush,
    /// Makes everything written so far durable.
    Sync,
    /// Creates a keyspace, or finds it there.
    CreateKeyspace(&'static str),
    /// Compacts every keyspace that is written to down to the last level.
    Compact,
    /// Ingests about this many neighbouring keys.
    Ingest(usize),
    /// Waits for background work.
    Idle,
    /// Copies the store to a place of its own.
    Checkpoint,
    /// Closes the store and opens it again.
    Reopen,
}

/// Goes through every part of the engine that writes to a disk. What is flushed ends in writes that
/// were not synced, because the number of writes is no multiple of five.
pub const LIFE: &[Step] = &[
    Step::Write(32),
    Step::CreateKeyspace(SIDE),
    Step::Write(91),
    Step::Idle,
    Step::Flush,
    Step::Write(89),
    Step::Ingest(40),
    Step::Compact,
    Step::CreateKeyspace("later"),
    Step::Checkpoint,
    Step::Write(60),
    Step::Reopen,
    Step::Write(60),
    Step::Sync,
    Step::Compact,
    Step::Write(20),
    Step::Idle,
];

/// Fills the slow tier, and reads until records come up from there in each way that there is.
pub const WARMING: &[Step] = &[
    Step::Write(30),
    Step::CreateKeyspace(SIDE),
    Step::Write(300),
    Step::Idle,
    Step::Read,
    Step::Idle,
    Step::Write(120),
    Step::Read,
    Step::Write(121),
    Step::Compact,
    Step::Read,
    Step::Idle,
    Step::Reopen,
    Step::Read,
    Step::Write(60),
    Step::Idle,
];
