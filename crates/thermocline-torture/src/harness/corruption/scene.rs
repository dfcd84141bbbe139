//! The stores that are damaged. They have tables on both tiers, of every compression, two
//! keyspaces, access records, and a log that was closed or that a loss of power cut short.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use thermocline::executor::Stepped;
use thermocline::storage::{CrashStyle, Faulty};
use thermocline::{Compression, Db, DbBuilder, Durability, ManualClock, Options, Result};

use super::layout;
use crate::life::history::{Contents, contents};
use crate::life::{FAST, SIDE, SLOW, tiny_options};

/// Bytes behind the last block of a table.
const FOOTER: usize = 64;

/// A file as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::harness) struct File {
    pub(in crate::harness) dir: PathBuf,
    pub(in crate::harness) name: String,
    pub(in crate::harness) bytes: Vec<u8>,
}

impl File {
    pub(in crate::harness) fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }
}

/// A store that is sound.
#[derive(Debug)]
pub(in crate::harness) struct Scene {
    pub(in crate::harness) files: Vec<File>,
    /// What it may hold when it is opened. After a clean close that is one thing. Otherwise it is
    /// every prefix of what its log ends in, the longest last.
    pub(in crate::harness) states: Vec<Contents>,
    /// What it may also hold if the beginning of its log is gone.
    pub(in crate::harness) without_log: Vec<Contents>,
    /// Its tables. Other table files are left over, and are removed when it is opened.
    pub(in crate::harness) tables: BTreeSet<PathBuf>,
}

impl Scene {
    /// What it may hold, the likeliest first. `log_is_gone` says that the beginning of its log may
    /// be gone.
    pub(in crate::harness) fn states(&self, log_is_gone: bool) -> impl Iterator<Item = &Contents> {
        let without_log = self.without_log.iter().filter(move |_| log_is_gone);
        self.states.iter().rev().chain(without_log)
    }

    pub(in crate::harness) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }
}

/// The scenes, made once: the same in every run.
pub(in crate::harness) fn scenes() -> &'static [Scene] {
    static SCENES: OnceLock<Vec<Scene>> = OnceLock::new();
    SCENES.get_or_init(|| {
        vec![
            small(true),
            small(false),
            tiered(true),
            tiered(false),
            with_a_new_keyspace(),
            with_a_kept_log(),
        ]
    })
}

pub(in crate::harness) fn dirs() -> [PathBuf; 3] {
    [FAST.into(), SLOW.into(), Path::new(FAST).join("ralt")]
}

pub(in crate::harness) fn builder(
    disk: &Faulty,
    compression: Compression,
    create: bool,
) -> DbBuilder {
    let mut options: Options = tiny_options();
    options.create_if_missing = create;
    options.tiers[0].compression = compression;
    options.tiers[1].compression = Compression::Lz4;
    options.tiers[0].block_size = 512;
    Db::builder(options)
        .medium(0, Arc::new(disk.clone()))
        .medium(1, Arc::new(disk.clone()))
        .clock(Arc::new(ManualClock::default()))
        .executor(Arc::new(Stepped::new(1)))
}

/// A scene that cannot be built is a bug of the harness. It must not pass for a run without
/// findings.
fn built(scene: Result<Scene>) -> Scene {
    scene.unwrap_or_else(|error| panic!("a sound store fails: {error}"))
}

/// Two tables of each keyspace, with so few bytes that all of them can be flipped.
fn small(closed: bool) -> Scene {
    let build = || {
        let disk = Faulty::new(1);
        let db = builder(&disk, Compression::None, true).open()?;
        let side = db.create_keyspace(SIDE)?;
        for n in 0..60u8 {
            db.put(format!("key{:03}", u32::from(n) * 7 % 60), [n; 60])?;
            side.put(format!("key{:03}", n % 20), [n; 40])?;
        }
        db.compact_range::<&[u8]>(..)?;
        for n in 0..12u8 {
            db.put(format!("key{:03}", n * 5), [n + 100; 30])?;
            db.delete(format!("key{:03}", n * 5 + 1))?;
        }
        db.flush()?;
        for n in 0..60 {
            db.get(format!("key{n:03}"))?;
        }
        end(&disk, &db, closed)
    };
    built(build())
}

/// More than the fast tier holds, written twice.
fn tiered(closed: bool) -> Scene {
    let build = || {
        let disk = Faulty::new(1);
        let value = |n: usize, times| format!("{n}:{}", "thermocline ".repeat(times));
        for (compression, times) in [(Compression::None, 48), (Compression::Zstd(3), 16)] {
            let db = builder(&disk, compression, true).open()?;
            let side = db.create_keyspace(SIDE)?;
            for n in 0..400 {
                let keyspace = if n % 3 == 2 { &side } else { &*db };
                keyspace.put(format!("key{n:03}"), value(n, times))?;
            }
            db.wait_idle()?;
            db.compact_range::<&[u8]>(..)?;
            side.compact_range::<&[u8]>(..)?;
            for n in 0..20 {
                db.get(format!("key{n:03}"))?;
            }
            db.close()?;
        }
        let db = builder(&disk, Compression::None, true).open()?;
        for n in 0..9 {
            db.delete(format!("key{:03}", n * 6))?;
        }
        db.flush()?;
        if db.metrics().tiers[1].table_bytes == 0 {
            panic!("nothing is on the slow tier");
        }
        end(&disk, &db, closed)
    };
    built(build())
}

/// The last edit of its manifest makes a keyspace, and its log writes to that keyspace.
fn with_a_new_keyspace() -> Scene {
    let build = || {
        let disk = Faulty::new(1);
        let db = builder(&disk, Compression::None, true).open()?;
        db.put("before", "1")?;
        db.flush()?;
        let side = db.create_keyspace(SIDE)?;
        let mut states = vec![contents(&db)?];
        for n in 0..4u8 {
            side.put_with(format!("log{n}"), [n; 30], Durability::Sync)?;
            states.push(contents(&db)?);
        }
        scene(&disk, states)
    };
    built(build())
}

/// A keyspace that is seldom written to keeps the log of records that a table holds. There are
/// older versions among them.
fn with_a_kept_log() -> Scene {
    let build = || {
        let disk = Faulty::new(1);
        let db = builder(&disk, Compression::None, true).open()?;
        db.create_keyspace(SIDE)?.put("quiet", "value")?;
        let put =
            |n: usize| db.put_with(format!("key{:02}", n % 40), [n as u8; 8], Durability::Sync);
        let (mut flushed, mut n) = (contents(&db)?, 0);
        while db.metrics().levels[0].tables == 0 {
            flushed = contents(&db)?;
            // The full memtable freezes before this write.
            put(n)?;
            db.wait_idle()?;
            n += 1;
        }
        let mut states = vec![flushed, contents(&db)?];
        for n in n..n + 4 {
            put(n)?;
            states.push(contents(&db)?);
        }
        let mut without_log = states.clone();
        for state in &mut without_log {
            state.retain(|(keyspace, _), _| keyspace != SIDE);
        }
        scene(&disk, states).map(|scene| Scene {
            without_log,
            ..scene
        })
    };
    built(build())
}

/// Writes what the log is to end in, and ends the store's life.
fn end(disk: &Faulty, db: &Db, closed: bool) -> Result<Scene> {
    let mut states = vec![contents(db)?];
    for n in 0..6u8 {
        db.put_with(format!("log{n}"), [n; 30], Durability::Sync)?;
        states.push(contents(db)?);
    }
    if closed {
        // Closing flushes, and this decides what is left of the log.
        db.close()?;
        states.drain(..states.len() - 1);
    }
    scene(disk, states)
}

fn scene(disk: &Faulty, states: Vec<Contents>) -> Result<Scene> {
    let disk = disk.crash(CrashStyle::KeepAll);
    let files = dirs().into_iter().flat_map(|dir| {
        let disk = disk.clone();
        disk.list_raw(&dir).into_iter().filter_map(move |info| {
            let bytes = disk.read_raw(&dir, &info.name).ok()?;
            let (dir, name) = (dir.clone(), info.name);
            Some(File { dir, name, bytes })
        })
    });
    let files: Vec<File> = files.collect();
    // Opening removes what no edit names.
    let db = builder(&disk, Compression::None, false).open()?;
    let tables = [FAST, SLOW].into_iter().flat_map(|dir| {
        let dir = Path::new(dir);
        let files = disk.list_raw(dir).into_iter();
        files.map(move |file| dir.join(file.name))
    });
    let is_table = |path: &PathBuf| path.extension().is_some_and(|end| end == "sst");
    let tables: BTreeSet<PathBuf> = tables.filter(is_table).collect();
    for file in files
        .iter()
        .filter(|file: &&File| tables.contains(&file.path()))
    {
        // Otherwise blocks would not be found, and none swapped.
        let end = layout::parts(&file.name, &file.bytes)
            .last()
            .map(|part| part.end);
        if end.map(|end| end + FOOTER) != Some(file.bytes.len()) {
            panic!(
                "{} is not laid out as docs/format.md says",
                file.path().display()
            );
        }
    }
    drop(db);
    Ok(Scene {
        files,
        states,
        without_log: Vec::new(),
        tables,
    })
}
