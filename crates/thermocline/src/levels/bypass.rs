//! Past level f: which records of the level above go straight to the slow tier.

use crate::key::MAX_SEQ;
use crate::metrics::Purpose;
use crate::sync::Arc;
use crate::table::{HashedKey, Located, ReadTrace};
use crate::version::TableHandle;

/// The part of level f that a *bypass* passes by. A bypass is a crossing whose input comes from the
/// level above f.
///
/// Nearly all of a well filled level f is hot. What comes into it in the ordinary way makes as much
/// leave it again, and each time the hot part of that is written anew. Most new records are cold
/// and have no older version there: these may go below f at once. Records of which level f may have
/// a version stay where they are, or an older version would lie above a newer one (I1). The job's
/// locks keep others from writing to level f within its keys, so what is true when it begins is
/// still true when it is installed (I11).
#[derive(Debug, Clone)]
pub(crate) struct Bypass {
    /// Level f's tables that meet the hull, in key order.
    pub(crate) tables: Vec<Arc<TableHandle>>,
}

impl Bypass {
    /// Whether level f may have a version of `key`; `false` is certain.
    pub(crate) fn may_hold(&self, key: &[u8]) -> bool {
        let at = self
            .tables
            .partition_point(|table| &table.meta.range.last[..] < key);
        let table = self.tables.get(at).filter(|t| t.meta.range.contains(key));
        table.is_some_and(|table| {
            let mut trace = ReadTrace::new(Purpose::Compaction);
            // A filter that cannot be read excludes nothing; the table's own compaction reports it.
            let located = table
                .table()
                .and_then(|t| t.locate(&HashedKey::new(key), MAX_SEQ, &mut trace));
            !matches!(located, Ok(Located::Absent))
        })
    }
}

/// What speaks for passing level f by, and against it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BypassWorth {
    /// Of what the level above f holds, the part that could pass of late, 0 to 1.
    pub(crate) fresh: f64,
    /// p: the part of level f's tables that crossings bring down.
    pub(crate) cold: f64,
}

/// Bytes that a job of `input` bytes meets on level f and on the first slow level, and what these
/// hold in all. For level f that is what it is to hold. A backlog above takes room from level f:
/// measured by what is left of it, all that is new would go past it, and it would stay that small.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met {
    pub(crate) input: u64,
    pub(crate) on_f: u64,
    pub(crate) below: u64,
    pub(crate) all_of_f: u64,
    pub(crate) all_below: u64,
    /// Whether level f holds about what it has room for.
    pub(crate) is_full: bool,
}

impl BypassWorth {
    /// Whether a bypass writes less than it saves. In the ordinary way, each byte is written into
    /// level f with what it meets there. It makes another byte leave level f, which is written with
    /// what is hot beside it, and with what it meets below. A bypass saves that for the fresh part
    /// of its input, and writes all of its input with what that meets below. While level f has room
    /// it is to be filled, whatever that costs.
    pub(crate) fn pays(&self, met: Met) -> bool {
        let per = |bytes: u64, of: u64| bytes as f64 / of.max(1) as f64;
        let ordinary =
            1.0 + per(met.on_f, met.input) + (1.0 + per(met.all_below, met.all_of_f)) / self.cold;
        met.is_full && 1.0 + per(met.below, met.input) < self.fresh * ordinary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A level above f of a twentieth of it, and a slow level as large as f.
    const MET: Met = Met {
        input: 10,
        on_f: 100,
        below: 100,
        all_of_f: 1000,
        all_below: 1000,
        is_full: true,
    };

    #[test]
    fn a_bypass_pays_where_level_f_is_hot_and_most_is_new() {
        let pays = |fresh, cold| BypassWorth { fresh, cold }.pays(MET);
        // By the ordinary way 1 + 10 + 2 / p, past level f 1 + 10.
        assert!(pays(0.6, 0.25) && !pays(0.5, 0.25), "19 bytes");
        assert!(pays(0.9, 1.0) && !pays(0.8, 1.0), "13 bytes");
        assert!(!pays(0.0, 0.25), "nothing is new");
    }

    #[test]
    fn a_bypass_does_not_pay_where_level_f_has_room() {
        let worth = BypassWorth {
            fresh: 1.0,
            cold: 0.25,
        };
        let met = Met {
            is_full: false,
            ..MET
        };
        assert!(!worth.pays(met));
    }

    #[test]
    fn a_bypass_does_not_pay_where_the_slow_level_is_much_larger() {
        let worth = BypassWorth {
            fresh: 1.0,
            cold: 1.0,
        };
        let met = Met {
            below: 1000,
            all_below: 10_000,
            ..MET
        };
        assert!(!worth.pays(met), "22 bytes against 101");
    }
}
