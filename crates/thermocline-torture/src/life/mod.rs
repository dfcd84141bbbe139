//! A fixed life of a small store on a faulty disk: writes, flushes, compactions across tiers,
//! new keyspaces, checkpoints, reopening. The crash and fault tests interrupt it everywhere.
//!
//! | module | what it holds |
//! |---|---|
//! | `step` | the steps of a life, and the lives |
//! | `trial` | a store in the middle of its life |
//! | `recovery` | what must hold once it is opened again |
//! | `history` | what the store was told, and so what it may hold |
//! | `wild` | lives and options drawn from a seed |
//! | `impatient` | drives background work, and notices when it goes round in circles |
//! | `stop` | why a life ended: the store's own error, or a broken promise |

pub mod history;
mod impatient;
mod recovery;
mod step;
mod stop;
mod trial;
mod wild;

pub use step::{LIFE, SIDE, Step, WARMING};
pub use stop::Stop;
pub use trial::{FAST, SLOW, Trial, tiny_options};
pub use wild::{Hotness, Wild, wild_cut, wild_life};
