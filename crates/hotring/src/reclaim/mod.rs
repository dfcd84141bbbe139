//! When the memory of a node or of a table may be given back.
//!
//! Every access is made under a [`Guard`]. What is retired is freed when every guard that
//! existed at that moment is gone (epochs, by `crossbeam-epoch`). The rule a caller keeps is:
//! *retire only what no access that begins later can reach*.
//!
//! The models use [`checked`] instead, which frees nothing until the end of a run and fails
//! the run when a guard reaches what was retired before the guard was taken: exactly the
//! rule. It also fails when something is retired twice.

#[cfg(any(feature = "loom", feature = "shuttle"))]
mod checked;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod epoch;

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub(crate) use checked::{Guard, after_grace, pin, reached, retire};
#[cfg(all(test, any(feature = "loom", feature = "shuttle")))]
pub(crate) use checked::{begin, end};
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub(crate) use epoch::{Guard, after_grace, pin, reached, retire};
