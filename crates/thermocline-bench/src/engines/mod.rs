//! The engines that can be measured.

#[cfg(feature = "peers")]
mod fjall;
#[cfg(test)]
pub(crate) mod memory;
#[cfg(feature = "peers")]
mod rocksdb;
mod thermocline;

use crate::engine::EngineKind;

/// Every engine of this build.
pub(crate) static ALL: &[&dyn EngineKind] = &[
    &thermocline::Thermocline::HotRap,
    &thermocline::Thermocline::Leveled,
    &thermocline::Thermocline::Tables,
    &thermocline::Thermocline::Cost,
    &thermocline::Thermocline::FastOnly,
    #[cfg(feature = "flash-cache")]
    &thermocline::Thermocline::FlashCache,
    #[cfg(feature = "peers")]
    &rocksdb::RocksDb::Tiered,
    #[cfg(feature = "peers")]
    &rocksdb::RocksDb::FastOnly,
    #[cfg(feature = "peers")]
    &rocksdb::RocksDb::SlowOnly,
    #[cfg(feature = "peers")]
    &fjall::Fjall,
];
