//! What every background job of a store has in common, whatever it does.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Weak;

use super::Engine;
use crate::error::Error;
use crate::executor::{Job, Lane, Step};
use crate::metrics::{Activity, Counted};
use crate::sync::Arc;

impl Engine {
    /// Queues `job`, whose processor time counts for `activity`.
    pub(crate) fn spawn(&self, lane: Lane, activity: Activity, job: impl Job + 'static) {
        let job = Counted::new(job, activity, Arc::clone(&self.cpu));
        let engine = Weak::clone(&self.me);
        self.executor.spawn(lane, Box::new(Guarded { engine, job }));
    }
}

/// A job whose panic poisons the store: nobody knows what the job left half done, and those who
/// wait for it must hear of it.
struct Guarded<J> {
    engine: Weak<Engine>,
    job: J,
}

impl<J: Job> Job for Guarded<J> {
    fn step(&mut self) -> Step {
        catch_unwind(AssertUnwindSafe(|| self.job.step())).unwrap_or_else(|panic| {
            if let Some(engine) = self.engine.upgrade() {
                let cause = format!("background work panicked: {}", said(&*panic)).into();
                engine.background.note_poison(&Error::Poisoned { cause });
            }
            // A panic is a bug. The executor decides who else is told.
            resume_unwind(panic)
        })
    }
}

/// The message of `panic`.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it gave no reason")
}
