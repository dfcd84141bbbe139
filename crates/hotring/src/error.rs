//! What can go wrong.

/// A table of buckets could not be made, or not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The number of buckets, rounded up to a power of two, does not fit the address space.
    #[error("{buckets} buckets do not fit the address space")]
    TooLarge {
        /// The number that was asked for.
        buckets: usize,
    },
    /// The allocator refused.
    #[error("no memory for a table of {bytes} bytes")]
    OutOfMemory {
        /// The bytes that were asked for.
        bytes: usize,
    },
    /// An earlier change of the table's size is not over: another thread is at work on it, or a
    /// handle that is older than the present table is still held. Handles to other maps count too,
    /// and so does any guard of `crossbeam-epoch`'s default collector. What others have left to
    /// that collector may have to be freed first. The change can be tried again.
    #[error("an earlier change of the table's size is not over")]
    Busy,
}

/// A byte string could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The key or the value has 4 GiB or more, or both together do not fit the address space.
    #[error("a key of {key} bytes with a value of {value} bytes is too large")]
    TooLarge {
        /// The key's length.
        key: usize,
        /// The value's length.
        value: usize,
    },
    /// The allocator refused.
    #[error("no memory for an entry of {bytes} bytes")]
    OutOfMemory {
        /// The bytes that were asked for.
        bytes: usize,
    },
}
