//! Inspection of closed stores: it shows what is there, damage included, and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use thermocline::inspect::{self, Change, PlacedBy};
use thermocline::{Db, Error, Kind, Options, Placement, RecoveryMode, TierOptions};

struct Store {
    dir: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir }
    }

    fn options_at(&self, name: &str) -> Options {
        let at = |tier: &str| self.dir.path().join(name).join(tier);
        let mut options = Options::with_tiers(vec![
            TierOptions::fast(at("fast")).capacity(1 << 20),
            TierOptions::slow(at("slow")),
        ]);
        options.memory = 8 << 20;
        options.memtable_size = Some(32 << 10);
        options.table_size = Some(32 << 10);
        options
    }

    fn options(&self) -> Options {
        self.options_at("store")
    }

    /// A closed store with tables on both tiers.
    fn filled() -> Self {
        let store = Self::new();
        let db = Db::open(store.options()).unwrap();
        let names = db.create_keyspace("names").unwrap();
        for i in 0..2_000 {
            db.put(format!("key{i:05}"), vec![i as u8; 800]).unwrap();
        }
        names.put("one", "1").unwrap();
        db.close().unwrap();
        store
    }

    /// A copy of the open store's files but for the access records: what a killed process leaves.
    fn killed(&self) -> Options {
        for tier in ["fast", "slow"] {
            let (from, to) = ("store", "killed");
            let at = |name: &str| self.dir.path().join(name).join(tier);
            fs::create_dir_all(at(to)).unwrap();
            for file in fs::read_dir(at(from)).unwrap() {
                let file = file.unwrap();
                // The directory of recent accesses may be missing.
                if file.file_type().unwrap().is_file() {
                    fs::copy(file.path(), at(to).join(file.file_name())).unwrap();
                }
            }
        }
        self.options_at("killed")
    }

    /// Every file and directory: its bytes and when it was last written. A file that was
    /// created and removed shows in its directory's time.
    fn state(&self) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let mut state = BTreeMap::new();
        let mut left = vec![self.dir.path().to_path_buf()];
        while let Some(path) = left.pop() {
            let written = path.metadata().unwrap().modified().unwrap();
            let bytes = if path.is_dir() {
                let entries = fs::read_dir(&path).unwrap();
                left.extend(entries.map(|entry| entry.unwrap().path()));
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            state.insert(path, (bytes, written));
        }
        state
    }
}

fn flip(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_closed_store_is_shown_whole_and_left_as_it_was() {
    let store = Store::filled();
    let before = store.state();
    let manifest = inspect::manifest(&store.options()).unwrap();
    let tables = inspect::tables(&store.options()).unwrap();
    let segments: Vec<_> = inspect::wal(&store.options()).unwrap().collect();
    assert_eq!(store.state(), before, "inspection changed the store");

    assert_eq!(manifest.damaged(), 0);
    let edits = manifest.edits.iter().filter_map(|e| e.content.valid());
    let changes: Vec<&Change> = edits.flat_map(|edit| &edit.changes).collect();
    let created = |wanted: &str| {
        let is = |c: &&&Change| matches!(c, Change::KeyspaceCreated { name, .. } if name == wanted);
        changes.iter().filter(is).count()
    };
    assert_eq!((created("default"), created("names")), (1, 1));

    assert_eq!((tables.damaged(), tables.unnamed.len()), (0, 0));
    let named: Vec<&PathBuf> = tables.tables.iter().map(|t| &t.file).collect();
    let is_table = |path: &&PathBuf| path.extension().is_some_and(|e| e == "sst");
    let mut on_disk: Vec<&PathBuf> = before.keys().filter(is_table).collect();
    let mut sorted = named.clone();
    sorted.sort();
    on_disk.sort();
    assert_eq!(sorted, on_disk);
    let entries: u64 = tables.tables.iter().map(|t| t.meta.entries).sum();
    assert_eq!(entries, 2_001);
    for tier in [0, 1] {
        assert!(tables.tables.iter().any(|t| t.meta.tier == tier), "{tier}");
    }
    for table in &tables.tables {
        let contents = table.contents.valid().unwrap();
        assert!(contents.data_blocks > 0 && contents.partitions > 0);
        let raw = contents.raw_key_bytes + contents.raw_value_bytes;
        assert!(raw > 0 && table.meta.bytes > contents.data_bytes);
    }
    assert!(tables.tables.iter().any(|t| t.keyspace == "names"));
    assert!(segments.into_iter().all(|s| s.unwrap().damaged() == 0));
}

#[test]
fn the_manifest_says_how_records_are_placed() {
    let store = Store::new();
    let said = || inspect::manifest(&store.options()).unwrap().placed_by;
    for (placement, placed_by) in [
        (Placement::default(), PlacedBy::Hotness),
        (Placement::ByLevel, PlacedBy::Level),
        (Placement::default(), PlacedBy::Hotness),
    ] {
        let mut options = store.options();
        options.placement = placement;
        Db::open(options).unwrap().close().unwrap();
        assert_eq!(said(), Some(placed_by));
        let manifest = inspect::manifest(&store.options()).unwrap();
        let first = manifest.edits[0].content.valid().unwrap();
        assert!(first.changes.contains(&Change::PlacedBy(placed_by)));
        // No job has run, so that nothing is known to be hot, and nothing to be fresh.
        let learned = Change::Learned {
            keyspace: 0,
            cold: 10_000,
            fresh: 0,
        };
        let last = manifest.edits.last().unwrap().content.valid().unwrap();
        assert_eq!(last.changes, [learned]);
        assert!(last.to_string().starts_with("closed"), "{last}");
    }
}

/// The first edit of an opening that tolerated a loss says what it took over of the log, and
/// through which write the rest was given up. Nothing else remembers that, and inspection left it
/// out.
#[test]
fn the_manifest_says_what_was_found_of_the_log_and_what_was_given_up() {
    let store = Store::new();
    let db = Db::open(store.options()).unwrap();
    // It keeps the log of what others write, also of what a table holds.
    let quiet = db.create_keyspace("quiet").unwrap();
    quiet.put("key", "value").unwrap();
    for n in 0..40u8 {
        db.put(format!("key{n:02}"), [n; 1200]).unwrap();
    }
    db.wait_idle().unwrap();
    db.sync().unwrap();
    let mut options = store.killed();
    let tables = inspect::tables(&options).unwrap().tables;
    assert_eq!(tables.len(), 1);
    let segment = inspect::wal(&options).unwrap().next().unwrap().unwrap();
    let number = segment.header.valid().unwrap().number;
    let end = segment.groups[5].offset;
    flip(&segment.file, |_| end as usize + 17);

    options.recovery = RecoveryMode::Tolerant;
    Db::open(options.clone()).unwrap().close().unwrap();
    let manifest = inspect::manifest(&options).unwrap();
    let first = manifest.edits[0].content.valid().unwrap();
    let found = first.changes.iter().find_map(|change| match change {
        Change::LogFound { segments, next } => Some((segments, *next)),
        _ => None,
    });
    let (segments, next) = found.unwrap();
    assert_eq!(*segments, [(number, end)]);
    assert!(next > number);
    let given_up = Change::LogGivenUp(tables[0].meta.last_seq);
    for change in [given_up, Change::LogStart(number)] {
        assert!(first.changes.contains(&change), "{change}: {first}");
    }
}

#[test]
fn the_log_of_a_killed_store_shows_every_write() {
    let store = Store::new();
    let db = Db::open(store.options()).unwrap();
    let names = db.create_keyspace("names").unwrap();
    db.put("apple", "red").unwrap();
    let mut batch = thermocline::Batch::new();
    batch.put_in(&names, "pear", "green");
    batch.delete("apple");
    db.write(batch).unwrap();
    let options = store.killed();
    let segments: Vec<_> = inspect::wal(&options)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].header.valid().unwrap().base_seq, 0);
    let groups: Vec<_> = segments[0].groups.iter().collect();
    assert_eq!(groups.len(), 2, "{groups:?}");
    let writes: Vec<_> = groups
        .iter()
        .flat_map(|g| g.content.valid().unwrap().writes())
        .map(|w| (w.seq, w.kind, &w.key[..], w.value_bytes))
        .collect();
    let expected: [(u64, Kind, &[u8], u64); 3] = [
        (1, Kind::Put, b"apple", 3),
        (2, Kind::Put, b"pear", 5),
        (3, Kind::Delete, b"apple", 0),
    ];
    assert_eq!(writes, expected);
    let manifest = inspect::manifest(&options).unwrap();
    let last = manifest.edits.last().unwrap().to_owned();
    assert!(
        last.content.to_string().contains("create keyspace"),
        "{}",
        last.content
    );
}

#[test]
fn damage_is_an_entry_and_the_rest_is_shown_all_the_same() {
    let store = Store::new();
    let db = Db::open(store.options()).unwrap();
    db.put("in a table", "1").unwrap();
    db.flush().unwrap();
    db.put("in another", "1").unwrap();
    db.flush().unwrap();
    for key in ["first", "second", "third"] {
        db.put(key, "1").unwrap();
    }
    let options = store.killed();
    let whole = inspect::manifest(&options).unwrap();
    let damage = |report: &inspect::ManifestReport| {
        let damaged = report.edits.iter().map(|e| e.content.is_damaged());
        damaged.collect::<Vec<_>>()
    };
    let n = whole.edits.len();
    assert!(n >= 3);
    // An edit in the middle.
    let file = whole.file.clone();
    let intact = fs::read(&file).unwrap();
    flip(&file, |_| whole.edits[n - 2].offset as usize + 20);
    let mut expected = vec![false; n];
    expected[n - 2] = true;
    assert_eq!(damage(&inspect::manifest(&options).unwrap()), expected);
    assert_eq!(inspect::tables(&options).unwrap().problems.len(), 1);
    // The header.
    fs::write(&file, &intact).unwrap();
    flip(&file, |_| 30);
    let headless = inspect::manifest(&options).unwrap();
    assert_eq!((headless.database, headless.damaged()), (None, 1));
    assert_eq!(headless.edits.len(), n + 1);
    // A torn end is none.
    fs::write(&file, &intact[..intact.len() - 1]).unwrap();
    assert_eq!(inspect::manifest(&options).unwrap().damaged(), 0);
    fs::write(&file, &intact).unwrap();

    // A table that is damaged, one that is missing, and one that nobody knows.
    let tables = inspect::tables(&options).unwrap().tables;
    assert_eq!(tables.len(), 2);
    flip(&tables[0].file, |len| len - 30);
    fs::rename(
        &tables[1].file,
        tables[1].file.with_file_name("00000999.sst"),
    )
    .unwrap();
    let report = inspect::tables(&options).unwrap();
    assert_eq!((report.damaged(), report.unnamed.len()), (2, 1));
    assert!(report.tables[1].contents.to_string().contains("missing"));

    // A group of the log in the middle.
    let log = || inspect::wal(&options).unwrap().last().unwrap().unwrap();
    let segment = log();
    assert_eq!(segment.groups.len(), 3);
    flip(&segment.file, |_| segment.groups[1].offset as usize + 17);
    let damaged: Vec<bool> = log()
        .groups
        .iter()
        .map(|g| g.content.is_damaged())
        .collect();
    assert_eq!(damaged, [false, true, false]);
}

/// A closed store of which some records were read.
fn read_of() -> Store {
    let store = Store::filled();
    let db = Db::open(store.options()).unwrap();
    for i in 0..20 {
        assert!(db.get(format!("key{i:05}")).unwrap().is_some());
    }
    db.close().unwrap();
    store
}

#[test]
fn what_is_known_of_accesses_is_shown_and_left_as_it_was() {
    let store = read_of();
    let before = store.state();
    let report = inspect::access_records(&store.options()).unwrap().unwrap();
    assert_eq!(store.state(), before, "inspection changed the store");
    assert_eq!(report.damaged(), 0);
    assert_eq!(report.bytes, fs::metadata(&report.file).unwrap().len());

    let said = report.contents.valid().unwrap();
    let manifest = inspect::manifest(&store.options()).unwrap();
    assert_eq!(Some(said.database), manifest.database);
    // Seven tenths are for hot records until the first eviction, 15 % for what is known of them.
    let of = |share: f64| ((1 << 20) as f64 * share) as u64;
    assert_eq!(said.hot_set_limit_bytes, of(0.7));
    assert_eq!(said.physical_limit_bytes, of(0.15));
    assert_eq!((said.evictions, said.hot_threshold), (0, 0.0));
    assert!(said.records >= 20, "{said}");
    let dir = report.file.parent().unwrap();
    let is_table = |path: &Path| path.extension().is_some_and(|e| e == "sst");
    let files = before.iter().filter(|(path, _)| path.starts_with(dir));
    let tables = files.filter(|(path, _)| is_table(path));
    let lens: Vec<u64> = tables.map(|(_, (bytes, _))| bytes.len() as u64).collect();
    assert_eq!(said.tables, lens.len() as u64);
    assert_eq!(said.physical_bytes, lens.iter().sum::<u64>());
}

/// Damage of access records loses nothing but what is hot, and opening a store mends it: who looks
/// before that is told.
#[test]
fn damaged_access_records_are_told_and_the_rest_is_shown_all_the_same() {
    let store = read_of();
    let inspect = || inspect::access_records(&store.options()).unwrap();
    let whole = inspect().unwrap();
    let state = fs::read(&whole.file).unwrap();
    let entries = fs::read_dir(whole.file.parent().unwrap()).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let table = paths.find(|path| path.extension().is_some_and(|e| e == "sst"));
    let table = table.unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    let is_told = |words: &str| {
        let report = inspect().unwrap();
        assert_eq!(report.contents, whole.contents);
        assert_eq!(report.damaged(), 1, "{:?}", report.problems);
        let told = &report.problems[0];
        assert!(told.contains(name) && told.contains(words), "{told}");
    };
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() - 1]).unwrap();
    is_told("were written");
    fs::remove_file(&table).unwrap();
    is_told("is missing");
    fs::write(&table, bytes).unwrap();
    assert_eq!(inspect().as_ref(), Some(&whole));

    for len in 0..state.len() {
        fs::write(&whole.file, &state[..len]).unwrap();
        let report = inspect().unwrap();
        assert!(
            report.contents.is_damaged() && report.damaged() == 1,
            "{len}"
        );
    }
    fs::remove_file(&whole.file).unwrap();
    let report = inspect().unwrap();
    assert_eq!((report.bytes, report.damaged()), (0, 1));
    assert!(report.contents.to_string().contains("missing"));
    // By level there is nothing to miss.
    let mut options = store.options();
    options.placement = Placement::ByLevel;
    Db::open(options).unwrap().close().unwrap();
    assert_eq!(inspect(), None);
    // What a crash left of their removal is no damage either.
    fs::create_dir_all(whole.file.parent().unwrap()).unwrap();
    fs::write(&whole.file, &state[1..]).unwrap();
    assert_eq!(inspect(), None);
}

#[test]
fn access_records_of_another_store_are_told_apart() {
    let [store, other] = [read_of(), read_of()];
    let file = |store: &Store| store.options().tiers[0].path.join("ralt").join("RALT");
    fs::copy(file(&other), file(&store)).unwrap();
    let report = inspect::access_records(&store.options()).unwrap().unwrap();
    let of_others = report.problems.iter().filter(|p| p.contains("database"));
    assert_eq!(of_others.count(), 1, "{:?}", report.problems);
}

#[test]
fn where_there_is_no_store_nothing_is_made() {
    let store = Store::new();
    let not_found = |result: Result<(), Error>| matches!(result, Err(Error::NotFound { .. }));
    assert!(not_found(inspect::manifest(&store.options()).map(drop)));
    assert!(not_found(inspect::tables(&store.options()).map(drop)));
    assert!(not_found(inspect::wal(&store.options()).map(drop)));
    let records = inspect::access_records(&store.options());
    assert!(not_found(records.map(drop)));
    assert_eq!(store.state().len(), 1, "only the directory itself");
    assert!(!store.options().tiers[0].path.exists());
}
