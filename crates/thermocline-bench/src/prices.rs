//! What disks cost.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::settings::of_each_slow;

/// What a GB (10⁹ bytes) of each tier costs in a month, in dollars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Of the fast tier.
    pub fast: f64,
    /// Of each slow tier, the fastest first.
    pub slow: Vec<f64>,
}

impl Prices {
    /// Of every tier, the fastest first.
    pub(crate) fn each(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.fast).chain(self.slow.iter().copied())
    }

    /// The least and the greatest of them: no data can lie on less or on more.
    pub(crate) fn bounds(&self) -> [f64; 2] {
        [
            self.each().fold(f64::INFINITY, f64::min),
            self.each().fold(0.0, f64::max),
        ]
    }
}

/// Flags of what disks cost.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PriceArgs {
    /// What a GB (10⁹ bytes) on the fast disk costs in a month, in dollars. With prices, results
    /// have a bill
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, requires = "price_slow")]
    pub price_fast: Option<f64>,

    /// The same of slow disks; of several, one price for each --slow or one for all, as in
    /// 0.05,0.02
    #[arg(
        long,
        value_name = "DOLLARS",
        value_parser = dollars,
        value_delimiter = ',',
        requires = "price_fast"
    )]
    pub price_slow: Vec<f64>,
}

impl PriceArgs {
    /// The prices of the fast tier and of so many slow ones, if there are any.
    ///
    /// # Errors
    /// There are several for slow tiers, but not one for each.
    pub(crate) fn prices(&self, slow_tiers: usize) -> Result<Option<Prices>> {
        let Some(fast) = self.price_fast else {
            return Ok(None);
        };
        let slow = of_each_slow("--price-slow", &self.price_slow, slow_tiers)?;
        match slow.into_iter().collect() {
            Some(slow) => Ok(Some(Prices { fast, slow })),
            None => bail!("--price-slow: give what a GB on the slow disk costs"),
        }
    }
}

/// An amount of dollars above 0.
pub(crate) fn dollars(text: &str) -> Result<f64, String> {
    let dollars = text.parse::<f64>().ok();
    let dollars = dollars.filter(|dollars| dollars.is_finite() && *dollars > 0.0);
    dollars.ok_or_else(|| format!("`{text}`: an amount of dollars above 0 is wanted, as in 0.045"))
}

#[cfg(test)]
mod tests {
    use crate::plan::tests::parse;

    #[test]
    fn each_slow_tier_has_its_price_or_the_only_one() {
        let prices = |flags: &str| {
            let plan = parse(&format!("--fast a --slow b --slow c {flags}")).unwrap();
            plan.plan().map(|plan| plan.settings.prices)
        };
        let three = |slow: &str| prices(&format!("--price-fast 0.5 {slow}"));
        let each = |slow: &str| -> Vec<f64> { three(slow).unwrap().unwrap().each().collect() };
        assert_eq!(each("--price-slow 0.1"), [0.5, 0.1, 0.1]);
        assert_eq!(each("--price-slow 0.1,0.04"), [0.5, 0.1, 0.04]);
        assert_eq!(each("--price-slow 0.1 --price-slow 0.04"), [0.5, 0.1, 0.04]);
        let bounds = three("--price-slow 0.1,0.04").unwrap().unwrap().bounds();
        assert_eq!(bounds, [0.04, 0.5]);
        assert_eq!(prices("").unwrap(), None);
        let error = three("--price-slow 3,2,1").unwrap_err().to_string();
        assert!(error.contains("--price-slow: 3 values for 2"), "{error}");
    }

    #[test]
    fn prices_that_are_none_are_refused() {
        for (flags, expected) in [
            ("--price-fast 0.5", "--price-slow"),
            ("--price-slow 0.5", "--price-fast"),
            ("--price-fast 0 --price-slow 1", "above 0"),
            ("--price-fast inf --price-slow 1", "above 0"),
            ("--price-fast 1 --price-slow cheap", "above 0"),
        ] {
            let error = parse(flags).unwrap_err();
            assert!(error.contains(expected), "{flags}: {error}");
        }
    }
}
