//! Races of promotion, each played with explicit schedule points: background work runs only when a
//! test says so, and what happens at a named point is part of the test.

mod admission;
mod bypass;
mod crashes;
mod descent;
mod failures;
mod flush;
mod passing;
mod progress;
mod reopen;
mod routing;
mod shutdown;
mod snapshots;
#[cfg(feature = "experiments")]
mod switches;
