//! What a store must survive, and how it is made to: the harnesses behind `thermocline torture`.
//!
//! A harness runs *cases*. Everything about a case follows from its seed, so a failure is replayed
//! with `--seed N --cases 1`. Three numbers must be zero everywhere: acknowledged writes lost,
//! wrong values returned, deleted keys resurrected ([`Promise`]).
//!
//! | module | what it holds |
//! |---|---|
//! | `cases` | runs cases on all cores and adds up what they found |
//! | `verdict` | broken promises, and the result of a harness |
//! | `child` | processes that a harness starts: this program, run again |
//! | `client` | writes that follow from a seed, and what they add up to |
//! | `life` | a fixed life of a small store, and what it may hold after a crash |
//! | `harness` | the harnesses, one per file |
//! | `stores`, `random_options` | small stores that take every way through the engine |

#![forbid(unsafe_code)]

pub mod cases;
mod child;
mod client;
mod command;
mod harness;
pub mod life;
pub mod random_options;
pub mod stores;
pub mod verdict;
mod work_done;

pub use command::{Args, run};
pub use verdict::{Promise, Verdict, Violation};
