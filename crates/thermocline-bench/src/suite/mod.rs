//! Suites: declared sets of benchmarks, measured one after the other into one directory.

mod catalogue;
mod cell;
mod cells;
mod choice;
mod definition;
mod disks;
mod estimate;
mod fixtures;
mod flags;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod harness;
mod left_out;
mod line;
mod measure;
mod progress;
mod record;
mod results;
mod schedule;

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::bad_arguments::BadArguments;
use crate::probe::probe;
use cell::{Cell, Places};
use choice::Choice;
use definition::{Definition, Directories};
use estimate::{Estimate, in_words};
use harness::{Harness, Processes};
use measure::{Outcome, Task};
use progress::Progress;
use record::Record;
use schedule::Run;

/// The directory for files that come with the binary, inside the directory of the results.
const DATA: &str = "data";

/// The directory for stores if nothing says where they lie, inside the directory of the results.
const STORES: &str = "stores";

/// Measures a declared set of engines and workloads into one directory.
///
/// What is measured already is not measured again: the same command goes on after an interruption.
#[derive(Debug, Clone, clap::Args)]
pub struct SuiteArgs {
    /// smoke, paper-small, raw, dynamic, overview, mutant-small, or a file NAME.toml
    pub suite: String,

    /// Directory of the results
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub out: Option<PathBuf>,

    /// Directory on the fast disk
    #[arg(long, value_name = "DIR")]
    pub fast: Option<PathBuf>,

    /// Directory on the slow disk
    #[arg(long, value_name = "DIR")]
    pub slow: Option<PathBuf>,

    /// Measure these cells only: names, in which `*` stands for anything and `?` for one character;
    /// may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,

    /// Sets limits of the slow disk by `sh -c`, with operations and bytes a second added; 0 is
    /// none. For example "scripts/slow-disk limit /mnt/slow". Loads are not limited
    #[arg(long, value_name = "COMMAND")]
    pub limit_slow: Option<String>,

    /// Only show the cells, their commands, and how long it would take
    #[arg(long, visible_alias = "dry-run")]
    pub list: bool,
}

/// Measures what `args` ask for. Progress goes to standard error; what was done is returned.
///
/// # Errors
/// [`BadArguments`] when nothing was run: no such suite or cell, what is not in this build, a
/// directory with other results. Failed runs are an error too, after all others were measured.
pub fn suite(args: &SuiteArgs) -> Result<String> {
    let prepared = Prepared::new(args).map_err(BadArguments::new)?;
    if args.list {
        return Ok(prepared.to_string());
    }
    let out = args.out.as_deref().context("--out is missing")?;
    prepared.begin(args, out).map_err(BadArguments::new)?;
    let mut harness = Processes::new()?;
    let (limits, has_results) = (prepared.definition.slow, prepared.has_results(out));
    disks::probe_once(args, out, limits, has_results, &mut harness, probe)?;
    prepared.measure(args, out, &mut harness, &mut Progress::new())
}

/// A suite with everything decided.
struct Prepared {
    definition: Definition,
    cells: Vec<Cell>,
    /// Numbers of the cells that are wanted.
    chosen: Vec<usize>,
    /// Says what else would be wanted, and what this build lacks for it.
    left_out: Vec<String>,
}

impl Prepared {
    fn new(args: &SuiteArgs) -> Result<Self> {
        let definition = catalogue::find(&args.suite)?;
        let places = places(args, &definition)?;
        let cells = cells::cells(&definition, &places)?;
        let choice = Choice::new(&args.only)?;
        let chosen = choice.of(&cells)?;
        let lacking = cells::left_out(&definition, &places)?;
        let left_out = left_out::lines(lacking.iter().filter(|cell| choice.fits(cell)));
        let prepared = Self {
            definition,
            cells,
            chosen,
            left_out,
        };
        if !args.list {
            prepared.check(places)?;
        }
        Ok(prepared)
    }

    /// Plans every chosen cell. If something is wrong with the last one, that must not show only
    /// after hours.
    fn check(&self, places: Places) -> Result<()> {
        let data = tempfile::tempdir().context("cannot make a temporary directory")?;
        fixtures::unpack(data.path())?;
        let places = Places {
            data: data.path().to_owned(),
            ..places
        };
        let trial = cells::cells(&self.definition, &places)?;
        for cell in self.chosen.iter().filter_map(|number| trial.get(*number)) {
            line::plan(&cell.words, &cell.flags).with_context(|| cell.id.clone())?;
        }
        Ok(())
    }

    /// Makes `out` the directory of the results.
    fn begin(&self, args: &SuiteArgs, out: &Path) -> Result<()> {
        // Checked before the disks' directories are made, which may lie inside it.
        record::check(out)?;
        let host = disks::host(args)?;
        Record::new(&self.definition, &self.cells, &host)?.begin(out)?;
        let host = serde_json::to_value(&host)?;
        for run in self.runs_of_all() {
            if let Some(cell) = self.cells.get(run.cell) {
                results::check(out, cell, run, &host)?;
            }
        }
        if self.cells.iter().any(|cell| cell.needs_data) {
            fixtures::unpack(&out.join(DATA))?;
        }
        Ok(())
    }

    fn measure(
        &self,
        args: &SuiteArgs,
        out: &Path,
        harness: &mut dyn Harness,
        progress: &mut Progress,
    ) -> Result<String> {
        for line in &self.left_out {
            progress.say(line);
        }
        let task = Task {
            cells: &self.cells,
            runs: schedule::order(&self.cells, &self.chosen, self.definition.states),
            out,
            limit_slow: args.limit_slow.as_deref(),
        };
        let estimate = Estimate::new(self.definition.guess);
        let outcome = measure::measure(&task, harness, estimate, progress)?;
        progress.finish();
        let Outcome {
            earlier,
            measured,
            failed,
        } = outcome;
        let summary = format!("{measured} runs measured, {earlier} were there already");
        if !failed.is_empty() {
            let failed = failed.join("\n");
            bail!("{summary}, and some failed:\n{failed}\nthe same command tries these again");
        }
        let stores = out.join(STORES);
        if self.is_complete(out) && stores.exists() {
            fs::remove_dir_all(&stores)
                .with_context(|| format!("cannot remove {}", stores.display()))?;
        }
        Ok(summary)
    }

    /// Whether every run of every cell is there.
    fn is_complete(&self, out: &Path) -> bool {
        let runs = self.runs_of_all();
        runs.iter().all(|run| self.is_finished(out, *run))
    }

    /// Whether any run of any cell is there.
    fn has_results(&self, out: &Path) -> bool {
        let runs = self.runs_of_all();
        runs.iter().any(|run| self.is_finished(out, *run))
    }

    fn is_finished(&self, out: &Path, run: Run) -> bool {
        let cell = self.cells.get(run.cell);
        cell.is_some_and(|cell| results::finished(out, cell, run).is_some())
    }

    /// Every run of every cell, wanted or not.
    fn runs_of_all(&self) -> Vec<Run> {
        let all: Vec<usize> = (0..self.cells.len()).collect();
        schedule::order(&self.cells, &all, self.definition.states)
    }
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            definition,
            cells,
            chosen,
            left_out,
        } = self;
        writeln!(f, "{}: {}", definition.name, definition.description)?;
        for cell in chosen.iter().filter_map(|number| cells.get(*number)) {
            writeln!(f, "\n{}", cell.about())?;
            writeln!(f, "  {}", cell.command())?;
        }
        if !left_out.is_empty() {
            writeln!(f, "\n{}", left_out.join("\n"))?;
        }
        let runs = schedule::order(cells, chosen, definition.states);
        let seconds = Estimate::new(definition.guess).all(cells, &runs, &[]);
        write!(
            f,
            "\n{} cells, {} runs, about {}",
            chosen.len(),
            runs.len(),
            in_words(seconds)
        )
    }
}

/// The directories that the command line names, or those that replace them.
fn places(args: &SuiteArgs, definition: &Definition) -> Result<Places> {
    ensure!(
        args.fast.is_some() == args.slow.is_some(),
        "--fast and --slow: name both directories, or neither"
    );
    let out = args.out.clone().unwrap_or_else(|| "OUT".into());
    let (fast, slow) = match (&args.fast, &args.slow) {
        (Some(fast), Some(slow)) => (fast.clone(), slow.clone()),
        _ if definition.directories == Directories::Optional => {
            (out.join(STORES).join("fast"), out.join(STORES).join("slow"))
        }
        _ if args.list => ("FAST".into(), "SLOW".into()),
        _ => bail!(
            "suite {} needs directories on a fast and on a slow disk: name them with --fast and --slow",
            definition.name
        ),
    };
    Ok(Places {
        fast,
        slow,
        data: out.join(DATA),
        limit_slow: args.limit_slow.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::WORKLOADS_DEFINITION;

    /// The arguments of a suite with results in `out`, whose disks lie in there too.
    fn smoke(out: &Path) -> SuiteArgs {
        SuiteArgs {
            suite: "smoke".to_owned(),
            out: Some(out.to_owned()),
            fast: Some(out.join("fast")),
            slow: Some(out.join("slow")),
            only: Vec::new(),
            limit_slow: None,
            list: false,
        }
    }

    /// Regression: the suite made the directories of the disks, and then refused the directory of
    /// the results for not being empty.
    #[test]
    fn disks_may_lie_in_the_directory_of_the_results() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("results");
        let args = smoke(&out);
        let prepared = Prepared::new(&args).unwrap();
        prepared.begin(&args, &out).unwrap();
        prepared.begin(&args, &out).unwrap();
    }

    #[test]
    fn a_suite_has_results_from_its_first_finished_run_on() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("results");
        let args = smoke(&out);
        let prepared = Prepared::new(&args).unwrap();
        prepared.begin(&args, &out).unwrap();
        let (cell, run) = (&prepared.cells[0], Run { cell: 0, repeat: 1 });
        let result = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"), "engine": cell.engine, "workloads": WORKLOADS_DEFINITION,
            "workload": cell.workload, "distribution": cell.distribution, "ops_s": 7.0,
        });
        fs::write(results::part(&out, cell, run), result.to_string()).unwrap();
        assert!(!prepared.has_results(&out), "it may be half a one");
        results::accept(&out, cell, run).unwrap();
        assert!(prepared.has_results(&out));
        assert!(!prepared.is_complete(&out));
    }
}
