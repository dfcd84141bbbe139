//! What tables inherit of the heat of those that a job merged into them.

use bytes::{BufMut, Bytes, BytesMut};

use super::plan::Plan;
use crate::sync::Arc;
use crate::table::Heat;
use crate::version::TableHandle;

/// How hot the records of some tables are, by key. Of a table it is known as a whole: its reads are
/// taken to be spread evenly over its bytes.
#[derive(Debug, Default)]
pub(crate) struct Densities {
    /// In key order. Each holds from its key on, up to that of the next.
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    from: Bytes,
    mean: Mean,
}

/// The mean over some bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Mean {
    /// Reads of a device a second, for each byte of keys and values.
    pub(crate) density: f64,
    /// For how many seconds that was watched.
    watched: f64,
}

/// A table of a job, and which part of it lies beside one table of the lower level: it may meet
/// very many of those.
struct Part<'a> {
    table: &'a TableHandle,
    share: f64,
    /// Whether its heat goes with it. What goes down in a crossing is what few read: those that
    /// were read stay.
    passes_on: bool,
}

impl Densities {
    /// Of the inputs of `plan`. One whose heat is not known counts as if it had `unknown` reads a
    /// second and byte.
    pub(crate) fn new(plan: &Plan, unknown: f64) -> Self {
        let tables: Vec<Part<'_>> = plan.inputs().map(|table| Part::of(table, plan)).collect();
        let mut ends: Vec<(Bytes, bool, usize)> = Vec::with_capacity(2 * tables.len());
        for (number, table) in tables.iter().enumerate() {
            let range = &table.table.meta.range;
            ends.push((range.first.clone(), true, number));
            ends.push((behind(&range.last), false, number));
        }
        ends.sort();
        let mut spans: Vec<Span> = Vec::new();
        let mut here: Vec<usize> = Vec::new();
        for (from, begins, number) in ends {
            match begins {
                true => here.push(number),
                false => here.retain(|other| *other != number),
            }
            let mean = mean_of(here.iter().map(|number| &tables[*number]), unknown);
            match spans.last_mut() {
                Some(last) if last.from == from => last.mean = mean,
                _ => spans.push(Span { from, mean }),
            }
        }
        Self { spans }
    }

    /// Where `key` lies.
    pub(crate) fn at(&self, key: &[u8]) -> Mean {
        let behind = self.spans.partition_point(|span| &span.from[..] <= key);
        let span = behind.checked_sub(1).and_then(|at| self.spans.get(at));
        span.map_or(Mean::default(), |span| span.mean)
    }
}

/// The first key behind `key`.
fn behind(key: &[u8]) -> Bytes {
    let mut next = BytesMut::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.put_u8(0);
    next.freeze()
}

impl<'a> Part<'a> {
    fn of(table: &'a Arc<TableHandle>, plan: &Plan) -> Self {
        let range = &table.meta.range;
        let is_lower = plan.lower.iter().any(|lower| Arc::ptr_eq(lower, table));
        let comes_down = plan.comes_down().any(|upper| Arc::ptr_eq(upper, table));
        let met = || {
            plan.lower
                .iter()
                .filter(|lower| lower.meta.range.meets(range))
                .count()
        };
        let beside = if is_lower { 1 } else { met().max(1) };
        Self {
            table,
            share: 1.0 / beside as f64,
            passes_on: !comes_down || !plan.is_crossing,
        }
    }
}

fn mean_of<'a>(parts: impl Iterator<Item = &'a Part<'a>>, unknown: f64) -> Mean {
    let (mut bytes, mut rate, mut watched) = (0.0, 0.0, 0.0);
    for Part {
        table,
        share,
        passes_on,
    } in parts
    {
        let raw = table.raw_bytes().max(1) as f64;
        let heat = table.lazy.heat().get();
        bytes += raw * share;
        if *passes_on {
            rate += heat.known().unwrap_or(unknown * raw) * share;
        }
        watched += f64::from(heat.watched) * raw * share;
    }
    match bytes > 0.0 {
        true => Mean {
            density: rate / bytes,
            watched: watched / bytes,
        },
        false => Mean::default(),
    }
}

/// Adds up what the tables inherit that a job writes, for each of its outputs.
#[derive(Debug)]
pub(crate) struct Heirs {
    densities: Arc<Densities>,
    /// The span of the last record.
    at: usize,
    outputs: Vec<Sum>,
}

/// Of the records that went to one table, weighed by their bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    bytes: f64,
    rate: f64,
    watched: f64,
}

impl Heirs {
    pub(crate) fn new(densities: Arc<Densities>, outputs: usize) -> Self {
        Self {
            densities,
            at: 0,
            outputs: vec![Sum::default(); outputs],
        }
    }

    /// A record of `size` bytes goes to `output`. Keys rise.
    pub(crate) fn add(&mut self, key: &[u8], size: u64, output: usize) {
        let spans = &self.densities.spans;
        while spans
            .get(self.at + 1)
            .is_some_and(|next| &next.from[..] <= key)
        {
            self.at += 1;
        }
        let begun = spans.get(self.at).filter(|span| &span.from[..] <= key);
        let mean = begun.map_or(Mean::default(), |span| span.mean);
        let Some(sum) = self.outputs.get_mut(output) else {
            return;
        };
        let size = size as f64;
        sum.bytes += size;
        sum.rate += mean.density * size;
        sum.watched += mean.watched * size;
    }

    /// What the table inherits that `output` has ended.
    pub(crate) fn take(&mut self, output: usize) -> Heat {
        let sum = self.outputs.get_mut(output).map(std::mem::take);
        match sum.filter(|sum| sum.bytes > 0.0) {
            Some(sum) => Heat {
                rate: sum.rate as f32,
                watched: (sum.watched / sum.bytes) as f32,
            },
            None => Heat::default(),
        }
    }
}
