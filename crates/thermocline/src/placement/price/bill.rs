//! What a store costs.

use crate::engine::Engine;

/// Bytes in a GB of a price.
const GB: f64 = 1e9;

/// What a store pays for, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bill {
    /// Of each tier, in dollars per GB and month.
    prices: Vec<f64>,
    /// Bytes of files and copies on each tier, whatever they are for. What is only reserved costs
    /// nothing.
    bytes: Vec<u64>,
    /// Bytes of keys and values in live tables. Were it bytes of their files, a table that moves to
    /// a tier that compresses would leave less data to pay for.
    pub(crate) data: u64,
}

impl Bill {
    /// The price of the first tier.
    pub(crate) fn first_price(&self) -> f64 {
        self.prices.first().copied().unwrap_or(0.0)
    }

    /// The bill if `bytes` were on the first tier, and all else as it is.
    pub(crate) fn with_first(&self, bytes: u64) -> Self {
        let mut other = self.clone();
        if let Some(first) = other.bytes.first_mut() {
            *first = bytes;
        }
        other
    }

    /// The bill if all that is on neither the first tier nor the last one went to the last.
    pub(crate) fn slow_on_last(&self) -> Self {
        let mut other = self.clone();
        if let [_, between @ .., last] = &mut other.bytes[..] {
            for bytes in between {
                *last += std::mem::take(bytes);
            }
        }
        other
    }

    /// The bill if all but `kept` bytes of the first tier went to the last one, where `twice` of
    /// them are already.
    pub(crate) fn moved_down(&self, kept: u64, twice: u64) -> Self {
        let mut other = self.with_first(kept);
        let first = self.bytes.first().copied().unwrap_or(0);
        if let Some(last) = other.bytes.last_mut() {
            *last += first.saturating_sub(kept).saturating_sub(twice);
        }
        other
    }

    /// What the store costs in a month, in dollars.
    pub(crate) fn dollars(&self) -> f64 {
        self.amount() / GB
    }

    /// The same in dollars times bytes per GB.
    pub(crate) fn amount(&self) -> f64 {
        let each = self.prices.iter().zip(&self.bytes);
        each.map(|(price, bytes)| price * *bytes as f64).sum()
    }

    /// Dollars per GB of data and month; 0 of a store without data.
    pub(crate) fn per_gb(&self) -> f64 {
        match self.data {
            0 => 0.0,
            data => self.amount() / data as f64,
        }
    }

    /// A bill over two tiers.
    #[cfg(test)]
    pub(crate) fn of(prices: [f64; 2], bytes: [u64; 2], data: u64) -> Self {
        let (prices, bytes) = (prices.to_vec(), bytes.to_vec());
        Self {
            prices,
            bytes,
            data,
        }
    }
}

impl Engine {
    /// What the store costs now at `prices`.
    pub(crate) fn bill(&self, prices: Vec<f64>) -> Bill {
        let tiers = self.tiers.iter();
        let bytes = tiers.map(|tier| tier.file_bytes() + tier.copied_bytes());
        let trees = self.all_trees();
        let data = trees.iter().map(|tree| tree.raw_bytes());
        Bill {
            prices,
            bytes: bytes.collect(),
            data: data.sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_makes_a_store_no_cheaper() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let clean = Bill::of([0.5, 0.1], [1 << 30, 3 << 30], 4 << 30);
        assert!(near(clean.per_gb(), 0.2));
        assert!(near(clean.dollars(), 0.8 * (1u64 << 30) as f64 / 1e9));
        let junk = Bill::of([0.5, 0.1], [1 << 30, 7 << 30], 4 << 30);
        assert!(near(junk.per_gb(), 0.3));
        assert_eq!(Bill::of([0.5, 0.1], [100, 0], 0).per_gb(), 0.0);
    }

    #[test]
    fn what_goes_down_is_paid_for_there_unless_it_is_there_already() {
        let bill = Bill::of([0.5, 0.1], [400, 600], 1000);
        let all = bill.moved_down(100, 0);
        assert_eq!(all, Bill::of([0.5, 0.1], [100, 900], 1000));
        let some = bill.moved_down(100, 250);
        assert_eq!(some, Bill::of([0.5, 0.1], [100, 650], 1000));
        assert_eq!(bill.moved_down(100, 5000).bytes, [100, 600]);
    }
}
