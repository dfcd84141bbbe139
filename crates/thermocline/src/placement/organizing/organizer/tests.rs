use proptest::prelude::*;

use super::*;

const FAST: TierOffer = TierOffer {
    price: 0.528,
    latency: 0.0001,
    room: u64::MAX,
    expansion: 1.0,
};
const MIDDLE: TierOffer = TierOffer {
    price: 0.1,
    latency: 0.001,
    room: u64::MAX,
    expansion: 1.0,
};
const SLOW: TierOffer = TierOffer {
    price: 0.045,
    latency: 0.01,
    room: u64::MAX,
    expansion: 1.0,
};

/// Tables of 8 bytes with these rates, all on `tier`.
fn tables(rates: &[f64], tier: u8) -> Vec<Candidate> {
    let table = |&rate| Candidate {
        len: 8,
        raw: 8,
        rate,
        tier,
        may_rise: true,
    };
    rates.iter().map(table).collect()
}

/// What `bytes` more on FAST instead of SLOW cost.
fn price_of(bytes: u64) -> f64 {
    bytes as f64 * (FAST.price - SLOW.price) * 1.000_001
}

/// Moves until none is wanted. Returns where the tables lie, and how many moves it took.
fn settle(
    mut tables: Vec<Candidate>,
    tiers: &[TierOffer],
    budget: f64,
    resistance: f64,
) -> (Vec<u8>, usize) {
    let mut count = 0;
    loop {
        let organized = organize(&tables, tiers, budget, resistance);
        let Some(next) = organized.moves.first() else {
            return (tables.iter().map(|table| table.tier).collect(), count);
        };
        tables[next.candidate].tier = next.to;
        count += 1;
        assert!(count < 1000, "it goes on for ever");
    }
}

#[test]
fn the_hottest_are_on_the_fast_tier_as_far_as_the_money_goes() {
    let settled = |bytes| {
        settle(
            tables(&[1.0, 9.0, 3.0, 0.0, 7.0], 1),
            &[FAST, SLOW],
            price_of(bytes),
            0.0,
        )
    };
    assert_eq!(settled(24), (vec![1, 0, 0, 1, 0], 3));
    assert_eq!(
        settled(31),
        (vec![1, 0, 0, 1, 0], 3),
        "half a table is no table"
    );
    assert_eq!(settled(7), (vec![1; 5], 0));
    assert_eq!(
        settled(1000),
        (vec![0, 0, 0, 1, 0], 4),
        "what nobody reads stays where it is"
    );
}

#[test]
fn what_costs_too_much_goes_the_coldest_first() {
    let over = tables(&[1.0, 9.0, 3.0, 0.0, 7.0], 0);
    let organized = organize(&over, &[FAST, SLOW], price_of(16), 0.02);
    assert!(organized.is_over);
    let gone: Vec<_> = organized
        .moves
        .iter()
        .map(|m| (m.candidate, m.to))
        .collect();
    assert_eq!(gone, [(3, 1), (0, 1), (2, 1)]);
    assert!(!organize(&over, &[FAST, SLOW], price_of(40), 0.02).is_over);
}

/// A table that is hotter than the coldest fast one by chance would be exchanged for it, and back.
#[test]
fn what_is_about_as_hot_as_the_coldest_fast_table_stays_where_it_is() {
    let mut rates: Vec<f64> = (0..100).map(f64::from).collect();
    let budget = price_of(50 * 8);
    let (mut settled, _) = settle(tables(&rates, 1), &[FAST, SLOW], budget, 0.0);
    assert_eq!(settled.iter().filter(|tier| **tier == 0).count(), 50);
    rates.swap(49, 50);
    let here = |settled: &[u8], rates: &[f64]| -> Vec<Candidate> {
        let each = settled.iter().zip(rates);
        each.map(|(&tier, &rate)| Candidate {
            len: 8,
            raw: 8,
            rate,
            tier,
            may_rise: true,
        })
        .collect()
    };
    assert_eq!(
        settle(here(&settled, &rates), &[FAST, SLOW], budget, 0.04).1,
        0
    );
    let (after, moves) = settle(here(&settled, &rates), &[FAST, SLOW], budget, 0.0);
    assert_eq!((moves, after[49], after[50]), (2, 0, 1));
    // One that is clearly hotter comes up, and the coldest goes down for it.
    rates[0] = 1000.0;
    (settled, _) = settle(here(&settled, &rates), &[FAST, SLOW], budget, 0.04);
    assert_eq!((settled[0], settled[50], settled[99]), (0, 1, 0));
}

#[test]
fn a_small_hot_table_does_not_keep_out_a_large_one_that_is_read_more() {
    let small = Candidate {
        len: 1,
        raw: 1,
        rate: 10.0,
        tier: 1,
        may_rise: true,
    };
    let large = Candidate {
        len: 100,
        raw: 100,
        rate: 500.0,
        tier: 1,
        may_rise: true,
    };
    let organized = organize(&[small, large], &[FAST, SLOW], price_of(100), 0.0);
    assert_eq!(
        organized.moves,
        [Move {
            candidate: 1,
            to: 0
        }]
    );
}

#[test]
fn with_three_tiers_each_step_has_its_threshold() {
    let tiers = [FAST, MIDDLE, SLOW];
    let rates = [100.0, 50.0, 20.0, 10.0, 5.0, 1.0];
    // A step to the middle tier saves 9 ms for 0.055, one to the fast tier 0.9 ms for 0.428.
    let budget = 8.0 * (2.0 * 0.428 + 6.0 * 0.055) * 1.000_001;
    let (settled, _) = settle(tables(&rates, 2), &tiers, budget, 0.0);
    assert_eq!(settled, [0, 0, 1, 1, 1, 1]);
    let organized = organize(&tables(&rates, 2), &tiers, budget, 0.0);
    assert_eq!(organized.thresholds, [(0, 50.0 / 8.0), (1, 1.0 / 8.0)]);
    let (settled, _) = settle(tables(&rates, 0), &tiers, budget / 100.0, 0.0);
    assert_eq!(settled, [2; 6]);
}

#[test]
fn a_tier_that_others_make_worthless_holds_nothing() {
    let dear = TierOffer {
        price: 0.5,
        ..MIDDLE
    };
    for bad in [
        dear,
        TierOffer {
            latency: 0.02,
            ..MIDDLE
        },
    ] {
        let tiers = [FAST, bad, SLOW];
        let (settled, _) = settle(tables(&[9.0, 5.0, 1.0], 1), &tiers, price_of(8), 0.0);
        assert_eq!(settled, [0, 2, 2]);
    }
}

#[test]
fn a_full_tier_passes_the_rest_on() {
    let narrow = TierOffer { room: 8, ..MIDDLE };
    let (settled, _) = settle(
        tables(&[9.0, 5.0, 1.0], 2),
        &[FAST, narrow, SLOW],
        price_of(8) + 8.0 * 0.056,
        0.0,
    );
    assert_eq!(settled, [0, 1, 2]);
    let organized = organize(
        &tables(&[9.0, 5.0], 0),
        &[TierOffer { room: 8, ..FAST }, SLOW],
        f64::INFINITY,
        0.0,
    );
    assert_eq!(
        organized.moves,
        [Move {
            candidate: 1,
            to: 1
        }]
    );
}

/// On the fast tier a table takes a little more than the money, which was not known before it was
/// there. It went up and down without end.
#[test]
fn a_table_that_turns_out_too_long_goes_down_and_stays_there() {
    let mut table = tables(&[5.0], 1)[0];
    let tiers = [FAST, SLOW];
    let mut moves = Vec::new();
    while let Some(next) = organize(&[table], &tiers, price_of(8), 0.0).moves.first() {
        // On the fast tier it has ten bytes.
        let len = if next.to == 0 { 10 } else { 8 };
        moves.push(next.to);
        table = Candidate {
            len,
            tier: next.to,
            may_rise: false,
            ..table
        };
        assert!(moves.len() < 10, "{moves:?}");
    }
    assert_eq!(moves, [0, 1]);
}

fn some_tables() -> impl Strategy<Value = Vec<Candidate>> {
    let table = (1..100_u64, 0..1000_u32, 0..3_u8);
    let table = table.prop_map(|(len, rate, tier)| Candidate {
        len,
        raw: len,
        rate: f64::from(rate),
        tier,
        may_rise: true,
    });
    prop::collection::vec(table, 1..8)
}

/// The most time that two tiers can save, by trying all ways.
fn best(tables: &[Candidate], budget: f64) -> f64 {
    let ways = 0..1_u32 << tables.len();
    let saved = |way: u32| {
        let fast = || tables.iter().enumerate().filter(|(i, _)| way >> i & 1 == 1);
        let price: f64 = fast()
            .map(|(_, t)| t.len as f64 * (FAST.price - SLOW.price))
            .sum();
        let saved: f64 = fast().map(|(_, t)| t.rate).sum();
        (price <= budget).then_some(saved)
    };
    ways.filter_map(saved).fold(0.0, f64::max)
}

proptest! {
    #[test]
    fn it_is_at_least_half_as_good_as_the_best(tables in some_tables(), bytes in 0..500_u64) {
        let ladder = Ladder::new(&[FAST, SLOW]);
        let assigned = assign(&tables, &ladder, price_of(bytes));
        prop_assert!(assigned.spent <= price_of(bytes));
        let rungs = tables.iter().zip(&assigned.rungs);
        let saved: f64 = rungs.filter(|(_, rung)| **rung == 1).map(|(t, _)| t.rate).sum();
        prop_assert!(saved * 2.0 >= best(&tables, price_of(bytes)));
    }

    #[test]
    fn it_comes_to_rest_within_the_money_and_the_room(
        tables in some_tables(), bytes in 0..500_u64, room in 0..300_u64, resistance in 0.0..0.2,
    ) {
        let tiers = [TierOffer { room, ..FAST }, MIDDLE, SLOW];
        let (settled, _) = settle(tables.clone(), &tiers, price_of(bytes), resistance);
        let at = |tier: u8| -> u64 {
            let on = tables.iter().zip(&settled).filter(|(_, at)| **at == tier);
            on.map(|(t, _)| t.len).sum()
        };
        let spent = at(0) as f64 * (FAST.price - SLOW.price) + at(1) as f64 * (MIDDLE.price - SLOW.price);
        prop_assert!(spent <= price_of(bytes) && at(0) <= room);
    }
}
