//! A build without the fast tier as a cache of blocks.

use thermocline::{Options, Placement};

#[test]
fn a_build_without_it_says_what_to_build() {
    let mut options = Options::two_tiers("/fast", 4 << 20, "/slow");
    options.placement = Placement::FlashCache;
    let refused = options.validate().unwrap_err().to_string();
    assert!(refused.contains("feature `flash-cache`"), "{refused}");
}
