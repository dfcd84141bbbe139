//! Which table goes down where records live by hotness (HotRAP, §3.5).

use super::*;

/// How many bytes of tables are hot, by their keys. Of other tables none are.
pub(in super::super) type HotKeys<'a> = &'a [(&'static str, u64)];

pub(in super::super) struct Hot<'a>(pub(in super::super) HotKeys<'a>);

impl Hotness for Hot<'_> {
    fn hot_bytes(&self, table: &TableHandle) -> u64 {
        let first = &table.meta.range.first;
        let known = self.0.iter().find(|(key, _)| first == key);
        known.map_or(0, |(_, bytes)| *bytes)
    }
}

/// The key of the table of `level` that goes down. The oldest of `tables` is the first.
fn picked(level: usize, tables: &[Drawn], hot: HotKeys<'_>) -> Bytes {
    with_picker(tables.to_vec(), PLANNED, |picker| {
        let hot = Hot(hot);
        let picker = Picker {
            hotness: Some(&hot),
            ..*picker
        };
        let plan = picker.pick_level(level).unwrap();
        plan.upper.tables()[0].meta.range.first.clone()
    })
}

#[test]
fn a_cold_table_goes_down_before_a_hot_one() {
    let tables = [(F, "a", MIB, 0), (F, "b", MIB, 0)];
    assert_eq!(picked(F, &tables, &[("a", MIB / 4 * 3)]), "b");
    assert_eq!(picked(F, &tables, &[("b", MIB / 4 * 3)]), "a");
}

#[test]
fn of_equally_cold_tables_that_which_meets_less_goes_down() {
    let met = |by_a: u64, by_b: u64| {
        [
            (F, "a", MIB, 0),
            (F, "b", MIB, 0),
            (SLOW, "a", by_a, 1),
            (SLOW, "b", by_b, 1),
        ]
    };
    let halves = [("a", MIB / 2), ("b", MIB / 2)];
    for hot in [&halves[..0], &halves[..]] {
        assert_eq!(picked(F, &met(2 * MIB, MIB), hot), "b");
        assert_eq!(picked(F, &met(MIB, 2 * MIB), hot), "a");
    }
}

/// What goes down from a table is weighed against all that is read for it.
#[test]
fn a_hot_table_goes_down_before_a_cold_one_that_meets_much() {
    let met = |by_cold: u64| {
        [
            (F, "cold", MIB, 0),
            (F, "hot", MIB, 0),
            (SLOW, "cold", by_cold, 1),
        ]
    };
    // A quarter, against 1 in 1 + 2 and 1 in 1 + 4.
    let hot = &[("hot", MIB / 4 * 3)];
    assert_eq!(picked(F, &met(2 * MIB), hot), "cold");
    assert_eq!(picked(F, &met(4 * MIB), hot), "hot");
}

/// The estimate of what is hot may come to more than the table. That makes a table no worse than
/// one that is hot as a whole.
#[test]
fn where_all_is_hot_the_oldest_table_goes_down() {
    let [a, b] = [(F, "a", MIB, 0), (F, "b", MIB, 0)];
    let met = (SLOW, "a", 3 * MIB, 1);
    let hot = &[("a", 2 * MIB), ("b", MIB)];
    assert_eq!(picked(F, &[a, b, met], hot), "a");
    assert_eq!(picked(F, &[b, a, met], hot), "b");
}

/// Only a table that leaves level f parts with its hot records.
#[test]
fn hotness_plays_no_part_on_other_levels_than_f() {
    for (level, below, tiers) in [
        (ABOVE, F, [0, 0]),
        (F, SLOW, [0, 1]),
        (SLOW - 1, SLOW, [1, 1]),
    ] {
        let tables = [
            (level, "hot", MIB, tiers[0]),
            (level, "met", MIB, tiers[0]),
            (below, "met", MIB, tiers[1]),
        ];
        let expected = if level == F { "met" } else { "hot" };
        assert_eq!(
            picked(level, &tables, &[("hot", MIB)]),
            expected,
            "L{level}"
        );
    }
}
