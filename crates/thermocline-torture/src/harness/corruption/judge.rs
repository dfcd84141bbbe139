//! What a store whose files were damaged may answer: an error that names the file, or the truth.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use thermocline::storage::{Faulty, Medium};
use thermocline::{Compression, Db, Error};

use super::damage::Damage;
use super::scene::{Scene, builder, dirs};
use crate::life::history::Contents;
use crate::verdict::{Promise, Tally, Violation};

/// Under this name it is counted that a store opens without the writes at the end of its damaged
/// log.
pub(super) const CUT_OFF: &str = "the end of a log cut off";

/// Keyspace and key.
type At = (String, Vec<u8>);

/// Every answer that was given, and every read that failed.
struct Answers {
    found: Vec<(At, Option<Vec<u8>>)>,
    /// What scans gave before they ended or failed, by keyspace and direction.
    scans: Vec<Scan>,
    errors: Vec<Error>,
}

struct Scan {
    keyspace: String,
    backwards: bool,
    records: Vec<(Vec<u8>, Vec<u8>)>,
    whole: bool,
}

/// Opens the damaged store, reads everything in every way, and verifies it.
pub(super) fn judge(scene: &Scene, damage: Damage, tally: &mut Tally) -> Result<(), Violation> {
    count(&damage, tally);
    let disk = Faulty::new(1);
    // A directory is there even if its files are lost.
    for dir in dirs() {
        let made = disk.log_store(&dir, true);
        made.map_err(|error| format!("the test's own disk: {error}"))?;
    }
    for file in &damage.files {
        disk.write_raw(&file.dir, &file.name, &file.bytes);
    }
    let said = |violation: Violation| {
        let message = format!("{}: {}", damage.what, violation.message);
        Violation::new(violation.promise, message)
    };
    match builder(&disk, Compression::None, false).open() {
        Err(error) => {
            tally.add("refused at opening", 1);
            refused(scene, &disk, &damage, &error).map_err(said)
        }
        Ok(db) => {
            let outcome = opened(scene, &damage, &db).map_err(said)?;
            tally.add(outcome, 1);
            Ok(())
        }
    }
}

fn count(damage: &Damage, tally: &mut Tally) {
    for path in &damage.touched {
        let kind = match name(path) {
            name if name.ends_with(".sst") => "of a table",
            name if name.ends_with(".wal") => "of a log",
            name if name.starts_with("MANIFEST") => "of a manifest",
            "CURRENT" => "of CURRENT",
            "TIER" => "of TIER",
            "RALT" => "of RALT",
            _ => "of another file",
        };
        tally.add(kind, 1);
    }
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// An error of the opening is of a kind that says what is wrong. It names the file, and costs
/// nothing.
fn refused(scene: &Scene, disk: &Faulty, damage: &Damage, error: &Error) -> Result<(), Violation> {
    let told = matches!(
        error,
        Error::Corruption { .. } | Error::FormatVersion { .. } | Error::WrongTier { .. }
    );
    if !told {
        return Err(format!("opening says {error:?}").into());
    }
    if !names(damage, error) {
        return Err(format!("{:?} changed, and opening says {error}", damage.touched).into());
    }
    for file in &damage.files {
        let path = file.path();
        if scene.tables.contains(&path) && disk.read_raw(&file.dir, &file.name).is_err() {
            let message = format!("opening was refused, but {} is gone", path.display());
            return Err(Violation::new(Promise::Kept, message));
        }
    }
    // A closed store is verified by a dry run of its repair.
    match builder(disk, Compression::None, false).repair(true) {
        Ok(report) if report.problems.is_empty() => {
            Err("opening is refused, and a verification finds nothing".into())
        }
        Ok(report) if !report.problems.iter().any(|says| tells(damage, says)) => {
            let found = report.problems;
            Err(format!(
                "{:?} changed, and a verification finds {found:?}",
                damage.touched
            )
            .into())
        }
        Ok(_) | Err(Error::WrongTier { .. }) => Ok(()),
        // Every file that names the database is damaged.
        Err(Error::Corruption { .. }) if damage.touched.len() > 2 => Ok(()),
        Err(error) => Err(format!("a verification of the closed store: {error}").into()),
    }
}

/// Whether `error` names a file that was changed, or one that shows the change.
fn names(damage: &Damage, error: &Error) -> bool {
    // A TIER file of another tier is whole; the directory is the wrong one.
    let is_tier = |path: &PathBuf| name(path) == "TIER";
    matches!(error, Error::WrongTier { .. }) && damage.touched.iter().any(is_tier)
        || tells(damage, &error.to_string())
}

/// Whether a log was changed.
fn meets_a_log(damage: &Damage) -> bool {
    let mut touched = damage.touched.iter();
    touched.any(|path| name(path).ends_with(".wal"))
}

/// Whether a manifest was changed.
fn meets_a_manifest(damage: &Damage) -> bool {
    let mut touched = damage.touched.iter();
    touched.any(|path| name(path).starts_with("MANIFEST"))
}

/// Whether `says` names a file that was changed, or one that shows the change.
fn tells(damage: &Damage, says: &str) -> bool {
    let mut paths = damage.touched.iter();
    paths.any(|path| says.contains(&*path.display().to_string()))
        // If a log's first bytes are lost, the next segment shows the gap.
        || meets_a_log(damage) && says.contains(".wal")
        // A manifest that lost its last edits names tables that are gone, or disagrees with the
        // log.
        || meets_a_manifest(damage) && (says.contains(".wal") || says.contains(".sst"))
}

/// What became of the damage in a store that opened.
fn opened(scene: &Scene, damage: &Damage, db: &Db) -> Result<&'static str, Violation> {
    let answers = read_everything(scene, db)?;
    let missing = right(scene, damage, &answers, db.recovery().cut.is_some())?;
    for error in &answers.errors {
        let Error::Corruption { path, offset, .. } = error else {
            return Err(format!("a read says {error:?}").into());
        };
        if !damage.touched.contains(path) {
            let touched = &damage.touched;
            return Err(format!("{touched:?} changed, and a read says {error}").into());
        }
        let file = damage.files.iter().find(|file| file.path() == *path);
        if file.is_some_and(|file| *offset > file.bytes.len() as u64) {
            return Err(format!("a read names an offset behind the file's end: {error}").into());
        }
    }
    let report = db
        .verify(&mut |_| {})
        .map_err(|error| format!("verify fails: {error}"))?;
    let places = |errors: &[Error]| -> BTreeSet<(PathBuf, u64)> {
        let place = |error: &Error| match error {
            Error::Corruption { path, offset, .. } => Some((path.clone(), *offset)),
            _ => None,
        };
        errors.iter().filter_map(place).collect()
    };
    let (found, read) = (places(&report.problems), places(&answers.errors));
    if let Some(stray) = report
        .problems
        .iter()
        .find(|problem| !names(damage, problem))
    {
        return Err(format!("verify finds what is not there: {stray}").into());
    }
    let files = |places: &BTreeSet<(PathBuf, u64)>| -> BTreeSet<PathBuf> {
        places.iter().map(|(file, _)| file.clone()).collect()
    };
    let missed = match damage.is_one_bit {
        true => read.difference(&found).next().is_some(),
        false => files(&read).difference(&files(&found)).next().is_some(),
    };
    if missed {
        return Err(format!("reads find {read:?}, verify finds {found:?}").into());
    }
    let noticed = !answers.errors.is_empty() || !found.is_empty();
    // A table is checked everywhere. What names the other files is read when the store is opened. A
    // table that no edit names any more, because the last edit is damaged too, is removed: the log
    // may hold what it held.
    let has_orphans = meets_a_manifest(damage) && db.recovery().orphans > 0;
    // Each file for itself: that one is named says nothing of another.
    let told = |path: &Path| {
        let path = path.display().to_string();
        let mut problems = report.problems.iter();
        problems.any(|problem| problem.to_string().contains(&path))
    };
    let is_silent = |path: &&PathBuf| match name(path) {
        "CURRENT" | "TIER" => !noticed,
        _ => scene.tables.contains(*path) && !has_orphans && !told(path),
    };
    if let Some(path) = damage.touched.iter().find(is_silent) {
        return Err(format!("{} changed, and nothing says so", path.display()).into());
    }
    Ok(match (answers.errors.is_empty(), found.is_empty()) {
        (false, _) => "found by a read, and by verify",
        (true, false) => "found by verify alone",
        (true, true) if missing > 0 => CUT_OFF,
        (true, true) if db.recovery().hotness.is_some() => "access records begun anew",
        (true, true) => "harmless",
    })
}

fn read_everything(scene: &Scene, db: &Db) -> Result<Answers, Violation> {
    let mut answers = Answers {
        found: Vec::new(),
        scans: Vec::new(),
        errors: Vec::new(),
    };
    let keys: BTreeSet<_> = scene.states.iter().flat_map(|state| state.keys()).collect();
    let mut keyspaces: BTreeSet<String> = db.keyspaces().into_iter().collect();
    keyspaces.extend(keys.iter().map(|(keyspace, _)| keyspace.clone()));
    for name in keyspaces {
        let keyspace = db.keyspace(&name).map_err(|error| {
            let message = format!("a keyspace that was acknowledged: {error}");
            Violation::new(Promise::Kept, message)
        })?;
        for at in keys.iter().filter(|at| at.0 == name) {
            match keyspace.get(&at.1) {
                Ok(value) => {
                    let value = value.map(|value| value.to_vec());
                    answers.found.push(((*at).clone(), value));
                }
                Err(error) => answers.errors.push(error),
            }
        }
        for backwards in [false, true] {
            let mut scan = Scan {
                keyspace: name.clone(),
                backwards,
                records: Vec::new(),
                whole: true,
            };
            let mut range = keyspace.iter();
            while let Some(record) = match backwards {
                false => range.next(),
                true => range.next_back(),
            } {
                match record {
                    Ok((key, value)) => scan.records.push((key.to_vec(), value.to_vec())),
                    Err(error) => {
                        answers.errors.push(error);
                        scan.whole = false;
                        break;
                    }
                }
            }
            answers.scans.push(scan);
        }
    }
    Ok(answers)
}

/// How many states behind the last one the store is, if all answers are those of one state that it
/// may be in. `is_cut` says that the opening has reported a log that ends early.
///
/// Every write at the end of a log was synced. Damage of the log may still pass for what a crash
/// has left of it. Then it costs what it meets at the log's end. Without the manifest nothing tells
/// how far the log has to reach. One flipped bit costs the last write at most, because the record
/// of each write says that those before it were durable. No other damage costs any write.
fn right(
    scene: &Scene,
    damage: &Damage,
    answers: &Answers,
    is_cut: bool,
) -> Result<usize, Violation> {
    let possible = match (meets_a_log(damage), meets_a_manifest(damage)) {
        (false, false) => 1,
        (true, _) if damage.is_one_bit => 1 + usize::from(is_cut),
        _ => usize::MAX,
    };
    let states = scene.states(damage.hides_the_log(scene));
    let mut first = None;
    for (missing, state) in states.take(possible).enumerate() {
        match answered_from(state, answers) {
            Ok(()) => return Ok(missing),
            Err(violation) => {
                first.get_or_insert(violation);
            }
        }
    }
    Err(first.unwrap_or_else(|| "the scene has no state".into()))
}

fn answered_from(state: &Contents, answers: &Answers) -> Result<(), Violation> {
    for (at, found) in &answers.found {
        let promise = match (state.get(at), found) {
            (wanted, found) if wanted == found.as_ref() => continue,
            (Some(_), None) => Promise::Kept,
            (None, Some(_)) => Promise::Gone,
            _ => Promise::Right,
        };
        let key = at.1.escape_ascii();
        return Err(Violation::new(promise, format!("get of {}/{key}", at.0)));
    }
    for scan in &answers.scans {
        let wanted = state.iter().filter(|((name, _), _)| *name == scan.keyspace);
        let mut wanted: Vec<_> = wanted.map(|((_, k), v)| (k.clone(), v.clone())).collect();
        if scan.backwards {
            wanted.reverse();
        }
        let is_right = match scan.whole {
            true => wanted == scan.records,
            false => wanted.starts_with(&scan.records),
        };
        if !is_right {
            let (name, count) = (&scan.keyspace, scan.records.len());
            let message = format!("a scan of {name} gives {count} of {} records", wanted.len());
            return Err(Violation::new(Promise::Right, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::damage::flip_one;
    use super::super::scene::scenes;
    use super::*;
    use crate::life::SIDE;

    /// What a store that holds `state` answers.
    fn answers(scene: &Scene, state: &Contents) -> Answers {
        let keys = scene.states.iter().flat_map(|state| state.keys());
        let scans = ["default", SIDE].map(|keyspace| {
            let records = state.iter().filter(|((name, _), _)| name == keyspace);
            Scan {
                keyspace: keyspace.into(),
                backwards: false,
                records: records.map(|((_, k), v)| (k.clone(), v.clone())).collect(),
                whole: true,
            }
        });
        Answers {
            found: keys
                .map(|at| (at.clone(), state.get(at).cloned()))
                .collect(),
            scans: scans.into(),
            errors: Vec::new(),
        }
    }

    /// A bit of the first file whose name ends in `end`.
    fn flipped(scene: &Scene, end: &str) -> Damage {
        let files = scene.files.iter();
        let before = files.take_while(|file| !file.name.ends_with(end));
        let damage = flip_one(scene, before.map(|file| file.bytes.len() as u64).sum());
        assert!(damage.touched.iter().any(|path| name(path).ends_with(end)));
        damage
    }

    /// Regression: of a store that was not closed, any prefix of what its log ends in was right,
    /// whatever was damaged. Synced writes could go missing by damage of a table, and that was
    /// called harmless.
    #[test]
    fn a_synced_write_is_missing_only_where_its_log_was_damaged() {
        let with_a_log = scenes().iter().filter(|scene| scene.states.len() > 1);
        for scene in with_a_log {
            let [.., older, before, last] = &scene.states[..] else {
                panic!("too few states");
            };
            let missing = |state: &Contents, damage: &Damage, is_cut: bool| {
                right(scene, damage, &answers(scene, state), is_cut).ok()
            };
            let (table, log) = (flipped(scene, ".sst"), flipped(scene, ".wal"));
            for is_cut in [false, true] {
                assert_eq!(missing(last, &table, is_cut), Some(0));
                assert_eq!(missing(before, &table, is_cut), None);
                assert_eq!(missing(last, &log, is_cut), Some(0));
                assert_eq!(missing(older, &log, is_cut), None);
            }
            assert_eq!(missing(before, &log, false), None, "and it is not said");
            assert_eq!(missing(before, &log, true), Some(1));
            // Any prefix may be left of a log that was cut short.
            let short = Damage {
                is_one_bit: false,
                ..log
            };
            assert_eq!(missing(older, &short, false), Some(2));
        }
    }
}
