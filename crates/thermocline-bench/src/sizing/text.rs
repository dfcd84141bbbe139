//! What each price buys, as text.

use std::fmt;

use bytesize::ByteSize;

use super::source::Source;
use super::{IN_TABLES, Layout, MOST_TRACKED, ON_FAST, Point, Sizing, WITH_COPIES, Wanted};

/// What holds for every answer.
const OF_ALL: &str = "The same data stay hot, and the store has found them. After a change that takes minutes to hours.";
const NO_MEMORY: &str = "No read is answered from memory. Caches make reads faster than this.";

/// What was assumed of a store that does not exist.
pub(super) fn of_a_model(source: &Source) -> Vec<String> {
    let mut all = vec![
        OF_ALL.to_owned(),
        NO_MEMORY.to_owned(),
        format!(
            "By record, the slow disk holds {WITH_COPIES} times the data, not compressed: old copies of hot records, filters, \
             indexes. Where records are overwritten or deleted, there is more, until compactions drop it."
        ),
        format!(
            "By record, the fast disk holds hot records and {:.0} % on top, access records ({:.0} % of the hot ones, at \
             most {:.0} % of the disk), the log and new tables. What is left holds \
             copies of the tables that are read most.",
            (ON_FAST - 1.0) * 100.0,
            source.tracked * 100.0,
            MOST_TRACKED * 100.0
        ),
        "Sizes of log and tables are the defaults, with a memory of 256 MiB.".to_owned(),
        "The capacity is what the store should be allowed: room for rewriting is in it, and not in the bill. \
         Who pays for whole disks pays for the capacity."
            .to_owned(),
    ];
    all.push(match source.tables {
        Some(_) => format!(
            "By table, a disk holds {IN_TABLES} times the data there. Tables have {}, and one that comes to the fast disk \
             leaves the slow one.",
            bytes(source.table_bytes)
        ),
        None => source.no_tables.to_owned(),
    });
    all
}

/// What was assumed of a store that tells of itself.
pub(super) fn of_a_store() -> Vec<String> {
    vec![
        OF_ALL.to_owned(),
        "The fast disk is what tables take of it. The log, the manifest and new tables come on top, and room for \
         rewriting."
            .to_owned(),
        "Hit rates are of all point reads if the program was open when it told, and else of those that a disk \
         answered. A read that memory answers counts as one of the fast disk."
            .to_owned(),
    ]
}

impl fmt::Display for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [fast, slow] = self.prices;
        let [fast_read, slow_read] = self.disk_read_us.map(time);
        writeln!(
            f,
            "{}: {} of keys and values",
            self.source,
            bytes(self.data_bytes)
        )?;
        writeln!(
            f,
            "fast disk {fast} $/GB/month, {fast_read} a read; slow disk {slow} $/GB/month, {slow_read} a read"
        )?;
        for (title, points) in [
            (
                "Placement by record: hot records are on the fast disk",
                &self.by_records,
            ),
            (
                "Placement by table: the tables that are read most are on the fast disk",
                &self.by_tables,
            ),
            (
                "As the store places its data: by record or by table",
                &self.by_store,
            ),
        ] {
            if !points.is_empty() {
                write!(f, "\n{title}\n{}", table(points))?;
            }
        }
        if let Some(wanted) = &self.wanted {
            write!(f, "\n{}\n", wanted.words())?;
        }
        write!(f, "\nAssumed:")?;
        for assumption in &self.assumptions {
            write!(f, "\n- {assumption}")?;
        }
        Ok(())
    }
}

fn table(points: &[Point]) -> String {
    let is_asked = points
        .iter()
        .any(|point| point.slow_reads_per_second.is_some());
    let line = |[cost, dollars, fast, hits, reads, mean]: [String; 6]| {
        let reads = is_asked.then(|| format!(" {reads:>13}"));
        let reads = reads.unwrap_or_default();
        format!("{cost:>10} {dollars:>11} {fast:>11} {hits:>9}{reads} {mean:>10}")
    };
    let names = [
        "$/GB/month",
        "$ a month",
        "fast disk",
        "hit rate",
        "slow reads/s",
        "mean read",
    ];
    let mut lines = line(names.map(str::to_owned)) + "\n";
    for point in points {
        let reads = point.slow_reads_per_second.unwrap_or_default();
        let cells = [
            format!("{:.4}", point.cost),
            format!("{:.2}", point.dollars_per_month),
            bytes(point.fast_bytes),
            format!("{:.1} %", point.hit_rate * 100.0),
            format!("{reads:.0}"),
            time(point.mean_read_us),
        ];
        let remark = match point.placement {
            Layout::OneDisk => "  no slow disk",
            _ => "",
        };
        lines += &format!("{}{remark}\n", line(cells));
    }
    lines
}

impl Wanted {
    fn words(&self) -> String {
        let (wanted, fastest) = (time(self.mean_read_us), time(self.fastest.mean_read_us));
        let Some(point) = &self.cheapest else {
            return format!(
                "None has a mean read of {wanted}. The best is {fastest}, for {:.4} $/GB/month with all on the fast disk.",
                self.fastest.cost
            );
        };
        let how = match point.placement {
            Layout::OneDisk => "all on the fast disk, and no slow one".to_owned(),
            layout => {
                let placed = match layout {
                    Layout::Records => "placement by record",
                    Layout::Tables => "placement by table",
                    _ => "as the store places its data",
                };
                let capacity = point
                    .fast_capacity
                    .map(|capacity| format!(" (a capacity of {})", bytes(capacity)));
                format!(
                    "{placed}, {} on the fast disk{}, {:.1} % of the reads without the slow one",
                    bytes(point.fast_bytes),
                    capacity.unwrap_or_default(),
                    point.hit_rate * 100.0
                )
            }
        };
        format!(
            "Cheapest with a mean read of {wanted}: {:.4} $/GB/month, {:.2} $ a month:\n  {how}",
            point.cost, point.dollars_per_month
        )
    }
}

/// Prices are for GB of 10⁹ bytes, so these are too.
fn bytes(bytes: f64) -> String {
    ByteSize::b(bytes.round() as u64).display().si().to_string()
}

/// A time in three digits.
fn time(micros: f64) -> String {
    let digits = match micros {
        ..100.0 => 2,
        ..1000.0 => 0,
        ..100_000.0 => 2,
        _ => 0,
    };
    let (number, unit) = match micros < 1000.0 {
        true => (micros, "us"),
        false => (micros / 1000.0, "ms"),
    };
    format!("{number:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (micros, text) in [
            (2.5, "2.50 us"),
            (100.0, "100 us"),
            (2000.0, "2.00 ms"),
            (123_456.0, "123 ms"),
        ] {
            assert_eq!(time(micros), text);
        }
    }
}
