//! RocksDB's ingestion: files that a writer of tables makes beside the store, and that become
//! tables of the last level by links.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::Result;
use rocksdb::{IngestExternalFileOptions, SstFileWriter};

use super::Store;
use crate::engine::Ingestion;

/// Keys and values of a file.
const FILE: u64 = 64 << 20;

/// Sorted records on their way into files.
pub(super) struct Files<'a> {
    store: &'a Store,
    writer: Option<SstFileWriter<'a>>,
    paths: Vec<PathBuf>,
    /// Of the file that is being written, keys and values.
    in_file: u64,
    /// Of all files, keys and values.
    bytes: u64,
    /// Bytes of the files that are complete.
    file_bytes: u64,
}

impl<'a> Files<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self {
            store,
            writer: None,
            paths: Vec::new(),
            in_file: 0,
            bytes: 0,
            file_bytes: 0,
        }
    }

    /// Completes the file that is being written.
    fn end_file(&mut self) -> Result<()> {
        if let Some(mut writer) = self.writer.take() {
            writer.finish()?;
            self.file_bytes += writer.file_size();
        }
        self.in_file = 0;
        Ok(())
    }
}

impl Ingestion for Files<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let store = self.store;
        let len = (key.len() + value.len()) as u64;
        if self.in_file > 0 && self.in_file + len > FILE {
            self.end_file()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let name = format!("ingested-{}.sst", self.paths.len());
                // Beside the tables, since a link cannot lead to another file system.
                let path = store.kind.home(&store.dirs).join(name);
                let writer = SstFileWriter::create(&store.options);
                writer.open(&path)?;
                self.paths.push(path);
                none.insert(writer)
            }
        };
        writer.put(key, value)?;
        self.in_file += len;
        self.bytes += len;
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.end_file()?;
        if self.paths.is_empty() {
            return Ok(());
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        let store = self.store;
        store.db.ingest_external_file_opts(&options, self.paths)?;
        let add = |counter: &std::sync::atomic::AtomicU64, bytes| {
            counter.fetch_add(bytes, Ordering::Relaxed);
        };
        add(&store.user_write_bytes, self.bytes);
        add(&store.ingested_bytes, self.file_bytes);
        Ok(())
    }
}
