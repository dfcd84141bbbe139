//! The power goes at any call of a store's life, and then its manifest is lost or damaged. Tables
//! and log are whole. So everything comes back that a recovery would have given, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::{CrashStyle, Fault, Faulty};
use thermocline::{Db, DbBuilder};

use super::{failed, repair, with_old_names};
use crate::life::history::{After, contents};
use crate::life::{FAST, LIFE, SLOW, Trial, WARMING, tiny_options};
use crate::verdict::{Tally, Violation};

/// Calls that a life makes at least.
const CALLS: u64 = 2_500;

pub(super) fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let life = [LIFE, WARMING][rng.random_range(0..2)];
    let mut trial = Trial::new(seed);
    trial
        .disk
        .fail_nth(rng.random_range(300..CALLS), Fault::PowerLoss);
    trial.run_until_the_power_goes(life)?;
    let styles = [CrashStyle::LoseAll, CrashStyle::KeepAll, CrashStyle::Random];
    let style = styles[rng.random_range(0..styles.len())];
    let disk = trial.disk.crash(style);
    trial.wake(disk);
    let what = lose_the_manifest(&trial.disk, &mut rng);
    trial.name = format!("{style:?}, {what}");
    check(&mut trial, tally).map_err(|problem| trial.named(problem))
}

fn builder(disk: &Faulty) -> DbBuilder {
    Db::builder(tiny_options())
        .medium(0, Arc::new(disk.clone()))
        .medium(1, Arc::new(disk.clone()))
}

fn check(trial: &mut Trial, tally: &mut Tally) -> Result<(), Violation> {
    let disk = trial.disk.clone();
    let found = tables(&disk);
    let report = repair(&disk, || builder(&disk), tally).map_err(|e| failed("repair", &e))?;
    let open = || builder(&disk).open().map_err(|e| failed("open", &e));
    let db = open()?;
    let scan = |db: &Db| {
        let found = contents(db).map_err(|e| failed("scan", &e))?;
        Ok::<_, Violation>(with_old_names(found))
    };
    let first = scan(&db)?;
    // A keyspace of which only the lost manifest told cannot come back.
    trial.history.recovered(&first, After::PowerLoss)?;
    tally.add(
        "with orphans of a compaction",
        (db.recovery().orphans > 0).into(),
    );
    let on_slow = db.metrics().tiers[1].table_bytes > 0;
    tally.add("with tables on the slow tier", on_slow.into());
    let problems = db
        .verify(&mut |_| {})
        .map_err(|e| failed("verify", &e))?
        .problems;
    if !problems.is_empty() {
        return Err(format!("after the repair verify finds {problems:?}").into());
    }
    // What lies below must not come up when levels are merged (I1).
    for name in db.keyspaces() {
        let keyspace = db.keyspace(&name).map_err(|e| failed("keyspace", &e))?;
        let compacted = keyspace.compact_range::<&[u8]>(..);
        compacted.map_err(|e| failed("compact", &e))?;
    }
    if scan(&db)? != first {
        return Err("compaction after the repair changes what is there".into());
    }
    db.close().map_err(|e| failed("close", &e))?;
    if scan(&open()?)? != first {
        return Err("opening again after the repair changes what is there".into());
    }
    // I4: new numbers are above all that were in use.
    let reused = tables(&disk)
        .difference(&found)
        .any(|new| Some(new) < found.last());
    if report.rebuilt && reused {
        return Err("a table has a number that was in use before the repair".into());
    }
    Ok(())
}

fn tables(disk: &Faulty) -> BTreeSet<u64> {
    let files = [FAST, SLOW].map(|dir| disk.list_raw(Path::new(dir)));
    let number = |name: String| name.strip_suffix(".sst")?.parse().ok();
    files
        .into_iter()
        .flatten()
        .filter_map(|file| number(file.name))
        .collect()
}

/// Takes away or damages what names the tables. Returns in words what it did.
fn lose_the_manifest(disk: &Faulty, rng: &mut SmallRng) -> String {
    let dir = Path::new(FAST);
    let files = disk.list_raw(dir).into_iter();
    let manifests: Vec<_> = files
        .filter(|file| file.name.starts_with("MANIFEST"))
        .collect();
    // An empty file is as good as none.
    let empty = |name: &str| {
        if disk.read_raw(dir, name).is_ok() {
            disk.write_raw(dir, name, &[]);
        }
    };
    let how = rng.random_range(0..5);
    match how {
        0 => empty("CURRENT"),
        1 => {
            empty("CURRENT");
            manifests.iter().for_each(|file| empty(&file.name));
        }
        2 => empty("TIER"),
        _ => {
            for file in &manifests {
                let mut bytes = disk.read_raw(dir, &file.name).unwrap_or_default();
                if bytes.is_empty() {
                    continue;
                }
                let at = rng.random_range(0..bytes.len());
                match how {
                    3 => bytes[at] ^= 0x10,
                    _ => bytes[at..].fill(0),
                }
                disk.write_raw(dir, &file.name, &bytes);
            }
        }
    }
    let ways = [
        "no CURRENT",
        "no manifest",
        "no TIER",
        "a flipped bit",
        "a lost end",
    ];
    ways[how].to_owned()
}
