//! How a large compaction is divided by key, so that several threads can work on it.
//!
//! While a compaction of L0 runs, no other may take tables of L0 (I2) or write where it writes
//! (I11). So under a stream of writes it alone decides how fast L0 is emptied, however many threads
//! there are.

use std::ops::Range;

use bytes::Bytes;

use super::plan::{Cause, Plan};

/// About how many tables' worth of input a part has at least. Each part ends its last table early.
const LEAST_TABLES: u64 = 8;

/// The records of some of a compaction's keys, from all of its inputs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its first key; none if it begins where the inputs do.
    pub(super) from: Option<Bytes>,
    /// The key before which it ends; none if it ends where the inputs do.
    pub(super) until: Option<Bytes>,
    /// The positions of its tables among the lower ones of the plan.
    pub(super) lower: Range<usize>,
    /// How much of the room that is left before it is reserved for it: so many of so many bytes.
    pub(super) share: (u64, u64),
}

/// The parts of `plan`, in key order, where tables of its output are about `table_size` bytes long.
/// They meet where tables of the lower level do: each of those is read by one part.
pub(super) fn divide(plan: &Plan, table_size: u64) -> Vec<Part> {
    let lower: u64 = plan.lower.iter().map(|table| table.meta.len).sum();
    let input: u64 = plan.inputs().map(|table| table.meta.len).sum();
    let most = input / LEAST_TABLES.saturating_mul(table_size).max(1);
    // What a crossing brings up, and what joins it, is one pass's; and small tables become one.
    let is_whole = plan.is_crossing || plan.outputs.len() != 1 || plan.cause != Cause::Level;
    let parts = if is_whole { 1 } else { most.max(1) };

    let mut divided: Vec<Part> = Vec::new();
    let (mut passed, mut begun) = (0, 0);
    let mut from = (0, None);
    for (at, table) in plan.lower.iter().enumerate() {
        let is_due = passed >= lower / parts * (divided.len() as u64 + 1);
        if parts > 1 && at > 0 && is_due {
            let key = table.meta.range.first.clone();
            divided.push(Part {
                from: from.1.replace(key.clone()),
                until: Some(key),
                lower: from.0..at,
                share: (passed - begun, lower - begun),
            });
            (from.0, begun) = (at, passed);
        }
        passed += table.meta.len;
    }
    divided.push(Part {
        from: from.1,
        until: None,
        lower: from.0..plan.lower.len(),
        share: (1, 1),
    });
    divided
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyRange;
    use crate::levels::Upper;
    use crate::placement::Output;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::version::{TableHandle, Version};
    use crate::{Db, Options};

    const TABLE: u64 = 100;

    /// A table of `len` bytes that begins with `first`.
    fn table(sample: &TableHandle, first: char, len: u64) -> Arc<TableHandle> {
        let mut table = sample.clone();
        let key = Bytes::from(first.to_string());
        table.meta.len = len;
        table.meta.range = KeyRange {
            first: key.clone(),
            last: key,
        };
        Arc::new(table)
    }

    /// A compaction of an upper table of so many bytes and one lower table of `TABLE` bytes for
    /// each letter.
    fn plan(upper: u64, lower: &str) -> (Db, Plan) {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        let sample = Arc::clone(&db.tree().pin().version.levels[0].tables[0]);
        let plan = Plan {
            from: 0,
            to: 1,
            upper: Upper::Tables(vec![table(&sample, 'a', upper)]),
            between: Vec::new(),
            lower: lower.chars().map(|c| table(&sample, c, TABLE)).collect(),
            outputs: vec![Output { level: 1, tier: 0 }],
            is_crossing: false,
            bypass: None,
            version: Arc::new(Version::default()),
            is_move: false,
            cause: Cause::Level,
        };
        (db, plan)
    }

    #[test]
    fn parts_have_like_shares_of_the_lower_tables_and_meet_where_those_do() {
        let (_db, plan) = plan(12 * TABLE, "bcdefghijklm");
        let parts = divide(&plan, TABLE);
        let ranges: Vec<_> = parts.iter().map(|part| part.lower.clone()).collect();
        assert_eq!(
            ranges,
            [0..4, 4..8, 8..12],
            "24 tables' worth, eight for each"
        );
        let keys = |key: fn(&Part) -> &Option<Bytes>| -> Vec<_> {
            parts.iter().map(|part| key(part).clone()).collect()
        };
        let at = |key: &'static str| Some(Bytes::from_static(key.as_bytes()));
        assert_eq!(keys(|part| &part.from), [None, at("f"), at("j")]);
        assert_eq!(keys(|part| &part.until), [at("f"), at("j"), None]);
        // Of what is left each time: a third, a half, all.
        let of = |(of, whole): (u64, u64)| of as f64 / whole as f64;
        let shares: Vec<_> = parts.iter().map(|part| of(part.share)).collect();
        assert_eq!(shares, [1.0 / 3.0, 0.5, 1.0]);
    }

    #[test]
    fn what_is_small_or_meets_few_tables_or_makes_a_choice_is_one_part() {
        let is_one = |plan: &Plan| {
            let parts = divide(plan, TABLE);
            let [part] = &parts[..] else {
                return false;
            };
            part.lower == (0..plan.lower.len()) && part.from.is_none() && part.until.is_none()
        };
        assert!(is_one(&plan(3 * TABLE, "bcdefghijklm").1), "fifteen tables");
        assert!(is_one(&plan(100 * TABLE, "b").1), "nowhere to cut");
        assert!(is_one(&plan(100 * TABLE, "").1), "nothing lies below");
        let (_db, mut plan) = plan(100 * TABLE, "bcdefghijklm");
        assert!(!is_one(&plan));
        plan.is_crossing = true;
        assert!(is_one(&plan));
        plan.is_crossing = false;
        assert!(is_one(&plan.clone().because(Cause::SmallTables)));
        plan.outputs.push(plan.outputs[0]);
        assert!(is_one(&plan));
    }
}
