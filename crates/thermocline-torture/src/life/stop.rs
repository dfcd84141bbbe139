//! Why a life ended before its time.

use thermocline::Error;

use crate::verdict::{Promise, Violation};

/// What ends a step: a store may fail, as long as it says so and breaks no promise.
#[derive(Debug, Clone)]
pub enum Stop {
    /// The store's own error.
    Failed(Error),
    /// A promise that it broke.
    Broken(Violation),
}

impl Stop {
    /// The store's own error.
    ///
    /// # Errors
    /// The broken promise, when it was one.
    pub fn error(self) -> Result<Error, Violation> {
        match self {
            Stop::Failed(error) => Ok(error),
            Stop::Broken(violation) => Err(violation),
        }
    }

    /// As a broken promise, for places where the store had no reason to fail, at `what`.
    pub(crate) fn unexpected(self, what: &str) -> Violation {
        match self {
            // A wait ends in this if nothing else can end it.
            Stop::Failed(error @ Error::Closed) => {
                Violation::new(Promise::Alive, format!("{what}: {error}"))
            }
            Stop::Failed(error) => Violation::disorder(format!("{what}: {error}")),
            Stop::Broken(violation) => violation,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Stop::Broken(violation)
    }
}
