//! Techniques of placement by hotness, turned off one by one to see what each is worth.

use serde::{Deserialize, Serialize};
use thermocline::{HotRapOptions, Switches, TableSwitches};

/// How accesses become a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scoring {
    /// Exponential smoothing over time slices.
    #[default]
    Smoothing,
    /// Second chance: accessed since the last eviction, or not.
    Clock,
    /// Accessed last is best.
    Lru,
}

/// What engine `hotrap` does without.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, clap::Args)]
#[command(next_help_heading = "Experiments with engine hotrap")]
pub struct Experiments {
    /// Compactions to the slow tier take hot records along
    #[arg(long)]
    pub no_retention: bool,

    /// Every record that is read from the slow tier is promoted, hot or not
    #[arg(long)]
    pub no_hotness_check: bool,

    /// Compactions promote nothing
    #[arg(long)]
    pub no_promotion_by_compaction: bool,

    /// The promotion cache is never flushed
    #[arg(long)]
    pub no_promotion_by_flush: bool,

    /// Nothing goes to the slow tier past the last fast level
    #[arg(long)]
    #[serde(default)]
    pub no_bypass: bool,

    /// Nothing is copied into room that the fast tier has no use for
    #[arg(long)]
    #[serde(default)]
    pub no_copies: bool,

    /// The limits of the hot set stay as they are at first
    #[arg(long)]
    pub no_auto_tuning: bool,

    /// How accesses become a score
    #[arg(long, value_enum, default_value = "smoothing")]
    pub scoring: Scoring,

    /// Limit the hot set at first to this share of the fast tier, 0.05 to 0.7 [default: 0.7]
    #[arg(long, value_parser = share, value_name = "SHARE")]
    #[serde(default)]
    pub hot_set: Option<f64>,

    /// Of engine tables: the part of the money by which a table has to be among the hottest before
    /// it comes up, 0 to 0.5 [default: 0.02]
    #[arg(long, value_parser = resistance, value_name = "PART")]
    #[serde(default)]
    pub resistance: Option<f64>,

    /// Of engine tables: filters and indexes that memory does not hold stay on the slow tier alone
    #[arg(long)]
    #[serde(default)]
    pub no_tails: bool,

    /// Of engine tables: a second counts for little however young a table is, as in Mutant's paper
    #[arg(long)]
    #[serde(default)]
    pub plain_cooling: bool,
}

/// A part of the money.
fn resistance(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok();
    let part = part.filter(|part| (0.0..=0.5).contains(part));
    part.ok_or_else(|| "a part of the money is wanted, 0 to 0.5".to_owned())
}

/// A limit of the hot set, within the bounds in which the engine keeps it.
fn share(text: &str) -> Result<f64, String> {
    let usual = HotRapOptions::default();
    let (least, most) = (usual.hot_set_min, usual.hot_set_max);
    // What is not a number is in no range.
    let share = text.parse::<f64>().ok();
    let share = share.filter(|share| (least..=most).contains(share));
    share.ok_or_else(|| format!("a share of the fast tier is wanted, {least} to {most}"))
}

impl Experiments {
    /// Those of placement by table.
    pub(crate) fn of_tables(&self) -> TableSwitches {
        let usual = TableSwitches::default();
        TableSwitches {
            resistance: self.resistance.unwrap_or(usual.resistance),
            tails: !self.no_tails,
            plain_cooling: self.plain_cooling,
        }
    }

    /// Whether no switches are set but those of placement by table.
    pub(crate) fn are_of_tables(&self) -> bool {
        let others = Self {
            resistance: None,
            no_tails: false,
            plain_cooling: false,
            ..*self
        };
        others == Self::default()
    }

    /// Whether a switch of placement by table is set.
    pub(crate) fn has_of_tables(&self) -> bool {
        self.of_tables() != TableSwitches::default()
    }

    /// The switches of placement by hotness.
    pub(crate) fn switches(&self) -> Switches {
        Switches {
            retention: !self.no_retention,
            hotness_check: !self.no_hotness_check,
            promotion_by_compaction: !self.no_promotion_by_compaction,
            promotion_by_flush: !self.no_promotion_by_flush,
            bypass: !self.no_bypass,
            copies: !self.no_copies,
            auto_tuning: !self.no_auto_tuning,
            scoring: match self.scoring {
                Scoring::Smoothing => thermocline::Scoring::Smoothing,
                Scoring::Clock => thermocline::Scoring::Clock,
                Scoring::Lru => thermocline::Scoring::Lru,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::parse;

    #[test]
    fn without_a_flag_nothing_is_off() {
        assert_eq!(Experiments::default().switches(), Switches::default());
    }

    #[test]
    fn each_flag_turns_its_technique_off() {
        type Is = fn(&Switches) -> bool;
        let cases: [(&str, Is); 8] = [
            ("--no-retention", |s| !s.retention),
            ("--no-hotness-check", |s| !s.hotness_check),
            ("--no-promotion-by-compaction", |s| {
                !s.promotion_by_compaction
            }),
            ("--no-promotion-by-flush", |s| !s.promotion_by_flush),
            ("--no-bypass", |s| !s.bypass),
            ("--no-copies", |s| !s.copies),
            ("--no-auto-tuning", |s| !s.auto_tuning),
            ("--scoring lru", |s| s.scoring == thermocline::Scoring::Lru),
        ];
        for (flag, is_off) in cases {
            let plan = parse(flag).unwrap().plan().unwrap();
            let switches = plan.settings.experiments.switches();
            let off: Vec<bool> = cases.iter().map(|(_, is_off)| is_off(&switches)).collect();
            assert!(is_off(&switches), "{flag}");
            assert_eq!(off.iter().filter(|off| **off).count(), 1, "{flag}");
        }
    }

    #[test]
    fn switches_of_tables_are_for_engine_tables() {
        let flags = "--resistance 0.1 --no-tails --plain-cooling";
        let plan = parse(&format!("--engine tables {flags}"))
            .unwrap()
            .plan()
            .unwrap();
        let set = TableSwitches {
            resistance: 0.1,
            tails: false,
            plain_cooling: true,
        };
        assert_eq!(plan.settings.experiments.of_tables(), set);
        assert_eq!(Experiments::default().of_tables(), TableSwitches::default());
        for wrong in [
            format!("--engine hotrap {flags}"),
            "--engine tables --no-bypass".to_owned(),
            "--engine tables --resistance 0.6".to_owned(),
        ] {
            let refused = parse(&wrong).and_then(|args| args.plan().map_err(|e| e.to_string()));
            assert!(refused.is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_hot_sets_limit_is_set_and_nothing_turned_off() {
        let experiments = |flags: &str| parse(flags).unwrap().plan().unwrap().settings.experiments;
        let limited = experiments("--hot-set 0.55");
        assert_eq!(limited.hot_set, Some(0.55));
        assert_eq!(limited.switches(), Switches::default());
        assert_eq!(experiments("").hot_set, None);
        assert_eq!(experiments("--hot-set 0.05").hot_set, Some(0.05));
        assert_eq!(experiments("--hot-set 0.7").hot_set, Some(0.7));
        for wrong in ["0.04", "0.71", "NaN", "half"] {
            let error = parse(&format!("--hot-set {wrong}")).unwrap_err();
            let names = |what: &str| error.contains(what);
            assert!(names("--hot-set") && names("0.05 to 0.7"), "{error}");
        }
    }

    /// Results and kept states of builds without the flag have no field for it.
    #[test]
    fn settings_tell_the_hot_sets_limit_and_are_read_without_it() {
        let limited = Experiments {
            hot_set: Some(0.55),
            ..Experiments::default()
        };
        let mut told = serde_json::to_value(limited).unwrap();
        assert_eq!(told["hot_set"], 0.55);
        told.as_object_mut().unwrap().remove("hot_set");
        let read: Experiments = serde_json::from_value(told).unwrap();
        assert_eq!(read, Experiments::default());
    }

    #[test]
    fn engines_without_the_techniques_refuse_the_flags() {
        for flag in ["--no-retention", "--hot-set 0.55"] {
            let args = parse(&format!("--engine leveled {flag}")).unwrap();
            let error = args.plan().err().unwrap().to_string();
            assert!(error.contains("engine hotrap only"), "{error}");
        }
    }
}
