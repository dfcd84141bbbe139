//! What is to be stored, with a node of its own or before there is one.
//!
//! Whoever stores searches first. The search may show that nothing is to be stored: the key is
//! there and is kept, or it is absent and is not to come. Then no memory is asked for.

use std::convert::Infallible;

use crate::link::{Entry, Owned};

/// An entry that has no node yet.
pub(crate) trait Draft<E: Entry> {
    /// Why there can be no node.
    type Error;

    /// Its node.
    fn make(self) -> Result<Owned<E>, Self::Error>;
}

/// Of an entry that always has a node.
impl<E: Entry> Draft<E> for Infallible {
    type Error = Self;

    fn make(self) -> Result<Owned<E>, Self> {
        Err(self)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) enum New<D, E: Entry> {
    Draft(D),
    Made(Owned<E>),
}

impl<D: Draft<E>, E: Entry> New<D, E> {
    /// The node, which is made unless there is one.
    pub(crate) fn made(self) -> Result<Owned<E>, D::Error> {
        match self {
            Self::Draft(draft) => draft.make(),
            Self::Made(node) => Ok(node),
        }
    }
}
