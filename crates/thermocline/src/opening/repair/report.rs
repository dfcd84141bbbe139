//! What a repair says: what it found, what it saved, and exactly what it could not save.

use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;

use crate::key::SeqNo;

/// What a repair found and did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// What is wrong, file by file, and what a repair could not clear away. Empty when the store is
    /// sound: nothing is changed then.
    pub problems: Vec<String>,
    /// Whether the store was changed; not in a dry run.
    pub repaired: bool,
    /// Whether the manifest could not be used, so that all records are merged anew.
    pub rebuilt: bool,
    /// Names of the keyspaces, including new names given for want of the old ones.
    pub keyspaces: Vec<String>,
    /// Tables that stay as they are.
    pub kept: u64,
    /// Tables whose records are written anew.
    pub rewritten: u64,
    /// Writes that the log holds; opening the store replays those that tables lack.
    pub logged: u64,
    /// What cannot be saved. Empty only if nothing can be missing: where a tier was given up, or
    /// the manifest cannot be read to its end, an entry of its own stands for losses that nothing
    /// tells of.
    pub losses: Vec<Loss>,
    /// What became of the [target](crate::Target), where edits that set it may be lost, and how to
    /// set it again. It is none of the losses: no record depends on it.
    pub target: Option<String>,
    /// Files that the repaired store does not use, or not as they are. Copies of them are in the
    /// directory `lost` of their tier, to be removed once nothing is missed.
    pub set_aside: Vec<PathBuf>,
}

/// Something that cannot be saved. Keys in its range may be missing, may show an older value, or
/// may be back though they were deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The file that held it; for a tier that was given up, its directory.
    pub file: PathBuf,
    /// Where in the file, in bytes; none where all of it is lost.
    pub offset: Option<u64>,
    /// What is wrong there.
    pub what: String,
    /// Name of the keyspace, where it is known.
    pub keyspace: Option<String>,
    /// The first and the last key that it may have held, where they are known.
    pub keys: Option<(Bytes, Bytes)>,
    /// The least and the greatest sequence number that it may have held, where they are known.
    pub seqs: Option<(SeqNo, SeqNo)>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        write!(f, ": {}", self.what)?;
        if let Some(keyspace) = &self.keyspace {
            write!(f, "; keyspace {keyspace:?}")?;
        }
        if let Some((first, last)) = &self.keys {
            let (first, last) = (first.escape_ascii(), last.escape_ascii());
            write!(f, ", keys \"{first}\" to \"{last}\"")?;
        }
        if let Some((first, last)) = self.seqs {
            write!(f, ", sequence {first} to {last}")?;
        }
        Ok(())
    }
}
