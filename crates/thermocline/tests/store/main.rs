//! The engine from outside, by what it alone brings along. What needs the harnesses' stores is in
//! `thermocline-torture`.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod inspect;
mod lost_edit;
mod lost_tracking;
#[cfg(not(feature = "flash-cache"))]
mod no_flash_cache;
mod opening;
mod panicking_job;
mod proof_of_damage;
