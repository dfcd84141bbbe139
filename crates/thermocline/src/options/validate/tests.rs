use super::*;
use crate::options::{HotRapOptions, Placement};

#[cfg(feature = "flash-cache")]
#[test]
fn the_least_memory_holds_a_flash_cache_too() {
    let mut options = Options::two_tiers("/f", 1 << 40, "/s");
    options.placement = Placement::FlashCache;
    options.memtable_size = Some(MIN_MEMTABLE);
    options.memory = (MEMTABLES + 1) * MIN_MEMTABLE;
    let least = options.resolve().unwrap();
    assert_eq!((least.flash_buffer, least.block_cache), (4096, 0));
    options.memory = 1 << 30;
    let ample = options.resolve().unwrap();
    options.placement = Placement::ByLevel;
    let without = options.resolve().unwrap();
    assert!(ample.pinned < without.pinned && ample.block_cache < without.block_cache);
}

/// Regression: index and filter blocks had a quarter at most, and nothing used what a small block
/// cache left. With 56 million small records and 256 MiB about every other lookup read them from
/// the slow tier.
#[test]
fn what_a_small_block_cache_leaves_is_for_index_and_filter_blocks() {
    let mut options = Options::two_tiers("/f", 1 << 30, "/s");
    options.memory = 256 << 20;
    options.memtable_size = Some(16 << 20);
    let rest = (256 - 3 * 16) << 20;
    let pinned = |options: &Options| options.resolve().unwrap().pinned;
    assert_eq!(pinned(&options), rest / 4, "by default");
    options.block_cache = Some(16 << 20);
    assert_eq!(pinned(&options), rest - rest / 8 - (16 << 20));
    options.block_cache = Some(rest / 4 * 3);
    assert_eq!(pinned(&options), rest / 4, "before the buffers");
    options.block_cache = Some(rest);
    assert_eq!(pinned(&options), 0, "all was given away");
}

/// Found by the fuzz target `options`: the size planned for a job of such large tables did not fit
/// into 64 bits.
#[test]
fn sizes_that_cannot_be_multiplied_are_refused() {
    let mut options = Options::two_tiers("/f", u64::MAX - 1, "/s");
    options.memory = u64::MAX;
    let refused = |set: &dyn Fn(&mut Options)| {
        let mut options = options.clone();
        set(&mut options);
        match options.validate() {
            Err(Error::InvalidOption { option, .. }) => Some(option),
            _ => None,
        }
    };
    assert_eq!(refused(&|_| {}), None);
    let tables = |size| move |options: &mut Options| options.table_size = Some(size);
    assert_eq!(refused(&tables(1 << 40)), None);
    assert_eq!(refused(&tables((1 << 40) + 1)), Some("table_size"));
    let memtables = |size| move |options: &mut Options| options.memtable_size = Some(size);
    assert_eq!(refused(&memtables(1 << 40)), None);
    assert_eq!(refused(&memtables(u64::MAX / 4)), Some("memtable_size"));
    let stop = |tables| move |options: &mut Options| options.l0_stop = tables;
    assert_eq!(refused(&stop(1 << 16)), None);
    assert_eq!(refused(&stop(usize::MAX)), Some("l0_stop"));
}

#[test]
fn a_table_is_as_large_as_a_memtable_or_a_share_of_a_small_fast_tier() {
    let table = |capacity, memtable_size| {
        let mut options = Options::two_tiers("/f", capacity, "/s");
        options.memtable_size = memtable_size;
        options.resolve().unwrap().table_size
    };
    assert_eq!(table(2 << 30, Some(8 << 20)), 8 << 20);
    assert_eq!(table(2 << 30, Some(64 << 20)), 16 << 20, "a 128th");
    assert_eq!(table(1 << 20, None), 16 << 10, "the least");
}

#[test]
fn hot_records_leave_l0_a_small_part_of_the_fast_tier() {
    let trigger = |placement, capacity, memtable_size| {
        let mut options = Options::two_tiers("/f", capacity, "/s");
        (options.placement, options.memtable_size) = (placement, memtable_size);
        options.resolve().unwrap().l0_trigger
    };
    let by_hotness = |capacity, memtable| trigger(Placement::default(), capacity, memtable);
    assert_eq!(by_hotness(2 << 20, None), 5);
    assert_eq!(by_hotness(5 << 30, None), 5);
    assert_eq!(by_hotness(6 << 30, None), 6, "as many as were asked for");
    assert_eq!(by_hotness(400 << 20, Some(16 << 20)), 2, "at least");
    let by_level = trigger(Placement::ByLevel, 400 << 20, Some(16 << 20));
    assert_eq!(by_level, 6);
}

/// Access records removed whatever they did not know in their directory: if a tier lay there, all
/// its tables.
#[test]
fn no_tier_lies_where_access_records_do() {
    let refused = |paths: &[&str]| {
        let tiers = paths
            .iter()
            .map(|path| TierOptions::fast(*path).capacity(64 << 20));
        match Options::with_tiers(tiers.collect()).validate() {
            Err(Error::InvalidOption { option, reason }) => Some((option, reason)),
            other => other.map(|()| None).unwrap(),
        }
    };
    for paths in [
        &["/fast", "/fast/ralt"][..],
        &["/fast", "/slow", "/fast/./ralt/"],
    ] {
        let (option, reason) = refused(paths).unwrap();
        assert!(
            option == "tiers" && reason.contains("access records"),
            "{reason}"
        );
    }
    assert_eq!(refused(&["/fast/ralt", "/fast"]), None);
    assert_eq!(refused(&["/fast", "/slow", "/slow/ralt"]), None);
    assert_eq!(refused(&["/fast", "/fast/ralt/slow"]), None);
}

/// The last number of the message.
fn least(options: &Options) -> u64 {
    let error = options.validate().unwrap_err().to_string();
    let mut numbers = error.split(|c: char| !c.is_ascii_digit());
    let last = numbers.rfind(|word| !word.is_empty());
    last.and_then(|number| number.parse().ok()).unwrap()
}

/// A fast tier that is too small is refused with the least capacity that works, and that capacity
/// does work.
#[test]
fn the_least_capacity_that_is_named_is_the_least_that_works() {
    let hotrap = |ralt_initial| {
        Placement::HotRap(HotRapOptions {
            ralt_initial,
            ..HotRapOptions::default()
        })
    };
    let placements = [Placement::ByLevel, hotrap(0.15), hotrap(0.5)];
    let mut found = Vec::new();
    for placement in placements {
        for (memtable, table) in [(None, None), (Some(1 << 20), None), (None, Some(1 << 20))] {
            let mut options = Options::two_tiers("/f", 100 << 10, "/s");
            options.placement = placement.clone();
            (options.memtable_size, options.table_size) = (memtable, table);
            let capacity = least(&options);
            options.tiers[0].capacity = capacity - 1;
            assert_eq!(least(&options), capacity, "{options:?}");
            options.tiers[0].capacity = capacity;
            options.validate().unwrap();
            found.push(capacity);
        }
    }
    let memtables = |size: u64| 24 * size;
    // The share of the table of recent accesses comes on top of tables.
    let tables = |share: f64| ((5 * MIN_MEMTABLE + (3 << 20)) as f64 / (1.0 - share)).ceil();
    for (row, share) in found.chunks(3).zip([0.0, 0.15, 0.5]) {
        let expected = [
            memtables(MIN_MEMTABLE),
            memtables(1 << 20),
            tables(share) as u64,
        ];
        assert_eq!(row, expected);
    }
}

/// A fast tier that was smaller than the log to be kept on it filled up with log, and took no more
/// writes until the store was opened with other options.
#[test]
fn the_fast_tier_has_room_for_the_log_that_is_to_be_kept() {
    let mut options = Options::two_tiers("/f", 100 << 10, "/s");
    let least = least(&options);
    options.tiers[0].capacity = least + 1000;
    options.log_retention = 1000;
    options.validate().unwrap();
    options.log_retention = 1001;
    let error = options.validate().unwrap_err().to_string();
    assert!(
        error.contains("log_retention") && error.contains("leaves 1000"),
        "{error}"
    );
    options.log_retention = u64::MAX;
    options.validate().unwrap_err();
    options.tiers[0].capacity = u64::MAX;
    options.log_retention = 1 << 40;
    options.validate().unwrap();
}
