//! What filling a store took.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::accounts::{ByActivity, ByDisk, Io};
use crate::compactions::LevelCompactions;
use crate::run::Loading;

/// What loading took, until background work had ended. `null` if the state was kept from an earlier
/// benchmark, or if the engine does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoadingResult {
    /// Compactions by their levels.
    pub load_compactions: Option<Vec<LevelCompactions>>,
    /// Seconds that writers were held back, of all threads.
    pub load_stall_seconds: Option<f64>,
    /// The same by reason.
    pub load_stall_by_reason: Option<BTreeMap<&'static str, f64>>,
    /// Processor time by activity, in seconds; that of the clients is in `other`.
    pub load_cpu_by_activity: Option<ByActivity<f64>>,
    /// I/O of each disk by activity.
    pub load_io_by_activity: Option<ByDisk<ByActivity<Io>>>,
}

impl LoadingResult {
    pub(crate) fn new(loading: Loading) -> Self {
        let counters = loading.counters;
        Self {
            load_compactions: counters.compactions,
            load_stall_seconds: counters.stall_seconds,
            load_stall_by_reason: counters.stall_by_reason,
            load_cpu_by_activity: Some(loading.cpu),
            load_io_by_activity: counters.io,
        }
    }
}
