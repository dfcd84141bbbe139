//! A second store that follows the first one by its log.
//!
//! `cargo run --example follower`

use thermocline::{Db, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let (leader, follower) = (home.path().join("leader"), [home.path().join("follower")]);

    // Log that is flushed already is kept for those who follow, up to so many bytes.
    let mut options = Options::one_tier(&leader);
    options.log_retention = 64 << 20;
    let leader = Db::open(options)?;
    leader.put("city", "Basel")?;

    // The follower begins as a checkpoint. Its last sequence number is asked for before anything
    // is written to it, since what is written there gets numbers of its own.
    leader.checkpoint(&follower)?;
    let [follower] = follower;
    let follower = Db::open(Options::one_tier(follower))?;
    let mut next = follower.snapshot().seq() + 1;

    for day in 1..=3_u32 {
        leader.put(format!("visits/{day}"), day.to_string())?;
        leader
            .create_keyspace("rivers")?
            .put("Rhine", day.to_string())?;
        next = catch_up(&leader, &follower, next)?;
    }

    let visits = follower.prefix("visits/").count();
    println!(
        "the follower has {visits} days, and is at sequence {}",
        next - 1
    );
    assert_eq!(visits, 3);
    let rivers = follower.keyspace("rivers")?;
    assert_eq!(rivers.get("Rhine")?.as_deref(), Some(&b"3"[..]));
    follower.close()?;
    leader.close()?;
    Ok(())
}

/// Writes to `follower` what `leader` wrote from sequence number `next` on. Returns where to go on.
/// A real follower keeps that number, and begins anew with a checkpoint when it hears `LogGone`: it
/// was too far behind.
fn catch_up(leader: &Db, follower: &Db, mut next: u64) -> thermocline::Result<u64> {
    for batch in leader.log_since(next)? {
        let batch = batch?;
        follower.write(batch.to_batch(follower)?)?;
        next = batch.last_seq() + 1;
    }
    Ok(next)
}
