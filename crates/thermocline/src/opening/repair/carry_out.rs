//! The changes of a repair.
//!
//! Up to the rename of `CURRENT` nothing that was there is gone, and a repair that is cut short may
//! be repeated: the tables that it wrote name their sources as replaced, and as all sources are
//! still there, these tables do not count. A repair that fails removes them. After the rename the
//! store is sound: an opening, too, removes what the new manifest does not name.

use super::merge;
use super::plan::Plan;
use crate::error::{Error, Result};
use crate::ids::{FileId, table_file_name, table_number};
use crate::opening::Shape;
use crate::opening::request::Request;
use crate::opening::set_aside::{self, LOST};
use crate::options::RecoveryMode;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::table::TableMeta;
use crate::tier::Tier;
use crate::version::{Manifest, identity, manifest_file_name, manifest_number};
use crate::wal::{self, FoundLog, Recovered, log_store};

/// Carries out `plan`; adds to it what is lost on the way, what was set aside, and what could not
/// be cleared away.
///
/// # Errors
/// I/O errors, [`Error::NoSpace`] among them: every keyspace that is merged is written once more.
pub(super) fn carry_out(request: &Request, tiers: &[Arc<Tier>], plan: &mut Plan) -> Result<()> {
    for tier in tiers {
        tier.remove_left_copies()?;
    }
    // Before the tables: a repair that finds no room for this little should not write as much as
    // the store has.
    set_aside(request, tiers, plan)?;
    let (mut next, taken) = (plan.shape.next_file, plan.taken.clone());
    let mut new_file = || {
        while taken.contains(&next) {
            next += 1;
        }
        next += 1;
        next - 1
    };
    let written = write_tables(plan, tiers, &mut new_file)?;
    let recovered = identify_and_settle(request, tiers, plan)
        .inspect_err(|_| merge::remove(tiers, &written))?;
    let found_log = put_in_force(request, tiers, plan, &written, &recovered, &mut new_file)
        .inspect_err(|error| {
            // With a poisoning error the manifest that names them may be in force.
            if !matches!(error, Error::Poisoned { .. }) {
                merge::remove(tiers, &written);
            }
        })?;
    // From here on the store is sound, so an error is no failure of the repair: the next repair
    // would find nothing, and nothing else tells of the losses.
    let mut cleared = wal::remove_others(&tiers[0], &found_log, &request.points);
    for tier in tiers {
        cleared = cleared.and(remove_unnamed(tier, &plan.shape));
    }
    if let Err(error) = cleared {
        plan.problems.push(format!(
            "something that the repaired store does not use may stay until it is opened: {error}"
        ));
    }
    Ok(())
}

/// Removes the tables of `tier` that `shape` does not name; durable on return.
///
/// # Errors
/// The first I/O error; the removal is tried for all of them.
fn remove_unnamed(tier: &Tier, shape: &Shape) -> Result<()> {
    let mut removed = Ok(());
    for file in tier.tables.list()? {
        let Some(id) = table_number(&file.name) else {
            continue;
        };
        let named = shape.tables.get(&id);
        if named.is_none_or(|table| table.tier != tier.index) {
            removed = removed.and(tier.tables.remove(&file.name));
        }
    }
    removed.and(tier.sync_names(|| tier.tables.sync_dir()))
}

/// Writes the tables of all merges.
///
/// # Errors
/// I/O errors; what was written is then removed. Only an opening sweeps, and the store may not
/// open: otherwise each attempt would leave as much behind.
fn write_tables(
    plan: &Plan,
    tiers: &[Arc<Tier>],
    new_file: &mut dyn FnMut() -> FileId,
) -> Result<Vec<TableMeta>> {
    let mut written = Vec::new();
    for merge in &plan.merges {
        let tables = merge::write(plan, merge, tiers, new_file)
            .inspect_err(|_| merge::remove(tiers, &written))?;
        written.extend(tables);
    }
    Ok(written)
}

/// Writes `TIER` where it is missing or damaged, and changes the log as an opening would. This
/// comes after the tables, which may find no room: it cuts off a torn end, which the next attempt
/// would not report.
fn identify_and_settle(request: &Request, tiers: &[Arc<Tier>], plan: &Plan) -> Result<Recovered> {
    for tier in &plan.nameless_tiers {
        let medium = request.medium_of(*tier);
        let tier = &tiers[*tier];
        let store = medium.log_store(&tier.options.path, false)?;
        identity::replace(tier, &*store, plan.database)?;
    }
    wal::recover(
        &tiers[0],
        plan.database,
        RecoveryMode::Tolerant,
        &plan.log,
        &request.points,
        &mut |_, _, _, _, _| Ok(()),
    )
}

/// Begins the manifest that names what stays and the tables `written`. Returns what it says of the
/// log.
///
/// # Errors
/// As [`Manifest::create`]; [`Error::Corruption`] where no opening would accept it.
fn put_in_force(
    request: &Request,
    tiers: &[Arc<Tier>],
    plan: &mut Plan,
    written: &[TableMeta],
    recovered: &Recovered,
    new_file: &mut dyn FnMut() -> FileId,
) -> Result<FoundLog> {
    let number = new_file();
    let tables = written.iter().map(|meta| (meta.id, meta.clone()));
    plan.shape.tables.extend(tables);
    plan.shape.next_file = new_file();
    let (last_seq, log_start) = (plan.shape.last_seq, plan.shape.log_start);
    let found_log = recovered.found_log(plan.shape.next_file);
    let edits = plan
        .shape
        .to_edits(last_seq, log_start, plan.shape.placed_by, &found_log);
    // A manifest that an opening would refuse must not get in force.
    Shape::from_edits(edits.clone()).map_err(|misfit| {
        let path = tiers[0].options.path.join(manifest_file_name(number));
        let what = format!("the manifest of the repaired store would be refused: {misfit}");
        Error::corruption(path, 0, what)
    })?;
    let points = request.points.clone();
    Manifest::create(Arc::clone(&tiers[0]), plan.database, number, &edits, points)?;
    Ok(found_log)
}

/// Gives what is going to be removed or replaced a second name, or a copy, in the directory
/// [`LOST`].
fn set_aside(request: &Request, tiers: &[Arc<Tier>], plan: &mut Plan) -> Result<()> {
    let first = &tiers[0];
    let from = log_store(first)?;
    let dir = first.options.path.join(LOST);
    let to = request.medium_of(0).log_store(&dir, true)?;
    let manifests = from.list()?.into_iter().map(|file| file.name);
    let replaced = manifests.filter(|name| manifest_number(name).is_some() || name == "CURRENT");
    for name in replaced.chain(plan.logs_aside.clone()) {
        let bytes = match from.read(&name) {
            Err(Error::NotFound { .. }) => continue,
            read => read?,
        };
        let kept = copy(&*to, &name, &bytes)?;
        plan.set_aside.push(dir.join(kept));
    }
    to.sync_dir()?;
    let tables = plan.tables_aside.iter();
    let tables: Vec<_> = tables
        .map(|(tier, id)| (*tier, table_file_name(*id)))
        .collect();
    let kept = set_aside::set_aside(request, tiers, &tables)?;
    plan.set_aside.extend(kept);
    Ok(())
}

/// Copies `bytes` to `name`, or to another name if something else is there: an earlier repair,
/// perhaps one that was cut short, has set that aside, and it may be all that is left. Returns the
/// name used.
fn copy(to: &dyn LogStore, name: &str, bytes: &[u8]) -> Result<String> {
    let mut free = name.to_owned();
    for number in 2.. {
        match to.read(&free) {
            // It is written once more, since nobody knows whether it is durable.
            Ok(there) if there == bytes => break,
            Ok(_) => free = format!("{name}.{number}"),
            Err(Error::NotFound { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    let temporary = format!("{free}.tmp");
    let file = to.create(&temporary)?;
    let written = file.append(bytes).and_then(|()| file.sync());
    let named = written.and_then(|()| to.rename(&temporary, &free));
    named.inspect_err(|_| {
        let _ = to.remove(&temporary);
    })?;
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Medium, Memory};

    /// A repair that was cut short had set a damaged segment aside and shortened it. The next
    /// attempt set the shortened segment aside in the place of the first copy: what lay behind the
    /// damage was gone.
    #[test]
    fn what_was_set_aside_before_is_not_replaced() {
        let lost = Memory::new().log_store("/lost".as_ref(), true).unwrap();
        for (bytes, name) in [
            (&b"whole"[..], "1.wal"),
            (b"who", "1.wal.2"),
            (b"whole", "1.wal"),
            (b"who", "1.wal.2"),
            (b"w", "1.wal.3"),
        ] {
            assert_eq!(copy(&*lost, "1.wal", bytes).unwrap(), name);
            assert_eq!(lost.read(name).unwrap(), bytes);
        }
        assert_eq!(lost.read("1.wal").unwrap(), b"whole");
    }
}
