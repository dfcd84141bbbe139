use super::*;

/// A store in which a read costs `cost` of the slow disk, if records give so much to tables, at so
/// many seconds. Changing sides costs as much as some reads.
struct Play<'a> {
    trial: Trial,
    cost: &'a dyn Fn(f64, f64) -> f64,
    counted: Counted,
    second: u32,
    changes: u32,
    lies: f64,
}

const GETS: u64 = 1000;

impl<'a> Play<'a> {
    fn new(cost: &'a dyn Fn(f64, f64) -> f64) -> Self {
        Self {
            trial: Trial::default(),
            cost,
            counted: Counted::default(),
            second: 0,
            changes: 0,
            lies: 0.0,
        }
    }

    fn run(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.second += 1;
            let (now, before) = (f64::from(self.second), self.trial.given());
            // What lies where it is to lie follows within five seconds, and is work meanwhile.
            let distance = self.trial.given() - self.lies;
            self.lies += distance / 5.0;
            let slow = (self.cost)(self.lies, now) * GETS as f64;
            // A hundredth more or less, by chance.
            let noise = 0.99 + f64::from(self.second * 7919 % 201) / 1e4;
            self.counted.gets += GETS;
            self.counted.slow_reads += (slow * noise) as u64;
            self.counted.other_work += (distance.abs() * 400.0) as u64;
            self.trial.observe(now, self.counted, 0.8);
            self.changes += u32::from(self.trial.given() != before);
        }
    }
}

#[test]
fn where_records_are_best_trials_fail_and_become_rare() {
    // Each byte of the hot set that does not lie there costs reads.
    let cost = |given: f64, _: f64| 0.2 + 0.8 * given;
    let mut play = Play::new(&cost);
    play.run(600);
    assert!(play.trial.given() <= STEP, "{}", play.trial.given());
    let early = play.changes;
    play.run(3000);
    assert!(play.trial.given() <= STEP, "{}", play.trial.given());
    // A trial is two changes. The longest rest is ten minutes.
    assert!(
        play.changes - early <= 2 * 6,
        "{} after {early}",
        play.changes
    );
}

#[test]
fn where_tables_are_better_they_have_the_room_within_minutes() {
    let cost = |given: f64, _: f64| 0.9 - 0.8 * given;
    let mut play = Play::new(&cost);
    play.run(600);
    assert!(play.trial.given() > 0.7, "{}", play.trial.given());
}

/// Half of the room is best for tables: less costs more on either side.
#[test]
fn what_is_best_in_between_is_found_and_kept() {
    let cost = |given: f64, _: f64| 0.2 + 1.6 * (given - 0.4).abs();
    let mut play = Play::new(&cost);
    play.run(900);
    let before = play.changes;
    let (mut least, mut most) = (1.0_f64, 0.0_f64);
    for _ in 0..3600 {
        play.run(1);
        least = least.min(play.trial.given());
        most = most.max(play.trial.given());
    }
    assert!(
        least > 0.4 - 2.5 * STEP && most < 0.4 + 2.5 * STEP,
        "{least} to {most}"
    );
    assert!(play.changes - before <= 2 * 10, "{}", play.changes - before);
}

/// A hotspot that moves makes reads dearer for a while, whatever is tried, and is no reason to run
/// to one side.
#[test]
fn moving_hotspots_do_not_make_it_swing() {
    let cost = |given: f64, now: f64| {
        let since_moved = now % 97.0;
        let cold = 0.6 * (-since_moved / 10.0).exp();
        0.2 + 0.8 * given + cold
    };
    let mut play = Play::new(&cost);
    let mut most = 0.0_f64;
    for _ in 0..7200 {
        play.run(1);
        most = most.max(play.trial.given());
    }
    assert!(most <= 4.0 * STEP, "{most}");
    assert!(play.trial.given() <= 2.0 * STEP, "{}", play.trial.given());
}

#[test]
fn few_reads_prove_nothing() {
    let cost = |_: f64, _: f64| 0.9;
    let mut play = Play::new(&cost);
    for second in 0..3600 {
        let counted = Counted {
            gets: second,
            slow_reads: second,
            other_work: 0,
        };
        play.trial.observe(second as f64, counted, 0.8);
        assert_eq!(play.trial.given(), 0.0);
    }
}

#[test]
fn nothing_is_tried_where_records_have_nothing_to_give() {
    let cost = |_: f64, _: f64| 0.9;
    let mut play = Play::new(&cost);
    for second in 1..1000 {
        let counted = Counted {
            gets: second * 1000,
            slow_reads: second * 900,
            other_work: 0,
        };
        play.trial.observe(second as f64, counted, 0.0);
        assert_eq!(play.trial.given(), 0.0);
    }
}
