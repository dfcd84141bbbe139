//! Which store a command means, and opening it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use thermocline::inspect::{self, PlacedBy};
use thermocline::{
    Db, DbBuilder, Error, Keyspace, Options, Placement, RecoveryReport, TierOptions,
};

use crate::failure::Failure;
use crate::progress;
use crate::size;
use crate::text::Notation;

/// Heading of these flags in `--help`.
const STORE: &str = "Store";

/// The name of the fast tier's capacity in clap.
pub(crate) const FAST_CAPACITY: &str = "fast_capacity";

/// How long the options that a store's files give are trusted, while the store is open elsewhere
/// and waited for.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Where a store that places records by hotness keeps its access records, on the fast tier.
const RALT_DIR: &str = "ralt";

/// The flags that name a store.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Directory of the fast tier
    #[arg(long, help_heading = STORE, value_name = "DIR", env = "THERMOCLINE_FAST")]
    pub(crate) fast: PathBuf,

    #[command(flatten)]
    others: Others,

    /// Bytes the store may occupy on the fast tier, like 1GiB; needed with --slow
    #[arg(long, help_heading = STORE, value_name = "SIZE", value_parser = size::parse, env = "THERMOCLINE_FAST_CAPACITY")]
    pub(crate) fast_capacity: Option<u64>,

    /// Bytes the store may occupy on the slow tier, the last one of several [default: unlimited]
    #[arg(long, help_heading = STORE, value_name = "SIZE", value_parser = size::parse, env = "THERMOCLINE_SLOW_CAPACITY")]
    pub(crate) slow_capacity: Option<u64>,

    /// Memory for memtables, caches and buffers [default: 256MiB]
    #[arg(long, help_heading = STORE, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) memory: Option<u64>,

    /// Wait so long at most, like 30s or 5min, for a store that is open elsewhere [default: not at
    /// all]
    #[arg(long, help_heading = STORE, value_name = "TIME", value_parser = humantime::parse_duration)]
    lock_wait: Option<Duration>,
}

/// What tiers there are below the fast one: who says neither is told of both flags.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Others {
    /// Directory of the slow tier; a store without one needs --one-tier. For one of three tiers or
    /// more, once for each that is not the fast one, the faster ones first
    #[arg(long, help_heading = STORE, value_name = "DIR", env = "THERMOCLINE_SLOW")]
    slow: Vec<PathBuf>,

    /// The store has one tier only, at --fast; what the environment says of a slow one and of
    /// capacities does not count
    #[arg(long, help_heading = STORE)]
    one_tier: bool,
}

/// How the command line contradicts itself, if it does: one flag says that a store has one tier,
/// another that it has two. The environment may say the latter for all other stores, and that is no
/// contradiction.
pub(crate) fn contradiction(matches: &ArgMatches) -> Option<&'static str> {
    if let Some((_, matches)) = matches.subcommand() {
        return contradiction(matches);
    }
    let has_one = has_one_tier(matches);
    let is_typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    match has_one {
        true if is_typed("slow") => Some("--one-tier cannot be used with --slow"),
        true if is_typed("slow_capacity") => Some("--one-tier cannot be used with --slow-capacity"),
        _ => None,
    }
}

fn has_one_tier(matches: &ArgMatches) -> bool {
    matches.try_get_one("one_tier").ok().flatten() == Some(&true)
}

/// The subcommand, if it works on a store of one tier and the environment gives that store the
/// capacity of another store's fast tier.
pub(crate) fn has_capacity_of_another(matches: &ArgMatches) -> Option<&str> {
    let (name, matches) = matches.subcommand()?;
    let is_found = has_one_tier(matches)
        && matches.value_source(FAST_CAPACITY) == Some(ValueSource::EnvVariable);
    is_found.then_some(name)
}

impl StoreArgs {
    /// The directories of the tiers below the fast one, the slowest last. None if there is one
    /// tier.
    pub(crate) fn slow(&self) -> &[PathBuf] {
        match &self.others {
            Others { one_tier: true, .. } => &[],
            Others { slow, .. } => slow,
        }
    }

    pub(crate) fn is_one_tier(&self) -> bool {
        self.others.one_tier
    }

    /// The options of an existing store, for what does not run the store. Capacities play no part
    /// and may be left out.
    pub(crate) fn offline_options(&self) -> Options {
        let capacity = |bytes: Option<u64>| bytes.unwrap_or(u64::MAX);
        let mut tiers = vec![TierOptions::fast(&self.fast).capacity(capacity(self.fast_capacity))];
        tiers.extend(self.slow().iter().map(TierOptions::slow));
        if let [_, .., last] = &mut tiers[..] {
            last.capacity = capacity(self.slow_capacity);
        }
        let mut options = Options::with_tiers(tiers);
        options.create_if_missing = false;
        if let Some(memory) = self.memory {
            options.memory = memory;
        }
        options
    }

    /// The directory of the access records.
    pub(crate) fn ralt_dir(&self) -> PathBuf {
        self.fast.join(RALT_DIR)
    }

    /// An existing store keeps its placement, and the settings on which its knowledge of accesses
    /// depends. A command that opens it for a moment must neither begin to track hotness, nor push
    /// down or forget what is hot.
    fn placement(&self) -> Placement {
        match inspect::manifest(&self.offline_options()) {
            Ok(manifest) if manifest.placed_by == Some(PlacedBy::Level) => Placement::ByLevel,
            Ok(manifest) if manifest.placed_by == Some(PlacedBy::Tables) => Placement::ByTable,
            // If something is wrong with a manifest or with access records, opening the store says
            // so.
            _ => match inspect::hotness(&self.offline_options()) {
                Ok(Some(settings)) => Placement::HotRap(settings),
                _ => Placement::default(),
            },
        }
    }

    /// The options of a store that is going to be worked on.
    pub(crate) fn online_options(&self, create: bool) -> Result<Options, Failure> {
        // Without a capacity the engine would fill the fast tier with everything.
        if !self.slow().is_empty() && self.fast_capacity.is_none() {
            return Err(Failure::usage(format!(
                "a store of two tiers or more needs --fast-capacity: how many bytes it may occupy in {}, like 1GiB",
                self.fast.display()
            )));
        }
        let mut options = self.offline_options();
        options.create_if_missing = create;
        options.placement = self.placement();
        Ok(options)
    }

    /// What opens the store of these `options`, or works on its files, as the flags say.
    pub(crate) fn builder(&self, options: Options) -> DbBuilder {
        // The records that somebody looks at by hand are not those that the store's own programs
        // read.
        let builder = Db::builder(options).count_accesses(false);
        builder.lock_wait(self.lock_wait.unwrap_or_default())
    }

    /// Opens the existing store.
    pub(crate) fn open(&self) -> Result<Db, Failure> {
        self.open_at(&[])
    }

    /// Opens the existing store for a command that only reads: no file of it changes.
    pub(crate) fn open_to_read(&self) -> Result<Db, Failure> {
        self.open_to_read_at(&[])
    }

    /// As [`StoreArgs::open`], with the `prices` of the tiers, if there are any.
    pub(crate) fn open_at(&self, prices: &[f64]) -> Result<Db, Failure> {
        let opened = self.open_with(false, false, prices)?;
        opened.map_err(|error| self.not_opened(error))
    }

    /// As [`StoreArgs::open_to_read`], with the `prices` of the tiers, if there are any.
    pub(crate) fn open_to_read_at(&self, prices: &[f64]) -> Result<Db, Failure> {
        let opened = self.open_with(false, true, prices)?;
        opened.map_err(|error| self.not_opened(error))
    }

    /// Opens the store. Prints to standard error what its recovery had to give up.
    fn open_with(
        &self,
        create: bool,
        reads_only: bool,
        prices: &[f64],
    ) -> Result<Result<Db, Error>, Failure> {
        let bar = self
            .lock_wait
            .map(|_| progress::spinner("opening the store"));
        let begun = Instant::now();
        let opened = loop {
            // Read anew each time: whoever had the store open may have changed how it places
            // records.
            let mut options = self.online_options(create)?;
            for (tier, price) in options.tiers.iter_mut().zip(prices) {
                tier.price_per_gb_month = Some(*price);
            }
            let left = self.lock_wait.unwrap_or_default();
            let left = left.saturating_sub(begun.elapsed());
            let builder = self.builder(options).lock_wait(left.min(LOCK_WAIT));
            let opened = match reads_only {
                true => builder.reads_only().open(),
                false => builder.open(),
            };
            if left <= LOCK_WAIT || !matches!(opened, Err(Error::Locked { .. })) {
                break opened;
            }
        };
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        let recovery = opened.as_ref().map(Db::recovery);
        for warning in recovery.map(warnings).unwrap_or_default() {
            // A store that opened is of use even if nobody reads this.
            let _ = writeln!(io::stderr(), "warning: {warning}");
        }
        Ok(opened)
    }

    /// Why the store was not opened, with what helps on this command line.
    pub(crate) fn not_opened(&self, error: Error) -> Failure {
        let is_locked = matches!(error, Error::Locked { .. });
        let hint = "--lock-wait 1min waits for it to be closed".to_owned();
        Failure::Store {
            error,
            hint: (is_locked && self.lock_wait.is_none()).then_some(hint),
        }
    }
}

fn warnings(recovery: &RecoveryReport) -> Vec<String> {
    let cut = recovery.cut.as_ref().map(|(file, offset, bytes)| {
        format!(
            "{}: {bytes} bytes from offset {offset} on are given up: a crash cut the log off there",
            file.display()
        )
    });
    let kept = recovery.set_aside.iter().map(|file| {
        format!(
            "{}: a table that is none of this store's, or cannot be read and may have been named by an edit that is lost; it was set \
             aside",
            file.display()
        )
    });
    let hotness = recovery.hotness.as_ref();
    let hotness = hotness.map(|why| format!("access records, which say what is hot: {why}"));
    let target = recovery.target.clone();
    let all = cut.into_iter().chain(kept).chain(hotness).chain(target);
    all.collect()
}

/// Why the store was not opened, with a hint if it does not exist. If only another directory is
/// missing, or another one has files of a store, a device may not be mounted, and the last thing to
/// do is to make a new store there.
fn not_created(error: Error, store: &StoreArgs) -> Failure {
    if !matches!(error, Error::NotFound { .. }) {
        return store.not_opened(error);
    }
    let fast = &store.fast;
    let is_fast = |path: &Path| path == fast || std::path::absolute(fast).is_ok_and(|f| path == f);
    let hint = match &error {
        Error::NotFound { path } if is_fast(path) => {
            let held = store.slow().iter().find(|slow| holds_a_store(slow));
            Some(held.map_or_else(
                || "add --create to make a new store there".to_owned(),
                |slow| {
                    format!(
                        "{} holds files of a store, so the device of {} may not be mounted",
                        slow.display(),
                        fast.display()
                    )
                },
            ))
        }
        _ => None,
    };
    Failure::Store { error, hint }
}

/// Whether a slow tier's directory belongs to a store, as far as the names in it tell. If it cannot
/// be listed, the engine reports that.
fn holds_a_store(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| PathBuf::from(entry.file_name()));
    names.any(|name| name == Path::new("TIER") || name.extension().is_some_and(|e| e == "sst"))
}

/// The flags of commands that read or write records.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Keyspace to use [default: the keyspace "default"]
    #[arg(long, value_name = "NAME")]
    pub(crate) keyspace: Option<String>,

    /// Keys and values are given and shown in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
}

impl DataArgs {
    pub(crate) fn notation(&self) -> Notation {
        if self.hex {
            Notation::Hex
        } else {
            Notation::Text
        }
    }

    /// The bytes of a key or value of the command line.
    pub(crate) fn read(&self, what: &str, text: &str) -> Result<Vec<u8>, Failure> {
        self.notation()
            .read(text.as_bytes())
            .map_err(|why| Failure::usage(format!("{what} {text:?}: {why}")))
    }

    /// Opens the existing store and keyspace.
    pub(crate) fn open(&self) -> Result<Session, Failure> {
        Session::new(self.store.open()?, self.keyspace.as_deref(), false)
    }

    /// As [`DataArgs::open`], for a command that only reads.
    pub(crate) fn open_to_read(&self) -> Result<Session, Failure> {
        Session::new(self.store.open_to_read()?, self.keyspace.as_deref(), false)
    }

    /// As [`DataArgs::open`], for a command that has `--create`. Makes the store and the keyspace
    /// when that is set.
    pub(crate) fn open_or_create(&self, create: bool) -> Result<Session, Failure> {
        let opened = self.store.open_with(create, false, &[])?;
        let db = opened.map_err(|error| not_created(error, &self.store))?;
        Session::new(db, self.keyspace.as_deref(), create)
    }
}

/// An open store and the keyspace that the command works on.
pub(crate) struct Session {
    pub(crate) db: Db,
    pub(crate) keyspace: Keyspace,
}

impl Session {
    fn new(db: Db, name: Option<&str>, create: bool) -> Result<Self, Failure> {
        let keyspace = match name {
            Some(name) => keyspace(&db, name, create)?,
            None => Keyspace::clone(&db),
        };
        Ok(Self { db, keyspace })
    }

    /// Closes the store. Only then is everything known to be written.
    pub(crate) fn close(self) -> Result<(), Failure> {
        Ok(self.db.close()?)
    }
}

/// The keyspace called `name`. It is made if it does not exist and `create` is set. The failure
/// names the keyspaces that exist.
pub(crate) fn keyspace(db: &Db, name: &str, create: bool) -> Result<Keyspace, Failure> {
    match db.keyspace(name) {
        Err(Error::UnknownKeyspace { .. }) if create => Ok(db.create_keyspace(name)?),
        Err(error @ Error::UnknownKeyspace { .. }) => {
            let names = db.keyspaces().join(", ");
            Err(Failure::Store {
                error,
                hint: Some(format!("keyspaces of this store: {names}")),
            })
        }
        other => Ok(other?),
    }
}
