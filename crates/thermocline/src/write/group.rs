//! The queue of group commit: whoever finds no leader leads, and leads for all that wait.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::sync::{Arc, Condvar, Mutex, yield_now};

/// Somebody in the queue, who leaves it with an outcome.
pub(crate) trait Member {
    /// What the leader of its group gives it.
    type Outcome;

    /// The outcome, once the leader has set it.
    fn outcome(&self) -> Option<Self::Outcome>;
}

/// Members that wait for a group, and whether somebody leads one.
#[derive(Debug)]
pub(crate) struct Groups<M> {
    queue: Mutex<Queue<M>>,
    turn: Condvar,
}

#[derive(Debug)]
struct Queue<M> {
    waiting: Vec<Arc<M>>,
    leading: bool,
}

impl<M> Default for Groups<M> {
    fn default() -> Self {
        let queue = Queue {
            waiting: Vec::new(),
            leading: false,
        };
        Self {
            queue: Mutex::new(queue),
            turn: Condvar::new(),
        }
    }
}

impl<M: Member> Groups<M> {
    /// Queues `member` and returns its outcome. Whoever finds no leader calls `lead` for all that
    /// wait, in their order, itself among them. `lead` sets the outcome of each, even if it panics.
    /// One group is led at a time. Before it begins, the leader lets others run for as long as
    /// `gather` is true for the number that waits.
    pub(crate) fn join(
        &self,
        member: Arc<M>,
        mut gather: impl FnMut(usize) -> bool,
        mut lead: impl FnMut(&[Arc<M>]),
    ) -> M::Outcome {
        let mut queue = self.queue.lock();
        queue.waiting.push(Arc::clone(&member));
        loop {
            if let Some(outcome) = member.outcome() {
                return outcome;
            }
            if queue.leading {
                queue = self.turn.wait(queue);
                continue;
            }
            queue.leading = true;
            while gather(queue.waiting.len()) {
                drop(queue);
                yield_now();
                queue = self.queue.lock();
            }
            let group = std::mem::take(&mut queue.waiting);
            drop(queue);
            // The others must not wait for a leader that is gone.
            let led = catch_unwind(AssertUnwindSafe(|| lead(&group)));
            queue = self.queue.lock();
            queue.leading = false;
            if group.len() > 1 || !queue.waiting.is_empty() {
                self.turn.notify_all();
            }
            if let Err(panic) = led {
                drop(queue);
                resume_unwind(panic);
            }
        }
    }
}

/// `RUSTFLAGS="--cfg thermocline_shuttle" cargo test -p thermocline --lib model`
#[cfg(all(test, thermocline_shuttle))]
mod model {
    use std::sync::OnceLock;

    use super::*;
    use crate::sync::atomic::{AtomicBool, Ordering};

    const THREADS: usize = 4;
    const WRITES: usize = 2;

    /// A write that learns its number in the log, and the number of its group.
    #[derive(Debug, Default)]
    struct Write(OnceLock<(usize, usize)>);

    impl Member for Write {
        type Outcome = (usize, usize);

        fn outcome(&self) -> Option<(usize, usize)> {
            self.0.get().copied()
        }
    }

    /// Everything that a leader touches; the model checks that one does so at a time.
    #[derive(Default)]
    struct Log {
        groups: Groups<Write>,
        leading: AtomicBool,
        /// For each write in the log, its group.
        written: Mutex<Vec<usize>>,
    }

    impl Log {
        fn write(&self) -> (usize, usize) {
            let mut looks = 0..2;
            // Gathers a little, so that others come while somebody leads already.
            self.groups.join(
                Arc::default(),
                |waiting| waiting < 2 && looks.next().is_some(),
                |group| {
                    assert!(!self.leading.swap(true, Ordering::SeqCst), "two leaders");
                    let number = self.written.lock().last().map_or(0, |last| last + 1);
                    for write in group {
                        shuttle::thread::yield_now();
                        let mut written = self.written.lock();
                        written.push(number);
                        write.0.set((written.len(), number)).unwrap();
                    }
                    self.leading.store(false, Ordering::SeqCst);
                },
            )
        }
    }

    /// Every writer gets an outcome (a lost wake-up would be a deadlock, which the checker sees).
    /// Numbers are given out once, and each writer's are in the order of its writes. Groups stay
    /// whole.
    fn writers_come_and_go() {
        let log = Arc::new(Log::default());
        let writers: Vec<_> = (0..THREADS)
            .map(|_| {
                let log = Arc::clone(&log);
                shuttle::thread::spawn(move || (0..WRITES).map(|_| log.write()).collect::<Vec<_>>())
            })
            .collect();
        let mut outcomes = Vec::new();
        for writer in writers {
            let own = writer.join().unwrap();
            assert!(own.is_sorted(), "a writer's later write comes later");
            outcomes.extend(own);
        }
        outcomes.sort_unstable();
        let numbers: Vec<usize> = outcomes.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=THREADS * WRITES).collect::<Vec<_>>());
        let written = log.written.lock();
        assert!(written.is_sorted(), "groups do not interleave: {written:?}");
        assert!(outcomes.iter().map(|(_, group)| group).eq(written.iter()));
    }

    #[test]
    fn model_under_random_schedules() {
        shuttle::check_random(writers_come_and_go, 3000);
    }

    #[test]
    fn model_under_few_preemptions() {
        shuttle::check_pct(writers_come_and_go, 3000, 3);
    }
}

#[cfg(all(test, not(thermocline_shuttle)))]
mod tests {
    use std::sync::{OnceLock, mpsc};
    use std::time::Duration;

    use super::*;

    #[derive(Debug, Default)]
    struct Write(OnceLock<()>);

    impl Member for Write {
        type Outcome = ();

        fn outcome(&self) -> Option<()> {
            self.0.get().copied()
        }
    }

    /// A leader that panicked stayed the leader: whoever waited for its turn waited for ever.
    #[test]
    fn a_leader_that_panics_leaves_the_turn_to_the_next() {
        let groups: Arc<Groups<Write>> = Arc::default();
        let (ended, ends) = mpsc::channel();
        let next = Arc::clone(&groups);
        let led = std::thread::spawn({
            let groups = Arc::clone(&groups);
            move || {
                let lead = |_: &[Arc<Write>]| {
                    let (next, ended) = (Arc::clone(&next), ended.clone());
                    std::thread::spawn(move || {
                        let lead =
                            |group: &[Arc<Write>]| group.iter().for_each(|w| w.0.set(()).unwrap());
                        next.join(Arc::default(), |_| false, lead);
                        ended.send(()).unwrap();
                    });
                    while groups.queue.lock().waiting.is_empty() {
                        std::thread::yield_now();
                    }
                    panic!("planted");
                };
                groups.join(Arc::default(), |_| false, lead);
            }
        });
        assert!(led.join().is_err(), "the panic is its own");
        ends.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
