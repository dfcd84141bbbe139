//! Places in L0 that promotions by flush hold while their tables are written (I2).

/// Epochs reserved in L0 of one keyspace, and how far its compactions have got.
///
/// A promoted record may be older than what a later flush brings, so its table must not come into
/// L0 above a table that a compaction has taken down: the newer version would then lie
/// below the older one (I1). A reservation is *voidable*: compactions prefer to stay below it, but
/// never wait for it, and one that goes past it ends it.
#[derive(Debug, Default)]
pub(crate) struct L0Places {
    /// Ascending, since epochs are.
    held: Vec<u64>,
    /// The epoch whose table is being installed: it cannot be voided any more.
    installing: Option<u64>,
    /// The highest epoch of any L0 table that a compaction has taken.
    picked: u64,
}

impl L0Places {
    pub(crate) fn reserve(&mut self, epoch: u64) {
        self.held.push(epoch);
    }

    pub(crate) fn release(&mut self, epoch: u64) {
        self.held.retain(|held| *held != epoch);
        if self.installing == Some(epoch) {
            self.installing = None;
        }
    }

    /// Whether the table of `epoch` may be installed. If so, no compaction goes past it until
    /// it is released.
    pub(crate) fn begin_install(&mut self, epoch: u64) -> bool {
        let stands = self.picked < epoch;
        if stands {
            self.installing = Some(epoch);
        }
        stands
    }

    /// Whether a table is being installed.
    pub(crate) fn is_installing(&self) -> bool {
        self.installing.is_some()
    }

    /// The epoch that compactions of L0 stay below: always below one that is being installed, and
    /// below the oldest reservation unless they are `urgent`.
    pub(crate) fn limit(&self, urgent: bool) -> u64 {
        let held = self.held.first().copied().filter(|_| !urgent);
        held.into_iter()
            .chain(self.installing)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Whether a compaction may still take an L0 table of `epoch`: since it was picked, a table may
    /// have begun to come in below.
    pub(crate) fn admits(&self, epoch: u64) -> bool {
        self.installing.is_none_or(|installing| epoch < installing)
    }

    /// Notes that a compaction has taken an L0 table of `epoch`.
    pub(crate) fn picked(&mut self, epoch: u64) {
        self.picked = self.picked.max(epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_stands_until_a_compaction_has_gone_past_it() {
        let mut l0_places = L0Places::default();
        l0_places.reserve(5);
        l0_places.picked(4);
        assert!(l0_places.begin_install(5));
        l0_places.release(5);
        l0_places.reserve(7);
        l0_places.picked(8);
        assert!(!l0_places.begin_install(7), "8 has gone down already");
        assert!(!l0_places.is_installing());
    }

    #[test]
    fn compactions_stay_below_reservations_unless_that_is_urgent() {
        let mut l0_places = L0Places::default();
        assert_eq!(l0_places.limit(false), u64::MAX);
        l0_places.reserve(5);
        l0_places.reserve(6);
        assert_eq!(l0_places.limit(false), 5);
        assert_eq!(l0_places.limit(true), u64::MAX);
        assert!(l0_places.begin_install(6));
        assert_eq!(
            l0_places.limit(true),
            6,
            "never past one that is being installed"
        );
        l0_places.release(5);
        l0_places.release(6);
        assert_eq!(l0_places.limit(true), u64::MAX);
    }
}
