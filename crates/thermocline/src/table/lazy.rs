//! A table whose file is opened when it is first read.

use std::sync::OnceLock;

use super::TableMeta;
use super::heat::TableHeat;
use super::reader::Table;
use crate::cache::{BlockCache, PinBudget};
use crate::error::Result;
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;

/// A table that the manifest names. There may be thousands of tables, and a process that reads one
/// key needs three of them. So opening the store reads none of them. If the end of a table is
/// damaged, or another file is in its place, only those who need the table get an error, as for
/// damage anywhere else in it.
#[derive(Debug)]
pub(crate) struct LazyTable {
    /// What is needed to open it.
    place: Place,
    heat: Arc<TableHeat>,
    table: OnceLock<Arc<Table>>,
    /// Held while the table is opened, so that its end is read only once.
    opening: Mutex<()>,
}

#[derive(Debug)]
struct Place {
    tier: Arc<Tier>,
    meta: TableMeta,
    database: u128,
    cache: Arc<BlockCache>,
    pins: Arc<PinBudget>,
}

impl LazyTable {
    /// The table that `meta` names; it will be opened as [`Table::open`] does.
    pub(crate) fn new(
        tier: &Arc<Tier>,
        meta: TableMeta,
        heat: TableHeat,
        database: u128,
        cache: Arc<BlockCache>,
        pins: Arc<PinBudget>,
    ) -> Self {
        let place = Place {
            tier: Arc::clone(tier),
            meta,
            database,
            cache,
            pins,
        };
        Self {
            place,
            heat: Arc::new(heat),
            table: OnceLock::new(),
            opening: Mutex::new(()),
        }
    }

    pub(crate) fn meta(&self) -> &TableMeta {
        &self.place.meta
    }

    /// The tier that the table is on.
    pub(crate) fn tier(&self) -> &Arc<Tier> {
        &self.place.tier
    }

    /// How hot the table is.
    pub(crate) fn heat(&self) -> &TableHeat {
        &self.heat
    }

    /// The table, if it has been opened.
    #[inline]
    pub(crate) fn opened(&self) -> Option<&Arc<Table>> {
        self.table.get()
    }

    /// The table. Opens it if nobody has needed it before.
    ///
    /// # Errors
    /// Those of [`Table::open`]. The next caller tries again.
    #[inline]
    pub(crate) fn open(&self) -> Result<&Arc<Table>> {
        match self.table.get() {
            Some(table) => Ok(table),
            None => self.open_now(),
        }
    }

    #[cold]
    fn open_now(&self) -> Result<&Arc<Table>> {
        let _alone = self.opening.lock();
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let Place {
            tier,
            meta,
            database,
            cache,
            pins,
        } = &self.place;
        let (cache, pins) = (Arc::clone(cache), Arc::clone(pins));
        let table = Table::open(tier, meta.clone(), *database, cache, pins)?;
        let table = table.with_heat(Arc::clone(&self.heat));
        let table = self.table.get_or_init(|| Arc::new(table));
        tier.count_opened();
        Ok(table)
    }
}
