//! The option sets that a script runs under.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use thermocline::{Options, Placement, TierOptions};

use crate::random_options::{random_hotrap, random_options, set_prices};
use crate::stores::{option_sets, small_options};
use crate::verdict::Violation;

/// The most that the fast tier of a fixed set holds. It is so little that a short script spills
/// over it.
const FAST: u64 = 1 << 20;

/// Option sets for one script.
pub(super) struct Sets {
    pub(super) all: Vec<(&'static str, Options)>,
    /// Where a flash cache lies, for as long as the script runs.
    #[cfg(feature = "flash-cache")]
    _root: tempfile::TempDir,
}

/// At least 16 sets, with every placement among them. Half of them are drawn from `seed`.
pub(super) fn drawn(seed: u64) -> Result<Sets, Violation> {
    let mut all = option_sets();
    let with = |placement: Placement| {
        let mut options = small_options();
        options.placement = placement;
        options
    };
    all.push(("by level", with(Placement::ByLevel)));
    let mut spilling = with(Placement::ByLevel);
    spilling.tiers[0].capacity = 24 * (32 << 10);
    all.push(("by level, tiny fast tier", spilling));
    all.push(("by table", with(Placement::ByTable)));
    let mut few = with(Placement::ByTable);
    few.tiers[0].capacity = 24 * (32 << 10);
    all.push(("by table, tiny fast tier", few));
    for (name, placement) in [
        ("by table, three tiers", Placement::ByTable),
        ("by hotness, three tiers", Placement::default()),
    ] {
        let mut three = with(placement);
        three
            .tiers
            .push(TierOptions::slow("/slower").block_size(4096));
        three.tiers[1].capacity = 1 << 20;
        all.push((name, three));
    }
    for (_, options) in &mut all {
        set_prices(options);
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    for _ in 0..3 {
        let hotrap = Placement::HotRap(random_hotrap(&mut rng));
        all.push(("random hotness", with(hotrap)));
    }
    #[cfg(feature = "flash-cache")]
    let root = {
        let root = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut options = with(Placement::FlashCache);
        // Hardly any cache in memory: most reads are answered from flash.
        options.block_cache = Some(seed % 2 * (64 << 10));
        // The cache lies in the file system, whatever the tiers are made of.
        options.tiers[0].path = root.path().join("fast");
        all.push(("flash cache", options));
        root
    };
    for (_, options) in &mut all {
        if let [fast, _, ..] = &mut options.tiers[..] {
            fast.capacity = fast.capacity.min(FAST);
        }
    }
    for index in 0..3 {
        let options = random_options(seed.wrapping_mul(3).wrapping_add(index));
        all.push(("random options", options));
    }
    Ok(Sets {
        all,
        #[cfg(feature = "flash-cache")]
        _root: root,
    })
}
