//! Tables by temperature: which table belongs on which tier, and bringing it there (Mutant).
//!
//! A look takes stock of the tables that may move ([`Stock`]), and [`organize`] says where they
//! belong. Until the next look [`Migrations`] has what is to move, and merges write their tables by
//! the same thresholds. Placement by table moves all tables below L0 so, placement by hotness those
//! of the levels below f, where there are several slow tiers.

mod candidates;
mod counted;
mod migrations;
mod organizer;
mod queue;

pub(in crate::placement) use candidates::{Stock, Which};
pub(in crate::placement) use migrations::Migrations;
pub(in crate::placement) use organizer::{Ladder, Move, Organized, assign, organize};
