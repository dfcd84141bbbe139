//! Bytes as settings: a store with them opens and works, or says what is wrong with them.

use super::store::tiny_options;
use crate::api::Db;
use crate::clock::ManualClock;
use crate::executor::Stepped;
use crate::options::{Compression, FilterPolicy, HotRapOptions, Options, Placement, TierOptions};
use crate::storage::{Medium, Memory};
use crate::sync::Arc;
use crate::{Durability, Error, RecoveryMode};

/// Draws settings from `bytes`. If any of them is out of range, they are refused with a name and a
/// reason; otherwise a store with them opens and does what is asked of it.
///
/// # Panics
/// When that does not hold.
pub fn options(bytes: &[u8]) {
    let options = Draw(bytes).options();
    let resolved = options.validate();
    if let Err(error) = &resolved {
        assert!(
            matches!(error, Error::InvalidOption { reason, .. } if !reason.is_empty()),
            "{error:?} of {options:?}"
        );
    }
    let opened = live(&options);
    match resolved {
        // A tier may be too small for what is written; the store says so.
        Ok(()) => assert!(
            opened.as_ref().map_or_else(Error::is_no_space, |()| true),
            "{opened:?} with {options:?}"
        ),
        Err(_) => assert!(opened.is_err(), "refused, and opens: {options:?}"),
    }
}

/// Opens a store, writes, reads and closes it.
fn live(options: &Options) -> crate::Result<()> {
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let mut builder = Db::builder(options.clone())
        .executor(Arc::new(Stepped::new(1)))
        .clock(Arc::new(ManualClock::default()));
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(&medium));
    }
    let db = builder.open()?;
    let value = [7; 700];
    for round in 0..2u8 {
        for number in 0..30u8 {
            db.put([b'k', number], value)?;
        }
        db.delete([b'k', round])?;
        db.flush()?;
        assert_eq!(db.get([b'k', 9])?.as_deref(), Some(&value[..]));
    }
    db.compact_range::<&[u8]>(..)?;
    assert_eq!(db.iter().filter(Result::is_ok).count(), 29);
    db.metrics();
    db.close()
}

/// Takes settings from bytes; once these are used up, everything is 0.
struct Draw<'a>(&'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number of any size: a few bits, somewhere, or a limit of its type, or `usual`.
    fn number(&mut self, usual: u64) -> u64 {
        let how = self.byte();
        match how {
            0..=127 => usual,
            128..=131 => [0, 1, u64::MAX, u64::MAX - 1][usize::from(how % 4)],
            132..=191 => usual.wrapping_add_signed(i64::from(self.byte() as i8)),
            _ => u64::from(self.byte()) << (how & 63),
        }
    }

    fn float(&mut self, usual: f64) -> f64 {
        match self.byte() {
            0..=150 => usual,
            how @ 151..=156 => {
                let limits = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1.0, f64::MAX];
                limits[usize::from(how - 151)]
            }
            how => usual * f64::from(how) / f64::from(self.byte()),
        }
    }

    fn maybe(&mut self, usual: Option<u64>) -> Option<u64> {
        match self.byte() % 4 {
            0 => None,
            _ => Some(self.number(usual.unwrap_or(16 << 10))),
        }
    }

    fn tier(&mut self, usual: &TierOptions) -> TierOptions {
        let compression = match self.byte() % 8 {
            0..=2 => Compression::None,
            3 | 4 => Compression::Lz4,
            5 | 6 => Compression::Zstd(3),
            _ => Compression::Zstd(i32::from(self.byte() as i8)),
        };
        let filters = [
            FilterPolicy::Fuse8,
            FilterPolicy::Fuse16,
            FilterPolicy::None,
        ];
        TierOptions {
            path: usual.path.clone(),
            capacity: self.number(usual.capacity),
            price_per_gb_month: Some(self.float(0.1)),
            block_size: self.number(usual.block_size as u64) as usize,
            compression,
            filter: filters[usize::from(self.byte()) % filters.len()],
            direct_io: usual.direct_io,
        }
    }

    fn options(&mut self) -> Options {
        let usual = tiny_options();
        let mut tiers: Vec<TierOptions> = Vec::new();
        // Mostly two; sometimes none, or more than there may be.
        let count = match self.byte() {
            0..=199 => 2,
            count => count % 11,
        };
        for index in 0..count {
            let base = &usual.tiers[usize::from(index.min(1))];
            let mut tier = self.tier(base);
            if self.byte() < 250 {
                tier.path = format!("/tier{index}").into();
            }
            tiers.push(tier);
        }
        let mut options = Options {
            memory: self.number(usual.memory),
            block_cache: self.maybe(usual.block_cache),
            memtable_size: self.maybe(usual.memtable_size),
            table_size: self.maybe(usual.table_size),
            l0_trigger: self.number(usual.l0_trigger as u64) as usize,
            l0_slowdown: self.number(usual.l0_slowdown as u64) as usize,
            l0_stop: self.number(usual.l0_stop as u64) as usize,
            level_ratio: self.number(usual.level_ratio),
            compaction_threads: self.number(usual.compaction_threads as u64) as usize,
            log_retention: self.number(0),
            placement: self.placement(),
            ..usual
        };
        options.tiers = tiers;
        options.durability = match self.byte() % 3 {
            0 => Durability::Buffered,
            1 => Durability::None,
            _ => Durability::Sync,
        };
        options.recovery = match self.byte() % 2 {
            0 => RecoveryMode::Strict,
            _ => RecoveryMode::Tolerant,
        };
        options.record_cache = self.maybe(usual.record_cache);
        options
    }

    fn placement(&mut self) -> Placement {
        match self.byte() % 8 {
            0 => return Placement::ByLevel,
            1 => return Placement::FlashCache,
            _ => {}
        }
        let usual = HotRapOptions::default();
        Placement::HotRap(HotRapOptions {
            decay: self.float(usual.decay),
            slice: self.float(usual.slice),
            eviction: self.float(usual.eviction),
            hot_set_min: self.float(usual.hot_set_min),
            hot_set_max: self.float(usual.hot_set_max),
            unstable: self.float(usual.unstable),
            counter_step: self.float(usual.counter_step),
            counter_max: self.float(usual.counter_max),
            hot_set_initial: self.float(usual.hot_set_initial),
            ralt_initial: self.float(usual.ralt_initial),
            #[cfg(feature = "experiments")]
            switches: usual.switches,
        })
    }
}
