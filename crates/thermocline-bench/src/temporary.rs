//! A temporary directory that also goes away with a run that is interrupted.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::TempDir;

/// How often it is tried to remove a directory in which a store is at work: files may come while
/// others go.
const TRIES: u32 = 100;

/// The temporary directories of this process.
#[derive(Debug)]
struct Present {
    paths: BTreeSet<PathBuf>,
    /// Whether a thread waits for interrupts.
    watched: bool,
}

static PRESENT: Mutex<Present> = Mutex::new(Present {
    paths: BTreeSet::new(),
    watched: false,
});

fn present() -> MutexGuard<'static, Present> {
    // Each change is one step, so a panic leaves nothing half done.
    PRESENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory that is removed with this value. It is also removed when somebody ends the process
/// with an interrupt (Ctrl-C) or SIGTERM.
#[derive(Debug)]
pub(crate) struct Temporary(TempDir);

impl Temporary {
    /// A new one.
    ///
    /// # Errors
    /// The file system's, and that no thread can wait for signals.
    pub(crate) fn new() -> Result<Self> {
        let mut present = present();
        if !present.watched {
            watch().context("cannot handle interrupts")?;
            present.watched = true;
        }
        let dir = tempfile::Builder::new()
            .prefix("thermocline-")
            .tempdir()
            .context("cannot make a temporary directory")?;
        present.paths.insert(dir.path().to_owned());
        Ok(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is listed until it is gone. If it stays, dropping the field tries once more.
        let _: io::Result<()> = fs::remove_dir_all(self.0.path());
        present().paths.remove(self.0.path());
    }
}

/// From now on, an interrupt of this process removes its temporary directories.
fn watch() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let watcher = move || {
        for signal in signals.forever() {
            for path in &present().paths {
                remove(path);
            }
            // Ends the process in the way in which it would have ended without this.
            let _: io::Result<()> = emulate_default_handler(signal);
        }
    };
    thread::Builder::new()
        .name("interrupts".to_owned())
        .spawn(watcher)
        .map(drop)
}

fn remove(path: &Path) {
    for _ in 0..TRIES {
        if fs::remove_dir_all(path).is_ok() || !path.exists() {
            return;
        }
    }
}
