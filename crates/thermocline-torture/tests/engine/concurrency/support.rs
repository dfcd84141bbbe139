//! What these tests share.

use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use thermocline::storage::Medium;
use thermocline::{Db, Options, Points};

/// A store whose named points the test sets.
pub(crate) fn open_with_points(options: &Options, medium: &Arc<dyn Medium>) -> (Db, Points) {
    let points = Points::default();
    let mut builder = Db::builder(options.clone()).points(points.clone());
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(medium));
    }
    (builder.open().unwrap(), points)
}

/// The store, for the actions of its own points. The actions hold a handle, so a test clears its
/// points before it ends.
pub(crate) type Slot = Arc<OnceLock<Db>>;

/// Makes `call` on a thread of its own, and returns just before the call is made. Only from then on
/// does time show that the call waits: on a busy machine it may take long until the thread begins.
pub(crate) fn begin(call: impl FnOnce() + Send + 'static) {
    let (says, said) = mpsc::channel();
    thread::spawn(move || {
        let _ = says.send(());
        call();
    });
    said.recv_timeout(LONG).unwrap();
}

/// How long a test waits for what must not happen, and how long it waits at most for what must
/// happen.
pub(crate) const A_MOMENT: std::time::Duration = std::time::Duration::from_millis(100);
pub(crate) const LONG: std::time::Duration = std::time::Duration::from_secs(30);
