//! Which targets can be.

use crate::error::{Error, Result};
use crate::options::{Options, Placement, Target};

fn invalid(reason: String) -> Error {
    Error::InvalidOption {
        option: "target",
        reason,
    }
}

/// The error where not every tier of `options` has a price.
pub(super) fn without_price(options: &Options) -> Error {
    let tiers = &options.tiers;
    let without = tiers
        .iter()
        .position(|tier| tier.price_per_gb_month.is_none());
    Error::InvalidOption {
        option: "price_per_gb_month",
        reason: format!(
            "tier {} has no price; name the price of each tier in dollars per GB and month",
            without.unwrap_or(0)
        ),
    }
}

/// Refuses a target that a store of these `options` cannot keep to at `prices`, which are none if
/// nobody has named them.
///
/// # Errors
/// [`Error::InvalidOption`], which says what would be possible.
pub(super) fn check(target: Target, prices: &[f64], options: &Options) -> Result<()> {
    if target == Target::None {
        return Ok(());
    }
    let tiers = &options.tiers;
    if tiers.len() < 2 {
        return Err(invalid(
            "a target needs a second tier: with one there is nothing to choose".into(),
        ));
    }
    if matches!(
        options.placement,
        Placement::ByLevel | Placement::FlashCache
    ) {
        return Err(invalid(
            "only placement by hotness and by table keep to a target".into(),
        ));
    }
    if tiers[0].capacity == u64::MAX {
        return Err(invalid(
            "the first tier has no capacity; a target moves what it holds within one".into(),
        ));
    }
    if prices.is_empty() {
        return Err(without_price(options));
    }
    if let Some(dearer) = prices.windows(2).position(|pair| pair[0] <= pair[1]) {
        let (fast, slow) = (prices[dearer], prices[dearer + 1]);
        return Err(invalid(format!(
            "tier {dearer} costs {fast} and tier {}, which is slower, {slow}; each tier has to be dearer than the next",
            dearer + 1
        )));
    }
    check_amount(target, prices)
}

fn check_amount(target: Target, prices: &[f64]) -> Result<()> {
    let (most, least) = (prices[0], prices[prices.len() - 1]);
    match target {
        Target::Cost(dollars) if !(least..=most).contains(&dollars) => Err(invalid(format!(
            "{dollars} $/GB/month is not possible: everything on the last tier costs {least}, everything on the first {most}"
        ))),
        Target::HitRate(part) if !(0.0..=1.0).contains(&part) => Err(invalid(format!(
            "{part} is no hit rate; it is a part of all point reads, from 0 to 1"
        ))),
        Target::Latency(mean) if mean.is_zero() => Err(invalid(
            "no read takes no time; `Db::cost` tells how long reads take now".into(),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::options::TierOptions;

    fn refused(target: Target, options: &Options) -> String {
        let prices: Option<Vec<f64>> = options.tiers.iter().map(|t| t.price_per_gb_month).collect();
        let error = check(target, &prices.unwrap_or_default(), options).unwrap_err();
        error.to_string()
    }

    fn at(fast: f64, slow: f64) -> Options {
        let mut options = Options::two_tiers("/fast", 1 << 30, "/slow");
        options.tiers[0].price_per_gb_month = Some(fast);
        options.tiers[1].price_per_gb_month = Some(slow);
        options
    }

    #[test]
    fn a_target_that_cannot_be_is_refused_with_what_could() {
        let of = |target| refused(target, &at(0.5, 0.25));
        for bad in [f64::NAN, -1.0, 0.24, 0.51, f64::INFINITY] {
            let said = of(Target::Cost(bad));
            assert!(said.contains("0.25") && said.contains("0.5"), "{said}");
        }
        for bad in [f64::NAN, -0.1, 1.1] {
            assert!(of(Target::HitRate(bad)).contains("from 0 to 1"));
        }
        assert!(of(Target::Latency(Duration::ZERO)).contains("no time"));
        let (cost, least) = (Target::Cost(0.5), Target::Cost(0.25));
        let (hits, fast) = (
            Target::HitRate(1.0),
            Target::Latency(Duration::from_nanos(1)),
        );
        for good in [least, cost, hits, fast, Target::None] {
            check(good, &[0.5, 0.25], &at(0.5, 0.25)).unwrap();
        }
    }

    #[test]
    fn a_target_needs_tiers_prices_a_capacity_and_a_placement_that_keeps_to_it() {
        let target = Target::Cost(0.3);
        let one = Options::one_tier("/fast");
        assert!(refused(target, &one).contains("second tier"));
        assert!(refused(target, &at(0.3, 0.3)).contains("tier 0 costs 0.3"));
        assert!(refused(target, &at(0.1, 0.3)).contains("dearer than the next"));
        let mut options = at(0.5, 0.1);
        options.tiers[1].price_per_gb_month = None;
        assert!(refused(target, &options).contains("tier 1 has no price"));
        options = at(0.5, 0.1);
        options.tiers[0].capacity = u64::MAX;
        assert!(refused(target, &options).contains("capacity"));
        options = at(0.5, 0.1);
        options.placement = Placement::ByLevel;
        assert!(refused(target, &options).contains("placement"));
        options = Options::with_tiers(vec![
            TierOptions::fast("/a").capacity(1 << 30),
            TierOptions::slow("/b"),
            TierOptions::slow("/c"),
        ]);
        for (tier, price) in options.tiers.iter_mut().zip([0.5, 0.1, 0.1]) {
            tier.price_per_gb_month = Some(price);
        }
        assert!(refused(target, &options).contains("tier 1 costs 0.1"));
    }
}
