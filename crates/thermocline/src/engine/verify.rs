//! Verification: every table is read whole.

use std::path::PathBuf;

use super::Engine;
use crate::error::{Error, Result};

/// Where a verification is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress {
    /// The table about to be read.
    pub file: PathBuf,
    /// Its tier, 0 being the fastest.
    pub tier: usize,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes of all tables to be read.
    pub total_bytes: u64,
}

/// What a verification found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Blocks whose checksum was computed.
    pub blocks: u64,
    /// Records seen.
    pub entries: u64,
    /// Bytes read.
    pub bytes: u64,
    /// What does not hold, one for each damaged table.
    pub problems: Vec<Error>,
}

impl Engine {
    pub(crate) fn verify(&self, progress: &mut dyn FnMut(VerifyProgress)) -> Result<VerifyReport> {
        self.check_open()?;
        let mut report = VerifyReport::default();
        // The version alone, not all that readers pin: memtables would stay in memory for as long
        // as tables are read (I8).
        let versions = self.all_trees().into_iter().map(|tree| tree.version());
        let versions: Vec<_> = versions.collect();
        let tables = || versions.iter().flat_map(|version| version.tables());
        let total_bytes = tables().map(|table| table.meta.len).sum();
        for table in tables() {
            let tier = &self.tiers[usize::from(table.meta.tier)];
            progress(VerifyProgress {
                // The path as errors name it: the options may have a relative one.
                file: tier.tables.path().join(table.meta.file_name()),
                tier: usize::from(table.meta.tier),
                bytes: table.meta.len,
                total_bytes,
            });
            report.tables += 1;
            match table.table().and_then(|table| table.verify()) {
                Ok(check) => {
                    report.blocks += check.blocks;
                    report.entries += check.entries;
                    report.bytes += check.bytes;
                }
                Err(error) => report.problems.push(error),
            }
        }
        Ok(report)
    }
}
