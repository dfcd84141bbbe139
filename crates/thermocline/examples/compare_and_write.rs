//! Writes that take effect only if a key is as it was read: counting from several threads.
//!
//! `cargo run --example compare_and_write`

use thermocline::{Batch, Db, Error, Expect, Options};

const THREADS: u64 = 4;
const EACH: u64 = 250;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let db = Db::open(Options::one_tier(home.path()))?;

    std::thread::scope(|scope| {
        let counters: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| count(&db))).collect();
        counters
            .into_iter()
            .try_for_each(|counter| counter.join().expect("a counter that does not panic"))
    })?;

    let total = number(db.get("visits")?.as_deref());
    println!("{total} visits");
    assert_eq!(total, THREADS * EACH);
    db.close()?;
    Ok(())
}

/// Adds 1 to the counter, `EACH` times.
fn count(db: &Db) -> thermocline::Result<()> {
    for _ in 0..EACH {
        loop {
            let seen = db.get("visits")?;
            let mut batch = Batch::new();
            // Nothing of the batch is written unless the key still has the value that was seen.
            batch.require(
                db,
                "visits",
                match &seen {
                    Some(value) => Expect::Equals(value.clone().into_bytes()),
                    None => Expect::Absent,
                },
            );
            batch.put("visits", (number(seen.as_deref()) + 1).to_string());
            match db.write(batch) {
                Ok(_) => break,
                // Another thread was faster: read again.
                Err(Error::ConditionFailed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn number(value: Option<&[u8]>) -> u64 {
    let digits = value.and_then(|value| std::str::from_utf8(value).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
