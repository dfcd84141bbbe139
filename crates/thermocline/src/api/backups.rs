//! Backups of a store that is open, and stores made of them.

use super::{Db, DbBuilder};
use crate::copies::{BackupReport, Backups, GenerationInfo};
use crate::error::Result;

impl Backups {
    /// Backs up `db` as it is at one moment during the call, while reads and writes go on. A table
    /// that an earlier generation has is not copied again, unless its file is gone or has another
    /// length. Its bytes are not read: that is what [`Backups::verify`] is for. Every table that is
    /// copied is verified first. What is known of hotness is left out.
    ///
    /// # Errors
    /// [`crate::Error::WrongTier`] when the directory holds backups of another store;
    /// [`crate::Error::Corruption`] of the store or of a generation; [`crate::Error::NoSpace`]; I/O
    /// errors. In these cases no generation is added. [`crate::Error::Poisoned`] when a sync fails:
    /// a generation may then be listed that is gone after a loss of power. From then on this handle
    /// neither takes nor prunes; open the directory again.
    pub fn take(&self, db: &Db) -> Result<BackupReport> {
        self.take_of(db.engine())
    }

    /// Makes a store of a generation, in the tiers of `options`, which hold nothing yet. It takes
    /// the newest generation unless another is asked for. Every byte is checked on the way.
    ///
    /// # Errors
    /// [`crate::Error::NoBackup`] without such a generation; [`crate::Error::InvalidOption`] for
    /// tiers that are not empty or too few; [`crate::Error::Corruption`] naming the file of the
    /// backup; I/O errors. There is no store then, and the tiers are as empty as before. What a
    /// crash leaves is marked, and perhaps what [`crate::Error::Poisoned`] leaves when a sync
    /// fails. Opening or repairing it gives [`crate::Error::Unfinished`]. The next attempt removes
    /// it first, and so does [`Db::destroy`].
    pub fn restore(
        &self,
        generation: Option<u64>,
        options: &crate::Options,
    ) -> Result<GenerationInfo> {
        self.restore_with(generation, DbBuilder::new(options.clone()))
    }

    /// As [`Backups::restore`], into the media of `builder`.
    ///
    /// # Errors
    /// As [`Backups::restore`].
    pub fn restore_with(
        &self,
        generation: Option<u64>,
        builder: DbBuilder,
    ) -> Result<GenerationInfo> {
        self.restore_by(generation, builder.request())
    }
}
