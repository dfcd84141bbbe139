//! Backups that copy only what is new, one of them verified and made a store again.
//!
//! `cargo run --example backup_and_restore`

use thermocline::{Backups, Db, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let at = |name: &str| home.path().join(name);
    let db = Db::open(Options::two_tiers(at("fast"), 64 << 20, at("slow")))?;
    let backups = Backups::open(at("backups"))?;

    for number in 0..20_000_u32 {
        db.put(number.to_be_bytes(), [7; 100])?;
    }
    let first = backups.take(&db)?;
    db.put("late", "but not too late")?;
    let second = backups.take(&db)?;
    println!(
        "generation {} copied {} bytes, generation {} only {} of its {}",
        first.generation, first.copied_bytes, second.generation, second.copied_bytes, second.bytes,
    );
    assert!(second.copied_bytes < first.copied_bytes);
    db.close()?;

    // Reads every byte of the newest generation.
    let (newest, damage) = backups.verify(None)?;
    assert!(
        damage.is_empty(),
        "generation {} is damaged",
        newest.generation
    );

    // The capacity of the fast tier may be another one.
    let restored = Options::two_tiers(at("restored-fast"), 32 << 20, at("restored-slow"));
    backups.restore(Some(second.generation), &restored)?;
    let db = Db::open(restored)?;
    assert_eq!(db.get("late")?.as_deref(), Some(&b"but not too late"[..]));
    assert_eq!(db.iter().count(), 20_001);
    db.close()?;

    // The newest generation is enough.
    backups.prune(1)?;
    assert_eq!(backups.numbers()?.len(), 1);
    Ok(())
}
