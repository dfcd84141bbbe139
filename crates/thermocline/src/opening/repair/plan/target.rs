//! The target where the manifest cannot be read to its end: nothing but its edits has it.

use super::Plan;
use crate::opening::repair::evidence::Evidence;
use crate::options::Target;
use crate::sync::Arc;
use crate::tier::Tier;

/// How to set a target.
const HOW: &str = "`thermocline cost --price-fast DOLLARS --price-slow DOLLARS --set TARGET`, \
                   or `Db::set_target` with the prices in the options";

impl Plan {
    /// Keeps the last target that can be read, and says that a later one may be lost.
    pub(super) fn keep_the_target(&mut self, tiers: &[Arc<Tier>], evidence: &Evidence) {
        let edits = evidence.manifest.iter().flat_map(|m| &m.edits);
        self.shape.target = edits.rev().find_map(|edit| edit.target.clone());
        // A store of one tier has none.
        if tiers.len() < 2 {
            return;
        }
        let kept = self.shape.target.as_ref().map(|set| set.target);
        self.target = Some(match kept.filter(|target| *target != Target::None) {
            Some(target) => format!(
                "the target {target} is kept; if another was set since, that may be lost with the \
                 manifest's edits, and can be set again: {HOW}"
            ),
            None => format!(
                "a target, what the store may cost, may be lost with the manifest's edits; if there \
                 was one, set it again: {HOW}"
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::api::Db;
    use crate::opening::RepairReport;
    use crate::options::Target;
    use crate::storage::{Faulty, Medium};
    use crate::sync::Arc;
    use crate::testing::priced::{Store, options};

    const FAST: &str = "/fast";

    fn files(disk: &Faulty) -> Vec<(String, u64)> {
        let files = disk.list_raw(Path::new(FAST)).into_iter();
        files.map(|file| (file.name, file.len)).collect()
    }

    /// Name and length of the manifest.
    fn manifest(disk: &Faulty) -> (String, u64) {
        let mut files = files(disk).into_iter();
        files
            .find(|(name, _)| name.starts_with("MANIFEST"))
            .unwrap()
    }

    /// A closed store for which two targets were set, and a table written after each. Returns where
    /// in the manifest the second target's edit begins, and where what follows it.
    fn with_two_targets(disk: &Faulty) -> (u64, u64) {
        let store = Store::on(Arc::new(disk.clone()), options());
        let write = |key: &str| {
            store.db.put(key, "value").unwrap();
            store.db.flush().unwrap();
        };
        store.db.set_target(Target::Cost(0.3)).unwrap();
        write("first");
        let before = manifest(disk).1;
        store.db.set_target(Target::Cost(0.2)).unwrap();
        let after = manifest(disk).1;
        write("second");
        store.db.close().unwrap();
        (before, after)
    }

    /// Spoils the edit of the manifest that begins at `offset`, behind the header of its record.
    fn spoil(disk: &Faulty, offset: u64) {
        let name = manifest(disk).0;
        disk.corrupt(Path::new(FAST), &name, offset + 16, 1)
            .unwrap();
    }

    fn repair(disk: &Faulty, dry_run: bool) -> RepairReport {
        let builder = Db::builder(options()).medium(0, Arc::new(disk.clone()));
        let builder = builder.medium(1, Arc::new(disk.clone()));
        builder.repair(dry_run).unwrap()
    }

    /// The target of the store, which opens.
    fn target(disk: &Faulty) -> Target {
        let store = Store::on(Arc::new(disk.clone()), options());
        let target = store.db.cost().unwrap().target;
        assert!(store.db.get("first").unwrap().is_some());
        store.db.close().unwrap();
        target
    }

    /// A store that was to cost little cost as much as its fast tier after a repair, and nothing
    /// said so.
    #[test]
    fn a_target_that_is_lost_with_the_manifest_is_told_with_how_to_set_it_again() {
        let disk = Faulty::new(1);
        with_two_targets(&disk);
        let dir = disk.log_store(Path::new(FAST), false).unwrap();
        for (name, _) in files(&disk) {
            if name == "CURRENT" || name.starts_with("MANIFEST") {
                dir.remove(&name).unwrap();
            }
        }
        let planned = repair(&disk, true);
        let report = repair(&disk, false);
        assert_eq!(planned.target, report.target);
        let said = report.target.unwrap();
        for word in ["may be lost", "--set TARGET", "Db::set_target"] {
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(
            report.losses.len(),
            1,
            "the manifest's: {:?}",
            report.losses
        );
        assert_eq!(target(&disk), Target::None);
    }

    /// Of a manifest with a damaged edit, a repair dropped the target, wherever the damage was.
    #[test]
    fn a_target_that_can_be_read_is_kept() {
        for is_the_last in [false, true] {
            let disk = Faulty::new(1);
            let (second, behind) = with_two_targets(&disk);
            spoil(&disk, if is_the_last { second } else { behind });
            let wanted = if is_the_last { 0.3 } else { 0.2 };
            let report = repair(&disk, false);
            assert!(report.rebuilt, "{report:?}");
            let said = report.target.unwrap();
            assert!(said.contains(&format!("cost:{wanted} is kept")), "{said}");
            assert!(said.contains("if another was set since"), "{said}");
            assert_eq!(target(&disk), Target::Cost(wanted));
        }
    }

    #[test]
    fn of_a_manifest_that_is_whole_the_target_is_kept_without_a_word() {
        let disk = Faulty::new(1);
        with_two_targets(&disk);
        disk.corrupt(Path::new(FAST), "TIER", 0, 1).unwrap();
        let report = repair(&disk, false);
        assert!(report.repaired && !report.rebuilt, "{report:?}");
        assert_eq!(report.target, None);
        assert_eq!(target(&disk), Target::Cost(0.2));
    }
}
