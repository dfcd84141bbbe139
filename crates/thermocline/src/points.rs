//! Named points: places in the code where a test may stop, fail or kill the process.
//!
//! A point costs nothing in a release build. Each store has its own [`Points`], so that
//! tests running side by side do not meet.

#[cfg(debug_assertions)]
use std::collections::HashMap;
#[cfg(debug_assertions)]
use std::sync::{Arc, Mutex};

use crate::error::Result;

/// What runs when a named point is reached; an error it returns is the point's error.
#[cfg(debug_assertions)]
type PointAction = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// What runs at every point, with its name.
#[cfg(debug_assertions)]
type Watch = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The actions hung on a store's named points. Empty, and without size, in a release build.
#[derive(Clone, Default)]
pub struct Points {
    #[cfg(debug_assertions)]
    actions: Arc<Mutex<HashMap<&'static str, PointAction>>>,
    #[cfg(debug_assertions)]
    watch: Option<Watch>,
}

impl std::fmt::Debug for Points {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Points")
    }
}

#[cfg(debug_assertions)]
impl Points {
    /// Hangs `action` on the point `name`, in place of any other.
    pub fn set(&self, name: &'static str, action: impl Fn() -> Result<()> + Send + Sync + 'static) {
        let mut actions = self.actions.lock().unwrap_or_else(|e| e.into_inner());
        actions.insert(name, Arc::new(action));
    }

    /// Points that tell `watch` each time one is reached, besides running the actions hung on them:
    /// for tests that count points, or end the process at one of them.
    pub fn watched(watch: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self {
            watch: Some(Arc::new(watch)),
            ..Self::default()
        }
    }

    /// Takes the action off the point `name`.
    pub fn clear(&self, name: &'static str) {
        let mut actions = self.actions.lock().unwrap_or_else(|e| e.into_inner());
        actions.remove(name);
    }

    pub(crate) fn hit(&self, name: &'static str) -> Result<()> {
        if let Some(watch) = &self.watch {
            watch(name);
        }
        let action = {
            let actions = self.actions.lock().unwrap_or_else(|e| e.into_inner());
            actions.get(name).cloned()
        };
        match action {
            Some(action) => action(),
            None => Ok(()),
        }
    }
}

/// Without debug assertions no point is ever reached.
#[cfg(not(debug_assertions))]
impl Points {
    /// Does nothing in this build.
    pub fn set(&self, _: &'static str, _: impl Fn() -> Result<()> + Send + Sync + 'static) {}

    /// Does nothing in this build: no point is told.
    pub fn watched(_: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self::default()
    }

    /// Does nothing in this build.
    pub fn clear(&self, _: &'static str) {}
}

/// Marks a named point: `point!(points, "flush.before_edit")?`. Always a `Result<()>`. Where
/// nothing may fail any more, `let _: Result<()> = point!(…)` marks a place at which a process may
/// end.
macro_rules! point {
    ($points:expr, $name:literal) => {{
        #[cfg(debug_assertions)]
        {
            $points.hit($name)
        }
        #[cfg(not(debug_assertions))]
        {
            let _ = &$points;
            $crate::error::Result::<()>::Ok(())
        }
    }};
}
pub(crate) use point;
