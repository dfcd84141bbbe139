//! What must hold once a store is opened again after something happened to it.

use std::collections::BTreeMap;
use std::path::Path;

use thermocline::metrics::TierMetrics;
use thermocline::storage::{CrashStyle, Faulty};
use thermocline::{Db, Points};

use super::history::{After, contents};
use super::{Step, Trial};
use crate::verdict::{Promise, Violation};

impl Trial {
    /// Cuts the power, then as [`Trial::come_back`].
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn survive(&mut self, how: CrashStyle) -> Result<(), Violation> {
        let disk = self.disk.crash(how);
        self.wake(disk);
        self.come_back()
    }

    /// Goes on with `disk`, which a loss of power left.
    pub fn wake(&mut self, disk: Faulty) {
        if let Some(db) = self.db.take() {
            self.hotness.note(&db.metrics());
        }
        self.disk = disk;
        self.ended = After::PowerLoss;
    }

    /// Opens the store after what happened to it. Checks everything that recovery promises, and
    /// that the store works on.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn come_back(&mut self) -> Result<(), Violation> {
        self.db = None;
        self.points = Points::default();
        self.check().map_err(|problem| self.named(problem))
    }

    fn check(&mut self) -> Result<(), Violation> {
        let before = self.numbered();
        let said = |what: &'static str| move |error| format!("{what}: {error}");
        let db = self.db().map_err(|stop| stop.unexpected("open"))?;
        if let Some(trouble) = &db.recovery().hotness {
            return Err(format!("hotness: {trouble}").into());
        }
        db.wait_idle().map_err(said("idle"))?;
        for keyspace in &self.keyspaces {
            db.keyspace(keyspace).map_err(said("keyspace"))?;
        }
        self.check_tables(&db)?;
        self.check_copy()?;
        drop(db);
        self.go_on(&[Step::Write(25), Step::Read, Step::Flush])?;
        // I4: a number that was seen anywhere is never used again.
        let highest = before.values().max().copied().unwrap_or(0);
        let mut new = self.numbered().into_iter();
        let reused = new.find(|(name, number)| !before.contains_key(name) && *number <= highest);
        if let Some((name, _)) = reused {
            return Err(format!("{name} is new, though {highest} was in use before").into());
        }
        self.go_on(&[Step::Compact, Step::Reopen])?;
        let db = self.db().map_err(|stop| stop.unexpected("open again"))?;
        let orphans = db.recovery().orphans;
        if orphans != 0 {
            return Err(format!("{orphans} orphans after a clean close").into());
        }
        if contents(&db).map_err(said("scan again"))? != self.history.visible() {
            return Err(Violation::new(
                Promise::Kept,
                "a clean close and reopening changed what is there",
            ));
        }
        // First let the work end that the opening has set off.
        db.wait_idle().map_err(said("idle again"))?;
        self.check_tables(&db)
    }

    fn go_on(&mut self, steps: &[Step]) -> Result<(), Violation> {
        self.run(steps).map_err(|stop| stop.unexpected("going on"))
    }

    /// Tables are what the manifest says, whole, and nothing else is there (I4).
    fn check_tables(&self, db: &Db) -> Result<(), Violation> {
        let report = db.verify(&mut |_| {}).map_err(|e| format!("verify: {e}"))?;
        if !report.problems.is_empty() {
            return Err(format!("verify found {:?}", report.problems).into());
        }
        let named = || -> Vec<u64> {
            let bytes = |tier: &TierMetrics| tier.table_bytes + tier.pinned_obsolete_bytes;
            db.metrics().tiers.iter().map(bytes).collect()
        };
        // A thread that has just ended its work may let go of the last obsolete table meanwhile.
        // Then what was named before the listing differs from what is named after it.
        loop {
            let before = named();
            let there: Vec<u64> = self
                .paths()
                .iter()
                .map(|dir| self.table_bytes(dir))
                .collect();
            if named() != before {
                continue;
            }
            if there != before {
                return Err(
                    format!("tiers hold {there:?} bytes of tables, {before:?} named").into(),
                );
            }
            return Ok(());
        }
    }

    fn table_bytes(&self, dir: &Path) -> u64 {
        let files = self.disk.list_raw(dir);
        let tables = files.iter().filter(|f| f.name.ends_with(".sst"));
        tables.map(|f| f.len).sum()
    }

    /// A checkpoint that was acknowledged is there and whole. One that was cut short is either no
    /// store or a whole one.
    pub(crate) fn check_copy(&self) -> Result<(), Violation> {
        let Some(copy) = &self.copy else {
            return Ok(());
        };
        let mut trial = Trial::new(self.seed);
        trial.disk = self.disk.clone();
        trial.options = self.options.clone();
        trial.options.create_if_missing = false;
        let db = match trial.open_at(&copy.paths) {
            Ok(db) => db,
            Err(_) if !copy.acknowledged => return Ok(()),
            Err(error) => {
                let message = format!("the checkpoint is gone: {error}");
                return Err(Violation::new(Promise::Kept, message));
            }
        };
        if let Some(trouble) = &db.recovery().hotness {
            return Err(format!("hotness of the checkpoint: {trouble}").into());
        }
        let found = contents(&db).map_err(|e| format!("scan of the checkpoint: {e}"))?;
        if copy.contents != found {
            let message = "the checkpoint is not what it was";
            return Err(Violation::new(Promise::Kept, message));
        }
        // A checkpoint is a store like any other and takes writes. This write changes nothing that
        // the next look would find.
        let written = db.delete("none of the keys");
        written.map_err(|e| format!("write to the checkpoint: {e}"))?;
        Ok(())
    }

    /// The files of the store that have numbers.
    fn numbered(&self) -> BTreeMap<String, u64> {
        let paths = self.paths();
        let files = paths.iter().flat_map(|dir| self.disk.list_raw(dir));
        let number = |name: &str| {
            let digits = name.trim_start_matches("MANIFEST-");
            digits.split('.').next()?.parse().ok()
        };
        files
            .filter_map(|file| number(&file.name).map(|n| (file.name, n)))
            .collect()
    }
}
