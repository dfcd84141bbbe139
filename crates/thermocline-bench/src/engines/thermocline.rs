//! Our engine, over two tiers and over the fast one alone.

use anyhow::{Result, bail};
use thermocline::{Options, TierOptions};

use crate::engine::{Engine, EngineKind};
use crate::settings::{Compression, Dirs, Durability, Settings};

/// Level tiering: upper levels on the fast disk, lower ones on the slow disk.
pub(super) struct Leveled;

/// Everything on the fast disk, whatever its capacity: what tiering is measured against.
pub(super) struct FastOnly;

impl EngineKind for Leveled {
    fn name(&self) -> &'static str {
        "leveled"
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        check(settings, true)
    }

    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        open(settings, dirs, true)
    }

    fn copy(&self, settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        copy(settings, from, to, true)
    }
}

impl EngineKind for FastOnly {
    fn name(&self) -> &'static str {
        "fast-only"
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        check(settings, false)
    }

    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        open(settings, dirs, false)
    }

    fn copy(&self, settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        copy(settings, from, to, false)
    }
}

fn options(settings: &Settings, dirs: &Dirs, tiered: bool) -> Options {
    let fast = TierOptions::fast(&dirs.fast).block_size(settings.block_size_fast as usize);
    let tiers = if tiered {
        let slow = TierOptions::slow(&dirs.slow)
            .block_size(settings.block_size_slow as usize)
            .compression(match settings.compression {
                Compression::None => thermocline::Compression::None,
                Compression::Lz4 => thermocline::Compression::Lz4,
                Compression::Zstd(level) => thermocline::Compression::Zstd(level),
            });
        vec![fast.capacity(settings.fast_capacity), slow]
    } else {
        vec![fast]
    };
    Options {
        memory: settings.memory,
        block_cache: Some(settings.cache),
        memtable_size: Some(settings.memtable),
        table_size: Some(settings.memtable),
        durability: match settings.durability {
            Durability::None => thermocline::Durability::None,
            Durability::Buffered => thermocline::Durability::Buffered,
            Durability::Sync => thermocline::Durability::Sync,
        },
        ..Options::with_tiers(tiers)
    }
}

fn check(settings: &Settings, tiered: bool) -> Result<()> {
    let names = Dirs {
        fast: "fast".into(),
        slow: "slow".into(),
    };
    Ok(options(settings, &names, tiered).validate()?)
}

fn open(settings: &Settings, dirs: &Dirs, tiered: bool) -> Result<Box<dyn Engine>> {
    options(settings, dirs, tiered).validate()?;
    bail!("the store cannot be opened by this version yet")
}

fn copy(settings: &Settings, from: &Dirs, _to: &Dirs, tiered: bool) -> Result<()> {
    open(settings, from, tiered)?.close()
}
