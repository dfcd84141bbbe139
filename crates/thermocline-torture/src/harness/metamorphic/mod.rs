//! One random script, many option sets. Whatever the options, the executor and the moment, the
//! store answers as an ordered map would (I1, I2, I3). Every set is compared with the same map, so
//! all of them give the same answers.

mod coverage;
mod model;
mod option_sets;
mod script;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Harness;
use crate::cases::{self, Plan};
use crate::verdict::{Tally, Verdict, Violation};

use script::{Driver, Script};

pub(crate) const HARNESS: Harness = Harness {
    name: "metamorphic",
    about: "a random script has the same answers under every option set",
    small: 6,
    long: 2_000,
    run,
};

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case).having_reached(HARNESS.small, coverage::REACHED)
}

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    // A few keys are overwritten again and again; many are spread over all levels.
    let keys = [40, 400, 3000][rng.random_range(0..3)];
    let steps = rng.random_range(100..500);
    let sets = option_sets::drawn(seed)?;
    for (number, (name, options)) in sets.all.into_iter().enumerate() {
        // What threads do does not follow from the seed. A part of the sets has them all the same.
        let driver = match (seed as usize + number) % 4 {
            0 => Driver::Threads,
            _ => Driver::Stepped,
        };
        let script = Script {
            options,
            driver,
            seed,
            keys,
            steps,
        };
        let at = |v: Violation| {
            let message = format!("{name}, {keys} keys, {driver:?}: {}", v.message);
            Violation::new(v.promise, message)
        };
        script.run(tally).map_err(at)?;
        tally.add("scripts under an option set", 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_set_answers_like_an_ordered_map() {
        let verdict = run(&Plan::new(1, HARNESS.small));
        assert!(verdict.is_clean(), "{verdict}");
        let sets = verdict.tally.get("scripts under an option set");
        let each = if cfg!(feature = "flash-cache") {
            18
        } else {
            17
        };
        assert!(sets >= each * HARNESS.small, "{verdict}");
    }
}
