//! Records, keyspaces, a batch, a snapshot and a range, in a store on one disk.
//!
//! `cargo run --example basic`

use thermocline::{Batch, Db, Durability, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let db = Db::open(Options::one_tier(home.path().join("db")))?;

    // Durability is a choice per write: this one is on the device when `put_with` returns.
    db.put("lake/geneva", "310 m")?;
    db.put_with("lake/zurich", "136 m", Durability::Sync)?;

    // A keyspace is an ordered set of its own. A batch takes effect as a whole, across them.
    let names = db.create_keyspace("names")?;
    let before = db.snapshot();
    let mut batch = Batch::new();
    batch.put_in(&names, "lake/geneva", "Lac Léman");
    batch.put("lake/constance", "251 m");
    batch.delete("lake/zurich");
    db.write(batch)?;

    // The snapshot still sees what was there before the batch.
    assert!(before.get("lake/zurich")?.is_some());
    assert!(db.get("lake/zurich")?.is_none());

    for record in db.prefix("lake/") {
        let (key, value) = record?;
        println!("{} is {} deep", key.escape_ascii(), value.escape_ascii());
    }
    let last = db.iter().next_back().transpose()?;
    assert_eq!(
        last.map(|(key, _)| key.to_vec()),
        Some(b"lake/geneva".to_vec())
    );

    db.close()?;
    Ok(())
}
