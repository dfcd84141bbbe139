//! The file that says what a generation consists of. `docs/format.md` has the bytes.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::coding::{Decoder, put_bytes, put_varint};
use crate::error::{Damaged, Error, Result};
use crate::ids::{FileId, MAX_NUMBER};
use crate::key::SeqNo;
use crate::storage::LogStore;
use crate::version::BadEdit;
use crate::version::edit::VersionEdit;

const MAGIC: &[u8; 8] = b"TCLNBKUP";
const VERSION: u32 = 1;
const PREFIX: &str = "GENERATION-";
const TEMPORARY: &str = "GENERATION.tmp";
const SUFFIX: &str = ".table";

/// A table of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackedUp {
    pub(super) id: FileId,
    pub(super) tier: u8,
    pub(super) len: u64,
    /// XXH3 of the file.
    pub(super) checksum: u64,
    /// Tells the table's content from that of every other table of its number: two stores that were
    /// restored from one backup give the same number to different tables.
    pub(super) content: u64,
}

impl BackedUp {
    /// Its name in the backup.
    pub(super) fn file_name(&self) -> String {
        format!("{:08}-{:016x}{SUFFIX}", self.id, self.content)
    }
}

/// Whether a file of this name is a table of a backup.
pub(super) fn is_table(name: &str) -> bool {
    name.ends_with(SUFFIX)
}

/// One backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) database: u128,
    pub(super) through: SeqNo,
    pub(super) tables: Vec<BackedUp>,
    /// They add up to the store's shape.
    pub(super) edits: Vec<VersionEdit>,
}

/// The name of generation `number`.
pub(super) fn file_name(number: u64) -> String {
    format!("{PREFIX}{number:08}")
}

/// The number of the generation called `name`, if that is a generation's name and its number leaves
/// room to count one more.
pub(super) fn number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (number <= MAX_NUMBER && file_name(number) == name).then_some(number)
}

impl Generation {
    /// Reads a generation.
    ///
    /// # Errors
    /// [`Error::Corruption`]; [`Error::FormatVersion`]; I/O errors.
    pub(super) fn read(store: &dyn LogStore, number: u64) -> Result<Self> {
        let name = file_name(number);
        let path = store.path().join(&name);
        let bytes = store.read(&name)?;
        let generation = Self::decode(&path, &bytes).map_err(|error| error.of(Damaged::Backup))?;
        if generation.number != number {
            let what = format!("this is generation {}", generation.number);
            return Err(Error::corruption(path, 0, what).of(Damaged::Backup));
        }
        Ok(generation)
    }

    /// Puts the generation in force. Everything that it names has to be durable before (I4).
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn write(&self, store: &dyn LogStore) -> Result<()> {
        let file = store.create(TEMPORARY)?;
        file.append(&self.encode())?;
        file.sync()?;
        store.rename(TEMPORARY, &file_name(self.number))?;
        store.sync_dir()
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.database.to_le_bytes());
        for number in [self.number, self.through, self.tables.len() as u64] {
            put_varint(&mut out, number);
        }
        for table in &self.tables {
            put_varint(&mut out, table.id);
            out.push(table.tier);
            put_varint(&mut out, table.len);
            out.extend_from_slice(&table.checksum.to_le_bytes());
            out.extend_from_slice(&table.content.to_le_bytes());
        }
        put_varint(&mut out, self.edits.len() as u64);
        let mut encoded = Vec::new();
        for edit in &self.edits {
            encoded.clear();
            edit.encode(&mut encoded);
            put_bytes(&mut out, &encoded);
        }
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let damaged = |what: &str| Error::corruption(path, 0, what);
        let Some((covered, sum)) = bytes.split_last_chunk::<8>() else {
            return Err(damaged("the file is cut short"));
        };
        if xxh3_64(covered).to_le_bytes() != *sum {
            return Err(damaged("the file does not match its checksum"));
        }
        let mut decoder = Decoder::new(covered);
        if decoder.take(MAGIC.len()) != Some(MAGIC) {
            return Err(damaged("the file is no generation of a backup"));
        }
        match decoder.u32() {
            Some(VERSION) => {}
            Some(found) => {
                return Err(Error::FormatVersion {
                    path: path.to_path_buf(),
                    found,
                    supported: VERSION,
                });
            }
            None => return Err(damaged("the file is cut short")),
        }
        let Some((generation, edits)) = Self::fields(&mut decoder).filter(|_| decoder.is_empty())
        else {
            return Err(damaged("the file does not decode"));
        };
        let edits = edits.into_iter().map(VersionEdit::decode);
        let edits: std::result::Result<_, BadEdit> = edits.collect();
        Ok(Self {
            edits: edits.map_err(|bad| bad.at(path, 0))?,
            ..generation
        })
    }

    /// All fields but the edits, and the edits as bytes.
    fn fields<'a>(decoder: &mut Decoder<'a>) -> Option<(Self, Vec<&'a [u8]>)> {
        let database = decoder.u128()?;
        let (number, through) = (decoder.varint()?, decoder.varint()?);
        let (mut tables, mut edits) = (Vec::new(), Vec::new());
        for _ in 0..decoder.varint()? {
            tables.push(BackedUp {
                id: decoder.varint()?,
                tier: decoder.u8()?,
                len: decoder.varint()?,
                checksum: decoder.u64()?,
                content: decoder.u64()?,
            });
        }
        for _ in 0..decoder.varint()? {
            edits.push(decoder.bytes()?);
        }
        let generation = Self {
            number,
            database,
            through,
            tables,
            edits: Vec::new(),
        };
        Some((generation, edits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation() -> Generation {
        let table = |id| BackedUp {
            id,
            tier: 1,
            len: id * 100,
            checksum: u64::MAX - id,
            content: 7,
        };
        Generation {
            number: 3,
            database: 9,
            through: 44,
            tables: vec![table(1), table(200)],
            edits: vec![VersionEdit::default(); 2],
        }
    }

    #[test]
    fn a_generation_comes_back_and_every_flipped_byte_and_cut_is_seen() {
        let bytes = generation().encode();
        let path = Path::new("g");
        assert_eq!(Generation::decode(path, &bytes).unwrap(), generation());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x40;
            assert!(
                Generation::decode(path, &flipped)
                    .unwrap_err()
                    .is_corruption()
            );
            assert!(
                Generation::decode(path, &bytes[..at])
                    .unwrap_err()
                    .is_corruption()
            );
        }
    }

    #[test]
    fn a_generation_of_a_later_version_is_refused() {
        let mut bytes = generation().encode();
        bytes[8] = 2;
        let end = bytes.len() - 8;
        let sum = xxh3_64(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&sum);
        let refused = Generation::decode(Path::new("g"), &bytes).unwrap_err();
        assert!(matches!(refused, Error::FormatVersion { found: 2, .. }));
    }

    /// Such a generation was called damaged, and the advice was to remove its file: a user who went
    /// back to an older build lost the newest backup by that.
    #[test]
    fn a_generation_with_an_edit_of_a_newer_release_is_refused_as_one() {
        let whole = Generation {
            edits: vec![VersionEdit::default()],
            ..generation()
        };
        let mut bytes = whole.encode();
        let end = bytes.len() - 8;
        // One edit without a field, behind its length.
        assert_eq!(bytes[end - 2..end], [1, 1]);
        bytes.truncate(end - 2);
        bytes.extend([3, 1, 99, 0]);
        let sum = xxh3_64(&bytes).to_le_bytes();
        bytes.extend(sum);
        let refused = Generation::decode(Path::new("g"), &bytes).unwrap_err();
        let is_newer = matches!(refused, Error::FormatVersion { found: 99, .. });
        assert!(is_newer, "{refused}");
    }

    /// Otherwise the next generation would have been counted from it.
    #[test]
    fn a_number_that_cannot_be_counted_on_from_is_no_generations() {
        assert_eq!(number(&file_name(7)), Some(7));
        assert_eq!(number(&file_name(u64::MAX)), None);
    }
}
