//! The engines that are measured: one trait, and the list of them.

use anyhow::{Result, bail};
use thermocline::Target;

use crate::counters::Counters;
use crate::engines;
use crate::settings::{Dirs, Settings};

/// An open store. Methods are called from many threads at once.
pub(crate) trait Engine: Send + Sync {
    /// Reads `key` and hands what it found to `found`, without a copy if the engine allows that.
    ///
    /// # Errors
    /// The engine's own.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Option<&[u8]>)) -> Result<()>;

    /// Writes a record with the durability of the settings.
    ///
    /// # Errors
    /// The engine's own.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Deletes a record, if there is one, with the durability of the settings.
    ///
    /// # Errors
    /// The engine's own.
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// Hands at most `limit` records from `start` on to `each`, in key order.
    ///
    /// # Errors
    /// The engine's own.
    fn scan(&self, start: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;

    /// Begins to take in sorted records, past the log and the memtables.
    ///
    /// # Errors
    /// The engine's own. Those that [`EngineKind::check_ingestion`] refuses have none.
    fn ingestion(&self) -> Result<Box<dyn Ingestion + '_>> {
        bail!("the engine has no ingestion")
    }

    /// Flushes, and returns once no background work is left.
    ///
    /// # Errors
    /// The engine's own.
    fn settle(&self) -> Result<()>;

    /// The counters now.
    ///
    /// # Errors
    /// The engine's own.
    fn counters(&self) -> Result<Counters>;

    /// Counts the bytes of hot records on the fast tier, by reading its tables. None if the engine
    /// knows of no hot records.
    ///
    /// # Errors
    /// The engine's own.
    fn hot_bytes_on_fast(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Has the store aim at `target` from now on. Only for engines that take one.
    ///
    /// # Errors
    /// The engine's own, for a target that is not possible too.
    fn set_target(&self, target: Target) -> Result<()> {
        bail!("{target}: the engine has no target")
    }

    /// Lifts the limits of an emulated slow disk, or puts them in force again.
    fn throttle(&self, _on: bool) {}

    /// Closes the store so that it can be opened or copied.
    ///
    /// # Errors
    /// The engine's own.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Records on their way into a store by its ingestion. They come in key order, each key once.
pub(crate) trait Ingestion {
    /// Adds a record.
    ///
    /// # Errors
    /// The engine's own.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Returns once all records are readable and durable.
    ///
    /// # Errors
    /// The engine's own.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A way to open stores.
pub(crate) trait EngineKind: Sync {
    /// What `--engine` calls it.
    fn name(&self) -> &'static str;

    /// What its files are called. Engines with the same name here can open each other's stores.
    fn files(&self) -> &'static str {
        self.name()
    }

    /// Whether it reads and writes through the page cache, which its settings do not limit.
    fn uses_page_cache(&self) -> bool {
        false
    }

    /// Whether it can be told what the store may cost.
    fn takes_target(&self) -> bool {
        false
    }

    /// How much of a block cache of `cache` bytes it uses for single records, unless told
    /// otherwise.
    fn usual_record_cache(&self, _cache: u64) -> u64 {
        0
    }

    /// Refuses settings that this engine cannot honour.
    ///
    /// # Errors
    /// Which, and what to do instead.
    fn check(&self, settings: &Settings) -> Result<()>;

    /// Refuses to load by ingestion where there is none.
    ///
    /// # Errors
    /// Why, and what to do instead.
    fn check_ingestion(&self) -> Result<()> {
        bail!(
            "engine `{}`: has no ingestion of sorted records; leave out --ingest",
            self.name()
        )
    }

    /// Opens the store at `dirs`, creating it when there is none.
    ///
    /// # Errors
    /// The engine's own.
    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>>;

    /// Copies the closed store at `from` to `to`, with hard links for files that never change. The
    /// directories at `to` do not exist yet, but their parents do.
    ///
    /// # Errors
    /// The engine's own, or the file system's.
    fn copy(&self, settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()>;
}

/// Engines that need a feature of the build, and that feature.
const OPTIONAL: [(&str, &str); 5] = [
    ("flash-cache", "flash-cache"),
    ("fjall", "peers"),
    ("rocksdb", "peers"),
    ("rocksdb-fast-only", "peers"),
    ("rocksdb-slow-only", "peers"),
];

/// The engine called `name`.
///
/// # Errors
/// There is none of that name, or this build lacks it.
pub(crate) fn find(name: &str) -> Result<&'static dyn EngineKind> {
    if let Some(kind) = engines::ALL.iter().find(|kind| kind.name() == name) {
        return Ok(*kind);
    }
    if let Some((_, feature)) = OPTIONAL.iter().find(|(optional, _)| *optional == name) {
        bail!(
            "engine `{name}`: built without feature `{feature}`; build with `--features {feature}`"
        );
    }
    let names: Vec<&str> = engines::ALL.iter().map(|kind| kind.name()).collect();
    let lacking: Vec<String> = OPTIONAL
        .iter()
        .filter(|(optional, _)| !names.contains(optional))
        .map(|(optional, feature)| format!("{optional} (feature `{feature}`)"))
        .collect();
    let lacking = match lacking.as_slice() {
        [] => String::new(),
        all => format!("; not in this build: {}", all.join(", ")),
    };
    bail!(
        "`{name}` is no engine; there are {}{lacking}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_engine_is_told_what_exists_and_what_could_be_built() {
        let error = find("leveldb").err().unwrap().to_string();
        for name in ["hotrap", "leveled", "tables", "cost", "fast-only"] {
            assert!(error.contains(name), "{error}");
        }
        for (name, feature) in OPTIONAL {
            let said = if find(name).is_ok() {
                name.to_owned()
            } else {
                format!("{name} (feature `{feature}`)")
            };
            assert!(error.contains(&said), "{error}");
        }
    }

    #[test]
    fn an_engine_without_ingestion_refuses_to_load_by_it() {
        let memory = crate::engines::memory::Memory(crate::engines::memory::Lie::None);
        let error = memory.check_ingestion().unwrap_err().to_string();
        assert!(error.contains("has no ingestion"), "{error}");
        if find("rocksdb").is_ok() {
            let plan = crate::plan::tests::parse("--engine rocksdb --ingest");
            let error = plan.unwrap().plan().err().unwrap().to_string();
            assert!(
                error.contains("--ingest is for rocksdb-fast-only"),
                "{error}"
            );
        }
    }

    #[test]
    fn an_engine_that_was_not_built_says_how_to_build_it() {
        for (name, feature) in OPTIONAL {
            if let Err(error) = find(name) {
                let expected = format!("build with `--features {feature}`");
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
    }
}
