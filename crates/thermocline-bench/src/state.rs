//! Where stores lie, and loaded states that are kept for later runs.
//!
//! Each tier's directory holds `loaded`, the store as it was after loading, closed and opened only
//! to be copied, and `run`, a copy of it by hard links, which is made for each run and removed
//! afterwards. `loaded.json` says what was loaded. `bench.lock` marks the directory as the bench's
//! own, so that nothing of anybody else is ever removed.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::args::BenchArgs;
use crate::bad_arguments::BadArguments;
use crate::plan::{Plan, Source};
use crate::program;
use crate::report::LoadedBy;
use crate::run::Load;
use crate::settings::{Compression, Dirs, Settings, TWO_DIRECTORIES};
use crate::temporary::Temporary;

const LOCK: &str = "bench.lock";
const STATE: &str = "loaded.json";

/// What to do about a kept state that cannot be used. It may have taken hours, so it is only
/// replaced on request.
const LOAD_AGAIN: &str = "--phase load --keep replaces it";

/// What a loaded state depends on: runs share a state if and only if these agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Content {
    files: String,
    keys: String,
    records: u64,
    /// Length of the greatest value. The lengths that a trace tells are in `keys`.
    value_len: usize,
    /// The length of those values whose length a trace does not tell, if it tells others. States
    /// from before this was recorded do not have it. Then it is not known whether a state of such a
    /// trace is the wanted one. For all other states it still is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    untold_value_len: Option<usize>,
    fast_capacity: u64,
    memtable: u64,
    block_size_fast: u64,
    block_size_slow: u64,
    compression: Compression,
    /// What the store may occupy on each slow tier. States from before there could be several have
    /// one without a limit.
    #[serde(default = "one_without_limit")]
    slow_capacities: Vec<Option<u64>>,
    /// A level's tables stay where they are until they are compacted.
    #[serde(default)]
    rocksdb_fast_levels: Option<u32>,
    /// Whether it was loaded by ingestion: then all of it is in the last level. None if that does
    /// not matter. States from before it was recorded were not.
    #[serde(default = "not_ingested", skip_serializing_if = "Option::is_none")]
    ingested: Option<bool>,
}

fn not_ingested() -> Option<bool> {
    Some(false)
}

fn one_without_limit() -> Vec<Option<u64>> {
    vec![None]
}

impl Content {
    pub(crate) fn new(plan: &Plan) -> Self {
        let settings = &plan.settings;
        Self {
            files: plan.engine.files().to_owned(),
            keys: match &plan.source {
                Source::Generated { .. } => "ycsb".to_owned(),
                Source::Trace { trace, copies, .. } => {
                    format!("trace {:016x} x{copies}", trace.fingerprint())
                }
            },
            records: plan.records,
            value_len: plan.value_lens.greatest(),
            untold_value_len: plan.value_lens.usual_of_some(),
            fast_capacity: settings.fast_capacity,
            memtable: settings.memtable,
            block_size_fast: settings.block_size_fast,
            block_size_slow: settings.block_size_slow,
            compression: settings.compression,
            slow_capacities: settings.slow_tiers().map(|tier| tier.capacity).collect(),
            rocksdb_fast_levels: settings.rocksdb_fast_levels,
            ingested: plan.ingest,
        }
    }

    /// What differs, by name.
    fn differences(&self, other: &Self) -> Result<Vec<String>> {
        let (ours, theirs) = (serde_json::to_value(self)?, serde_json::to_value(other)?);
        let fields = ours.as_object().into_iter().flatten();
        Ok(fields
            .filter(|(name, value)| theirs.get(name) != Some(value))
            .map(|(name, value)| {
                let kept = theirs.get(name).cloned().unwrap_or_default();
                format!("{name} is {kept}, wanted {value}")
            })
            .collect())
    }
}

/// A loaded state, as `loaded.json` describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    content: Content,
    /// What its load numbers depend on besides.
    engine: String,
    settings: Settings,
    threads: usize,
    /// The commit of the program that loaded it. States from before this was recorded do not have
    /// it: they can be used, but it is not known whether their load numbers are this program's.
    #[serde(default)]
    commit: Option<String>,
    load: Load,
}

impl Kept {
    pub(crate) fn new(plan: &Plan, load: Load) -> Self {
        Self {
            content: Content::new(plan),
            engine: plan.engine.name().to_owned(),
            settings: plan.settings.clone(),
            threads: plan.threads,
            commit: program::commit().map(str::to_owned),
            load,
        }
    }

    /// Who loaded it.
    pub(crate) fn loaded_by(&self) -> LoadedBy {
        LoadedBy {
            engine: self.engine.clone(),
            commit: self.commit.clone(),
            ingested: self.content.ingested == Some(true),
        }
    }

    /// The numbers of its load, if the plan's load would have run under the same conditions, with
    /// the same program.
    pub(crate) fn load(&self, plan: &Plan) -> Option<Load> {
        let alike = self.engine == plan.engine.name()
            && self.settings == plan.settings
            && self.threads == plan.threads
            && self.commit.as_deref() == program::commit();
        alike.then_some(self.load)
    }
}

/// The directories of a benchmark, locked.
#[derive(Debug)]
pub(crate) struct Place {
    dirs: Dirs,
    _temporary: Option<Temporary>,
    _locks: Vec<File>,
}

impl Place {
    /// The directories that the flags name. Otherwise temporary ones, which go away with the
    /// result.
    pub(crate) fn new(args: &BenchArgs) -> Result<Self> {
        match (&args.fast, args.slow.as_slice()) {
            (Some(fast), [slow, slower @ ..]) => {
                let dirs = Dirs {
                    fast: fast.clone(),
                    slow: slow.clone(),
                    slower: slower.to_vec(),
                };
                Self::at(dirs, None)
            }
            _ => Self::temporary(),
        }
    }

    /// Temporary directories.
    pub(crate) fn temporary() -> Result<Self> {
        let temporary = Temporary::new()?;
        let [fast, slow] = ["fast", "slow"].map(|name| temporary.path().join(name));
        let dirs = Dirs::two(fast, slow);
        Self::at(dirs, Some(temporary))
    }

    fn at(dirs: Dirs, temporary: Option<Temporary>) -> Result<Self> {
        let (mut locks, mut claimed) = (Vec::new(), Vec::new());
        for dir in dirs.each() {
            // An earlier directory's own lock would be taken for another benchmark's.
            let real = fs::canonicalize(dir).ok();
            if real.is_some() && claimed.contains(&real) {
                let why = anyhow!("--fast and --slow: {TWO_DIRECTORIES}");
                return Err(BadArguments::new(why).into());
            }
            locks.push(claim(dir)?);
            claimed.push(fs::canonicalize(dir).ok());
        }
        let place = Self {
            dirs,
            _temporary: temporary,
            _locks: locks,
        };
        // A run that was killed leaves its copy behind.
        place.remove_run()?;
        Ok(place)
    }

    /// The directories themselves. They exist, whatever an engine makes in them.
    pub(crate) fn dirs(&self) -> &Dirs {
        &self.dirs
    }

    /// Where the loaded state is kept.
    pub(crate) fn loaded(&self) -> Dirs {
        self.dirs.join("loaded")
    }

    /// Where the run works.
    pub(crate) fn run(&self) -> Dirs {
        self.dirs.join("run")
    }

    /// The state that is kept here, if there is one.
    ///
    /// # Errors
    /// It is not what `plan` would load, and what differs is named; its description cannot be read.
    pub(crate) fn find(&self, plan: &Plan) -> Result<Option<Kept>> {
        let path = self.dirs.fast.join(STATE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let kept: Kept = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged; {LOAD_AGAIN}", path.display()))?;
        let differences = Content::new(plan).differences(&kept.content)?;
        ensure!(
            differences.is_empty(),
            "the state kept at {} was loaded with other settings: {}; {LOAD_AGAIN}, or name other directories",
            self.dirs.fast.display(),
            differences.join("; ")
        );
        Ok(Some(kept))
    }

    /// The state that is kept here.
    ///
    /// # Errors
    /// Those of [`Place::find`], and that there is none.
    pub(crate) fn kept(&self, plan: &Plan) -> Result<Kept> {
        self.find(plan)?.with_context(|| {
            let dir = self.dirs.fast.display();
            format!("no loaded state is kept at {dir}; make one with --phase load --keep")
        })
    }

    /// Declares the store in [`Place::loaded`] complete.
    pub(crate) fn keep(&self, kept: &Kept) -> Result<()> {
        let path = self.dirs.fast.join(STATE);
        fs::write(&path, serde_json::to_vec_pretty(kept)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes the kept state. Its description goes first, because half a state must not look
    /// whole.
    pub(crate) fn forget(&self) -> Result<()> {
        remove_file(&self.dirs.fast.join(STATE))?;
        remove(&self.loaded())
    }

    /// Removes what a run left.
    pub(crate) fn remove_run(&self) -> Result<()> {
        remove(&self.run())
    }
}

/// Makes `dir` the bench's own. Refuses if it holds what the bench would overwrite.
fn claim(dir: &Path) -> Result<File> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let path = dir.join(LOCK);
    let ours = path.exists();
    for name in ["loaded", "run", STATE] {
        ensure!(
            ours || !dir.join(name).exists(),
            "{} holds `{name}`, which no benchmark made; name another directory",
            dir.display()
        );
    }
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("{}: another benchmark runs there", dir.display())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn remove(dirs: &Dirs) -> Result<()> {
    for dir in dirs.each() {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", dir.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::parse;

    const LOAD: Load = Load {
        seconds: 1.5,
        settle_seconds: 0.5,
        ops_s: 10.0,
        write_amplification: None,
    };

    fn place(dir: &Path) -> Result<Place> {
        Place::at(Dirs::two(dir.join("fast"), dir.join("slow")), None)
    }

    fn plan(flags: &str) -> Plan {
        parse(flags).unwrap().plan().unwrap()
    }

    #[test]
    fn a_state_is_found_again_and_another_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path()).unwrap();
        let kept = Kept::new(&plan("--threads 2"), LOAD);
        assert!(
            place
                .kept(&plan(""))
                .unwrap_err()
                .to_string()
                .contains("no loaded state")
        );
        place.keep(&kept).unwrap();
        // The settings of the run do not matter.
        let other_run = plan("--threads 2 --workload uh --seed 9 --ops 3");
        assert_eq!(place.kept(&other_run).unwrap(), kept);
        assert_eq!(kept.load(&other_run), Some(LOAD));
        let error = place
            .kept(&plan("--data-size 1MiB --memtable 32KiB"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("records is 262144, wanted 1024"), "{error}");
        assert!(error.contains("memtable is"), "{error}");
        place.forget().unwrap();
        assert_eq!(place.find(&other_run).unwrap(), None);
        fs::write(place.dirs.fast.join(STATE), "{").unwrap();
        let error = place.find(&other_run).unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{error}");
    }

    /// Regression: of all lengths, only the greatest was compared. If a trace told that one and not
    /// every other, a state that was loaded with another `--record-size` was taken for the wanted
    /// one, and a sound engine failed with wrong answers.
    #[test]
    fn a_state_of_a_trace_is_refused_if_the_sizes_it_does_not_tell_were_others() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path()).unwrap();
        let trace = dir.path().join("t.csv");
        let of = |lines: &str, record_size: u32| {
            fs::write(&trace, lines).unwrap();
            plan(&format!(
                "--threads 2 --trace {} --format twitter --record-size {record_size}",
                trace.display()
            ))
        };
        let some_told = "0,a,1,0,1,get,0\n1,b,1,5000,1,set,0\n";
        let kept = Kept::new(&of(some_told, 200), LOAD);
        place.keep(&kept).unwrap();
        assert_eq!(place.kept(&of(some_told, 200)).unwrap(), kept);
        let refusal = |plan: &Plan| place.kept(plan).unwrap_err().to_string();
        let error = refusal(&of(some_told, 400));
        assert!(
            error.contains("untold_value_len is 176, wanted 376"),
            "{error}"
        );

        // States from before that was recorded, which may have taken hours, can be used where it
        // does not matter.
        let forget_it = || {
            let path = place.dirs.fast.join(STATE);
            let mut state: serde_json::Value =
                serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let content = state["content"].as_object_mut().unwrap();
            let had = content.remove("untold_value_len").is_some();
            fs::write(&path, state.to_string()).unwrap();
            had
        };
        assert!(forget_it());
        let error = refusal(&of(some_told, 200));
        assert!(error.contains("untold_value_len is null"), "{error}");
        let [none_told, all_told] = [
            "0,a,1,0,1,get,0\n1,b,1,0,1,get,0\n",
            "0,a,1,70,1,set,0\n1,b,1,5000,1,set,0\n",
        ];
        for plan in [of(none_told, 200), of(all_told, 200), plan("")] {
            place.keep(&Kept::new(&plan, LOAD)).unwrap();
            assert!(!forget_it());
            place.kept(&plan).unwrap();
        }
    }

    #[test]
    fn a_state_of_other_tiers_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path()).unwrap();
        let two = plan("--threads 2");
        place.keep(&Kept::new(&two, LOAD)).unwrap();
        let three = plan("--threads 2 --fast a --slow b --slow c --slow-capacity 1GB");
        let error = place.kept(&three).unwrap_err().to_string();
        let named = "slow_capacities is [null], wanted [1000000000,null]";
        assert!(error.contains(named), "{error}");
        place.keep(&Kept::new(&three, LOAD)).unwrap();
        assert_eq!(place.kept(&three).unwrap().load(&three), Some(LOAD));
        assert!(place.kept(&two).is_err());

        // States from before there could be several tiers have two.
        let mut state = serde_json::to_value(Kept::new(&two, LOAD)).unwrap();
        let content = state["content"].as_object_mut().unwrap();
        assert!(content.remove("slow_capacities").is_some());
        fs::write(place.dirs.fast.join(STATE), state.to_string()).unwrap();
        place.kept(&two).unwrap();
        assert!(place.kept(&three).is_err());
    }

    #[test]
    fn a_state_that_was_ingested_is_no_other_but_can_be_run_on() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path()).unwrap();
        let [put, ingested] = ["", "--ingest"].map(|flags| plan(&format!("--threads 2 {flags}")));
        let any = plan("--threads 2 --phase run --keep --fast a --slow b");
        for (kept, other, words) in [
            (&put, &ingested, "ingested is false, wanted true"),
            (&ingested, &put, "ingested is true, wanted false"),
        ] {
            let state = Kept::new(kept, LOAD);
            place.keep(&state).unwrap();
            for plan in [kept, &any] {
                assert_eq!(place.kept(plan).unwrap(), state);
            }
            assert_eq!(state.loaded_by().ingested, words.contains("is true"));
            let error = place.kept(other).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }

        // States from before there was ingestion.
        let mut state = serde_json::to_value(Kept::new(&put, LOAD)).unwrap();
        let content = state["content"].as_object_mut().unwrap();
        assert!(content.remove("ingested").is_some());
        fs::write(place.dirs.fast.join(STATE), state.to_string()).unwrap();
        place.kept(&put).unwrap();
        assert!(place.kept(&ingested).is_err());
    }

    #[test]
    fn engines_with_the_same_files_share_a_state() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path()).unwrap();
        let kept = Kept::new(&plan("--engine leveled --threads 2"), LOAD);
        place.keep(&kept).unwrap();
        for engine in ["hotrap", "cost"] {
            let other = plan(&format!("--engine {engine} --threads 2"));
            assert_eq!(place.kept(&other).unwrap(), kept);
            assert_eq!(kept.load(&other), None, "loaded by another engine");
        }
        // A store by table has other levels. The work of making one of the other would be measured.
        for engine in ["fast-only", "tables"] {
            let error = place
                .kept(&plan(&format!("--engine {engine}")))
                .unwrap_err();
            assert!(error.to_string().contains("files is"), "{error}");
        }
    }

    #[test]
    fn load_numbers_hold_under_the_same_conditions_only() {
        let kept = Kept::new(&plan("--threads 2"), LOAD);
        assert_eq!(kept.load(&plan("--threads 3")), None);
        assert_eq!(kept.load(&plan("--threads 2 --slow-iops 100")), None);
    }

    /// Regression: if another build had kept a state, the figures of its load were given in this
    /// build's results, under this build's commit.
    #[test]
    fn load_numbers_are_of_the_same_program_only() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path()).unwrap();
        let plan = plan("--threads 2");
        let load = |commit: Option<&str>| {
            let kept = Kept {
                commit: commit.map(str::to_owned),
                ..Kept::new(&plan, LOAD)
            };
            place.keep(&kept).unwrap();
            place.kept(&plan).unwrap().load(&plan)
        };
        assert_eq!(load(program::commit()), Some(LOAD));
        assert_eq!(load(Some("another")), None);

        // States from before it was recorded, which may have taken hours, can be used too.
        let mut state = serde_json::to_value(Kept::new(&plan, LOAD)).unwrap();
        assert!(state.as_object_mut().unwrap().remove("commit").is_some());
        fs::write(place.dirs.fast.join(STATE), state.to_string()).unwrap();
        assert_eq!(place.kept(&plan).unwrap().commit, None);
    }

    #[test]
    fn directories_of_others_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("fast/run");
        fs::create_dir_all(&theirs).unwrap();
        let error = place(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no benchmark made"), "{error}");
        assert!(theirs.exists());
    }

    #[test]
    fn a_killed_run_is_cleaned_up_and_a_living_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let first = place(dir.path()).unwrap();
        let left = first.run().slow.join("table");
        fs::create_dir_all(&left).unwrap();
        let error = place(dir.path()).unwrap_err().to_string();
        assert!(error.contains("another benchmark"), "{error}");
        assert!(left.exists());
        drop(first);
        place(dir.path()).unwrap();
        assert!(!left.exists());
    }

    /// Regression: it met its own lock, and said that another benchmark ran there.
    #[test]
    fn one_directory_by_two_names_is_refused_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let (fast, slow) = (dir.path().join("a"), dir.path().join("link"));
        fs::create_dir(&fast).unwrap();
        std::os::unix::fs::symlink(&fast, &slow).unwrap();
        let third = dir.path().join("b");
        let further = Dirs {
            slower: vec![slow.clone()],
            ..Dirs::two(fast.clone(), third)
        };
        for dirs in [Dirs::two(fast, slow), further] {
            let error = Place::at(dirs, None).unwrap_err();
            assert!(error.to_string().contains("two directories"), "{error}");
            assert!(error.is::<BadArguments>());
        }
    }

    #[test]
    fn temporary_directories_go_away() {
        let place = Place::temporary().unwrap();
        let fast = place.run().fast;
        fs::create_dir_all(&fast).unwrap();
        drop(place);
        assert!(!fast.exists() && !fast.parent().unwrap().exists());
    }
}
