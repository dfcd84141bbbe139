//! A record as readers get it from wherever it lies.

use crate::key::{Kind, SeqNo};
use crate::value::Value;

/// A record that a point lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) seq: SeqNo,
    pub(crate) kind: Kind,
    pub(crate) value: Value,
}
