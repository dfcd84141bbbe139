//! Processes that a harness starts: this program, run again.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::harness::{exhaustion, kill};
use crate::verdict::{Promise, Violation};

/// A child hangs if it says nothing and does not end for this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of what a child wrote to standard error is shown.
const SHOWN: usize = 8_000;

/// The subcommand under which the command line of the harnesses may be found.
const SUBCOMMAND: &str = "torture";

/// What a child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Live, and be killed.
    Kill(kill::Task),
    /// Work under a limit of the operating system.
    Exhaust(exhaustion::Task),
}

/// One line of a child's output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Line {
    /// This many of something were counted.
    Counted(String, u64),
    /// A named point was reached this many times.
    Reached(String, u64),
    /// The child is about to kill itself there.
    Killing(String),
    /// A promise was broken.
    Broken(Promise, String),
    /// All was done.
    Done,
}

/// Says something to the parent. Whether it listens is its own business.
pub(crate) fn say(line: &Line) {
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Does what the parent asked for in `task`, and says how it went.
pub(crate) fn run(task: &str) {
    // A panic on any thread ends the process. Otherwise the other threads would wait for what it
    // left undone.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
    let ended = match serde_json::from_str(task) {
        Ok(Task::Kill(task)) => kill::live(&task),
        Ok(Task::Exhaust(task)) => exhaustion::work(&task),
        Err(error) => Err(format!("the task does not decode: {error}").into()),
    };
    say(&match ended {
        Ok(()) => Line::Done,
        Err(Violation { promise, message }) => Line::Broken(promise, message),
    });
}

/// A command that runs the program and the arguments that are added to it. A file system in memory
/// is mounted at `disk`, which only that process sees. So it has a small disk, and needs no
/// privilege where the system lets users have namespaces of their own.
fn own_disk(disk: &Path, bytes: u64) -> Command {
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=\"$2\" tmpfs \"$1\" && shift 2 && exec \"$@\"";
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    command.arg(disk).arg(bytes.to_string());
    command
}

/// Whether a process can have a disk of its own here.
pub(crate) fn has_own_disks() -> bool {
    let Ok(dir) = tempfile::tempdir() else {
        return false;
    };
    let mut command = own_disk(dir.path(), 1 << 20);
    command
        .arg("true")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A child at work.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<Line>,
    errors: JoinHandle<String>,
}

/// How a child ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What it said, in order.
    pub(crate) lines: Vec<Line>,
    /// The end of what it wrote to standard error.
    pub(crate) errors: String,
    /// How the system says it ended.
    pub(crate) status: ExitStatus,
    /// Whether the parent killed it at the moment that was set.
    pub(crate) killed: bool,
}

impl Running {
    /// Starts a child for `task` of `harness`.
    ///
    /// # Errors
    /// What keeps it from being started.
    pub(crate) fn start(harness: &str, task: &Task) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        Self::start_as(Command::new(program), harness, task)
    }

    /// As [`Running::start`] with a disk of `bytes` of its own at `disk`.
    ///
    /// # Errors
    /// What keeps it from being started.
    pub(crate) fn start_with_disk(
        harness: &str,
        task: &Task,
        disk: &Path,
        bytes: u64,
    ) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = own_disk(disk, bytes);
        command.arg(program);
        Self::start_as(command, harness, task)
    }

    fn start_as(mut command: Command, harness: &str, task: &Task) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("cannot start a child: {error}");
        command.args(std::env::args().skip(1).find(|arg| arg == SUBCOMMAND));
        let text = serde_json::to_string(task).map_err(|error| error.to_string())?;
        command.args([harness, "--child", &text]);
        // Otherwise each thread sets address space aside, and a limit on it is not felt.
        command.env("MALLOC_ARENA_MAX", "1");
        // A backtrace needs memory. If that fails, an error has to be reported while another one
        // is, and a process that is to end for want of memory hangs.
        command.env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(said)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, lines) = channel();
        // A child that died in the middle of a line has not said it.
        std::thread::spawn(move || {
            let lines = stdout
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str(&line) {
                    let _ = sender.send(line);
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut errors) = stderr {
                let _ = errors.read_to_end(&mut text);
            }
            let from = text.len().saturating_sub(SHOWN);
            String::from_utf8_lossy(text.get(from..).unwrap_or_default()).into_owned()
        });
        Ok(Self {
            child,
            lines,
            errors,
        })
    }

    /// Waits for the child's end. After `kill_after`, if that is given, kills it.
    ///
    /// # Errors
    /// A child that hangs ([`Promise::Alive`]).
    pub(crate) fn end(mut self, kill_after: Option<Duration>) -> Result<Ended, Violation> {
        let begun = Instant::now();
        let mut heard = Vec::new();
        let mut killed = false;
        let mut hangs = false;
        loop {
            let patience = match kill_after {
                Some(moment) if !killed => moment.saturating_sub(begun.elapsed()),
                _ => PATIENCE,
            };
            match self.lines.recv_timeout(patience) {
                Ok(line) => heard.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    hangs = killed || kill_after.is_none();
                    killed = true;
                    let _ = self.child.kill();
                    if hangs {
                        break;
                    }
                }
            }
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let errors = self.errors.join().unwrap_or_default();
        if hangs {
            let message =
                format!("a child did nothing for {PATIENCE:?}; it said {heard:?} {errors}");
            return Err(Violation::new(Promise::Alive, message));
        }
        Ok(Ended {
            lines: heard,
            errors,
            status,
            killed,
        })
    }
}

impl Ended {
    /// What the child saw broken. If that was nothing, an end of the child that it should not have
    /// had.
    ///
    /// # Errors
    /// That.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        for line in &self.lines {
            if let Line::Broken(promise, message) = line {
                return Err(Violation::new(*promise, message.clone()));
            }
        }
        let kills_itself = self
            .lines
            .iter()
            .any(|line| matches!(line, Line::Killing(_)));
        if self.is_done() || self.killed || kills_itself {
            return Ok(());
        }
        let message = format!("a child ended with {}: {}", self.status, self.errors);
        Err(Violation::new(Promise::Alive, message))
    }

    /// Whether the child ended as a program does that gets no memory: in its own code, at the start
    /// of a thread, or in a library's code.
    pub(crate) fn had_no_memory(&self) -> bool {
        let said = [
            "memory allocation of",
            "failed to allocate an alternative stack: Cannot allocate memory",
            "returned null pointer when creating",
        ];
        self.status.signal() == Some(rustix::process::Signal::ABORT.as_raw())
            && said.iter().any(|said| self.errors.contains(said))
    }

    /// Whether the child came to its end by itself.
    pub(crate) fn is_done(&self) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Done))
    }
}
