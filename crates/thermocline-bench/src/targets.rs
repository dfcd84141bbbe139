//! What a store may cost, or how fast it has to be, and how that changes while a run goes on.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use thermocline::Target;

use crate::engine::EngineKind;
use crate::prices::{Prices, dollars};

/// The targets of a run, one after the other. Never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    each: Vec<Target>,
    /// When each is over, since the run began. Empty for a single one that holds to the end.
    ends: Vec<Duration>,
}

impl Targets {
    /// One after the other, each for its time.
    pub(crate) fn timed<const N: usize>(targets: [(Target, Duration); N]) -> Self {
        let ends = targets.iter().scan(Duration::ZERO, |end, (_, length)| {
            *end += *length;
            Some(*end)
        });
        Self {
            ends: ends.collect(),
            each: targets.iter().map(|(target, _)| *target).collect(),
        }
    }

    /// The one that is in force before the run, and when it begins.
    pub(crate) fn first(&self) -> Target {
        self.get(0).unwrap_or_default()
    }

    /// The target of stage `number`.
    pub(crate) fn get(&self, number: usize) -> Option<Target> {
        self.each.get(number).copied()
    }

    /// Whether they change while the run goes on.
    pub(crate) fn change(&self) -> bool {
        self.each.len() > 1
    }

    /// How long all of them hold together, if that is said.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.ends.last().copied()
    }

    /// Number of the one that is in force so many seconds after the run began.
    pub(crate) fn at(&self, seconds: f64) -> usize {
        let is_over = |end: &Duration| end.as_secs_f64() <= seconds;
        let over = self.ends.partition_point(is_over);
        over.min(self.each.len() - 1)
    }
}

/// As [`Target`] is written, each with its time.
impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = Duration::ZERO;
        for (number, target) in self.each.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{target}")?;
            if let Some(end) = self.ends.get(number) {
                let length = humantime::format_duration(*end - before).to_string();
                write!(f, "@{}", length.replace(' ', ""))?;
                before = *end;
            }
        }
        Ok(())
    }
}

/// Flags of what the store is to aim at.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TargetArgs {
    /// What the store may cost, in dollars per GB of keys and values and month (engines tables and
    /// cost only); it takes --price-fast and --price-slow. Several, each with its time, come one
    /// after the other, as in 0.4@120s,0.2@180s, and then the run ends
    #[arg(
        long,
        value_name = "DOLLARS",
        value_parser = of_cost,
        conflicts_with = "latency_target"
    )]
    pub cost_target: Option<Targets>,

    /// How long a point read may take on average, for the least money; else as --cost-target, as in
    /// 2ms@60s,500us@60s
    #[arg(long, value_name = "TIME", value_parser = of_latency)]
    pub latency_target: Option<Targets>,
}

impl TargetArgs {
    /// The flag that is given, and its targets.
    fn given(&self) -> Option<(&'static str, &Targets)> {
        let cost = self.cost_target.as_ref();
        let cost = cost.map(|targets| ("--cost-target", targets));
        let latency = self.latency_target.as_ref();
        cost.or(latency.map(|targets| ("--latency-target", targets)))
    }

    /// How long the targets hold together, if that is said.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.given()?.1.duration()
    }

    /// Checks them against the rest of the plan. What only the store can tell, it does when the
    /// first one is set, before the run; all of them must lie between the prices.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn plan(
        &self,
        engine: &dyn EngineKind,
        prices: Option<&Prices>,
        shapes: usize,
    ) -> Result<Option<Targets>> {
        let Some((flag, targets)) = self.given() else {
            return Ok(None);
        };
        ensure!(
            engine.takes_target(),
            "{flag}: engine `{}` has no target; use --engine tables or --engine cost",
            engine.name()
        );
        let Some(prices) = prices else {
            anyhow::bail!("{flag}: say what the disks cost, with --price-fast and --price-slow");
        };
        let [least, most] = prices.bounds();
        for target in &targets.each {
            if let Target::Cost(dollars) = target {
                ensure!(
                    (least..=most).contains(dollars),
                    "{flag} {dollars}: must be {least} to {most}, which is what the cheapest and \
                     the dearest disk cost"
                );
            }
        }
        ensure!(
            !targets.change() || shapes == 1,
            "{flag}: with several targets, --distribution has one stage; leave out its others"
        );
        Ok(Some(targets.clone()))
    }
}

fn of_cost(text: &str) -> Result<Targets, String> {
    targets(text, |amount| dollars(amount).map(Target::Cost))
}

fn of_latency(text: &str) -> Result<Targets, String> {
    targets(text, |mean| match humantime::parse_duration(mean) {
        Ok(mean) if !mean.is_zero() => Ok(Target::Latency(mean)),
        _ => Err(format!("`{mean}`: a time is wanted, as in 2ms")),
    })
}

fn targets(text: &str, target: impl Fn(&str) -> Result<Target, String>) -> Result<Targets, String> {
    let (mut each, mut ends) = (Vec::new(), Vec::new());
    let mut end = Duration::ZERO;
    for part in text.split(',') {
        let (amount, length) = match part.split_once('@') {
            Some((amount, length)) => (amount, Some(length)),
            None => (part, None),
        };
        each.push(target(amount.trim())?);
        let Some(length) = length else { continue };
        let length = humantime::parse_duration(length).ok();
        let length = length.filter(|length| !length.is_zero());
        let explain = || format!("`{part}`: after `@` comes a time, as in 0.4@120s");
        end = length
            .and_then(|length| end.checked_add(length))
            .ok_or_else(explain)?;
        ends.push(end);
    }
    if each.len() > 1 && ends.len() < each.len() {
        return Err(format!(
            "`{text}`: of several targets, each has its time, as in 0.4@120s,0.2@180s"
        ));
    }
    // A single one may have a time too, after which the run ends.
    Ok(Targets { each, ends })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::End;
    use crate::plan::tests::parse;

    const PRICES: &str = "--price-fast 0.528 --price-slow 0.045";

    fn end(flags: &str) -> End {
        let args = parse(&format!("--engine cost {PRICES} {flags}"));
        args.unwrap().plan().unwrap().end
    }

    #[test]
    fn targets_are_read_and_named() {
        let cost = of_cost("0.4@120s, 0.2@3m").unwrap();
        assert_eq!(cost.to_string(), "cost:0.4@2m,cost:0.2@3m");
        assert_eq!(cost.first(), Target::Cost(0.4));
        let at = [0.0, 119.9, 120.0, 299.0, 1000.0].map(|seconds| cost.at(seconds));
        assert_eq!(at, [0, 0, 1, 1, 1]);
        let latency = of_latency("2ms").unwrap();
        assert_eq!(latency.to_string(), "latency:2ms");
        assert_eq!((latency.at(1e9), latency.change()), (0, false));
        assert_eq!(latency.duration(), None);
    }

    #[test]
    fn a_run_ends_after_its_targets_if_nothing_ends_it_earlier() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let two = "--cost-target 0.4@20s,0.2@30s";
        let of = |ops, duration| End { ops, duration };
        assert_eq!(end(two), of(None, seconds(50)));
        assert_eq!(end(&format!("{two} --duration 10s")), of(None, seconds(10)));
        assert_eq!(end(&format!("{two} --duration 90s")), of(None, seconds(50)));
        assert_eq!(end(&format!("{two} --ops 7")), of(Some(7), seconds(50)));
        assert_eq!(end("--cost-target 0.4"), of(None, seconds(30)));
        assert_eq!(end("--latency-target 2ms@5s"), of(None, seconds(5)));
        let timed = "--cost-target 0.4 --distribution uniform@1s,latest@2s";
        assert_eq!(end(timed), of(None, seconds(3)));
    }

    #[test]
    fn targets_that_mean_nothing_are_refused() {
        for (flags, expected) in [
            ("--cost-target 0", "above 0"),
            ("--cost-target 0.4@1s,0.2", "each has its time"),
            ("--cost-target 0.4@0s", "comes a time"),
            ("--cost-target 0.4@soon", "comes a time"),
            ("--latency-target 0.4", "as in 2ms"),
            ("--latency-target 0s", "as in 2ms"),
            ("--latency-target 1ms --cost-target 1", "cannot be used"),
        ] {
            let error = parse(flags).unwrap_err();
            assert!(error.contains(expected), "{flags}: {error}");
        }
        let target = "--cost-target 0.4";
        for (flags, expected) in [
            (
                format!("--engine hotrap {PRICES} {target}"),
                "--engine tables",
            ),
            (format!("--engine fast-only {PRICES} {target}"), "no target"),
            (format!("--engine cost {target}"), "--price-fast"),
            (
                format!("--engine cost {PRICES} --cost-target 0.4@1s,0.04@1s"),
                "0.04: must be 0.045 to 0.528",
            ),
            (
                format!("--engine tables {PRICES} --cost-target 0.6"),
                "must be 0.045 to 0.528",
            ),
            (
                format!(
                    "--engine cost {PRICES} --cost-target 0.4@1s,0.2@1s --distribution uniform,latest"
                ),
                "has one stage",
            ),
        ] {
            let error = parse(&flags).unwrap().plan().err().unwrap().to_string();
            assert!(error.contains(expected), "{flags}: {error}");
        }
    }
}
