//! What happens next: a client's turn, a step of background work, a fault, the end of the store.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::SmallRng;
use thermocline::storage::Fault;

use super::clients::Clients;
use super::world::{End, World, random_style};
use crate::verdict::Violation;

/// Draws and does what happens next.
pub(super) fn take(
    world: &mut World,
    clients: &mut Clients,
    rng: &mut SmallRng,
) -> Result<(), Violation> {
    if world.power_is_gone() {
        return end_store(world, clients, End::Power(random_style(rng)), rng);
    }
    if world.poisoned && rng.random_bool(0.1) {
        return end_store(world, clients, random_end(rng), rng);
    }
    match rng.random_range(0..1000) {
        0..300 => {
            for _ in 0..rng.random_range(1..6) {
                world.stepped.step();
            }
        }
        300..310 => world.advance(Duration::from_millis(rng.random_range(1..20_000))),
        310..318 => plan_fault(world, rng),
        318..330 => world.heal(),
        330..335 => return end_store(world, clients, random_end(rng), rng),
        _ => {
            if let Err(stop) = clients.turn(world, rng) {
                world.excuse(stop)?;
            }
        }
    }
    Ok(())
}

fn plan_fault(world: &mut World, rng: &mut SmallRng) {
    let (fault, from_then_on) = match rng.random_range(0..8) {
        0 => (Fault::Io, false),
        1 => (Fault::Io, true),
        2 => (Fault::NoSpace, false),
        3 => (Fault::NoSpace, true),
        4 => (Fault::SyncFails, false),
        5 => (Fault::ShortWrite, false),
        _ => (Fault::PowerLoss, false),
    };
    world.plan(fault, rng.random_range(1..150), from_then_on);
}

fn random_end(rng: &mut SmallRng) -> End {
    match rng.random_range(0..5) {
        0 => End::Close,
        1 => End::Exit,
        _ => End::Power(random_style(rng)),
    }
}

fn end_store(
    world: &mut World,
    clients: &mut Clients,
    how: End,
    rng: &mut SmallRng,
) -> Result<(), Violation> {
    clients.leave();
    world.reopen(how, rng)
}

/// Comes to an end without any fault. Everything is there, and every table is whole.
pub(super) fn end(
    world: &mut World,
    clients: &mut Clients,
    rng: &mut SmallRng,
) -> Result<(), Violation> {
    world.heal();
    let how = [End::Close, End::Power(random_style(rng))][rng.random_range(0..2)];
    end_store(world, clients, how, rng)?;
    world.heal();
    if let Err(stop) = finish(world) {
        world.excuse(stop)?;
    }
    Ok(())
}

fn finish(world: &mut World) -> Result<(), crate::life::Stop> {
    world.db.wait_idle()?;
    world.compare(&world.db)?;
    let report = world.db.verify(&mut |_| {})?;
    if !report.problems.is_empty() {
        let message = format!("verify: {:?}", report.problems);
        return Err(Violation::disorder(message).into());
    }
    world.db.close()?;
    Ok(())
}
