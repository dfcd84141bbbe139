//! A store in a few known states, written by one release and read by all later ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use thermocline::{Compression, Db, Durability, Options, Result, TierOptions};

pub(crate) const SIDE: &str = "side";

/// Records of all keyspaces, by keyspace and key.
pub(crate) type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// How the fast tier's tables of each session are compressed; the slow tier's are with LZ4. The
/// last session's writes stay in the log.
const SESSIONS: [Compression; 4] = [
    Compression::None,
    Compression::Zstd(3),
    Compression::None,
    Compression::None,
];

/// Keys of the first session: more than the fast tier holds uncompressed.
const MANY: usize = 700;

/// One write: keyspace, key, and value unless it is a delete.
type Write = (&'static str, String, Option<String>);

/// What the session writes. The second writes anew what the first wrote, and every session but the
/// first deletes something.
fn writes(session: usize) -> Vec<Write> {
    let value = |n: usize| format!("{session}:{n}:{}", "thermocline ".repeat(40 + n % 7));
    let keyspace = |n: usize| ["default", "default", SIDE][n % 3];
    let count = [MANY, MANY, 12, 12][session];
    let mut writes = Vec::new();
    for n in 0..count {
        writes.push((keyspace(n), format!("b{n:03}"), Some(value(n))));
    }
    if session > 0 {
        let dead = MANY - 1 - session;
        writes.push((keyspace(dead), format!("b{dead:03}"), None));
        writes.push(("default", "b000".to_owned(), None));
    }
    writes
}

/// What the store holds after all sessions.
pub(crate) fn expected() -> Contents {
    let mut contents = Contents::new();
    for (keyspace, key, value) in (0..SESSIONS.len()).flat_map(writes) {
        let at = (keyspace.to_owned(), key.into_bytes());
        match value {
            Some(value) => contents.insert(at, value.into_bytes()),
            None => contents.remove(&at),
        };
    }
    contents
}

fn options(dir: &Path, compression: Compression) -> Options {
    let fast = TierOptions::fast(dir.join("fast")).capacity(400 << 10);
    let slow = TierOptions::slow(dir.join("slow"));
    let mut options = Options::with_tiers(vec![
        fast.block_size(1024).compression(compression),
        slow.block_size(2048),
    ]);
    options.memory = 8 << 20;
    options.memtable_size = Some(16 << 10);
    options.table_size = Some(16 << 10);
    options.seed = Some(1);
    options
}

/// A copy of a fixture in a directory of its own.
pub(crate) struct Fixture {
    dir: tempfile::TempDir,
}

fn home(release: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("formats").join(release)
}

impl Fixture {
    pub(crate) fn of(release: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&home(release), dir.path());
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn open(&self, compression: Compression) -> Result<Db> {
        let mut options = options(self.path(), compression);
        options.create_if_missing = false;
        Db::open(options)
    }

    /// Its files, each with its directory.
    pub(crate) fn names(&self) -> Vec<String> {
        ["fast", "slow", "fast/ralt"]
            .iter()
            .flat_map(|dir| {
                let entries = fs::read_dir(self.path().join(dir)).unwrap();
                let entries = entries.map(|entry| entry.unwrap());
                let files = entries.filter(|entry| entry.path().is_file());
                files.map(move |file| format!("{dir}/{}", file.file_name().display()))
            })
            .collect()
    }
}

/// Copies what a store needs: locks and probes belong to a process.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target);
        } else if !entry.file_name().to_string_lossy().starts_with("LOCK") {
            fs::copy(&source, &target).unwrap();
        }
    }
}

/// Lives through the sessions, and copies the files while the last one goes on.
pub(crate) fn write(release: &str) {
    let target = home(release);
    assert!(!target.exists(), "the fixture of {release} is there");
    let dir = tempfile::tempdir().unwrap();
    for (session, compression) in SESSIONS.into_iter().enumerate() {
        let db = Db::open(options(dir.path(), compression)).unwrap();
        let side = db.create_keyspace(SIDE).unwrap();
        for (keyspace, key, value) in writes(session) {
            let keyspace = if keyspace == SIDE { &side } else { &*db };
            match value {
                Some(value) => keyspace.put_with(key, value, Durability::Sync),
                None => keyspace.delete_with(key, Durability::Sync),
            }
            .unwrap();
        }
        if session == SESSIONS.len() - 1 {
            copy(dir.path(), &target);
            return;
        }
        db.wait_idle().unwrap();
        if session == 1 {
            db.compact_range::<&[u8]>(..).unwrap();
            side.compact_range::<&[u8]>(..).unwrap();
            for n in 0..12 {
                db.get(format!("b{n:03}")).unwrap();
            }
        }
        db.close().unwrap();
    }
}
