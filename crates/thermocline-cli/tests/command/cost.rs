//! `cost`: a store's bill, and a target for it.

use thermocline::{Db, Placement};

use crate::common::{Store, run};

const PRICES: [&str; 4] = ["--price-fast", "0.5", "--price-slow", "0.1"];

/// A store of 12 MB whose tables are placed by their heat, all on the fast tier.
fn by_table() -> Store {
    let store = Store::new();
    let mut options = store.options();
    options.placement = Placement::ByTable;
    options.memtable_size = Some(256 << 10);
    let db = Db::open(options).expect("a new store");
    for number in 0..24_000_u32 {
        let key = number.wrapping_mul(0x9e37_79b1).to_be_bytes();
        db.put(key, key.repeat(125)).expect("it is written");
    }
    db.close().expect("it is closed");
    store
}

#[test]
fn a_target_is_set_and_kept_and_the_tables_move() {
    let store = by_table();
    store
        .run("cost", &[])
        .fails(2, &["tier 0 has no price", "--price-fast"]);
    let before = store.run("cost --json", &PRICES).json();
    assert_eq!(before["target"], "none");
    assert!(before["now"].as_f64() > Some(0.45), "{before}");

    let set = [&PRICES[..], &["--set", "cost:0.2", "--until-settled"]].concat();
    let after = store.run("cost --json", &set).json();
    assert_eq!(after["target"], "cost:0.2");
    assert_eq!(after["moving_bytes"], 0);
    assert!(after["now"].as_f64() <= Some(0.204), "{after}");
    assert!(after["curve"].is_array(), "{after}");
    // Which of the two brings a table down depends on what is due.
    let moved = ["migrations", "migrations_by_compaction"].map(|name| after[name].as_u64());
    assert!(moved.into_iter().sum::<Option<u64>>() > Some(0), "{after}");

    // The prices are the store's by now.
    let text = store.run("cost", &[]).ok();
    assert!(text.contains("cost:0.2"), "{text}");
    let inspected = store.run("inspect manifest", &[]).ok();
    assert!(inspected.contains("target cost:0.2"), "{inspected}");
    assert!(
        inspected.contains("the heat of their tables"),
        "{inspected}"
    );
}

#[test]
fn stats_show_the_cost_where_prices_are_known() {
    let store = by_table();
    let without = store.run("stats", &[]).ok();
    assert!(!without.contains("Cost"), "{without}");
    assert!(store.run("stats --json", &[]).json()["cost"].is_null());
    let without = store.run("stats --prometheus", &[]).ok();
    assert!(!without.contains("thermocline_cost"), "{without}");

    let set = [&PRICES[..], &["--set", "cost:0.2", "--until-settled"]].concat();
    let text = store.run("cost", &set).ok();
    assert!(text.contains("moved    "), "{text}");
    let text = store.run("stats", &[]).ok();
    assert!(
        text.contains("Cost\n") && text.contains("cost:0.2"),
        "{text}"
    );
    let cost = &store.run("stats --json", &[]).json()["cost"];
    assert_eq!(cost["target"], "cost:0.2");
    assert_eq!(cost["moving_bytes"], 0);
    assert!(cost["now"].as_f64() <= Some(0.204), "{cost}");
    let prometheus = store.run("stats --prometheus", &[]).ok();
    assert!(
        prometheus.contains("\nthermocline_cost_target 0.2\n"),
        "{prometheus}"
    );
}

#[test]
fn a_target_that_cannot_be_is_refused_with_what_could() {
    let store = Store::filled(10, 100);
    let set = |target: &str| {
        let args = [&PRICES[..], &["--set", target]].concat();
        store.run("cost", &args)
    };
    set("cost:0.6").fails(2, &["0.1", "0.5"]);
    set("cost:cheap").fails(2, &["cheap", "a number without a unit"]);
    set("0.2").fails(2, &["write cost:0.05"]);
    set("latency:0ms").fails(2, &["no time"]);
    set("hit-rate:1.5").fails(2, &["from 0 to 1"]);
    let settled = [&PRICES[..], &["--set", "hit-rate:0.9", "--until-settled"]].concat();
    store.run("cost", &settled).fails(2, &["in dollars"]);
    store
        .run("cost", &["--price-fast", "0.5"])
        .fails(2, &["--price-slow"]);
    store
        .run("cost --price-fast 0.5 --price-slow -0.1", &[])
        .fails(2, &["at least 0"]);
    store
        .run("cost --price-fast 0.1 --price-slow 0.1", &[])
        .fails(2, &["dearer than the next"]);
    store
        .run("cost", &["--price-fast", "0.5", "--price-slow", "0.1,0.05"])
        .fails(2, &["slow tiers: 1", "names: 2"]);
    store
        .run(
            "cost",
            &[
                "--price-fast",
                "0.1",
                "--price-slow",
                "0.5",
                "--set",
                "cost:0.2",
            ],
        )
        .fails(2, &["dearer than the next"]);
    set("none").ok();
    for bad in ["NaN", "inf"] {
        let prices = ["--price-fast", bad, "--price-slow", "0.1"];
        store
            .run("cost", &prices)
            .fails(2, &["--price-fast", "at least 0"]);
    }
    // A target that the store has is as little waited for as one that is being set.
    set("latency:2ms").ok();
    store
        .run("cost", &["--until-settled"])
        .fails(2, &["in dollars", "latency:2ms"]);
}

#[test]
fn a_target_for_a_store_of_one_tier_is_refused_whether_prices_are_named_or_not() {
    let store = Store::filled(10, 100);
    for prices in [&[][..], &PRICES] {
        let set = [prices, &["--set", "cost:0.2"]].concat();
        let fast = store.fast();
        let line = [
            "cost",
            "--one-tier",
            "--fast",
            fast.to_str().expect("UTF-8"),
        ];
        run(&[&line[..], &set].concat()).fails(2, &["nothing to choose"]);
    }
}

/// Where nothing finds room, whoever waited got an error and no report of what is in the way.
#[test]
fn a_full_slow_tier_is_what_a_target_is_held_up_by() {
    let store = Store::new();
    let sizes = ["--slow-capacity", "8MiB", "--memory", "16MiB"];
    let mut options = store.options();
    options.tiers[1].capacity = 8 << 20;
    options.memory = 16 << 20;
    let db = Db::open(options).expect("a new store");
    let scattered = |number: u32| number.wrapping_mul(0x9e37_79b1).to_be_bytes();
    for number in 0..20_000_u32 {
        // What no compression makes smaller.
        let words = (0..250).flat_map(|word| scattered(number * 250 + word));
        db.put(scattered(number), words.collect::<Vec<u8>>())
            .expect("it is written");
    }
    db.close().expect("it is closed");
    let set = ["--set", "cost:0.12", "--until-settled"];
    let text = store
        .run("cost", &[&PRICES[..], &sizes, &set].concat())
        .ok();
    assert!(text.contains("the last tier is full"), "{text}");
}

/// Whoever waits gets the target, although a store looks only once a second at what it costs: what
/// holds it up was believed before it had looked.
#[test]
fn a_store_by_records_comes_to_its_target_before_the_command_ends() {
    let store = Store::new();
    let mut options = store.options();
    options.tiers[0].capacity = 8 << 20;
    let db = Db::open(options).expect("a new store");
    let scattered = |number: u32| number.wrapping_mul(0x9e37_79b1).to_be_bytes();
    for number in 0..15_000_u32 {
        // What no compression makes smaller.
        let words = (0..250).map(|word| scattered(number * 250 + word));
        let value = words.flatten().collect::<Vec<u8>>();
        db.put(scattered(number), value).expect("it is written");
    }
    db.close().expect("it is closed");
    let [fast, slow] = [store.fast(), store.slow()].map(|path| path.display().to_string());
    let flags = ["--fast", &fast, "--slow", &slow, "--fast-capacity", "8MiB"];
    let set = ["--set", "cost:0.12", "--until-settled"];
    let line = [&["cost", "--json"][..], &flags, &PRICES, &set].concat();
    let after = run(&line).json();
    assert!(after["now"].as_f64() <= Some(0.1224), "{after}");
}
