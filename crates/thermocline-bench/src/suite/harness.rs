//! Benchmarks as a suite runs them. Each has a process of its own, so that its memory and processor
//! time are its own, and what it leaves behind does not affect the next one.

use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use signal_hook::consts::TERM_SIGNALS;
use signal_hook::iterator::Signals;

use super::cell::Cell;
use super::line;
use crate::engine;
use crate::memory_limit::{OwnGroup, make_room};
use crate::state::Place;

/// How often a running benchmark is looked at.
const TICK: Duration = Duration::from_millis(100);

/// How much is shown, at most, of what a failed benchmark has printed.
const SHOWN: usize = 4000;

/// Exit code for a command line that makes no sense. `thermocline --help` lists the codes.
const REFUSED: i32 = 2;

/// How a benchmark ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    /// It refused to begin, for the reason it printed.
    Refused(String),
    /// It failed, and printed this.
    Badly(String),
    /// Whoever started the suite wants it to end.
    Interrupted,
}

/// Runs benchmarks.
pub(crate) trait Harness {
    /// Whether the state of `cell` is on the disks.
    ///
    /// # Errors
    /// The directories cannot be used.
    fn is_loaded(&mut self, cell: &Cell) -> Result<bool>;

    /// Runs `thermocline bench WORDS` and calls `tick` now and then.
    ///
    /// # Errors
    /// It cannot be started.
    fn bench(&mut self, words: &[String], tick: &mut dyn FnMut()) -> Result<Ended>;

    /// Runs `command` with `sh -c`.
    ///
    /// # Errors
    /// It fails.
    fn shell(&mut self, command: &str) -> Result<()>;
}

/// This binary, as child processes.
pub(crate) struct Processes {
    interrupted: Receiver<()>,
}

impl Processes {
    /// From now on, an interrupt ends the benchmark that runs and not this process.
    ///
    /// # Errors
    /// Signals cannot be handled.
    pub(crate) fn new() -> Result<Self> {
        let (sender, interrupted) = mpsc::channel();
        let mut signals = Signals::new(TERM_SIGNALS).context("cannot handle interrupts")?;
        let listen = move || {
            for _ in signals.forever() {
                // Once the suite has ended, nobody listens.
                let _ = sender.send(());
            }
        };
        let listener = thread::Builder::new().name("thermocline-bench-interrupts".to_owned());
        listener.spawn(listen).context("cannot handle interrupts")?;
        Ok(Self { interrupted })
    }

    fn wait(&self, mut command: Command, tick: &mut dyn FnMut()) -> Result<Option<ExitStatus>> {
        let mut child = command.spawn().context("cannot start a benchmark")?;
        loop {
            match self.interrupted.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                    child.kill().context("cannot end the benchmark")?;
                    child.wait().context("cannot end the benchmark")?;
                    return Ok(None);
                }
            }
            if let Some(status) = child.try_wait().context("cannot wait for the benchmark")? {
                return Ok(Some(status));
            }
            tick();
        }
    }
}

impl Harness for Processes {
    fn is_loaded(&mut self, cell: &Cell) -> Result<bool> {
        let (args, plan) = line::plan(&cell.words, &cell.flags)?;
        Ok(Place::new(&args)?.kept(&plan).is_ok())
    }

    fn bench(&mut self, words: &[String], tick: &mut dyn FnMut()) -> Result<Ended> {
        let mut said = tempfile::tempfile().context("cannot make a temporary file")?;
        let binary = std::env::current_exe().context("cannot find this binary")?;
        let mut command = Command::new(binary);
        command
            .arg("bench")
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone().context("cannot use a temporary file")?);
        let _room = room_beside(words);
        let Some(status) = self.wait(command, tick)? else {
            return Ok(Ended::Interrupted);
        };
        // A terminal interrupts all of its processes at once, and the child may get it first.
        if status.success() {
            return Ok(Ended::Well);
        } else if status.code().is_none() && self.interrupted.recv_timeout(TICK).is_ok() {
            return Ok(Ended::Interrupted);
        }
        let text = last_words(&mut said)?;
        Ok(match status.code() {
            Some(REFUSED) => Ended::Refused(text),
            _ => Ended::Badly(format!("{text} ({status})")),
        })
    }

    fn shell(&mut self, command: &str) -> Result<()> {
        let status = Command::new("sh").arg("-c").arg(command).status();
        let status = status.context("cannot run sh")?;
        ensure!(status.success(), "`{command}`: {status}");
        Ok(())
    }
}

/// Makes room for a benchmark that limits its memory, which it could not do with this process in
/// its cgroup. If no room can be made, the benchmark says what to do about it.
fn room_beside(words: &[String]) -> Option<OwnGroup> {
    let args = line::parse(words).ok()?;
    let engine = engine::find(&args.engine).ok()?;
    let is_limited = engine.uses_page_cache() && !args.no_memory_limit;
    is_limited.then(make_room)?.ok()?
}

/// The end of what a process has printed.
fn last_words(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .context("cannot read what the benchmark printed")?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    let mut begin = text.len().saturating_sub(SHOWN);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    Ok(text.get(begin..).unwrap_or_default().to_owned())
}
