//! Numbers that files and keyspaces go by, and the names that tables have from them.

/// Number of a keyspace; 0 is the default one.
pub(crate) type KeyspaceId = u32;

/// Number of a file, unique across all tiers of a store and never used twice (I4).
pub(crate) type FileId = u64;

/// Largest number of a file or an epoch: more than any store gets to use. A file whose name has a
/// larger one is not the store's: counting on from there would run out of numbers.
pub(crate) const MAX_NUMBER: u64 = u64::MAX >> 8;

/// The name of table `id` on its tier.
pub(crate) fn table_file_name(id: FileId) -> String {
    format!("{id:08}.sst")
}

/// The number of the table file called `name`, if it is one.
pub(crate) fn table_number(name: &str) -> Option<FileId> {
    let number = name.strip_suffix(".sst")?.parse().ok()?;
    (number <= MAX_NUMBER && table_file_name(number) == name).then_some(number)
}
