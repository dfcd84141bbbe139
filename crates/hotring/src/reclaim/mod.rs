//! When the memory of a node or of a table may be given back.
//!
//! Every access is made under a [`Guard`]. What is retired is freed when every guard that
//! existed at that moment is gone (epochs, by `crossbeam-epoch`). The rule a caller keeps is:
//! *retire only what no access that begins later can reach*.
//!
//! Freeing runs destructors, which may panic and may use maps themselves. The epochs do it where a
//! guard is taken, renewed or flushed, where a grace period begins ([`after_grace`]) and where
//! something large is handed over ([`Guard::hand_over`]), so not in the middle of an operation.
//!
//! The models use [`checked`] instead, which frees nothing until the end of a run and fails the run
//! when a guard reaches what was retired before the guard was taken: exactly the rule. It also
//! fails when something is retired twice. Miri, which finds what is used after it was freed, gets
//! [`locked`].

#[cfg(any(hotring_loom, hotring_shuttle))]
mod checked;
#[cfg(not(any(hotring_loom, hotring_shuttle, miri)))]
mod epoch;
#[cfg(all(miri, not(any(hotring_loom, hotring_shuttle))))]
mod locked;

#[cfg(any(hotring_loom, hotring_shuttle))]
use checked as chosen;
#[cfg(not(any(hotring_loom, hotring_shuttle, miri)))]
use epoch as chosen;
#[cfg(all(miri, not(any(hotring_loom, hotring_shuttle))))]
use locked as chosen;

pub(crate) use chosen::{Guard, after_grace, freed, pin, reached, retire};
#[cfg(all(test, any(hotring_loom, hotring_shuttle)))]
pub(crate) use chosen::{begin, end};
