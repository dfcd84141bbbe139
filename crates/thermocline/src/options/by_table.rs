//! What placement by table can do otherwise, for measuring what each choice is worth.

/// Choices of placement by table (Mutant).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    not(feature = "experiments"),
    expect(unreachable_pub, reason = "set with the feature only")
)]
pub struct TableSwitches {
    /// The part of the money, 0 to 0.5, by which a table has to be among the hottest before it
    /// comes up (Mutant's migration resistance, §4.3.2).
    pub resistance: f64,
    /// Filters and indexes that memory does not hold have copies on the fast tier (§3.2).
    pub tails: bool,
    /// A new second counts for 1 − α of a temperature, however young the table is (§3.1.3). Without
    /// it, a young table has the mean of its seconds.
    pub plain_cooling: bool,
}

impl Default for TableSwitches {
    fn default() -> Self {
        Self {
            resistance: 0.02,
            tails: true,
            plain_cooling: false,
        }
    }
}
