//! Anything happens to a store's files. What the repair reports as lost may be missing, old or
//! back. Every other answer is right.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use thermocline::storage::{Faulty, Medium};
use thermocline::{Compression, Error, Loss, RepairReport};

use super::{failed, repair, with_old_names};
use crate::harness::corruption::damage::{Damage, draw};
use crate::harness::corruption::scene::{Scene, builder, dirs, scenes};
use crate::life::history::{Contents, contents};
use crate::verdict::{Promise, Tally, Violation};

pub(super) fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let scene = &scenes()[(seed / 2 % scenes().len() as u64) as usize];
    let damage = draw(scene, &mut rng, tally);
    let disk = Faulty::new(1);
    for dir in dirs() {
        disk.log_store(&dir, true)
            .map_err(|e| failed("the test's own disk", &e))?;
    }
    for file in &damage.files {
        disk.write_raw(&file.dir, &file.name, &file.bytes);
    }
    check(scene, &damage, &disk, tally).map_err(|violation| {
        let message = format!("{}: {}", damage.what, violation.message);
        Violation::new(violation.promise, message)
    })
}

fn check(
    scene: &Scene,
    damage: &Damage,
    disk: &Faulty,
    tally: &mut Tally,
) -> Result<(), Violation> {
    let builder = || builder(disk, Compression::None, false);
    let report = match repair(disk, builder, tally) {
        Ok(report) => report,
        // It is for people to put exchanged tiers right.
        Err(Error::WrongTier { .. }) => {
            tally.add("refused: another tier", 1);
            return Ok(());
        }
        Err(Error::Corruption { .. }) if damage.touched.len() > 2 => {
            tally.add("refused: nothing says which database", 1);
            return Ok(());
        }
        Err(error) => return Err(failed("repair", &error)),
    };
    let db = builder().open().map_err(|e| failed("open", &e))?;
    let problems = db
        .verify(&mut |_| {})
        .map_err(|e| failed("verify", &e))?
        .problems;
    if !problems.is_empty() {
        return Err(format!("after the repair verify finds {problems:?}").into());
    }
    let found = contents(&db).map_err(|e| failed("scan", &e))?;
    let found = with_old_names(found);
    // If a log was cut, or its end is gone, only its prefixes tell what it held.
    let log_lost = report.losses.iter().any(is_log);
    let states = scene.states(log_lost || damage.hides_the_log(scene));
    let mut differences = states.map(|state| unexplained(state, &found, &report));
    match differences.find(Vec::is_empty) {
        Some(_) => Ok(()),
        None if log_lost && report.rebuilt => {
            tally.add("a log and a manifest lost together", 1);
            Ok(())
        }
        None => {
            let last = scene
                .states
                .last()
                .map(|state| unexplained(state, &found, &report));
            let (promise, key) = last
                .and_then(|all| all.into_iter().next())
                .unwrap_or_else(|| (Promise::Orderly, "the scene has no state".to_owned()));
            let losses = &report.losses;
            Err(Violation::new(
                promise,
                format!("{key}, and the losses are {losses:?}"),
            ))
        }
    }
}

fn is_log(loss: &Loss) -> bool {
    loss.file.extension().is_some_and(|end| end == "wal")
}

/// A manifest that cannot be read to its end is always reported. That loss would account for
/// anything, though the tables are whole.
fn is_manifest(loss: &Loss) -> bool {
    let name = loss.file.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with("MANIFEST")
}

/// Where `found` is not `state` and no loss accounts for it.
fn unexplained(
    state: &Contents,
    found: &Contents,
    report: &RepairReport,
) -> Vec<(Promise, String)> {
    let keys: BTreeSet<_> = state.keys().chain(found.keys()).collect();
    let mut all = Vec::new();
    for at in keys {
        let promise = match (state.get(at), found.get(at)) {
            (wanted, found) if wanted == found => continue,
            (Some(_), None) => Promise::Kept,
            (None, Some(_)) => Promise::Gone,
            _ => Promise::Right,
        };
        let accounts = |loss: &Loss| {
            !is_log(loss)
                && !is_manifest(loss)
                && loss
                    .keyspace
                    .as_ref()
                    .is_none_or(|name| *name == at.0 || name.starts_with("keyspace-"))
                && loss
                    .keys
                    .as_ref()
                    .is_none_or(|(first, last)| *first <= at.1 && at.1 <= *last)
        };
        if !report.losses.iter().any(accounts) {
            all.push((promise, format!("{}/{}", at.0, at.1.escape_ascii())));
        }
    }
    all
}
