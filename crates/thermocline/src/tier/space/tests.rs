//! Reservations against each other.

use crate::promotion::tests::scene::Scene;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

/// What was refused counted for a moment, as it was added before it was looked at: a large job that
/// found no room made a flush that had room fail.
#[test]
fn a_refused_reservation_takes_no_other_ones_room() {
    let scene = Scene::new();
    let tier = Arc::clone(scene.engine().fast());
    let ended = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                assert!(tier.reserve(1 << 40).is_err());
            }
        });
        let refused = (0..20_000).filter(|_| tier.reserve(1024).is_err()).count();
        ended.store(true, Ordering::Relaxed);
        refused
    });
    assert_eq!(refused, 0);
    assert_eq!((tier.reserved_bytes(), tier.in_flight()), (0, 0));
}
