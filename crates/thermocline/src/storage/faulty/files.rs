//! Files and directories. Each has two states: as a running process sees it, and as it is on the
//! platter.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::error::Error;
use crate::sync::{Arc, Mutex};

/// The unit that a device writes completely or not at all.
pub(super) const SECTOR: usize = 512;

/// A file's content, shared by its names and its open handles.
pub(super) type InodeRef = Arc<Mutex<Inode>>;

/// A directory's names.
pub(super) type Entries = BTreeMap<String, InodeRef>;

/// A file.
#[derive(Default)]
pub(super) struct Inode {
    /// What a read returns.
    pub(super) cached: Vec<u8>,
    /// What survives a crash for certain.
    pub(super) durable: Vec<u8>,
    /// What the cache has yet to write, in order.
    pub(super) unsynced: Vec<Change>,
}

/// A change of a file's content.
#[derive(Clone)]
pub(super) enum Change {
    /// `bytes` at `offset`. A gap before them reads as zeros: a failed sync lost what was there.
    Write { offset: usize, bytes: Vec<u8> },
    /// The end moves to this length.
    Truncate(usize),
}

impl Change {
    /// The parts of the change that reach the platter independently: for a write, the bytes of each
    /// sector.
    pub(super) fn pieces(&self) -> Vec<Change> {
        let Change::Write { offset, bytes } = self else {
            return vec![self.clone()];
        };
        let first = (SECTOR - offset % SECTOR).min(bytes.len());
        let (head, rest) = bytes.split_at(first);
        let mut at = *offset;
        std::iter::once(head)
            .chain(rest.chunks(SECTOR))
            .map(|part| {
                let offset = at;
                at += part.len();
                let bytes = part.to_vec();
                Change::Write { offset, bytes }
            })
            .collect()
    }

    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
            Change::Truncate(len) => content.resize(*len, 0),
        }
    }
}

impl Inode {
    /// A file whose content is all on the platter.
    pub(super) fn durable(content: Vec<u8>) -> Self {
        Self {
            cached: content.clone(),
            durable: content,
            unsynced: Vec::new(),
        }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.change(Change::Write {
            offset: self.cached.len(),
            bytes: bytes.to_vec(),
        });
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.change(Change::Truncate(len));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.cached);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// What a failed sync does: the cache takes its pages for clean, and never writes them again.
    pub(super) fn lose_unsynced(&mut self) {
        self.unsynced.clear();
    }
}

/// A directory.
pub(super) struct Directory {
    cached: Entries,
    durable: Entries,
    unsynced: Vec<EntryChange>,
    /// Bytes that its files may hold.
    pub(super) capacity: u64,
}

/// A change of a directory's names.
#[derive(Clone)]
pub(super) enum EntryChange {
    Enter(String, InodeRef),
    Remove(String),
    Rename {
        from: String,
        to: String,
        file: InodeRef,
    },
}

impl EntryChange {
    fn apply(&self, entries: &mut Entries) {
        match self {
            EntryChange::Enter(name, file) => {
                entries.insert(name.clone(), Arc::clone(file));
            }
            EntryChange::Remove(name) => {
                entries.remove(name);
            }
            EntryChange::Rename { from, to, file } => {
                entries.remove(from);
                entries.insert(to.clone(), Arc::clone(file));
            }
        }
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::durable(Entries::new(), u64::MAX)
    }
}

impl Directory {
    /// A directory whose names are all on the platter.
    pub(super) fn durable(entries: Entries, capacity: u64) -> Self {
        Self {
            cached: entries.clone(),
            durable: entries,
            unsynced: Vec::new(),
            capacity,
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<&InodeRef> {
        self.cached.get(name)
    }

    pub(super) fn entries(&self) -> &Entries {
        &self.cached
    }

    pub(super) fn change(&mut self, change: EntryChange) {
        change.apply(&mut self.cached);
        self.unsynced.push(change);
    }

    /// Enters a file past the cache, so that its name is on the platter at once.
    pub(super) fn enter_durably(&mut self, name: &str, file: InodeRef) {
        self.durable.insert(name.to_owned(), Arc::clone(&file));
        self.cached.insert(name.to_owned(), file);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// As [`Inode::lose_unsynced`], for names.
    pub(super) fn lose_unsynced(&mut self) {
        self.unsynced.clear();
    }

    pub(super) fn unsynced_changes(&self) -> usize {
        self.unsynced.len()
    }

    /// The names on the platter if the cache has written only those unsynced changes whose number
    /// `keeps` accepts.
    pub(super) fn entries_keeping(&self, mut keeps: impl FnMut(usize) -> bool) -> Entries {
        let mut entries = self.durable.clone();
        for (number, change) in self.unsynced.iter().enumerate() {
            if keeps(number) {
                change.apply(&mut entries);
            }
        }
        entries
    }

    /// Every file that may have a name on the platter after a loss of power.
    pub(super) fn files(&self) -> impl Iterator<Item = &InodeRef> {
        let unsynced = self.unsynced.iter().filter_map(|change| match change {
            EntryChange::Enter(_, file) | EntryChange::Rename { file, .. } => Some(file),
            EntryChange::Remove(_) => None,
        });
        self.durable.values().chain(unsynced)
    }

    /// Bytes of all its files.
    fn used(&self) -> u64 {
        let lens = self.cached.values().map(|f| f.lock().cached.len() as u64);
        lens.sum()
    }

    /// Bytes that its files may still grow by.
    pub(super) fn room(&self) -> u64 {
        match self.capacity {
            u64::MAX => u64::MAX,
            capacity => capacity.saturating_sub(self.used()),
        }
    }
}

/// The error of every call after the power was cut.
pub(super) fn device_gone(operation: &'static str, path: &Path) -> Error {
    Error::io(operation, path, io::Error::other("the device is gone"))
}
