//! Bugs that the crash and fault tests found, each by itself.

mod common;

use common::script::{SIDE, Trial};
use thermocline::Durability;
use thermocline::storage::CrashStyle;

/// Recovery skips log records at or below their keyspace's flushed-through sequence (I5), and
/// took a keyspace without one for a dropped keyspace. A new keyspace had none before its first
/// flush: everything written to it until then, synced or not, was gone after reopening.
#[test]
fn a_new_keyspace_keeps_what_was_written_before_its_first_flush() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let side = db.create_keyspace(SIDE).unwrap();
    side.put_with("key", "value", Durability::Sync).unwrap();
    drop((db, side));
    trial.db = None;
    trial.disk = trial.disk.crash(CrashStyle::LoseAll);
    let side = trial.db().unwrap().keyspace(SIDE).unwrap();
    assert_eq!(side.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}
