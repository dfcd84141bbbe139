//! What a loss of power leaves behind.

use std::collections::{BTreeMap, HashMap};

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use super::files::{Change, Directory, Inode, InodeRef, SECTOR};
use super::plan::Plan;
use super::{State, image};
use crate::sync::{Arc, Mutex};

/// What happens to changes that were not synced when the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrashStyle {
    /// Nothing of them reached the platter.
    LoseAll,
    /// All of them did, apart from those that a failed sync lost.
    KeepAll,
    /// This percentage of them did, drawn from the seed, whatever the order in which they were
    /// made. Each name of a directory, each truncation and each sector of a write is drawn by
    /// itself.
    Keep(u8),
    /// Drawn from the seed. Of a directory's changes of names, the first few are kept. Of a file's
    /// changes, none, all or the first few are kept. If the first few are, the last of them is cut
    /// at a sector, and some sectors of what is kept may hold zeros or garbage, because their
    /// writes were overtaken.
    Random,
}

/// Marks the old state as gone and returns the new one.
pub(super) fn cut_power(state: &mut State, how: CrashStyle) -> State {
    state.gone = true;
    if let CrashStyle::Keep(percent) = how {
        let mut rng = StdRng::seed_from_u64(state.rng.random());
        return image::image(state, &mut |_| rng.random_range(0..100) < percent);
    }
    let rng = &mut state.rng;
    // Two names of one file still share it after the crash.
    let mut survivors: HashMap<*const Mutex<Inode>, InodeRef> = HashMap::new();
    let mut directories = BTreeMap::new();
    for (path, directory) in &state.directories {
        let unsynced = directory.unsynced_changes();
        let written = match how {
            CrashStyle::LoseAll => 0,
            CrashStyle::KeepAll => unsynced,
            CrashStyle::Keep(_) | CrashStyle::Random => rng.random_range(0..=unsynced),
        };
        let mut entries = directory.entries_keeping(|number| number < written);
        for file in entries.values_mut() {
            let survivor = survivors.entry(Arc::as_ptr(file)).or_insert_with(|| {
                let content = surviving_content(&file.lock(), how, rng);
                Arc::new(Mutex::new(Inode::durable(content)))
            });
            *file = Arc::clone(survivor);
        }
        let after = Directory::durable(entries, directory.capacity);
        directories.insert(path.clone(), after);
    }
    State {
        directories,
        locked: Vec::new(),
        plan: Plan::default(),
        rng: StdRng::seed_from_u64(rng.random()),
        gone: false,
    }
}

fn surviving_content(file: &Inode, how: CrashStyle, rng: &mut StdRng) -> Vec<u8> {
    let mut content = file.durable.clone();
    match how {
        CrashStyle::LoseAll => {}
        CrashStyle::KeepAll => apply(&file.unsynced, &mut content),
        CrashStyle::Keep(_) | CrashStyle::Random => match rng.random_range(0..4) {
            0 => {}
            1 => apply(&file.unsynced, &mut content),
            _ => {
                let kept = torn(&file.unsynced, rng);
                apply(&kept, &mut content);
                if rng.random() {
                    overtake(&kept, &mut content, rng);
                }
            }
        },
    }
    content
}

fn apply(changes: &[Change], content: &mut Vec<u8>) {
    for change in changes {
        change.apply(content);
    }
}

/// The first few of `changes`; the last of them is cut at a multiple of [`SECTOR`] in the file.
fn torn(changes: &[Change], rng: &mut impl Rng) -> Vec<Change> {
    let whole = rng.random_range(0..=changes.len());
    let mut kept = changes[..whole].to_vec();
    if let Some(Change::Write { offset, bytes }) = changes.get(whole) {
        let end = rng.random_range(*offset..=offset + bytes.len());
        let cut = end - end % SECTOR;
        if cut > *offset {
            kept.push(Change::Write {
                offset: *offset,
                bytes: bytes[..cut - offset].to_vec(),
            });
        }
    }
    kept
}

/// Spoils some sectors of the unsynced bytes, but never a synced byte.
fn overtake(changes: &[Change], content: &mut [u8], rng: &mut impl Rng) {
    for change in changes {
        let Change::Write { offset, bytes } = change else {
            continue;
        };
        // A later truncation may have cut these bytes off.
        let end = (offset + bytes.len()).min(content.len());
        let mut start = *offset;
        while start < end {
            let next = ((start / SECTOR + 1) * SECTOR).min(end);
            match rng.random_range(0..8) {
                0 => content[start..next].fill(0),
                1 => rng.fill_bytes(&mut content[start..next]),
                _ => {}
            }
            start = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::storage::{Fault, Faulty, LogStore, Medium};

    const DIR: &str = "/fast";

    fn dir() -> &'static Path {
        Path::new(DIR)
    }

    /// A disk with a file "f" whose name and content `synced` are durable, and to which `unsynced`
    /// was appended.
    fn disk(seed: u64, synced: &[u8], unsynced: &[&[u8]]) -> (Faulty, Arc<dyn LogStore>) {
        let disk = Faulty::new(seed);
        let store = disk.log_store(dir(), true).unwrap();
        let log = store.create("f").unwrap();
        log.append(synced).unwrap();
        log.sync().unwrap();
        store.sync_dir().unwrap();
        for bytes in unsynced {
            log.append(bytes).unwrap();
        }
        (disk, store)
    }

    #[test]
    fn lose_all_keeps_what_was_synced_and_keep_all_the_rest_too() {
        let (lost, _) = disk(1, b"synced", &[b" and", b" not"]);
        let lost = lost.crash(CrashStyle::LoseAll);
        assert_eq!(lost.read_raw(dir(), "f").unwrap(), b"synced");
        let (kept, _) = disk(1, b"synced", &[b" and", b" not"]);
        let kept = kept.crash(CrashStyle::KeepAll);
        assert_eq!(kept.read_raw(dir(), "f").unwrap(), b"synced and not");
    }

    #[test]
    fn names_need_their_directory_synced() {
        let (disk, store) = disk(1, b"old", &[]);
        let new = store.create("g").unwrap();
        new.append(b"new").unwrap();
        new.sync().unwrap();
        store.rename("g", "f").unwrap();
        let kept = {
            let (other, other_store) = self::disk(1, b"old", &[]);
            other_store.create("g").unwrap().append(b"new").unwrap();
            other_store.rename("g", "f").unwrap();
            other.crash(CrashStyle::KeepAll)
        };
        let lost = disk.crash(CrashStyle::LoseAll);
        assert_eq!(lost.read_raw(dir(), "f").unwrap(), b"old");
        assert_eq!(lost.list_raw(dir()).len(), 1);
        assert_eq!(kept.read_raw(dir(), "f").unwrap(), b"new");
        assert_eq!(kept.list_raw(dir()).len(), 1);
    }

    #[test]
    fn a_removal_and_a_truncation_may_be_undone() {
        let (disk, store) = disk(1, b"content", &[]);
        store.create("f").unwrap();
        assert_eq!(store.read("f").unwrap(), b"");
        store.remove("f").unwrap();
        let disk = disk.crash(CrashStyle::LoseAll);
        assert_eq!(disk.read_raw(dir(), "f").unwrap(), b"content");
    }

    #[test]
    fn the_old_device_is_gone_and_its_lock_free() {
        let (old, store) = disk(1, b"", &[]);
        let log = store.create("g").unwrap();
        let lock = store.lock().unwrap();
        let new = old.crash(CrashStyle::LoseAll);
        let gone = [
            log.append(b"x").unwrap_err(),
            log.sync().unwrap_err(),
            store.list().unwrap_err(),
            store.lock().unwrap_err(),
            old.log_store(dir(), true).unwrap_err(),
        ];
        for error in gone {
            assert!(matches!(error, Error::Io { .. }), "{error}");
            assert!(error.to_string().contains("device is gone"), "{error}");
        }
        new.log_store(dir(), false).unwrap().lock().unwrap();
        drop(lock);
    }

    #[test]
    fn power_lost_at_a_call_leaves_what_was_unsynced_to_the_crash() {
        for (how, expected) in [
            (CrashStyle::LoseAll, &b"synced"[..]),
            (CrashStyle::KeepAll, b"synced and"),
        ] {
            let (disk, store) = disk(1, b"synced", &[b" and"]);
            disk.fail_nth(2, Fault::PowerLoss);
            store.list().unwrap();
            assert!(store.sync_dir().is_err());
            assert!(store.list().is_err(), "the power stays away");
            assert_eq!(disk.crash(how).read_raw(dir(), "f").unwrap(), expected);
        }
    }

    #[test]
    fn random_crashes_follow_the_seed_and_differ_between_seeds() {
        let outcome = |seed| {
            let (disk, store) = disk(seed, b"synced", &[&[7; 3000], &[8; 3000]]);
            for name in ["a", "b", "c"] {
                store.create(name).unwrap();
            }
            let disk = disk.crash(CrashStyle::Random);
            (disk.list_raw(dir()), disk.read_raw(dir(), "f").unwrap())
        };
        let outcomes: Vec<_> = (0..50).map(outcome).collect();
        assert_eq!(outcomes[3], outcome(3));
        let names = |n: usize| outcomes.iter().any(|(list, _)| list.len() == n);
        assert!((1..=4).all(names), "every prefix of names turns up");
        let lens: std::collections::BTreeSet<_> = outcomes.iter().map(|(_, f)| f.len()).collect();
        assert!(lens.contains(&6) && lens.contains(&6006) && lens.len() > 5);
        // Some seeds lost a sector in the middle of what they kept.
        let holes = |f: &[u8]| f[6..].iter().any(|b| *b != 7 && *b != 8);
        assert!(outcomes.iter().any(|(_, f)| holes(f)));
    }

    proptest! {
        #[test]
        fn synced_bytes_survive_every_crash_and_tears_are_at_sectors(
            seed in any::<u64>(),
            synced in proptest::collection::vec(any::<u8>(), 0..2000),
            unsynced in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 1..1500), 0..6),
        ) {
            let parts: Vec<&[u8]> = unsynced.iter().map(Vec::as_slice).collect();
            let (disk, _) = disk(seed, &synced, &parts);
            let after = disk.crash(CrashStyle::Random).read_raw(dir(), "f").unwrap();
            prop_assert!(after.starts_with(&synced));
            let mut ends = vec![synced.len()];
            for part in &unsynced {
                ends.push(ends[ends.len() - 1] + part.len());
            }
            prop_assert!(after.len() % SECTOR == 0 || ends.contains(&after.len()));
            prop_assert!(after.len() <= ends[ends.len() - 1]);
        }
    }
}
