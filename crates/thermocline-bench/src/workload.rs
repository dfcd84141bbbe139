//! What operations a run is made of.

use std::fmt;
use std::str::FromStr;

use rand::{Rng, RngExt};

use crate::distribution::{Cluster, LATEST_THETA, Shape, Stages};

/// The definition by which workloads and distributions are meant. It is raised whenever one of
/// them, with the same name and flags, comes to mean other operations. Results from before then
/// belong to another experiment.
pub(crate) const WORKLOADS_DEFINITION: u32 = 1;

/// The definition for results that do not tell theirs.
#[cfg(feature = "lab")]
pub(crate) fn unrecorded() -> u32 {
    1
}

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads one record.
    Read,
    /// Overwrites an existing record.
    Update,
    /// Writes a new record.
    Insert,
    /// Reads records in key order.
    Scan,
    /// Reads a record, then overwrites it.
    ReadModifyWrite,
    /// Deletes a record; only traces do.
    Delete,
}

impl Operation {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Operation; 6] = [
        Operation::Read,
        Operation::Update,
        Operation::Insert,
        Operation::Scan,
        Operation::ReadModifyWrite,
        Operation::Delete,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Update => "update",
            Operation::Insert => "insert",
            Operation::Scan => "scan",
            Operation::ReadModifyWrite => "read_modify_write",
            Operation::Delete => "delete",
        }
    }
}

/// How long scans are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanLength {
    /// Always the length asked for.
    Fixed,
    /// Uniform from 1 to that length, as in YCSB E.
    Uniform,
}

/// The distribution of a workload unless another is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usual {
    Hotspot,
    Zipfian,
    Latest,
}
use Usual::{Hotspot, Latest, Zipfian};

/// The parts that make a whole: a hundred for each percent.
const WHOLE: u16 = 10_000;

/// A named mix of operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    name: &'static str,
    /// Parts of [`WHOLE`] by kind, in the order of [`Operation::ALL`]. No mix has the last kind.
    parts: [u16; 5],
    scans: ScanLength,
    distribution: Usual,
}

const fn mix(name: &'static str, percent: [u16; 5], distribution: Usual) -> Workload {
    let [a, b, c, d, e] = percent;
    Workload {
        name,
        parts: [a * 100, b * 100, c * 100, d * 100, e * 100],
        scans: ScanLength::Fixed,
        distribution,
    }
}

/// HotRAP's four, YCSB's six, and two that measure one thing.
const WORKLOADS: [Workload; 12] = [
    mix("ro", [100, 0, 0, 0, 0], Hotspot),
    mix("rw", [75, 0, 25, 0, 0], Hotspot),
    mix("wh", [50, 0, 50, 0, 0], Hotspot),
    mix("uh", [50, 50, 0, 0, 0], Hotspot),
    mix("a", [50, 50, 0, 0, 0], Zipfian),
    mix("b", [95, 5, 0, 0, 0], Zipfian),
    mix("c", [100, 0, 0, 0, 0], Zipfian),
    mix("d", [95, 0, 5, 0, 0], Latest),
    Workload {
        scans: ScanLength::Uniform,
        ..mix("e", [0, 0, 5, 95, 0], Zipfian)
    },
    mix("f", [50, 0, 0, 0, 50], Zipfian),
    mix("scan", [0, 0, 0, 100, 0], Hotspot),
    mix("write", [0, 100, 0, 0, 0], Hotspot),
];

impl Workload {
    /// Reads only.
    pub const READ_ONLY: Workload = WORKLOADS[0];

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The distribution that it has unless another is given.
    pub fn default_distribution(&self) -> Stages {
        Stages::one(match self.distribution {
            Hotspot => Shape::Hotspot {
                percent: 5.0,
                offset: 0.0,
            },
            Zipfian => Shape::Zipfian {
                theta: LATEST_THETA,
            },
            Latest => Shape::Latest,
        })
    }

    /// The mix of a cluster: reads, updates, and keys that come into its working set as
    /// insertions.
    pub(crate) fn fitted(cluster: &Cluster) -> Self {
        let parts = |share: f64| (share * f64::from(WHOLE)).round() as u16;
        let insert = parts(cluster.entering_share());
        let update = parts(cluster.write_share()).saturating_sub(insert);
        Workload {
            name: "trace-fitted",
            parts: [WHOLE - insert - update, update, insert, 0, 0],
            scans: ScanLength::Fixed,
            distribution: Zipfian,
        }
    }

    /// Whether any operation writes.
    pub fn writes(&self) -> bool {
        self.parts[Operation::Update as usize]
            + self.parts[Operation::Insert as usize]
            + self.parts[Operation::ReadModifyWrite as usize]
            > 0
    }

    /// Whether any operation scans.
    pub fn scans(&self) -> bool {
        self.parts[Operation::Scan as usize] > 0
    }

    /// Draws an operation.
    pub fn choose(&self, rng: &mut impl Rng) -> Operation {
        let mut draw = rng.random_range(0..WHOLE);
        for (operation, parts) in Operation::ALL.into_iter().zip(self.parts) {
            if draw < parts {
                return operation;
            }
            draw -= parts;
        }
        Operation::Read
    }

    /// How many records a scan reads if `length` was asked for.
    pub fn scan_length(&self, rng: &mut impl Rng, length: usize) -> usize {
        match self.scans {
            ScanLength::Fixed => length,
            ScanLength::Uniform => rng.random_range(1..=length.max(1)),
        }
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("ycsb-").unwrap_or(text);
        WORKLOADS
            .into_iter()
            .find(|workload| workload.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
                format!("`{text}` is no workload; there are {}", names.join(", "))
            })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    #[test]
    fn every_mix_adds_up_and_is_found_by_name() {
        for workload in WORKLOADS {
            assert_eq!(workload.parts.iter().sum::<u16>(), WHOLE);
            assert_eq!(workload.name.parse::<Workload>(), Ok(workload));
        }
        assert_eq!("ycsb-e".parse::<Workload>().unwrap().name(), "e");
        let error = "g".parse::<Workload>().unwrap_err();
        assert!(error.contains("ro, rw, wh, uh, a, b"), "{error}");
    }

    #[test]
    fn operations_come_in_the_promised_shares() {
        let mut rng = SmallRng::seed_from_u64(3);
        for (name, operation, share) in [
            ("rw", Operation::Insert, 0.25),
            ("uh", Operation::Update, 0.5),
            ("e", Operation::Scan, 0.95),
            ("f", Operation::ReadModifyWrite, 0.5),
            ("ro", Operation::Read, 1.0),
        ] {
            let workload: Workload = name.parse().unwrap();
            let hits = (0..50_000)
                .filter(|_| workload.choose(&mut rng) == operation)
                .count();
            let found = hits as f64 / 50_000.0;
            assert!((found - share).abs() < 0.01, "{name}: {found}");
        }
    }

    /// Regression: keys with a single access counted among those that come into the working set,
    /// where they never are. A cluster with many of them had up to 1.3 times as many insertions,
    /// and fewer updates, than its table says.
    #[test]
    fn a_fitted_mix_has_the_shares_of_its_cluster() {
        // 90 % reads, and 20 operations for each key: half of the writes bring in new keys.
        let cluster = Cluster {
            reads: 0.9,
            mean_frequency: 20.0,
            one_hit_share: 0.0,
            ..Cluster::built_in("17").unwrap()
        };
        let workload = Workload::fitted(&cluster);
        assert_eq!(workload.parts, [9000, 500, 500, 0, 0]);
        // Two keys in five have only one access.
        let some_once = Cluster {
            one_hit_share: 0.4,
            ..cluster.clone()
        };
        assert_eq!(Workload::fitted(&some_once).parts, [9000, 700, 300, 0, 0]);
        // More keys come than there are writes, so every write brings one in.
        let cluster = Cluster {
            mean_frequency: 2.0,
            ..cluster
        };
        assert_eq!(Workload::fitted(&cluster).parts, [9000, 0, 1000, 0, 0]);
    }

    #[test]
    fn only_ycsb_e_varies_its_scans() {
        let mut rng = SmallRng::seed_from_u64(3);
        let scan: Workload = "scan".parse().unwrap();
        assert_eq!(scan.scan_length(&mut rng, 100), 100);
        let e: Workload = "e".parse().unwrap();
        let lengths: Vec<usize> = (0..2000).map(|_| e.scan_length(&mut rng, 100)).collect();
        assert_eq!(
            (lengths.iter().min(), lengths.iter().max()),
            (Some(&1), Some(&100))
        );
    }

    #[test]
    fn read_only_does_not_write() {
        assert!(!Workload::READ_ONLY.writes());
        assert!("f".parse::<Workload>().unwrap().writes());
    }
}
