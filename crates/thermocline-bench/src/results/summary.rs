//! Several repeats as one number.

/// Median and range of the repeats of one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// The middle value. For an even number of values, the mean of the two in the middle.
    pub(crate) median: f64,
    /// The least.
    pub(crate) min: f64,
    /// The greatest.
    pub(crate) max: f64,
    /// How many.
    pub(crate) repeats: usize,
}

impl Summary {
    /// What `values` come to. `None` if none of them is finite.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self {
            median: f64::midpoint(lower, upper),
            min,
            max,
            repeats: sorted.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let odd = Summary::of([9.0, 1.0, 4.0]).unwrap();
        assert_eq!(
            (odd.median, odd.min, odd.max, odd.repeats),
            (4.0, 1.0, 9.0, 3)
        );
        assert_eq!(Summary::of([1.0, 2.0, 4.0, 9.0]).unwrap().median, 3.0);
        assert_eq!(Summary::of([7.0, f64::NAN]).unwrap().repeats, 1);
        assert_eq!(Summary::of([]), None);
    }
}
