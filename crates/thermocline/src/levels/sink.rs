//! Where a job writes: tables of one level, one after the other.

use super::cut::Cutter;
use super::spread::Places;
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::ids::FileId;
use crate::key::InternalKey;
use crate::metrics::Purpose;
use crate::table::{TableBuilder, TableIdentity, TableMeta};
use crate::tier::Reservation;

/// What all tables of a job have in common.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) purpose: Purpose,
    /// Their order in L0 (I2).
    pub(crate) epoch: u64,
    /// The tables whose place they take.
    pub(crate) replaces: Vec<FileId>,
}

/// One of the places that a job writes to.
pub(crate) struct Sink {
    level: u8,
    origin: Origin,
    /// The room reserved for all that it takes.
    places: Places,
    /// How long its tables get, in bytes.
    size: u64,
    cutter: Cutter,
    /// The table that is being written, and which of the places it takes.
    table: Option<(TableBuilder, usize)>,
}

impl Sink {
    /// A sink for tables of about `size` bytes of `level`, which end where `cutter` says.
    pub(crate) fn new(
        level: u8,
        origin: Origin,
        places: Places,
        size: u64,
        cutter: Cutter,
    ) -> Self {
        Self {
            level,
            origin,
            places,
            size,
            cutter,
            table: None,
        }
    }

    /// A sink for one table of about `size` bytes.
    pub(crate) fn of_one(level: u8, origin: Origin, space: Reservation, size: u64) -> Self {
        Self::new(level, origin, Places::one(space), size, Cutter::never())
    }

    /// Takes in a record of `tree`. Records come in key order.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn add(
        &mut self,
        engine: &Engine,
        tree: &Tree,
        key: InternalKey<'_>,
        value: &[u8],
    ) -> Result<()> {
        let (table, _) = match &mut self.table {
            Some(table) => table,
            none => {
                let place = self.places.choose(key.user_key, self.size);
                let space = self.places.of(place);
                // Ask the disk for no more than the job has left: a disk that has room for the
                // reservation must not refuse a small job because it asked for a whole table.
                let expected = self.size.min(space.left());
                let table = begin(engine, tree, self.level, space, &self.origin, expected)?;
                none.insert((table, place))
            }
        };
        table.add(key, value)
    }

    /// Whether a table is being written.
    pub(crate) fn has_begun(&self) -> bool {
        self.table.is_some()
    }

    /// Whether the table that is being written should end before `key`. Called with ascending keys,
    /// once each.
    pub(crate) fn ends_before(&mut self, key: &[u8]) -> bool {
        let len = self.begun();
        self.cutter.ends_before(key, len)
    }

    /// Ends the table that is being written, if there is one; it is durable then (I4).
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn finish(&mut self) -> Result<Option<TableMeta>> {
        let Some((table, place)) = self.table.take() else {
            return Ok(None);
        };
        let meta = table.finish()?;
        self.places.of_mut(place).use_for_file(meta.len);
        Ok(Some(meta))
    }

    /// The reservations, to be held until what was written is installed.
    pub(crate) fn into_space(self) -> Vec<Reservation> {
        self.places.into_space()
    }

    /// Bytes that are left of what is reserved on the tier of its output (I8). Something is kept
    /// for the ends of tables.
    pub(crate) fn room(&self) -> u64 {
        let left = self.places.of(0).left();
        (left - left / 32).saturating_sub(self.begun())
    }

    /// How long the table that is being written is by now, in bytes.
    fn begun(&self) -> u64 {
        let begun = self.table.as_ref();
        begun.map_or(0, |(table, _)| table.estimated_len())
    }
}

fn begin(
    engine: &Engine,
    tree: &Tree,
    level: u8,
    space: &Reservation,
    origin: &Origin,
    expected: u64,
) -> Result<TableBuilder> {
    let tier = space.tier();
    let identity = TableIdentity {
        database: engine.identity.database,
        keyspace: tree.id,
        id: engine.new_file(),
        level,
        tier: tier.index,
        epoch: origin.epoch,
        replaces: origin.replaces.clone(),
        gone: engine.graveyard.dead(),
        keyspace_name: tree.name.clone(),
    };
    TableBuilder::new(tier, identity, expected, origin.purpose)
}

#[cfg(test)]
mod tests {
    use crate::testing::scene::{KEYS, Scene, everything};

    /// A job used to give its reservation back once its tables were written. Until they were
    /// installed, both they and the job's inputs then counted as used space that no job would free.
    #[test]
    fn what_is_set_aside_is_held_until_the_output_is_installed() {
        let scene = Scene::new();
        let is_held = |point: &'static str| {
            scene.at(point, move |scene| {
                assert!(scene.engine().fast().in_flight() > 0, "{point}");
                Ok(())
            })
        };
        let hook = is_held("flush.before_edit");
        for version in ["old", "new"] {
            scene.put_all(&KEYS, version);
            scene.db.flush().unwrap();
        }
        drop(hook);
        let hook = is_held("compaction.before_edit");
        scene.start(scene.pick(0, &everything(), true).unwrap());
        scene.drain();
        drop(hook);
        scene.to_slow();
        scene.read_into_cache(&KEYS);
        scene.heat(&KEYS);
        let hook = is_held("promotion.before_edit");
        scene.promote().unwrap();
        drop(hook);
        assert_eq!(scene.engine().fast().in_flight(), 0);
    }
}
