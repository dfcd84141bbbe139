//! What can go wrong, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a damaged file is a part of. What to do about it follows from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damaged {
    /// A store: its records, log or manifest.
    Store,
    /// A backup: the list of a generation's tables, or one of the tables.
    Backup,
    /// The access records of a store, which say what is hot.
    AccessRecords,
}

impl Damaged {
    fn advice(self) -> &'static str {
        match self {
            Damaged::Store => {
                "Run `thermocline verify`, then restore the store from a backup, or see what \
                 `thermocline repair --dry-run` would save"
            }
            Damaged::Backup => {
                "Remove that file: backups that do without it are whole, and the next one copies \
                 anew what the store still has"
            }
            Damaged::AccessRecords => {
                "No record of the store is lost by that: only what is hot has to be learnt anew"
            }
        }
    }
}

/// Everything that the engine reports instead of panicking.
///
/// Errors are cheap to clone, because one failed log write is reported to every
/// writer of its commit group.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation.
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    Io {
        /// What was attempted, as an infinitive ("read", "create").
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's own words.
        source: Arc<io::Error>,
    },
    /// A device is full, or a tier has reached its configured capacity.
    #[error(
        "no space left while trying to {operation} {path}; free space or raise the tier's \
         capacity, writes resume without a restart",
        path = path.display()
    )]
    NoSpace {
        /// What was attempted.
        operation: &'static str,
        /// The file or tier directory that is full.
        path: PathBuf,
    },
    /// A value or a batch that not even an empty fast tier could hold. Nothing of it was written,
    /// and other writes are accepted.
    #[error(
        "a batch of {len} bytes does not fit into {path}, whose capacity is {capacity} bytes: it takes {least_capacity} at least; raise the \
         tier's capacity to that, or write less at once",
        path = path.display()
    )]
    DoesNotFit {
        /// The fast tier's directory.
        path: PathBuf,
        /// Length of the batch in bytes, with its keys and what goes around each record.
        len: u64,
        /// The tier's capacity in bytes.
        capacity: u64,
        /// The least capacity with which it fits, in bytes, if everything else that has to be on
        /// the tier (the table of recent accesses, the manifest, log that is kept) goes on taking
        /// what it takes now.
        least_capacity: u64,
    },
    /// The process has used up something that the operating system limits. Reaching the limit of a
    /// file's size also raises the signal SIGXFSZ, which ends a process that neither ignores nor
    /// handles it.
    #[error(
        "cannot {operation} {path}: {source}; raise the limit on {what} or free some, work goes on \
         without a restart",
        path = path.display()
    )]
    Limit {
        /// What was attempted.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What has run out, and how its limit is called.
        what: &'static str,
        /// The system's own words.
        source: Arc<io::Error>,
    },
    /// A sync failed, or background work panicked: what the device holds is unknown, so writing
    /// stops (I9).
    #[error(
        "writes are refused since an earlier failure ({cause}); reads go on. \
         Check the device, then close and reopen the store"
    )]
    Poisoned {
        /// The failure that poisoned the store.
        cause: Arc<str>,
    },
    /// Bytes on disk are not what was written.
    #[error(
        "{path} is damaged at offset {offset}: {what}. {advice}",
        path = path.display(),
        advice = of.advice()
    )]
    Corruption {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What does not hold.
        what: String,
        /// What the file is a part of.
        of: Damaged,
    },
    /// A file of a format that this build cannot read.
    #[error(
        "{path} has format version {found}, this build reads {supported}; use the release that wrote it",
        path = path.display()
    )]
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The version found in it.
        found: u32,
        /// The newest version this build reads.
        supported: u32,
    },
    /// Another process, or another handle of this one, has the store open.
    #[error("{path} is open elsewhere; close that store first", path = path.display())]
    Locked {
        /// The tier directory whose lock is held.
        path: PathBuf,
    },
    /// The file system is read-only, or the directory belongs to another user: not even the lock
    /// can be taken.
    #[error(
        "{path} cannot be written to ({source}), and who opens a store locks files there, if only to read it; {advice}",
        path = path.display(),
        advice = how_to_write(*owner)
    )]
    NotWritable {
        /// The tier's directory, or the file in it that another user has made.
        path: PathBuf,
        /// Number of the user to whom it belongs, if that is the cause; none if the file system is
        /// read-only.
        owner: Option<u32>,
        /// The system's own words.
        source: Arc<io::Error>,
    },
    /// A tier's directory is missing, empty, or belongs somewhere else.
    #[error("tier {tier} at {path}: {problem}", path = path.display())]
    WrongTier {
        /// The tier's position in the options, 0 being the fastest.
        tier: usize,
        /// Its directory.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A restore or a checkpoint to this directory was begun and did not come to its end: what is
    /// there is a part of a store.
    #[error(
        "a {what} to {path} was begun and not finished, so what is there is only a part of a store; begin again with the same \
         command, or remove it (`thermocline destroy`, `Db::destroy`)",
        path = path.display()
    )]
    Unfinished {
        /// What was begun: "restore", "checkpoint", or either where nothing tells.
        what: &'static str,
        /// The tier directory that says so.
        path: PathBuf,
    },
    /// There is no store here and creating one was not allowed.
    #[error(
        "there is no store at {path}; check the path and that its device is mounted, or allow creating one",
        path = path.display()
    )]
    NotFound {
        /// The directory that holds no store.
        path: PathBuf,
    },
    /// There is no backup here, or none of that number.
    #[error("there is no backup at {path}; check the path, and list those that there are", path = path.display())]
    NoBackup {
        /// The directory that holds no backups, or the file of the one that is missing.
        path: PathBuf,
    },
    /// A setting is out of range, or contradicts another or the store's own.
    #[error("option `{option}` is invalid: {reason}")]
    InvalidOption {
        /// The setting's name.
        option: &'static str,
        /// Why, and what would be valid.
        reason: String,
    },
    /// A key, a value or a batch is larger than the engine takes.
    #[error("{what} of {len} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// "key", "value", "batch", "keyspace name", or the part of a file that grew too long.
        what: &'static str,
        /// Its size in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// No keyspace has this name.
    #[error("there is no keyspace named {name:?}; look whether the name is right, or create it")]
    UnknownKeyspace {
        /// The name asked for. For a dropped keyspace that nobody has a handle of, its number.
        name: String,
    },
    /// A batch, or a read of a snapshot, names a keyspace that does not belong to the store, so
    /// nothing was written or read.
    #[error(
        "keyspace number {number} is none of this store's; take keyspaces from the open store that is \
         written to, or that the snapshot is of"
    )]
    ForeignKeyspace {
        /// The keyspace's number in the store that it was taken from.
        number: u32,
    },
    /// A condition of a batch does not hold, so nothing of the batch was written.
    #[error("condition {index} of the batch does not hold; read the value again and retry")]
    ConditionFailed {
        /// Position of the condition in the batch, from 0.
        index: usize,
    },
    /// A record of an ingestion does not come behind the one before it, so nothing was ingested.
    #[error(
        "record {index} of the ingestion {}, so nothing was ingested; sort the records by key, each once, or write them in batches",
        if *is_duplicate { "has the key of the one before it" } else { "has a lower key than the one before it" }
    )]
    NotSorted {
        /// Position of the record among those given, from 0.
        index: u64,
        /// Whether its key is the same as the one before, and not lower.
        is_duplicate: bool,
    },
    /// The log was asked for, and at this sequence number tables were ingested, whose records it
    /// does not hold.
    #[error(
        "at sequence {seq} tables were ingested into keyspace number {keyspace}, and the log does not hold their records; start from a \
         checkpoint"
    )]
    LogIngested {
        /// The sequence number of the ingestion.
        seq: u64,
        /// Number of the keyspace.
        keyspace: u32,
    },
    /// The log no longer holds the sequence number asked for.
    #[error("the log starts at sequence {oldest}, {asked} is gone; start from a checkpoint")]
    LogGone {
        /// The first sequence number wanted.
        asked: u64,
        /// The oldest one still in the log.
        oldest: u64,
    },
    /// The log ends before the sequence number asked for.
    #[error(
        "the log ends at sequence {newest}, {asked} is beyond what comes next: this store was restored since, or is another \
         one than was followed; start from a checkpoint"
    )]
    LogAhead {
        /// The first sequence number wanted.
        asked: u64,
        /// The newest one in the log.
        newest: u64,
    },
    /// The store is open for reading only, and this would write to it.
    #[error("the store is open for reading only; open it for writing to do that")]
    ReadOnly,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// What an [`Error`] means for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused an operation.
    Io,
    /// Space, or what the system limits, has run out. Nothing happened, and the same call may
    /// succeed later.
    Exhausted,
    /// A sync failed, or background work panicked. Writes are refused until the store is opened
    /// again.
    Poisoned,
    /// Bytes on disk are damaged.
    Damaged,
    /// A newer release wrote the file.
    Unsupported,
    /// Somebody else has the store open.
    Locked,
    /// The store, or its file system, may only be read.
    ReadOnly,
    /// What was asked for is not there: a store, a backup, a keyspace, or a part of the log.
    NotFound,
    /// A tier's directory is not the store's, or holds only a part of one.
    WrongPlace,
    /// A setting, an argument or a batch makes no sense, or is larger than can be.
    Invalid,
    /// A condition of the batch does not hold. Read again, and try again.
    Conflict,
    /// The store was closed.
    Closed,
}

impl Error {
    /// What this means for the caller, for those who do not ask which variant it is.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// use thermocline::{Db, ErrorKind, Options};
    ///
    /// let mut options = Options::one_tier(dir.path());
    /// options.create_if_missing = false;
    /// let error = Db::open(options).expect_err("there is no store yet");
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io { .. } => ErrorKind::Io,
            Error::NoSpace { .. } | Error::Limit { .. } => ErrorKind::Exhausted,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
            Error::Corruption { .. } => ErrorKind::Damaged,
            Error::FormatVersion { .. } => ErrorKind::Unsupported,
            Error::Locked { .. } => ErrorKind::Locked,
            Error::NotWritable { .. } | Error::ReadOnly => ErrorKind::ReadOnly,
            Error::NotFound { .. }
            | Error::NoBackup { .. }
            | Error::UnknownKeyspace { .. }
            | Error::LogGone { .. }
            | Error::LogIngested { .. } => ErrorKind::NotFound,
            Error::WrongTier { .. } | Error::Unfinished { .. } => ErrorKind::WrongPlace,
            Error::InvalidOption { .. }
            | Error::TooLarge { .. }
            | Error::DoesNotFit { .. }
            | Error::ForeignKeyspace { .. }
            | Error::NotSorted { .. }
            | Error::LogAhead { .. } => ErrorKind::Invalid,
            Error::ConditionFailed { .. } => ErrorKind::Conflict,
            Error::Closed => ErrorKind::Closed,
        }
    }

    /// Wraps an I/O error with what was attempted and where; a full device becomes
    /// [`Error::NoSpace`], a limit of the process [`Error::Limit`].
    pub(crate) fn io(operation: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::NoSpace { operation, path }
            }
            _ => {
                let limit = limit(&source);
                let source = Arc::new(source);
                match limit {
                    Some(what) => Error::Limit {
                        operation,
                        path,
                        what,
                        source,
                    },
                    None => Error::Io {
                        operation,
                        path,
                        source,
                    },
                }
            }
        }
    }

    /// Damage found at `offset` of `path`.
    pub(crate) fn corruption(path: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption {
            path: path.as_ref().to_path_buf(),
            offset,
            what: what.into(),
            of: Damaged::Store,
        }
    }

    /// If this is damage, says that the file is a part of `whole`: the reader of a table does not
    /// know what the table belongs to.
    pub(crate) fn of(self, whole: Damaged) -> Self {
        match self {
            Error::Corruption {
                path, offset, what, ..
            } => Error::Corruption {
                path,
                offset,
                what,
                of: whole,
            },
            other => other,
        }
    }

    /// Whether the same operation may succeed once space is free again.
    pub fn is_no_space(&self) -> bool {
        matches!(self, Error::NoSpace { .. })
    }

    /// Whether nothing happened, and the same operation may succeed once there is more of what it
    /// lacked: space, or what the operating system limits.
    pub fn may_pass(&self) -> bool {
        self.kind() == ErrorKind::Exhausted
    }

    /// Whether bytes on disk are damaged.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Error::Corruption { .. })
    }
}

fn how_to_write(owner: Option<u32>) -> String {
    match owner {
        Some(owner) => {
            format!("run as user {owner}, whose it is, or open a copy of its directories")
        }
        None => "mount the file system for writing, or open a copy of its directories".to_owned(),
    }
}

/// What has run out, if `error` says so.
fn limit(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some("open files (`ulimit -n`)"),
        Errno::NFILE => Some("open files of the whole system (`fs.file-max`)"),
        Errno::FBIG => Some("the size of a file (`ulimit -f`)"),
        // Reads and writes of files never say this; the start of a thread does.
        Errno::AGAIN => Some("threads or memory (`ulimit -u`, `ulimit -v`)"),
        Errno::NOMEM => Some("memory (`ulimit -v`)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_process_names_itself_and_may_pass() {
        for (errno, named) in [
            (Errno::MFILE, "ulimit -n"),
            (Errno::NFILE, "file-max"),
            (Errno::FBIG, "ulimit -f"),
            (Errno::AGAIN, "ulimit -u"),
            (Errno::NOMEM, "ulimit -v"),
        ] {
            let error = Error::io("create", "1.sst", io::Error::from(errno));
            assert!(error.may_pass() && !error.is_no_space(), "{error:?}");
            assert!(error.to_string().contains(named), "{error}");
        }
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            assert!(Error::io("write", "1.sst", io::Error::from(errno)).may_pass());
        }
        assert!(!Error::io("write", "1.sst", io::Error::from(Errno::IO)).may_pass());
    }
}
