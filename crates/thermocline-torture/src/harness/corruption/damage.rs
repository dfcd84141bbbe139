//! What is done to the files of a store.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rand::RngExt;
use rand::rngs::SmallRng;

use super::layout;
use super::scene::{File, Scene};
use crate::verdict::Tally;

/// The kinds of damage that [`draw`] chooses from.
pub(in crate::harness) const KINDS: &[&str] = &[
    "bytes flipped",
    "files cut",
    "files grown",
    "sectors of zeros",
    "sectors of noise",
    "parts swapped",
    "parts misdirected",
    "files swapped",
    "files replaced",
    "files lost",
    "files emptied",
];

const SECTOR: usize = 512;

/// A store's files after something happened to them.
#[derive(Debug)]
pub(in crate::harness) struct Damage {
    pub(in crate::harness) files: Vec<File>,
    /// Which of them are not what was written; empty if what happened changed nothing.
    pub(in crate::harness) touched: BTreeSet<PathBuf>,
    /// Whether it is one flipped bit, so that an error can name the one place.
    pub(in crate::harness) is_one_bit: bool,
    /// In words.
    pub(in crate::harness) what: String,
}

impl Damage {
    fn new(scene: &Scene, files: Vec<File>, what: String) -> Self {
        let changed = |file: &&File| !files.contains(file);
        let touched = scene.files.iter().filter(changed);
        Self {
            touched: touched.map(File::path).collect(),
            files,
            is_one_bit: false,
            what,
        }
    }
}

impl Damage {
    /// Whether nothing that is left tells of the log's first segment. Either it is gone altogether,
    /// as obsolete ones are, or no segment is what it was.
    pub(in crate::harness) fn hides_the_log(&self, scene: &Scene) -> bool {
        let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "wal");
        let first = scene.files.iter().map(File::path).filter(is_log).min();
        let mut left = self.files.iter().map(File::path).filter(is_log);
        let has_first = left.clone().any(|path| Some(path) == first);
        !has_first || left.all(|path| self.touched.contains(&path))
    }
}

/// Flips a bit of byte `at`, counted over all files of the scene.
pub(in crate::harness) fn flip_one(scene: &Scene, at: u64) -> Damage {
    let mut files = scene.files.clone();
    let mut at = at as usize;
    let mut what = String::new();
    for file in &mut files {
        if let Some(byte) = file.bytes.get_mut(at) {
            *byte ^= 1 << (at % 8);
            what = format!("a bit of byte {at} of {} is flipped", path(file));
            break;
        }
        at -= file.bytes.len();
    }
    Damage {
        is_one_bit: true,
        ..Damage::new(scene, files, what)
    }
}

fn path(file: &File) -> String {
    file.path().display().to_string()
}

/// Damage of a kind drawn from `rng`.
pub(in crate::harness) fn draw(scene: &Scene, rng: &mut SmallRng, tally: &mut Tally) -> Damage {
    let mut files = scene.files.clone();
    let kind = rng.random_range(0..KINDS.len());
    let one = rng.random_range(0..files.len());
    let said = match KINDS[kind] {
        "bytes flipped" => {
            for _ in 0..rng.random_range(1..=8) {
                let file = rng.random_range(0..files.len());
                if let Some(at) = place(&files[file].bytes, rng) {
                    files[file].bytes[at] ^= rng.random_range(1..=255u8);
                }
            }
            "several".to_owned()
        }
        "files cut" => {
            let len = place(&files[one].bytes, rng).unwrap_or(0);
            files[one].bytes.truncate(len);
            format!("{} to {len} bytes", path(&files[one]))
        }
        "files grown" => {
            let more = rng.random_range(1..=2 * SECTOR);
            let noise = rng.random_bool(0.5);
            let tail = (0..more).map(|_| if noise { rng.random() } else { 0 });
            let tail: Vec<u8> = tail.collect();
            files[one].bytes.extend(tail);
            format!("{} by {more} bytes", path(&files[one]))
        }
        kind @ ("sectors of zeros" | "sectors of noise") => {
            let sector = place(&files[one].bytes, rng).unwrap_or(0) / SECTOR;
            for byte in files[one]
                .bytes
                .iter_mut()
                .skip(sector * SECTOR)
                .take(SECTOR)
            {
                *byte = if kind == "sectors of zeros" {
                    0
                } else {
                    rng.random()
                };
            }
            format!("sector {sector} of {}", path(&files[one]))
        }
        "parts swapped" => move_parts(&mut files, rng, true),
        "parts misdirected" => move_parts(&mut files, rng, false),
        "files swapped" => {
            let other = alike(&files, one, rng);
            let bytes = std::mem::take(&mut files[one].bytes);
            files[one].bytes = std::mem::replace(&mut files[other].bytes, bytes);
            format!("{} and {}", path(&files[one]), path(&files[other]))
        }
        "files replaced" => {
            let other = alike(&files, one, rng);
            files[one].bytes = files[other].bytes.clone();
            format!("{} by {}", path(&files[one]), path(&files[other]))
        }
        "files lost" => {
            let file = files.remove(one);
            path(&file)
        }
        _ => {
            files[one].bytes.clear();
            path(&files[one])
        }
    };
    tally.add(KINDS[kind], 1);
    Damage::new(scene, files, format!("{}: {said}", KINDS[kind]))
}

fn place(bytes: &[u8], rng: &mut SmallRng) -> Option<usize> {
    (!bytes.is_empty()).then(|| rng.random_range(0..bytes.len()))
}

/// Another file of the same kind, if there is one.
fn alike(files: &[File], one: usize, rng: &mut SmallRng) -> usize {
    let kind = |file: &File| file.name.rsplit('.').next().map(str::to_owned);
    let wanted = kind(&files[one]);
    let others = (0..files.len()).filter(|&other| other != one && kind(&files[other]) == wanted);
    let others: Vec<usize> = others.collect();
    match others.len() {
        0 => rng.random_range(0..files.len()),
        count => others[rng.random_range(0..count)],
    }
}

/// Exchanges two blocks, or two records, of one file or of two, or writes one in place of the
/// other. Prefers parts of the same length, so that nothing but their place tells them apart.
fn move_parts(files: &mut [File], rng: &mut SmallRng, both: bool) -> String {
    let all: Vec<_> = files
        .iter()
        .enumerate()
        .flat_map(|(index, file)| {
            let parts = layout::parts(&file.name, &file.bytes).into_iter();
            parts.map(move |part| (index, part))
        })
        .collect();
    let (a, from) = all[rng.random_range(0..all.len())].clone();
    let others = all.iter().filter(|(index, part)| {
        part.len() == from.len()
            && files[*index].bytes[part.clone()] != files[a].bytes[from.clone()]
    });
    let others: Vec<_> = others.collect();
    let (b, to) = match others.len() {
        0 => all[rng.random_range(0..all.len())].clone(),
        count => others[rng.random_range(0..count)].clone(),
    };
    let len = from.len().min(to.len());
    let (from, to) = (from.start..from.start + len, to.start..to.start + len);
    let (one, other) = (
        files[a].bytes[from.clone()].to_vec(),
        files[b].bytes[to.clone()].to_vec(),
    );
    files[b].bytes[to.clone()].copy_from_slice(&one);
    if both {
        files[a].bytes[from.clone()].copy_from_slice(&other);
    }
    format!(
        "{from:?} of {} and {to:?} of {}",
        path(&files[a]),
        path(&files[b])
    )
}
