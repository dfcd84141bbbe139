//! The sorted table: an immutable file of records in internal key order.
//!
//! `docs/format.md` gives the bytes. From the inside out: a [`block`] holds delta-coded entries;
//! [`stored`] adds compression and a checksum, which also covers the block's place; partitions of
//! the [`index`] and [`filter`]s find the block; [`properties`] and [`footer`] say whose table it
//! is.

mod block;
mod block_builder;
mod block_iter;
mod builder;
mod check;
mod describe;
mod filter;
mod footer;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod hashed_key;
mod heat;
mod index;
mod iter;
mod key_sample;
mod lazy;
mod meta;
mod partitions;
mod properties;
mod reader;
mod salvage;
mod source;
mod stored;
mod tail;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod weights;

pub(crate) use builder::{TableBuilder, TableIdentity};
pub(crate) use describe::SelfDescribed;
pub(crate) use hashed_key::HashedKey;
pub(crate) use heat::{Cooling, Heat, TableHeat};
pub(crate) use index::LongKeys;
pub(crate) use iter::{ScanOptions, TableIter};
pub(crate) use key_sample::{KeySample, SampledKey};
pub(crate) use lazy::LazyTable;
pub(crate) use meta::{TableContent, TableMeta};
pub(crate) use reader::{Located, ReadTrace, Table};
pub(crate) use salvage::{LostPart, Salvage};
pub(crate) use source::BlockSource;
pub(crate) use stored::BlockHandle;
