use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::error::Error;
use crate::metrics::Purpose;
use crate::options::Options;
use crate::storage::{CrashStyle, Fault, Faulty, FileInfo, Operation};
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::testing::scene::{SLOW, Scene, VALUE, options};
use crate::tier::copy_number;

const RECORDS: usize = 600;

/// A store with all of its records in tables of the slow tier. Its reads come from the device, and
/// nothing of it is promoted.
struct Cold {
    scene: Scene,
    disk: Faulty,
    model: BTreeMap<String, Vec<u8>>,
}

fn without_caches() -> Options {
    let mut options = options();
    options.block_cache = Some(0);
    options.record_cache = Some(0);
    options
}

impl Cold {
    fn new() -> Self {
        let disk = Faulty::new(1);
        let scene = Scene::on(Arc::new(disk.clone()), without_caches());
        let record = |number| {
            let mut value = vec![0; VALUE];
            rand::fill(&mut value[..]);
            (format!("key{number:05}"), value)
        };
        let model: BTreeMap<_, _> = (0..RECORDS).map(record).collect();
        for (key, value) in &model {
            scene.db.put(key, value).unwrap();
        }
        scene.to_slow();
        scene.points.set("promotion.start", || Err(Error::Closed));
        Self { scene, disk, model }
    }

    /// A store whose slow tables are copied as far as there is room.
    fn with_copies() -> Self {
        let cold = Self::new();
        cold.read_for(3);
        assert!(cold.copied() > 0);
        cold
    }

    /// Reads every record, in both ways, then does all that is due.
    fn read_all(&self) {
        for (key, value) in &self.model {
            let found = self.scene.db.get(key).unwrap();
            assert_eq!(found.as_deref(), Some(&value[..]), "{key}");
        }
        let keys: Vec<_> = self.model.keys().collect();
        let found = self.scene.db.multi_get(&keys).unwrap();
        let found: Vec<_> = found.iter().map(|value| value.as_deref()).collect();
        let wanted: Vec<_> = self.model.values().map(|value| Some(&value[..])).collect();
        assert!(found == wanted);
        self.scene.drain();
    }

    /// Reads on for that many spans, or until nothing comes from the slow tier any more.
    fn read_for(&self, spans: u64) {
        let engine = self.scene.engine();
        let reads = || engine.hotrap().copying.reads.load(Ordering::Relaxed);
        let span = || {
            engine
                .hotrap()
                .copying
                .looks
                .load(Ordering::Relaxed)
                .div_ceil(LOOKS)
        };
        let (end, mut last, mut idle) = (span() + spans, 0, 0);
        for key in self.model.keys().cycle() {
            self.scene.db.get(key).unwrap();
            self.pass(Duration::from_millis(500));
            idle = if reads() == last { idle + 1 } else { 0 };
            last = reads();
            if span() >= end || idle > RECORDS {
                break;
            }
        }
    }

    /// Lets so much time pass, and does what is due then.
    fn pass(&self, time: Duration) {
        let engine = self.scene.engine();
        engine.clock.sleep(time);
        engine.placement.tick(&engine, engine.clock.now());
        self.scene.drain();
    }

    fn fast(&self) -> Arc<crate::tier::Tier> {
        Arc::clone(self.scene.engine().fast())
    }

    fn copied(&self) -> u64 {
        self.fast().copied_bytes()
    }

    /// Reads of users on the tier's device so far.
    fn device_reads(&self, tier: usize) -> u64 {
        let engine = self.scene.engine();
        engine.tiers[tier].io(Purpose::UserRead).read_ops
    }

    fn files(&self) -> Vec<FileInfo> {
        copies(&self.disk)
    }
}

fn copies(disk: &Faulty) -> Vec<FileInfo> {
    let mut files = disk.list_raw(Path::new("/fast"));
    files.retain(|file| copy_number(&file.name).is_some());
    files
}

fn bytes_of(files: &[FileInfo]) -> u64 {
    files.iter().map(|file| file.len).sum()
}

#[test]
fn reads_come_from_copies_in_room_that_nothing_uses() {
    let cold = Cold::new();
    cold.read_for(1);
    assert_eq!(cold.copied(), 0, "what nothing uses is not known yet");
    cold.read_for(2);
    let slow = cold.scene.db.metrics().tiers[1].table_bytes;
    assert_eq!(cold.copied(), slow, "there is room for all");
    assert_eq!(bytes_of(&cold.files()), slow);
    let before = (cold.device_reads(0), cold.device_reads(1));
    cold.read_all();
    assert_eq!(cold.device_reads(1), before.1);
    assert!(cold.device_reads(0) >= before.0 + RECORDS as u64);
    let metrics = cold.scene.db.metrics();
    assert_eq!(metrics.tiers[0].copied_bytes, slow);
    assert!(metrics.tiers[0].file_bytes >= slow, "they are files too");
}

#[test]
fn whoever_claims_room_has_it_at_once() {
    let cold = Cold::with_copies();
    let table = cold.files()[0].len;
    let part = cold.copied() / 2;
    let held = cold
        .fast()
        .reserve(cold.fast().free_for_jobs() - part)
        .unwrap();
    assert!(
        cold.copied() <= part && cold.copied() + 2 * table > part,
        "no more than has to"
    );
    let rest = cold.scene.take_all_space();
    assert_eq!((cold.copied(), cold.files().len()), (0, 0));
    let before = cold.device_reads(1);
    cold.read_all();
    assert!(cold.device_reads(1) > before, "from the slow tier again");
    drop((held, rest));
}

/// The file of a copy stays until the last read of it has ended. While each of many copies is being
/// read, taking back room must not go on to the next copy until the first of these reads has ended.
#[test]
fn a_copy_that_is_being_read_goes_with_the_end_of_that_read() {
    let cold = Cold::with_copies();
    let pinned = cold.scene.tree().pin();
    let tables = pinned.version.levels[SLOW].tables.iter();
    let reads: Vec<_> = tables
        .filter_map(|table| table.table().unwrap().copies().whole.get())
        .collect();
    let before = cold.copied();
    let part = cold.files()[0].len / 2;
    let free = cold.fast().free_for_jobs() - before;
    let held = cold.fast().reserve(free + part).unwrap();
    assert_eq!(cold.copied(), before, "their files are there");
    drop(reads);
    assert!(cold.copied() < before);
    assert!(
        cold.copied() + 2 * cold.files()[0].len > before,
        "one is enough"
    );
    drop(held);
}

/// Before it read the first block, a round took the copies for all of its blocks, and kept them
/// until the last block had come from the slow tier. With many keys that took half a minute.
/// Whoever claimed the room meanwhile was given it, although the copies still lay in it (I8).
#[test]
fn many_keys_keep_no_copies_but_those_that_are_being_read() {
    // The last two batches read the level that has copies: first the blocks on the fast tier, then
    // the rest. The room is taken before the first of these, which then reads from the slow tier,
    // and after it.
    for from_end in [2, 1] {
        let cold = Cold::with_copies();
        let table = Arc::clone(&cold.scene.tree().pin().version.levels[SLOW].tables[7]);
        assert!(table.table().unwrap().copies().whole.clear() > 0);
        let batches = Arc::new(AtomicU64::new(0));
        let begun = Arc::clone(&batches);
        cold.scene.points.set("multi_get.batch", move || {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let keys: Vec<_> = cold.model.keys().collect();
        cold.scene.db.multi_get(&keys).unwrap();
        let all = batches.swap(0, Ordering::Relaxed);
        let (begun, disk) = (Arc::clone(&batches), cold.disk.clone());
        let scene = cold.scene.clone();
        let held = crate::sync::Mutex::new(None);
        cold.scene.points.set("multi_get.batch", move || {
            if begun.fetch_add(1, Ordering::Relaxed) == all - from_end {
                assert!(scene.engine().fast().copied_bytes() > 0);
                *held.lock() = Some(scene.take_all_space());
                assert_eq!(scene.engine().fast().copied_bytes(), 0);
                assert_eq!(copies(&disk), []);
            }
            Ok(())
        });
        let found = cold.scene.db.multi_get(&keys).unwrap();
        // The hook holds the store, too.
        cold.scene.points.clear("multi_get.batch");
        assert_eq!(batches.load(Ordering::Relaxed), all);
        let found = found.iter().map(|value| value.as_deref());
        assert!(found.eq(cold.model.values().map(|value| Some(&value[..]))));
    }
}

#[test]
fn a_file_that_grows_without_a_claim_has_room_too() {
    let cold = Cold::with_copies();
    let fast = cold.fast();
    let bytes = fast.free_for_jobs();
    fast.add_file_bytes(bytes);
    assert_eq!((cold.copied(), cold.files().len()), (0, 0));
    fast.remove_file_bytes(bytes);
}

#[test]
fn room_that_is_claimed_now_and_then_holds_no_copies() {
    let cold = Cold::new();
    for _ in 0..5 {
        drop(cold.scene.take_all_space());
        cold.read_for(1);
        assert_eq!(cold.copied(), 0);
    }
    cold.read_for(2);
    assert!(cold.copied() > 0);
}

/// The room that a copy is written into is not the copy's own. Once claimed, it was given back only
/// with the copy's next part, and until then the copy's file was on the device.
#[test]
fn room_that_is_claimed_while_a_copy_is_written_is_left() {
    let cold = Cold::new();
    let held = Arc::new(crate::sync::Mutex::new(None));
    let (taken, disk) = (Arc::clone(&held), cold.disk.clone());
    let hook = cold.scene.at("copying.written", move |scene| {
        let disk = &disk;
        assert!(!copies(disk).is_empty(), "there is one to be taken");
        *taken.lock() = Some(scene.take_all_space());
        assert_eq!(scene.engine().fast().copied_bytes(), 0);
        assert_eq!(copies(disk), []);
        Ok(())
    });
    cold.read_for(3);
    assert!(hook.has_run());
    assert_eq!((cold.copied(), cold.files().len()), (0, 0));
}

#[test]
fn the_table_that_is_read_most_is_copied_first() {
    let cold = Cold::new();
    let first = AtomicBool::new(true);
    let only_the_first = move || match first.swap(false, Ordering::Relaxed) {
        true => Ok(()),
        false => Err(Error::Closed),
    };
    cold.scene.points.set("copying.written", only_the_first);
    let table = Arc::clone(&cold.scene.tree().pin().version.levels[SLOW].tables[7]);
    let keys = cold.model.keys();
    let keys: Vec<_> = keys
        .filter(|key| table.meta.range.contains(key.as_bytes()))
        .collect();
    for _ in 0..3 {
        // The records that are read first stay in the promotion cache, so these are another
        // table's.
        for key in cold.model.keys().chain(keys.repeat(5)) {
            cold.scene.db.get(key).unwrap();
        }
        cold.pass(Duration::from_secs(2));
    }
    assert_eq!(cold.files().len(), 1);
    assert!(table.table().unwrap().copies().whole.get().is_some());
}

#[test]
fn a_copy_that_is_damaged_costs_no_answer() {
    let cold = Cold::with_copies();
    let before = cold.files();
    for file in &before {
        for offset in (0..file.len).step_by(256) {
            cold.disk
                .corrupt(Path::new("/fast"), &file.name, offset, 1)
                .unwrap();
        }
    }
    cold.read_all();
    assert!(
        cold.files()
            .iter()
            .all(|file| !before.iter().any(|b| b.name == file.name)),
        "given up"
    );
    assert!(
        cold.scene
            .db
            .verify(&mut |_| {})
            .unwrap()
            .problems
            .is_empty()
    );
}

#[test]
fn a_copy_goes_with_its_table() {
    let cold = Cold::with_copies();
    let scene = &cold.scene;
    let tables = || {
        let tables = scene.tree().pin().version.levels[SLOW].tables.to_vec();
        tables.iter().map(|table| table.meta.id).collect::<Vec<_>>()
    };
    let (before, tables_before) = (cold.files(), tables());
    for (key, value) in &cold.model {
        scene.db.put(key, value).unwrap();
    }
    scene.to_slow();
    assert!(tables().iter().all(|id| !tables_before.contains(id)));
    assert!(cold.files().iter().all(|file| !before.contains(file)));
    assert_eq!(cold.copied(), bytes_of(&cold.files()));
}

#[test]
fn closing_leaves_no_copies() {
    let cold = Cold::with_copies();
    cold.scene.db.close().unwrap();
    assert_eq!(cold.files().len(), 0);
}

/// If a copy was being read when the store was closed, it was removed when that read ended, without
/// the locks. By then the directory was nobody's, or another store's, which lost its copy of the
/// same number (I4).
#[test]
fn a_copy_that_is_being_read_at_the_closing_is_left_to_the_next_opening() {
    let cold = Cold::with_copies();
    let pinned = cold.scene.tree().pin();
    let mut tables = pinned.version.levels[SLOW].tables.iter();
    let read = tables.find_map(|table| table.table().unwrap().copies().whole.get());
    cold.scene.db.close().unwrap();
    let before = cold.disk.list_raw(Path::new("/fast"));
    assert_eq!(cold.files().len(), 1, "the one that is being read");
    drop(read);
    assert_eq!(cold.disk.list_raw(Path::new("/fast")), before);
    let scene = Scene::on(Arc::new(cold.disk.clone()), without_caches());
    assert_eq!(cold.files().len(), 0);
    assert_eq!(scene.engine().fast().copied_bytes(), 0);
}

#[test]
fn opening_keeps_no_copies() {
    let cold = Cold::with_copies();
    let crashed = cold.disk.crash(CrashStyle::KeepAll);
    let left = copies(&crashed).len();
    assert!(left > 0);
    let others = ["1.copy", "notes.copy", "00000001.copy.bak"];
    for name in others {
        crashed.write_raw(Path::new("/fast"), name, b"a user's");
    }
    let scene = Scene::on(Arc::new(crashed.clone()), without_caches());
    assert_eq!(copies(&crashed).len(), 0);
    assert_eq!(scene.engine().fast().copied_bytes(), 0);
    let names: Vec<_> = crashed
        .list_raw(Path::new("/fast"))
        .into_iter()
        .map(|file| file.name)
        .collect();
    assert!(
        others
            .iter()
            .all(|other| names.iter().any(|name| name == other)),
        "{names:?}"
    );
}

#[test]
fn destroying_a_store_removes_its_copies() {
    let cold = Cold::with_copies();
    let crashed = cold.disk.crash(CrashStyle::KeepAll);
    assert!(!copies(&crashed).is_empty());
    let disk: Arc<dyn crate::storage::Medium> = Arc::new(crashed.clone());
    let builder = crate::Db::builder(without_caches());
    builder
        .medium(0, Arc::clone(&disk))
        .medium(1, disk)
        .destroy()
        .unwrap();
    assert!(copies(&crashed).is_empty());
}

#[test]
fn a_disk_that_takes_no_copy_is_asked_again_a_span_later() {
    let cold = Cold::new();
    let is_copy_of =
        |operation, name: &str| operation == Operation::Append && copy_number(name).is_some();
    cold.disk.fail_where(is_copy_of, Fault::NoSpace);
    cold.read_for(3);
    assert_eq!((cold.copied(), cold.files().len()), (0, 0));
    let failed = cold.disk.triggered();
    assert!((1..=4).contains(&failed), "{failed} times in three spans");
    cold.disk.heal();
    cold.scene.db.put("key", "value").unwrap();
    cold.read_for(3);
    assert!(cold.copied() > 0);
}

/// A copy was synced like a table. On a device on which that failed, the store ended writing,
/// though nobody would have missed the copy.
#[test]
fn nothing_of_a_copy_is_synced() {
    let cold = Cold::new();
    let is_of_a_copy =
        |operation, name: &str| operation == Operation::Sync && copy_number(name).is_some();
    cold.disk.fail_where(is_of_a_copy, Fault::SyncFails);
    cold.read_for(3);
    assert!(cold.copied() > 0);
    assert_eq!(cold.disk.triggered(), 0);
    cold.disk.heal();
    cold.read_all();
}

/// Gives the fast tier's device as much room as its files take now, and `spare` bytes more.
fn fill_device(disk: &Faulty, spare: u64) {
    let used = disk.list_raw(Path::new("/fast"));
    disk.capacity(Path::new("/fast"), bytes_of(&used) + spare);
}

/// A capacity says what may be used, not what the device has. If the device had less, copies filled
/// it, and a writer that found no room did not have them removed: flushes failed for ever.
#[test]
fn copies_go_where_the_device_has_less_room_than_the_capacity() {
    type Write = fn(&Cold);
    // The spare bytes are enough for the log's and the manifest's part of a flush.
    let writes: [(&str, u64, Write); 3] = [
        ("the log", 0, |cold| {
            cold.scene.db.put("key", [0; VALUE]).unwrap();
        }),
        ("the manifest", 0, |cold| {
            cold.scene.db.create_keyspace("more").map(drop).unwrap();
        }),
        ("a table", 2048, |cold| cold.scene.db.flush().unwrap()),
    ];
    for (what, spare, write) in writes {
        let cold = Cold::with_copies();
        for number in 0..20 {
            cold.scene.put(&format!("more{number}"), "new");
        }
        fill_device(&cold.disk, spare);
        write(&cold);
        assert_eq!((cold.copied(), cold.files().len()), (0, 0), "{what}");
        cold.disk.capacity(Path::new("/fast"), u64::MAX);
        cold.read_for(1);
        assert_eq!(cold.copied(), 0, "{what}: not at once again");
        cold.read_for(3);
        assert!(cold.copied() > 0, "{what}");
    }
}

/// Access records lie on a tier of their own, which has no copies. If a store was only read, and
/// copies filled the device, nothing more was learnt of its reads.
#[test]
fn copies_go_where_access_records_find_no_room() {
    let cold = Cold::with_copies();
    let dir = Path::new("/fast/ralt");
    cold.disk.capacity(dir, bytes_of(&cold.disk.list_raw(dir)));
    let (engine, id) = (cold.scene.engine(), cold.scene.tree().id);
    let ralt = &engine.hotrap().ralt;
    while !ralt.log(id, b"key", 1, 1) {}
    while ralt.work() {}
    assert_eq!((cold.copied(), cold.files().len()), (0, 0));
}

/// A flush is tried again as long as copies are given up for it. If a copy could not be removed, it
/// was tried for ever, and nobody heard that the device was full.
#[test]
fn copies_that_cannot_be_removed_are_given_up_in_vain_once() {
    let cold = Cold::with_copies();
    for number in 0..20 {
        cold.scene.put(&format!("more{number}"), "new");
    }
    let is_of_a_copy =
        |operation, name: &str| operation == Operation::Remove && copy_number(name).is_some();
    cold.disk.fail_where(is_of_a_copy, Fault::Io);
    fill_device(&cold.disk, 2048);
    let full = cold.scene.db.flush();
    assert!(matches!(full, Err(Error::NoSpace { .. })), "{full:?}");
    assert!(cold.copied() > 0, "they are there");
    cold.disk.capacity(Path::new("/fast"), u64::MAX);
    cold.scene.db.flush().unwrap();
}

/// An opening begins a manifest. On a device that copies had filled there was no room for it, since
/// the copies were to be removed only later.
#[test]
fn an_opening_has_the_room_of_the_copies_that_a_crash_left() {
    let cold = Cold::with_copies();
    let crashed = cold.disk.crash(CrashStyle::KeepAll);
    fill_device(&crashed, 0);
    let scene = Scene::on(Arc::new(crashed.clone()), without_caches());
    assert_eq!(
        scene.db.get("key00007").unwrap().as_deref(),
        cold.model.get("key00007").map(|value| &value[..])
    );
}

/// A repair did not have that room, either.
#[test]
fn a_repair_has_the_room_of_the_copies_that_a_crash_left() {
    let cold = Cold::with_copies();
    let crashed = cold.disk.crash(CrashStyle::KeepAll);
    crashed
        .corrupt(Path::new("/fast"), "CURRENT", 3, 1)
        .unwrap();
    fill_device(&crashed, 0);
    let disk: Arc<dyn crate::storage::Medium> = Arc::new(crashed.clone());
    let builder = crate::Db::builder(without_caches()).medium(0, Arc::clone(&disk));
    let report = builder.medium(1, disk).repair(false).unwrap();
    assert!(report.losses.is_empty(), "{report:?}");
    assert!(copies(&crashed).is_empty());
    let scene = Scene::on(Arc::new(crashed), without_caches());
    assert!(scene.db.get("key00007").unwrap().is_some());
}

/// Without a capacity it is not known what the device holds.
#[test]
fn nothing_is_copied_to_a_tier_without_a_capacity() {
    let mut options = without_caches();
    options.tiers[0].capacity = u64::MAX;
    let mut cold = Cold::new();
    cold.scene = cold.scene.reopen(options);
    cold.read_for(3);
    assert!(cold.device_reads(1) > 0);
    assert_eq!((cold.copied(), cold.files().len()), (0, 0));
}

/// Such a table stayed the one that was most worth a copy, and no other got one.
#[test]
fn a_table_that_cannot_be_read_as_a_whole_keeps_no_other_from_being_copied() {
    let cold = Cold::new();
    let table = Arc::clone(&cold.scene.tree().pin().version.levels[SLOW].tables[7]);
    let (name, copying) = (table.meta.file_name(), Arc::new(AtomicBool::new(false)));
    let is_copying = Arc::clone(&copying);
    let fails = move |operation, file: &str| {
        operation == Operation::Read && file == name && is_copying.load(Ordering::Relaxed)
    };
    cold.disk.fail_where(fails, Fault::Io);
    for _ in 0..6 {
        for key in cold.model.keys() {
            let is_of_table = table.meta.range.contains(key.as_bytes());
            for _ in 0..if is_of_table { 5 } else { 1 } {
                cold.scene.db.get(key).unwrap();
            }
            copying.store(true, Ordering::Relaxed);
            cold.pass(Duration::from_millis(500));
            copying.store(false, Ordering::Relaxed);
        }
    }
    assert_eq!(cold.disk.triggered(), 1, "it is not tried again");
    assert!(table.table().unwrap().copies().whole.get().is_none());
    let slow = cold.scene.db.metrics().tiers[1].table_bytes;
    assert_eq!(cold.copied(), slow - table.meta.len);
}

/// Each read of such a table gave up the copy, which is as good as the table, and another copy was
/// made.
#[test]
fn a_table_that_is_damaged_itself_keeps_its_copy() {
    let cold = Cold::new();
    let table = Arc::clone(&cold.scene.tree().pin().version.levels[SLOW].tables[0]);
    let file = table.meta.file_name();
    cold.disk
        .corrupt(Path::new("/slow"), &file, 100, 1)
        .unwrap();
    let damaged = cold.model.keys().next().unwrap();
    let read_others = || {
        for key in cold.model.keys().skip(20) {
            cold.scene.db.get(key).unwrap();
            cold.pass(Duration::from_millis(500));
        }
    };
    (0..6).for_each(|_| read_others());
    let slow = cold.scene.db.metrics().tiers[1].table_bytes;
    assert_eq!(cold.copied(), slow);
    let before = cold.files();
    for _ in 0..3 {
        let read = cold.scene.db.get(damaged);
        assert!(matches!(read, Err(Error::Corruption { .. })), "{read:?}");
        read_others();
    }
    assert_eq!(cold.files(), before);
}

/// A writer that found no room waited for the end of a copy, which makes none.
#[test]
fn nobody_waits_for_a_copy_to_make_room() {
    let cold = Cold::new();
    let engine = cold.scene.engine();
    assert!(engine.makes_no_room() && engine.is_idle());
    engine.hotrap().copier.runs.store(true, Ordering::Release);
    assert!(engine.makes_no_room() && !engine.is_idle());
    engine.hotrap().copier.runs.store(false, Ordering::Release);
}
