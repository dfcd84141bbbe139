//! What a loss of power may leave, one piece at a time.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::files::{Directory, Inode, InodeRef};
use super::plan::Plan;
use super::{Faulty, State};
use crate::sync::{Arc, Mutex};

/// A piece of what the cache has not written yet. A loss of power takes or leaves each piece
/// independently of the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unsynced {
    /// The directory in which it changes a name; none for a part of a file.
    pub directory: Option<PathBuf>,
    /// Number of the change that it belongs to; the sectors of one write share it.
    pub change: usize,
}

impl Faulty {
    /// What is not on the platter, in pieces: first the changes of names, then the truncations and
    /// the parts of writes that lie in one sector. The pieces of a file are in the order in which
    /// they were made. What a failed sync lost is not among them.
    pub fn unsynced(&self) -> Vec<Unsynced> {
        let state = self.state.lock();
        let mut pieces = Vec::new();
        let mut change = 0;
        for (path, directory) in &state.directories {
            for _ in 0..directory.unsynced_changes() {
                let directory = Some(path.clone());
                pieces.push(Unsynced { directory, change });
                change += 1;
            }
        }
        for file in files(&state) {
            for written in &file.lock().unsynced {
                let directory = None;
                let piece = Unsynced { directory, change };
                pieces.resize(pieces.len() + written.pieces().len(), piece);
                change += 1;
            }
        }
        pieces
    }

    /// The disk as the next boot finds it if the power goes now and only those pieces of
    /// [`Faulty::unsynced`] survive whose number `keeps` accepts. It has no faults planned;
    /// capacities stay. This disk goes on.
    #[must_use = "the disk after the crash is the returned one"]
    pub fn image(&self, mut keeps: impl FnMut(usize) -> bool) -> Faulty {
        Self::with(image(&mut self.state.lock(), &mut keeps))
    }
}

/// Every file that may be there after a loss of power, listed once however many names it has.
fn files(state: &State) -> Vec<InodeRef> {
    let mut files: Vec<InodeRef> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for file in state.directories.values().flat_map(Directory::files) {
        if seen.insert(Arc::as_ptr(file)) {
            files.push(Arc::clone(file));
        }
    }
    files
}

/// As [`Faulty::image`].
pub(super) fn image(state: &mut State, keeps: &mut dyn FnMut(usize) -> bool) -> State {
    let mut number = 0;
    let mut next = || {
        let kept = keeps(number);
        number += 1;
        kept
    };
    let mut names = Vec::new();
    for (path, directory) in &state.directories {
        let entries = directory.entries_keeping(|_| next());
        names.push((path.clone(), entries, directory.capacity));
    }
    let mut survivors: HashMap<*const Mutex<Inode>, InodeRef> = HashMap::new();
    for file in files(state) {
        let inode = file.lock();
        let mut content = inode.durable.clone();
        for piece in inode.unsynced.iter().flat_map(|change| change.pieces()) {
            if next() {
                piece.apply(&mut content);
            }
        }
        let survivor = Arc::new(Mutex::new(Inode::durable(content)));
        survivors.insert(Arc::as_ptr(&file), survivor);
    }
    let mut directories = BTreeMap::new();
    for (path, mut entries, capacity) in names {
        for file in entries.values_mut() {
            if let Some(survivor) = survivors.get(&Arc::as_ptr(file)) {
                *file = Arc::clone(survivor);
            }
        }
        directories.insert(path, Directory::durable(entries, capacity));
    }
    State {
        directories,
        locked: Vec::new(),
        plan: Plan::default(),
        rng: StdRng::seed_from_u64(state.rng.random()),
        gone: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::storage::{CrashStyle, LogStore, Medium};

    fn dir() -> &'static Path {
        Path::new("/fast")
    }

    /// Two changes of names that are not synced, and two writes over three parts of sectors to a
    /// file whose name is.
    fn disk(seed: u64) -> (Faulty, Arc<dyn LogStore>) {
        let disk = Faulty::new(seed);
        let store = disk.log_store(dir(), true).unwrap();
        let log = store.create("f").unwrap();
        store.sync_dir().unwrap();
        log.append(&[7; 600]).unwrap();
        log.append(&[8; 100]).unwrap();
        store.create("g").unwrap();
        store.rename("g", "h").unwrap();
        (disk, store)
    }

    #[test]
    fn names_and_sectors_of_writes_are_pieces() {
        let (disk, store) = disk(1);
        let pieces = disk.unsynced();
        let names = pieces.iter().filter(|p| p.directory.is_some()).count();
        let changes: Vec<usize> = pieces.iter().map(|p| p.change).collect();
        assert_eq!((names, changes), (2, vec![0, 1, 2, 2, 3]));
        store.sync_dir().unwrap();
        assert_eq!(disk.unsynced().len(), 3);
    }

    #[test]
    fn every_subset_of_pieces_is_an_image_and_no_two_are_alike() {
        let (disk, store) = disk(1);
        let count = disk.unsynced().len();
        let mut seen = BTreeSet::new();
        for mask in 0..1u32 << count {
            let image = disk.image(|piece| mask >> piece & 1 == 1);
            let names: Vec<_> = image.list_raw(dir()).into_iter().map(|f| f.name).collect();
            seen.insert((names, image.read_raw(dir(), "f").unwrap()));
        }
        // The other file has its old name `g`, its new one `h` (whether or not `g` survived), or
        // none: 3 × 2³.
        assert_eq!(seen.len(), 24);
        let hole = disk.image(|piece| piece == 4);
        let mut expected = vec![0; 600];
        expected.extend([8; 100]);
        assert_eq!(hole.read_raw(dir(), "f").unwrap(), expected);
        assert!(store.list().is_ok(), "the disk goes on");
    }

    #[test]
    fn a_file_of_two_names_is_one_file_in_an_image() {
        let disk = Faulty::new(1);
        let store = disk.table_store(dir(), true).unwrap();
        let target = Path::new("/copy");
        let copy = disk.table_store(target, true).unwrap();
        let mut writer = store.create("1.sst", 0).unwrap();
        writer.append(b"content").unwrap();
        writer.finish().unwrap();
        store.link("1.sst", target).unwrap();
        let linked = disk.image(|_| true);
        linked.corrupt(dir(), "1.sst", 0, 1).unwrap();
        assert_eq!(linked.read_raw(target, "1.sst").unwrap(), b"bontent");
        assert!(disk.image(|_| false).list_raw(target).is_empty());
        copy.sync_dir().unwrap();
        assert_eq!(disk.image(|_| false).list_raw(target).len(), 1);
    }

    #[test]
    fn a_share_of_the_pieces_is_kept_in_whatever_order() {
        let kept = |percent| {
            let sectors = |seed| {
                let disk = disk(seed).0.crash(CrashStyle::Keep(percent));
                let content = disk.read_raw(dir(), "f").unwrap();
                let whole = content.len() == 700;
                (whole, content.iter().filter(|byte| **byte != 0).count())
            };
            (0..200).map(sectors).collect::<BTreeSet<_>>()
        };
        assert_eq!(kept(0), BTreeSet::from([(false, 0)]));
        assert_eq!(kept(100), BTreeSet::from([(true, 700)]));
        assert_eq!(kept(50).len(), 8, "every subset of the three parts");
    }
}
