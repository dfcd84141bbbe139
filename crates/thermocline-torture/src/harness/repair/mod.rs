//! A store is damaged and repaired. Then it opens, and every answer is right except for what the
//! repair reported as lost.
//!
//! | module | what it does to a store |
//! |---|---|
//! | `after_crash` | the power goes, then its manifest is lost or damaged: nothing else may be |
//! | `after_damage` | anything at all: what is reported lost may be wrong, and nothing beside it |

mod after_crash;
mod after_damage;

use thermocline::storage::{Faulty, FileInfo};
use thermocline::{DbBuilder, Error, RepairReport};

use super::Harness;
use super::corruption::scene::dirs;
use crate::cases;
use crate::life::SIDE;
use crate::life::history::Contents;
use crate::verdict::{Promise, Tally, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "repair",
    about: "a store is damaged, or its manifest lost after a power cut, and repaired",
    small: 300,
    long: 20_000,
    run: |plan| cases::run(HARNESS.name, plan, case).having_reached(HARNESS.small, REACHED),
};

/// A run without these proves nothing.
const REACHED: &[&str] = &[
    "sound stores",
    "rebuilt without a manifest",
    "with losses",
    "with tables written anew",
    "with tables on the slow tier",
];

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    match seed % 2 {
        0 => after_crash::case(seed, tally),
        _ => after_damage::case(seed, tally),
    }
}

/// Repairs the store of `builder` on `disk`. Before that it makes a dry run, which must change
/// nothing and say the same.
fn repair(
    disk: &Faulty,
    builder: impl Fn() -> DbBuilder,
    tally: &mut Tally,
) -> Result<RepairReport, Error> {
    let before = files(disk);
    let planned = builder().repair(true)?;
    assert_eq!(files(disk), before, "a dry run changes nothing");
    let report = builder().repair(false)?;
    assert_eq!(planned.losses, report.losses, "a dry run says what is lost");
    assert_eq!(report.repaired, !report.problems.is_empty());
    if !report.repaired {
        assert_eq!(files(disk), before, "a sound store is not changed");
    }
    let again = builder().repair(true)?;
    assert_eq!(again.problems, [""; 0], "nothing is left to repair");
    tally.add("sound stores", (!report.repaired).into());
    tally.add("rebuilt without a manifest", report.rebuilt.into());
    tally.add("with losses", (!report.losses.is_empty()).into());
    tally.add("with tables written anew", (report.rewritten > 0).into());
    Ok(report)
}

fn files(disk: &Faulty) -> Vec<(FileInfo, Vec<u8>)> {
    let mut files = Vec::new();
    for dir in dirs() {
        for file in disk.list_raw(&dir) {
            let bytes = disk.read_raw(&dir, &file.name).unwrap_or_default();
            files.push((file, bytes));
        }
    }
    files
}

/// `found`, in which a keyspace that a repair had to give a new name is called by its old one.
/// There are only the default keyspace and this one. Only an edit or a table tells the name.
fn with_old_names(found: Contents) -> Contents {
    let rename = |name: String| match name.starts_with("keyspace-") {
        true => SIDE.to_owned(),
        false => name,
    };
    let records = found.into_iter();
    records
        .map(|((name, key), value)| ((rename(name), key), value))
        .collect()
}

/// The error of a call that must succeed.
fn failed(what: &str, error: &Error) -> Violation {
    Violation::new(Promise::Alive, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Plan;

    #[test]
    fn what_is_reported_lost_is_all_that_is() {
        let verdict = (HARNESS.run)(&Plan::new(1, 60)).having_reached(60, REACHED);
        assert!(verdict.is_clean(), "{verdict}");
    }
}
