//! Statistics of a cache cluster, for a generator fitted to it.
//!
//! They are read from a table of Twitter's clusters: CSV with a header that names the columns. What
//! the generator makes of them is described in [`Window`](super::window::Window).

use std::fs;

use anyhow::{Context, Result, bail, ensure};

/// The table that comes with the program.
const BUILT_IN: &str = include_str!("../../data/twitter-2020Mar-clusters.csv");

/// Statistics of a cache cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its name. It has the table's name in front unless the table came with the program.
    pub name: String,
    /// Key and value of an average record together, in bytes.
    pub record_size: u64,
    /// Share of reads among its reads and writes, 0 to 1. Deletions are left out.
    pub reads: f64,
    /// Exponent of the popularity of its keys.
    pub zipf_alpha: f64,
    /// Accesses of an average key.
    pub mean_frequency: f64,
    /// Share of keys with one access, 0 to 1.
    pub one_hit_share: f64,
    /// Share of the keys that are in use at one time, over 0 to 1: the cluster's working set with
    /// the times to live over that without. 1 if the table has neither.
    pub working_share: f64,
}

impl Cluster {
    /// `NAME` from the table that comes with the program, or `FILE:NAME`.
    pub(super) fn named(name: &str) -> Result<Self> {
        let Some((file, row)) = name.rsplit_once(':') else {
            return Self::built_in(name);
        };
        let table = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let mut cluster = Self::find(&table, row).with_context(|| file.to_owned())?;
        cluster.name = name.to_owned();
        Ok(cluster)
    }

    /// `name` from the table that comes with the program.
    pub(crate) fn built_in(name: &str) -> Result<Self> {
        Self::find(BUILT_IN, name)
    }

    /// Share of writes.
    pub(crate) fn write_share(&self) -> f64 {
        1.0 - self.reads
    }

    /// Share of operations that bring a key into the working set. Only a write can do that. Every
    /// key with more than one access comes once, in as many operations as a key has accesses on
    /// average.
    pub(crate) fn entering_share(&self) -> f64 {
        ((1.0 - self.one_hit_share) / self.mean_frequency).min(self.write_share())
    }

    /// Share of reads and updates on keys with one access. In the cluster this is a share of all
    /// operations. The generator has less, because the operations that bring keys in are not among
    /// these.
    pub(crate) fn one_hit_accesses(&self) -> f64 {
        self.one_hit_share / self.mean_frequency
    }

    pub(super) fn find(table: &str, name: &str) -> Result<Self> {
        let mut lines = (1..).zip(table.lines());
        let (_, header) = lines.next().context("the table is empty")?;
        let columns: Vec<&str> = header.split(',').map(str::trim).collect();
        let mut names = Vec::new();
        for (number, line) in lines {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let row = Row {
                columns: &columns,
                fields: &fields,
            };
            let found = row.text("cluster")?;
            if found == name {
                return row.cluster().with_context(|| format!("line {number}"));
            }
            names.push(found);
        }
        bail!("there is no cluster {name}; there are {}", names.join(", "))
    }
}

/// One line of the table.
struct Row<'r, 't> {
    columns: &'r [&'t str],
    fields: &'r [&'t str],
}

impl<'t> Row<'_, 't> {
    fn text(&self, column: &str) -> Result<&'t str> {
        let place = self.columns.iter().position(|name| *name == column);
        let place = place.with_context(|| format!("the table has no column `{column}`"))?;
        let field = self.fields.get(place).copied();
        field.with_context(|| format!("column `{column}` is missing"))
    }

    /// A number that is not negative.
    fn number(&self, column: &str) -> Result<f64> {
        let text = self.text(column)?;
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => bail!("`{column}` is `{text}`, and a generator needs a number of 0 or more"),
        }
    }

    fn cluster(&self) -> Result<Cluster> {
        let (reads, writes) = mix(self.text("operations")?)?;
        let zipf_alpha = self.number("zipf_alpha")?;
        ensure!(zipf_alpha <= 10.0, "`zipf_alpha` must be 10 at most");
        let mean_frequency = self.number("mean_frequency")?;
        ensure!(
            mean_frequency >= 1.0,
            "`mean_frequency` must be at least 1: every key is accessed"
        );
        let one_hit = self.number("one_hit_wonder_percent")?;
        ensure!(
            one_hit <= 100.0,
            "`one_hit_wonder_percent` must be 100 at most"
        );
        let live = self.number("working_set_mb")?;
        let all = self.number("working_set_mb_no_ttl")?;
        Ok(Cluster {
            name: self.text("cluster")?.to_owned(),
            record_size: (self.number("key_bytes")? + self.number("value_bytes")?) as u64,
            reads: reads / (reads + writes),
            zipf_alpha,
            mean_frequency,
            one_hit_share: one_hit / 100.0,
            working_share: if live > 0.0 && all > 0.0 {
                (live / all).min(1.0)
            } else {
                1.0
            },
        })
    }
}

/// Reads and writes of a mix like `get:0.96 add:0.02 cas:0.02`.
fn mix(text: &str) -> Result<(f64, f64)> {
    let (mut reads, mut writes) = (0.0, 0.0);
    for part in text.split_ascii_whitespace() {
        let (operation, share) = part.split_once(':').unwrap_or((part, ""));
        let share = match share.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => share,
            _ => bail!("operation `{part}` is not NAME:SHARE with a share of 0 to 1"),
        };
        match operation {
            "get" | "gets" => reads += share,
            "delete" => {}
            _ => writes += share,
        }
    }
    ensure!(
        reads + writes > 0.0,
        "`{text}` has neither reads nor writes"
    );
    Ok((reads, writes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cluster_is_read_from_its_row() {
        // 29,36,799,10.73,22.5,23.04,40520,891,get:0.86 set:0.13,1.2323
        let cluster = Cluster::named("29").unwrap();
        assert_eq!((cluster.name.as_str(), cluster.record_size), ("29", 835));
        assert!((cluster.reads - 0.86 / 0.99).abs() < 1e-9);
        assert!((cluster.working_share - 891.0 / 40520.0).abs() < 1e-9);
        assert!((cluster.entering_share() - 0.7696 / 22.5).abs() < 1e-9);
        assert!((cluster.one_hit_accesses() - 0.2304 / 22.5).abs() < 1e-9);
        // Its keys have two accesses each, so nearly every write is the first of a key.
        let cluster = Cluster::named("10").unwrap();
        assert!((cluster.entering_share() - 0.9992 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn every_cluster_of_the_paper_can_be_fitted() {
        for name in ["11", "17", "19", "16", "53", "10", "29"] {
            let cluster = Cluster::named(name).unwrap();
            assert!(cluster.record_size >= 48, "{cluster:?}");
        }
    }

    #[test]
    fn deletions_are_left_out() {
        assert_eq!(mix("get:0.65 delete:0.22 set:0.13").unwrap(), (0.65, 0.13));
    }

    #[test]
    fn a_table_of_ones_own_is_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), BUILT_IN.replace("\n17,", "\nmine,")).unwrap();
        let name = format!("{}:mine", file.path().display());
        let cluster = Cluster::named(&name).unwrap();
        assert_eq!(
            Cluster {
                name: "17".to_owned(),
                ..cluster
            },
            Cluster::named("17").unwrap()
        );
    }

    #[test]
    fn what_cannot_be_fitted_is_explained() {
        for (table, expected) in [
            ("", "empty"),
            ("a,b\n1,2\n", "no column `cluster`"),
            ("cluster\n1\n", "no column `operations`"),
        ] {
            let error = format!("{:#}", Cluster::find(table, "1").unwrap_err());
            assert!(error.contains(expected), "{table}: {error}");
        }
        for (name, expected) in [
            ("5", "operation `N/A`"),
            ("43", "`zipf_alpha` is `NA`"),
            ("99", "there are 1, 2, 3"),
            ("/no/such:1", "/no/such"),
        ] {
            let error = format!("{:#}", Cluster::named(name).unwrap_err());
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_row_panics(row in "1(,[-0-9a-z:. ]{0,9}){0,10}") {
            let header = BUILT_IN.lines().next().unwrap_or_default();
            let _ = Cluster::find(&format!("{header}\n{row}\n"), "1");
        }
    }
}
