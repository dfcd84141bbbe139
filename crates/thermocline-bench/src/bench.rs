//! A benchmark from its flags to its report.

use anyhow::{Context, Result, bail};
use thermocline::Target;

use crate::args::{BenchArgs, Phase};
use crate::bad_arguments::BadArguments;
use crate::engine::Engine;
use crate::host::Host;
use crate::json_file::JsonFile;
use crate::memory_limit::{self, OwnGroup};
use crate::plan::Plan;
use crate::probe::Expected;
use crate::progress::Progress;
use crate::report::{LoadingResult, Report};
use crate::run::{self, Load, Loading, Watch};
use crate::settings::Dirs;
use crate::state::{Kept, Place};
use crate::targets::Targets;

/// Runs the benchmark that `args` describe. Progress goes to standard error when that is a
/// terminal. The report is returned, and written to `--json` if given.
///
/// # Errors
/// [`BadArguments`] for flags that contradict each other, and for a `--json` that cannot be
/// written; errors of the engine and of the file system. Wrong answers are an error too, after the
/// report was written.
pub fn bench(args: &BenchArgs) -> Result<Report> {
    let plan = args.plan().map_err(BadArguments::new)?;
    // If something is wrong with the file, that must not show only after hours.
    let json = args.json.as_deref().map(JsonFile::try_at).transpose();
    let json = json.context("--json").map_err(BadArguments::new)?;
    let place = Place::new(args)?;
    // Held to the end, because loading fills the page cache too.
    let _limit = limit_memory(&plan).map_err(BadArguments)?;
    let mut progress = Progress::new();
    let slow_probes = match plan.commands_after_warm_up() {
        false => Expected::check_each(&plan.expected, false)?,
        true => Vec::new(),
    };
    let measured = measure(args, &plan, &place, &mut progress);
    progress.finish();
    let mut report = measured?;
    if !slow_probes.is_empty() {
        report.probes(slow_probes);
    }
    hand_over(report, json)
}

/// Writes the report to `json`. Whatever happens, what was measured is told.
fn hand_over(report: Report, json: Option<JsonFile>) -> Result<Report> {
    if let Some(Err(error)) = json.map(|json| json.write(&report)) {
        bail!("{report}\n{error:#}");
    }
    if report.wrong_answers > 0 {
        bail!("{report}\n{} answers were wrong", report.wrong_answers);
    }
    if let Some(why) = &report.failed_after {
        bail!("{report}\nafter the run: {why}");
    }
    Ok(report)
}

/// The harness's own memory beside the engine's: its threads and histograms, and for each record
/// the numbers by which a stale answer is recognised.
const HARNESS: u64 = 16 << 20;
const HARNESS_PER_RECORD: u64 = 2;

/// What it takes for each record besides while it sorts them: the key, and the number twice.
const SORTING_PER_RECORD: u64 = 40;

/// Gives an engine that uses the page cache the memory that every engine has.
fn limit_memory(plan: &Plan) -> Result<Option<OwnGroup>> {
    if !(plan.engine.uses_page_cache() && plan.limits_memory) {
        return Ok(None);
    }
    let sorting = if plan.ingest == Some(true) {
        SORTING_PER_RECORD
    } else {
        0
    };
    let harness = HARNESS + (HARNESS_PER_RECORD + sorting) * plan.records;
    memory_limit::limit(plan.settings.memory + harness).map(Some)
}

/// Measures. Removes the run's directories afterwards, whatever came of it: that matters most after
/// a run that filled its disk.
fn measure(args: &BenchArgs, plan: &Plan, place: &Place, watch: &mut dyn Watch) -> Result<Report> {
    let report = if args.keep {
        on_kept_state(args, plan, place, watch)
    } else {
        on_new_state(args, plan, place, watch)
    };
    let removed = place.remove_run();
    let mut report = report?;
    report.note_failure(removed);
    Ok(report)
}

fn on_new_state(
    args: &BenchArgs,
    plan: &Plan,
    place: &Place,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let first = plan.targets.as_ref().map(Targets::first);
    let (load, loading) = load(plan, &place.run(), first, watch)?;
    let mut report = Report::new(plan, false, Some(load))?;
    report.loading = LoadingResult::new(loading);
    finish(args, plan, place, &mut report, watch)?;
    Ok(report)
}

fn on_kept_state(
    args: &BenchArgs,
    plan: &Plan,
    place: &Place,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let loaded = place.loaded();
    let found = match args.phase {
        Phase::Load => None,
        Phase::Both => place.find(plan)?,
        Phase::Run => Some(place.kept(plan)?),
    };
    let mut loading = None;
    let (kept, earlier) = match found {
        Some(kept) => (kept, true),
        None => {
            place.forget()?;
            // Without a target, because runs with other targets use the state too.
            let (load, counted) = load(plan, &loaded, None, watch)?;
            let kept = Kept::new(plan, load);
            loading = Some(LoadingResult::new(counted));
            place.keep(&kept)?;
            (kept, false)
        }
    };
    let mut report = Report::new(plan, earlier, kept.load(plan))?;
    report.loaded_by = kept.loaded_by();
    report.loading = loading.unwrap_or_default();
    plan.engine
        .copy(&plan.settings, &loaded, &place.run())
        .context("cannot copy the kept state")?;
    finish(args, plan, place, &mut report, watch)?;
    Ok(report)
}

fn load(
    plan: &Plan,
    dirs: &Dirs,
    target: Option<Target>,
    watch: &mut dyn Watch,
) -> Result<(Load, Loading)> {
    let engine = plan.engine.open(&plan.settings, dirs)?;
    aim(engine.as_ref(), target)?;
    let load = run::load_and_count(plan, engine.as_ref(), watch).context("while loading")?;
    engine.close()?;
    Ok(load)
}

/// Sets the target, if there is one.
fn aim(engine: &dyn Engine, target: Option<Target>) -> Result<()> {
    match target {
        Some(target) => engine.set_target(target).context("cannot set the target"),
        None => Ok(()),
    }
}

/// Runs on the loaded store. It is freshly opened, so that caches start empty every time.
fn finish(
    args: &BenchArgs,
    plan: &Plan,
    place: &Place,
    report: &mut Report,
    watch: &mut dyn Watch,
) -> Result<()> {
    let engine = plan.engine.open(&plan.settings, &place.run())?;
    aim(engine.as_ref(), plan.targets.as_ref().map(Targets::first))?;
    // The disks are not looked up in the run's own directories: an engine on one disk makes none on
    // the other, which is part of the machine all the same.
    report.host = Host::with_disks(place.dirs());
    if args.phase == Phase::Load {
        report.sizes(&engine.counters()?, Some(plan.records));
    } else {
        let measured = run::measure(plan, engine.as_ref(), watch).context("while running")?;
        report.run(measured)?;
        // After all that was counted: it reads the fast tier.
        let hot = engine.hot_bytes_on_fast();
        let hot = hot.context("cannot count what is hot on the fast tier");
        let noted = hot.map(|bytes| report.hotness.hot_bytes_on_fast = bytes);
        report.note_failure(noted);
    }
    report.note_failure(engine.close());
    Ok(())
}

#[cfg(test)]
mod tests;
