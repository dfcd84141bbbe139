//! The tables that are measured, behind one interface, so that the same loop measures all of them.

pub(crate) mod chained;
pub(crate) mod crates;
pub(crate) mod ring;

/// A table from numbers to numbers.
pub(crate) trait Table: Sync {
    /// The handle by which requests are made.
    type Handle<'t>: Handle
    where
        Self: 't;

    /// A handle. It keeps memory from being freed, like a guard.
    fn handle(&self) -> Self::Handle<'_>;
}

/// The requests.
pub(crate) trait Handle {
    /// The value of `key`.
    fn get(&self, key: u64) -> Option<u64>;

    /// Stores a value of a key that is there.
    fn put(&self, key: u64, value: u64);

    /// Stores a value of a key that may be absent.
    fn insert(&self, key: u64, value: u64);

    /// Lets go of what was seen so far.
    fn repin(&mut self);
}

/// How many items a lookup looks at, for the tables that know.
pub(crate) trait Visits: Handle {
    /// Items that a lookup of `key` looks at. For an absent key this includes the item at which the
    /// search ends.
    fn visits(&self, key: u64) -> u32;
}

/// A value of 100 bytes, which only an exchange of the item can change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide([u8; 100]);

impl Wide {
    /// One that begins with `value`.
    pub(crate) fn holding(value: u64) -> Self {
        let mut bytes = [0; 100];
        bytes[..8].copy_from_slice(&value.to_le_bytes());
        Self(bytes)
    }

    /// The number that it begins with.
    pub(crate) fn read(&self) -> u64 {
        self.0[..8]
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    }
}
